//! Files of who asked to be left alone -> exclusions, and which line it is that excludes an address.
//! What a line means is `exclude`'s affair.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use url::Url;

use crate::exclude::Exclusions;

/// Who asked every census of this program to be left alone.
const BUILT_IN: (&str, &str) = ("data/exclude.txt", include_str!("../../data/exclude.txt"));

/// Files of who asked to be left alone, by their names: the built-in one first.
pub(super) struct Files(Vec<(String, String)>);

impl Files {
    /// Reads these files beside the built-in one.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut files = vec![(BUILT_IN.0.to_owned(), BUILT_IN.1.to_owned())];
        for path in paths {
            let name = path.display().to_string();
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            files.push((name, text));
        }
        Ok(Self(files))
    }

    /// All that they exclude.
    ///
    /// # Errors
    /// At the first line that excludes nothing.
    pub(super) fn exclusions(&self) -> Result<Exclusions> {
        let mut excluded = Exclusions::default();
        for (name, text) in &self.0 {
            excluded.extend(Exclusions::read(text).map_err(|flaw| anyhow!("{name}, {flaw}"))?);
        }
        Ok(excluded)
    }

    /// The first line that excludes the host of an address, with its place in front.
    pub(super) fn line(&self, url: &Url) -> Option<String> {
        let excludes = |line: &str| Exclusions::read(line).is_ok_and(|it| it.covers(url));
        self.0.iter().find_map(|(name, text)| {
            let (number, line) = text.lines().enumerate().find(|(_, line)| excludes(line))?;
            Some(format!("{name}, line {}: {}", number + 1, line.trim()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_excludes_an_address_is_found() {
        let text = "\u{feff}# left out\n192.0.2.0/24\nexample.com # all of it\n";
        let files = Files(vec![
            ("a.txt".into(), "example.org\n".into()),
            ("b.txt".into(), text.into()),
        ]);
        let line = |url: &str| files.line(&url.parse().unwrap());
        assert_eq!(
            line("https://mcp.example.com/x").as_deref(),
            Some("b.txt, line 3: example.com # all of it")
        );
        assert_eq!(
            line("https://192.0.2.9/").as_deref(),
            Some("b.txt, line 2: 192.0.2.0/24")
        );
        assert_eq!(line("https://example.net/"), None);
    }
}

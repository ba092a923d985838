//! A page that a registry serves -> its entries, as they stand, and where the next one starts; and the frozen
//! list that pages make. Asking for pages is `registry`'s affair; what an entry says is `list`'s.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::document::CURSOR;
use super::registry::{OFFICIAL, kind};
use super::scan::string;

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its entries, in order.
    pub entries: Vec<PageEntry>,
    /// Where the next page starts; none on the last one.
    pub next: Option<String>,
}

/// An entry: one version of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEntry {
    /// The server's name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The registry has it as the latest.
    pub is_latest: bool,
    /// The entry as JSON on one line.
    pub json: String,
}

/// Why something is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// It is no JSON, or a part of some.
    #[error("the page is no whole JSON")]
    NotJson,
    /// It is JSON of another shape.
    #[error("the page is {0}, without \"servers\"; is this the registry's base address?")]
    Shape(String),
    /// Its entries are no servers.
    #[error("{0} of the page's {1} entries have no name")]
    Nameless(usize, usize),
}

/// Reads a page, of the official registry or of one that derives from it.
///
/// # Errors
/// When it is none. What is odd about an entry is for whoever reads the list.
pub fn read(bytes: &[u8]) -> Result<Page, PageError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| PageError::NotJson)?;
    let Value::Object(page) = &value else {
        return Err(PageError::Shape(kind(Some(&value)).to_owned()));
    };
    let entries: Vec<PageEntry> = match page.get("servers") {
        Some(Value::Array(servers)) => servers.iter().map(entry).collect(),
        Some(Value::Null) => Vec::new(),
        Some(_) | None => return Err(PageError::Shape("an object".to_owned())),
    };
    let nameless = entries.iter().filter(|it| it.name.is_empty()).count();
    if nameless * 2 > entries.len() {
        return Err(PageError::Nameless(nameless, entries.len()));
    }
    let metadata = page.get("metadata").and_then(Value::as_object);
    let next = metadata
        .and_then(|metadata| string(metadata, &CURSOR))
        .or_else(|| string(page, &CURSOR))
        .filter(|cursor| !cursor.is_empty())
        .map(str::to_owned);
    Ok(Page { entries, next })
}

fn entry(value: &Value) -> PageEntry {
    let empty = Map::new();
    let outer = value.as_object().unwrap_or(&empty);
    let server = outer
        .get("server")
        .and_then(Value::as_object)
        .unwrap_or(outer);
    let text = |key: &str| string(server, &[key]).unwrap_or_default().to_owned();
    let is_latest = [outer, server].into_iter().any(|holder| {
        let official = holder.get("_meta").and_then(|meta| meta.get(OFFICIAL));
        let mark = official.and_then(|it| it.get("isLatest").or_else(|| it.get("is_latest")));
        mark.and_then(Value::as_bool) == Some(true)
    });
    PageEntry {
        name: text("name"),
        version: text("version"),
        is_latest,
        json: value.to_string(),
    }
}

/// The last line of a frozen list that is not whole: a page without entries after which another one follows.
/// Whoever reads the list learns of it, wherever the file has been copied to.
#[must_use]
pub fn more_follows(cursor: &str) -> String {
    json!({ "servers": [], "metadata": { "nextCursor": cursor } }).to_string()
}

/// Reads a line of a frozen list.
///
/// # Errors
/// When it is no entry.
pub fn line(line: &str) -> Result<PageEntry, PageError> {
    let value: Value = serde_json::from_str(line).map_err(|_| PageError::NotJson)?;
    Some(entry(&value))
        .filter(|entry| !entry.name.is_empty())
        .ok_or(PageError::Nameless(1, 1))
}

/// A frozen list in memory, for an increment to be worked into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frozen {
    entries: BTreeMap<(String, String), String>,
}

impl Frozen {
    /// Reads a line of a frozen list.
    ///
    /// # Errors
    /// When it is no entry: the list is not whole, or no frozen list.
    pub fn read_line(&mut self, line: &str) -> Result<(), PageError> {
        let entry = self::line(line)?;
        self.entries.insert((entry.name, entry.version), entry.json);
        Ok(())
    }

    /// Takes an entry in place of the one of its name and version. A latest version takes the place of all others.
    pub fn upsert(&mut self, entry: PageEntry) {
        let PageEntry {
            name,
            version,
            is_latest,
            json,
        } = entry;
        if is_latest {
            let others: Vec<(String, String)> = self
                .entries
                .range((name.clone(), String::new())..)
                .map(|(key, _)| key)
                .take_while(|(other, _)| *other == name)
                .cloned()
                .collect();
            for other in others {
                self.entries.remove(&other);
            }
        }
        self.entries.insert((name, version), json);
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The list, an entry a line, by name and version.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for json in self.entries.values() {
            let _ = writeln!(text, "{json}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_the_walk_where_its_cursor_is_absent_null_or_empty() {
        for (rest, next) in [
            ("", None),
            (r#","metadata":{}"#, None),
            (r#","metadata":{"nextCursor":null}"#, None),
            (r#","metadata":{"nextCursor":""}"#, None),
            (r#","metadata":{"nextCursor":"a/b:1"}"#, Some("a/b:1")),
            (r#","metadata":{"next_cursor":"x"}"#, Some("x")),
            (r#","next":"y""#, Some("y")),
        ] {
            let text =
                format!(r#"{{"servers":[{{"server":{{"name":"a/b","version":"1"}}}}]{rest}}}"#);
            let page = read(text.as_bytes()).unwrap();
            assert_eq!(page.next.as_deref(), next, "{text}");
            assert_eq!(page.entries[0].name, "a/b");
        }
        assert_eq!(read(br#"{"servers":null}"#).unwrap().entries, []);
    }

    #[test]
    fn what_is_no_page_is_an_error_and_never_an_empty_page() {
        for text in [
            "",
            "{\"servers\":[{\"server\":{\"na",
            "[]",
            "{}",
            "{\"servers\":{}}",
            "{\"servers\":[{},{}]}",
            "<html>",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_increment_takes_the_place_of_what_it_supersedes() {
        let line = |name: &str, version: &str, about: &str| {
            format!(
                r#"{{"server":{{"name":"{name}","version":"{version}","title":"{about}"}},"_meta":{{"{OFFICIAL}":{{"isLatest":true}}}}}}"#
            )
        };
        let mut frozen = Frozen::default();
        for kept in [
            line("a", "1", "old"),
            line("a.b", "1", "old"),
            line("b", "1", "old"),
        ] {
            frozen.read_line(&kept).unwrap();
        }
        let page = format!(
            r#"{{"servers":[{},{},{}]}}"#,
            line("a", "2", "new"),
            line("b", "1", "new"),
            line("c", "1", "new")
        );
        for entry in read(page.as_bytes()).unwrap().entries {
            frozen.upsert(entry);
        }
        let want = [
            line("a", "2", "new"),
            line("a.b", "1", "old"),
            line("b", "1", "new"),
            line("c", "1", "new"),
        ];
        assert_eq!(frozen.text(), want.join("\n") + "\n");
        assert!(frozen.read_line(&more_follows("x")).is_err());
    }
}

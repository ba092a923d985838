//! `WWW-Authenticate` -> challenges, by RFC 9110 §11.6.1: several in one header or over several lines,
//! parameters as tokens or quoted strings. What a challenge means for the census is `classify`'s affair.

/// One challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme, in lower case.
    pub scheme: String,
    /// The parameters in order, names in lower case; a token68 stands under an empty name.
    pub params: Vec<(String, String)>,
}

impl Challenge {
    /// The first value of a parameter. `name` is in lower case.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether a parameter stands twice, which RFC 9110 §11.2 forbids.
    #[must_use]
    pub fn repeats_a_param(&self) -> bool {
        (1..self.params.len()).any(|at| {
            self.params[..at]
                .iter()
                .any(|(name, _)| *name == self.params[at].0)
        })
    }
}

/// The challenges of all header lines, and whether every line could be read to its end.
#[must_use]
pub fn challenges<'a>(lines: impl Iterator<Item = &'a str>) -> (Vec<Challenge>, bool) {
    let mut found = Vec::new();
    let mut readable = true;
    for line in lines {
        readable &= read(line, &mut found).is_some();
    }
    (found, readable)
}

fn is_token(it: char) -> bool {
    it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it)
}

fn token(rest: &mut &str) -> Option<String> {
    let end = rest.find(|it| !is_token(it)).unwrap_or(rest.len());
    let (token, after) = rest.split_at(end);
    *rest = after;
    (!token.is_empty()).then(|| token.to_ascii_lowercase())
}

/// Reads one header line; `None` where it breaks the grammar. What was read before that is kept.
fn read(line: &str, found: &mut Vec<Challenge>) -> Option<()> {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(());
        }
        // Either a new challenge's scheme, or the next parameter's name: what follows tells.
        let before = rest;
        let name = token(&mut rest)?;
        let after = rest.trim_start_matches([' ', '\t']);
        if after.starts_with('=') && !after.starts_with("==") && !found.is_empty() {
            rest = after[1..].trim_start_matches([' ', '\t']);
            let value = value(&mut rest)?;
            found.last_mut()?.params.push((name, value));
            continue;
        }
        found.push(Challenge {
            scheme: name,
            params: Vec::new(),
        });
        if rest.starts_with(' ') {
            let credentials = rest.trim_start_matches(' ');
            let end = credentials.find([',', ' ']).unwrap_or(credentials.len());
            let candidate = &credentials[..end];
            let stem = candidate.trim_end_matches('=');
            // A token68 is a word of its own; a parameter has `=` inside, a value after it.
            if !candidate.is_empty()
                && stem
                    .chars()
                    .all(|it| it.is_ascii_alphanumeric() || "-._~+/".contains(it))
                && (candidate.len() > stem.len()
                    || !credentials[end..].trim_start().starts_with('='))
                && (credentials[end..].trim_start().is_empty()
                    || credentials[end..].trim_start().starts_with(','))
            {
                found
                    .last_mut()?
                    .params
                    .push((String::new(), candidate.to_owned()));
                rest = &credentials[end..];
            }
        }
        if rest.len() == before.len() {
            return None;
        }
    }
}

fn value(rest: &mut &str) -> Option<String> {
    let Some(quoted) = rest.strip_prefix('"') else {
        // Unquoted URLs are no tokens, and common: read up to the next separator.
        let end = rest.find([',', ' ', '\t']).unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        *rest = after;
        return Some(value.to_owned());
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, it)) = characters.next() {
        match it {
            '"' => {
                *rest = &quoted[at + 1..];
                return Some(value);
            }
            '\\' => value.push(characters.next()?.1),
            _ => value.push(it),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], want: &str) {
        let (found, readable) = challenges(lines.iter().copied());
        let mut shown: Vec<String> = found
            .iter()
            .map(|it| format!("{} {:?}", it.scheme, it.params))
            .collect();
        if !readable {
            shown.push("unreadable".into());
        }
        assert_eq!(shown.join("; "), want, "{lines:?}");
    }

    #[test]
    fn challenges_are_told_apart_wherever_they_stand() {
        check(&["Bearer"], "bearer []");
        check(
            &["Bearer realm=\"mcp\", error=\"invalid_token\""],
            r#"bearer [("realm", "mcp"), ("error", "invalid_token")]"#,
        );
        check(
            &["Negotiate", "bearer resource_metadata=https://a/b?c=d"],
            r#"negotiate []; bearer [("resource_metadata", "https://a/b?c=d")]"#,
        );
        check(
            &["Basic realm=\"a, b\", Bearer scope=\"x y\""],
            r#"basic [("realm", "a, b")]; bearer [("scope", "x y")]"#,
        );
        check(
            &["Negotiate a87421000492aa874209af8bc028==, Bearer"],
            r#"negotiate [("", "a87421000492aa874209af8bc028==")]; bearer []"#,
        );
        check(
            &["Bearer realm = \"q\\\"uote\""],
            r#"bearer [("realm", "q\"uote")]"#,
        );
        check(&[""], "");
    }

    #[test]
    fn what_breaks_the_grammar_is_noticed_and_the_rest_kept() {
        check(&["Bearer realm=\"open"], "bearer []; unreadable");
        check(&["\"quoted\""], "unreadable");
    }

    #[test]
    fn a_repeated_parameter_is_noticed() {
        let (found, _) = challenges(["Bearer a=1, b=2, A=3"].into_iter());
        assert!(found[0].repeats_a_param() && found[0].param("a") == Some("1"));
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read(line: String, tricky in r#"[a =",\\~]{0,30}"#) {
            let _ = challenges([line.as_str(), tricky.as_str()].into_iter());
        }
    }
}

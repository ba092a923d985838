//! The types of members that several results share: capabilities, implementations, `_meta`. Each says the first
//! member at fault and why.

use serde_json::Value;

use crate::catalogue::rule::Revision;

/// The prefix that is the specification's own.
const OWN_PREFIX: &str = "io.modelcontextprotocol";

/// A member that has to be a string.
pub(super) fn string(holder: &Value, member: &str, path: &str) -> Result<(), String> {
    match holder.get(member) {
        None => Err(format!("{path} is missing")),
        Some(Value::String(_)) => Ok(()),
        Some(other) => Err(format!("{path} is {}", kind(other))),
    }
}

/// A member that may be missing, and is a string otherwise.
pub(super) fn optional_string(holder: &Value, member: &str, path: &str) -> Result<(), String> {
    match holder.get(member) {
        None | Some(Value::String(_)) => Ok(()),
        Some(other) => Err(format!("{path} is {}", kind(other))),
    }
}

/// What a value is, with its article.
pub(super) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The capabilities a revision's schema knows.
fn known(revision: Revision) -> impl Iterator<Item = &'static str> {
    [
        ("experimental", Revision::V2024_11, Revision::V2026_07),
        ("logging", Revision::V2024_11, Revision::V2026_07),
        ("prompts", Revision::V2024_11, Revision::V2026_07),
        ("resources", Revision::V2024_11, Revision::V2026_07),
        ("tools", Revision::V2024_11, Revision::V2026_07),
        ("completions", Revision::V2025_03, Revision::V2026_07),
        ("tasks", Revision::V2025_11, Revision::V2025_11),
        ("extensions", Revision::V2026_07, Revision::V2026_07),
    ]
    .into_iter()
    .filter(move |(_, first, last)| (*first..=*last).contains(&revision))
    .map(|(name, _, _)| name)
}

/// The capabilities that are known are objects, and their flags are booleans.
pub(super) fn capabilities(declared: &Value, revision: Revision) -> Result<(), String> {
    for name in known(revision) {
        let Some(capability) = declared.get(name) else {
            continue;
        };
        if !capability.is_object() {
            return Err(format!("capabilities.{name} is {}", kind(capability)));
        }
        for flag in ["listChanged", "subscribe"] {
            match capability.get(flag) {
                None | Some(Value::Bool(_)) => {}
                Some(other) => {
                    return Err(format!("capabilities.{name}.{flag} is {}", kind(other)));
                }
            }
        }
    }
    Ok(())
}

/// The optional members of `serverInfo`.
pub(super) fn implementation(info: &Value, since: impl Fn(Revision) -> bool) -> Result<(), String> {
    if since(Revision::V2025_06) {
        optional_string(info, "title", "serverInfo.title")?;
    }
    if since(Revision::V2025_11) {
        optional_string(info, "description", "serverInfo.description")?;
        optional_string(info, "websiteUrl", "serverInfo.websiteUrl")?;
        match info.get("icons") {
            None => {}
            Some(Value::Array(icons)) => {
                for icon in icons {
                    string(icon, "src", "serverInfo.icons.src")?;
                }
            }
            Some(other) => return Err(format!("serverInfo.icons is {}", kind(other))),
        }
    }
    Ok(())
}

/// The keys of a `_meta` object: an optional prefix in labels and a slash, then a name.
pub(super) fn meta_keys(meta: &Value) -> Result<usize, String> {
    let Some(members) = meta.as_object() else {
        return Err(format!("_meta is {}", kind(meta)));
    };
    for key in members.keys() {
        let (prefix, name) = key
            .rsplit_once('/')
            .map_or((None, key.as_str()), |(prefix, name)| (Some(prefix), name));
        if let Some(prefix) = prefix {
            if !prefix.split('.').all(is_label) {
                return Err(format!("{key:?}: the prefix is malformed"));
            }
            let second = prefix.split('.').nth(1);
            if matches!(second, Some("mcp" | "modelcontextprotocol")) && prefix != OWN_PREFIX {
                return Err(format!("{key:?}: the prefix is reserved"));
            }
        }
        if !is_name(name) || (prefix.is_none() && name.is_empty()) {
            return Err(format!("{key:?}: the name is malformed"));
        }
    }
    Ok(members.len())
}

/// Begins with a letter, ends with a letter or digit, hyphens between.
fn is_label(label: &str) -> bool {
    label.starts_with(|it: char| it.is_ascii_alphabetic())
        && label.ends_with(|it: char| it.is_ascii_alphanumeric())
        && label
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-')
}

/// Begins and ends with a letter or digit; empty after a prefix.
fn is_name(name: &str) -> bool {
    name.is_empty()
        || (name.starts_with(|it: char| it.is_ascii_alphanumeric())
            && name.ends_with(|it: char| it.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it)))
}

/// The name of an extension has a prefix.
pub(super) fn extensions(declared: &Value) -> Result<(), String> {
    let names = declared.get("extensions").and_then(Value::as_object);
    match names.and_then(|it| it.keys().find(|name| !name.contains('/'))) {
        Some(name) => Err(format!("the extension {name:?} has no prefix")),
        None => Ok(()),
    }
}

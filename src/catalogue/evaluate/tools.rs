//! Checks of a list of tools: that it is one, and what stands in it, on every page that was asked for.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::discovery::first_fault;
use super::members::kind;
use super::{Bench, Told, missing, outside, schema};
use crate::catalogue::heard::Heard;
use crate::catalogue::id::CheckId;
use crate::catalogue::rule::Rule;
use crate::catalogue::situation::capability;
use crate::catalogue::status::{Missing, Outside};
use crate::exchange::Leg;

/// The longest name of a tool, in characters.
const LONGEST_NAME: usize = 128;

/// How deep an input schema is followed.
const DEPTH: usize = 32;

impl<'a> Bench<'a> {
    /// The pages of `tools/list` in one era, where the server declares tools there; there is at least one. One that
    /// could not be read ends the list, and is an error where it is the first.
    pub(super) fn tools(&self, modern: bool) -> Result<Vec<Heard<'a>>, Told> {
        let declaring = if modern {
            self.situation.discovery.as_ref()
        } else {
            Some(self.opening()?)
        };
        let result = declaring
            .and_then(Heard::result)
            .ok_or_else(|| missing(Missing::Basis))?;
        if capability(Some(result), "tools").is_none() {
            return Err(outside(Outside::Capability));
        }
        let first = self.answered(Leg::Tools, modern)?;
        let later = self.situation.pages(modern).skip(1).map(Self::read);
        Ok(std::iter::once(first)
            .chain(later.map_while(Result::ok))
            .collect())
    }

    pub(super) fn about_tools(&self, rule: &Rule) -> Result<Told, Told> {
        let of_modern = matches!(
            rule.id,
            CheckId::ToolsXMcpHeader | CheckId::ToolsDeterministic
        );
        let modern = of_modern || self.situation.is_met_as_modern();
        let pages = self.tools(modern)?;
        if rule.id == CheckId::ToolsListWorks {
            return Ok(Self::held(rule, listed(&pages)));
        }
        let basis = || missing(Missing::Basis);
        let results: Vec<&Value> = pages.iter().filter_map(Heard::result).collect();
        if rule.id == CheckId::ListCursorType {
            if results.is_empty() {
                return Err(basis());
            }
            let mut cursors = results.iter().filter_map(|it| it.get("nextCursor"));
            let bad = cursors.find(|it| !it.is_string());
            return Ok(Self::held(
                rule,
                match bad {
                    None => Ok(String::new()),
                    Some(other) => Err(format!("nextCursor is {}", kind(other))),
                },
            ));
        }
        let lists: Vec<&[Value]> = results.iter().filter_map(|it| tools_in(it)).collect();
        let first = *lists.first().ok_or_else(basis)?;
        if rule.id == CheckId::ToolsDeterministic {
            return self.same_order(rule, first);
        }
        let tools: Vec<&Value> = lists.into_iter().flatten().collect();
        if rule.id == CheckId::ToolsOutputSchema
            && tools.iter().all(|it| it.get("outputSchema").is_none())
        {
            return Err(outside(Outside::Member));
        }
        let mut names = BTreeSet::new();
        let seen = tools.iter().map(|tool| {
            let fault = match rule.id {
                CheckId::ToolsShape => shape(tool),
                CheckId::ToolsSchemaValid => schema::valid(&tool["inputSchema"]),
                CheckId::ToolsNameRules => name_rules(tool, &mut names),
                CheckId::ToolsOutputSchema => output_schema(tool),
                _ => parameter_headers(tool),
            };
            fault.map(|()| String::new()).map_err(|fault| {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or("?");
                let name: String = name.chars().take(LONGEST_NAME).collect();
                format!("{name:?}: {fault}")
            })
        });
        Ok(first_fault(rule, seen))
    }

    fn same_order(&self, rule: &Rule, tools: &[Value]) -> Result<Told, Told> {
        let again = self.answered(Leg::ToolsAgain, true)?;
        let later = again
            .result()
            .and_then(|it| it.get("tools")?.as_array())
            .ok_or_else(|| missing(Missing::Basis))?;
        let names = |tools: &[Value]| -> Vec<Option<String>> {
            tools
                .iter()
                .map(|it| it.get("name")?.as_str().map(str::to_owned))
                .collect()
        };
        Ok(Self::held(
            rule,
            if names(tools) == names(later) {
                Ok(String::new())
            } else {
                Err("the two lists differ".to_owned())
            },
        ))
    }
}

/// The tools of a page.
fn tools_in(result: &Value) -> Option<&[Value]> {
    result.get("tools")?.as_array().map(Vec::as_slice)
}

/// Whether every page is one, and how many tools there are.
fn listed(pages: &[Heard<'_>]) -> Result<String, String> {
    let mut count = 0;
    for (number, page) in pages.iter().enumerate() {
        let on = if number == 0 {
            String::new()
        } else {
            format!("page {}: ", number + 1)
        };
        match (page.result(), page.code()) {
            (Some(result), _) => match tools_in(result) {
                Some(tools) => count += tools.len(),
                None => return Err(format!("{on}the result has no list of tools")),
            },
            (None, Some(code)) => return Err(format!("{on}refused with {code}")),
            (None, None) => {
                let status = page.answer.status;
                return Err(format!("{on}HTTP {status} without a response"));
            }
        }
    }
    let goes_on = pages
        .last()
        .and_then(Heard::result)
        .is_some_and(|it| it.get("nextCursor").is_some_and(Value::is_string));
    let more = if goes_on { ", and more pages" } else { "" };
    Ok(format!("{count} tools{more}"))
}

fn shape(tool: &Value) -> Result<(), String> {
    super::members::string(tool, "name", "name")?;
    match tool.get("inputSchema") {
        None => Err("inputSchema is missing".to_owned()),
        Some(Value::Object(schema)) => is_object_schema(schema, "inputSchema"),
        Some(other) => Err(format!("inputSchema is {}", kind(other))),
    }
}

fn output_schema(tool: &Value) -> Result<(), String> {
    match tool.get("outputSchema") {
        None => Ok(()),
        Some(Value::Object(schema)) => is_object_schema(schema, "outputSchema"),
        Some(other) => Err(format!("outputSchema is {}", kind(other))),
    }
}

fn is_object_schema(schema: &Map<String, Value>, path: &str) -> Result<(), String> {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => Ok(()),
        Some(other) => Err(format!("{path}.type is {other}")),
        None => Err(format!("{path}.type is missing")),
    }
}

/// The rules for names; one that is no string is told by the check of the shape.
fn name_rules(tool: &Value, names: &mut BTreeSet<String>) -> Result<(), String> {
    let Some(name) = tool.get("name").and_then(Value::as_str) else {
        return Ok(());
    };
    let length = name.chars().count();
    if length == 0 || length > LONGEST_NAME {
        return Err(format!("the name has {length} characters"));
    }
    if let Some(it) = name
        .chars()
        .find(|it| !it.is_ascii_alphanumeric() && !"_-.".contains(*it))
    {
        return Err(format!(
            "the name has {:?}",
            it.escape_default().to_string()
        ));
    }
    if names.insert(name.to_owned()) {
        Ok(())
    } else {
        Err("two tools have the name".to_owned())
    }
}

/// `x-mcp-header` in an input schema: where it may stand, and what it may say.
fn parameter_headers(tool: &Value) -> Result<(), String> {
    const MARK: &str = "x-mcp-header";
    let Some(schema) = tool.get("inputSchema") else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    // Each schema, whether it is reached by properties alone, and how deep it stands.
    let mut open = vec![(schema, true, 0usize)];
    while let Some((schema, reachable, depth)) = open.pop() {
        if depth > DEPTH {
            continue;
        }
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => {
                open.extend(items.iter().map(|it| (it, false, depth + 1)));
                continue;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        };
        if let Some(mark) = members.get(MARK) {
            let name = mark.as_str().unwrap_or_default();
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(format!("{MARK} is {mark}"));
            }
            if !seen.insert(name.to_ascii_lowercase()) {
                return Err(format!("{MARK} {name:?} stands twice"));
            }
            let kind = members.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err(format!(
                    "{MARK} {name:?} is on no string, integer or boolean"
                ));
            }
            if !reachable || depth == 0 {
                return Err(format!(
                    "{MARK} {name:?} is not reached by properties alone"
                ));
            }
        }
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    open.extend(properties.values().map(|it| (it, reachable, depth + 1)));
                }
                // Values, not schemas.
                ("enum" | "const" | "default" | "examples", _) => {}
                (_, value) => open.push((value, false, depth + 1)),
            }
        }
    }
    Ok(())
}

/// A character of a token (RFC 9110 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

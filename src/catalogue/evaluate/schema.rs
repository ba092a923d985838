//! Whether a JSON Schema is one, as far as the shapes of its keywords tell: 2020-12 and draft-07. Nothing is fetched,
//! and no value is held against it.

use serde_json::Value;

use super::members::kind;

/// How deep a schema is followed; no schema that a model can use is deeper.
const DEPTH: usize = 64;

/// What the value of a keyword has to be.
enum Shape {
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrSchemas,
    Dependency,
    Strings,
    Text,
    Flag,
    Number,
    Positive,
    Count,
    List,
    Type,
}

fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "additionalProperties"
        | "propertyNames"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "additionalItems"
        | "contentSchema" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::Schemas,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            Shape::SchemaMap
        }
        "items" => Shape::SchemaOrSchemas,
        "dependencies" => Shape::Dependency,
        "required" => Shape::Strings,
        "$ref" | "$id" | "$schema" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$comment"
        | "title" | "description" | "pattern" | "format" | "contentEncoding"
        | "contentMediaType" => Shape::Text,
        "uniqueItems" | "readOnly" | "writeOnly" | "deprecated" => Shape::Flag,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Shape::Number,
        "multipleOf" => Shape::Positive,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Shape::Count,
        "enum" | "examples" => Shape::List,
        "type" => Shape::Type,
        _ => return None,
    })
}

/// Whether a schema's keywords have the shapes they must have.
///
/// # Errors
/// The first keyword at fault, by its path.
pub(super) fn valid(schema: &Value) -> Result<(), String> {
    if let Some(dialect) = schema.get("$schema").and_then(Value::as_str)
        && ![
            "json-schema.org/draft/2020-12/",
            "json-schema.org/draft-07/",
        ]
        .iter()
        .any(|it| dialect.contains(it))
    {
        return Ok(());
    }
    let mut open = vec![(schema, String::new(), 0usize)];
    while let Some((schema, path, depth)) = open.pop() {
        if depth > DEPTH {
            continue;
        }
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => continue,
            Value::Null if depth == 0 => return Ok(()),
            other => return Err(format!("{path} is {}", kind(other))),
        };
        for (keyword, value) in members {
            let Some(shape) = shape(keyword) else {
                continue;
            };
            let at = if path.is_empty() {
                keyword.clone()
            } else {
                format!("{path}.{keyword}")
            };
            let fault = || Err(format!("{at} is {}", kind(value)));
            match (shape, value) {
                (Shape::Schema | Shape::SchemaOrSchemas, Value::Object(_) | Value::Bool(_)) => {
                    open.push((value, at, depth + 1));
                }
                (Shape::Schemas, Value::Array(items)) if items.is_empty() => {
                    return Err(format!("{at} is empty"));
                }
                (Shape::Schemas | Shape::SchemaOrSchemas, Value::Array(items)) => {
                    open.extend(items.iter().map(|it| (it, at.clone(), depth + 1)));
                }
                (Shape::SchemaMap, Value::Object(map)) => {
                    open.extend(
                        map.iter()
                            .map(|(name, it)| (it, format!("{at}.{name}"), depth + 1)),
                    );
                }
                (Shape::Dependency, Value::Object(map)) => {
                    open.extend(
                        map.iter()
                            .filter(|(_, it)| !it.is_array())
                            .map(|(name, it)| (it, format!("{at}.{name}"), depth + 1)),
                    );
                }
                (Shape::Strings, Value::Array(items)) => {
                    if !items.iter().all(Value::is_string) {
                        return Err(format!("{at} holds what is no string"));
                    }
                }
                (Shape::Text, Value::String(_))
                | (Shape::Flag, Value::Bool(_))
                | (Shape::Number, Value::Number(_))
                | (Shape::List, Value::Array(_)) => {}
                (Shape::Positive, Value::Number(number))
                    if number.as_f64().is_some_and(|it| it > 0.0) => {}
                (Shape::Count, Value::Number(number))
                    if number
                        .as_f64()
                        .is_some_and(|it| it >= 0.0 && it.fract() == 0.0) => {}
                (Shape::Positive | Shape::Count, Value::Number(number)) => {
                    return Err(format!("{at} is {number}"));
                }
                (Shape::Type, Value::String(name)) if is_type(name) => {}
                (Shape::Type, Value::Array(names))
                    if !names.is_empty()
                        && names.iter().all(|it| it.as_str().is_some_and(is_type)) => {}
                (Shape::Type, Value::String(_) | Value::Array(_)) => {
                    return Err(format!("{at} is {value}"));
                }
                _ => return fault(),
            }
        }
    }
    Ok(())
}

fn is_type(name: &str) -> bool {
    matches!(
        name,
        "null" | "boolean" | "object" | "array" | "number" | "string" | "integer"
    )
}

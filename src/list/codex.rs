//! The `mcp_servers` of Codex's `config.toml` -> listings. A server's row is the line its table starts in.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::ListError;
use super::client;
use super::input::Input;
use super::rows::Rows;

pub(super) fn read(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let text = input.whole().map_err(|error| rows.unread(0, error))?;
    let line_at = |at: usize| {
        let newlines = text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        u64::try_from(newlines).expect("a text has fewer lines than 64 bits count") + 1
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        rows.broken(line, error.message().to_owned())
    })?;
    let Some(DeValue::Table(servers)) = table
        .get_ref()
        .get("mcp_servers")
        .map(toml::Spanned::get_ref)
    else {
        return Ok(());
    };
    let mut servers: Vec<_> = servers.iter().collect();
    servers.sort_by_key(|(name, _)| name.span().start);
    for (name, server) in servers {
        rows.stand_at(line_at(name.span().start));
        let line = rows.entry();
        match json(server.get_ref()) {
            Value::Object(server) => client::server(name.get_ref(), &server, line, rows),
            _ => rows.bad(
                line,
                "this server is no table; give it a [mcp_servers.NAME]",
            ),
        }
    }
    Ok(())
}

/// The value in the terms of JSON, in which the other clients' configurations are.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => Value::String(number.to_string()),
        DeValue::Float(number) => Value::String(number.to_string()),
        DeValue::Boolean(it) => Value::Bool(*it),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(list) => list.iter().map(|it| json(it.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(name, it)| (name.get_ref().to_string(), json(it.get_ref())))
            .collect(),
    }
}

//! Rows for tests.

use crate::outcome::{Era, Outcome, Verdict};
use crate::row::Row;

/// A row with an outcome, a detail and a verdict, and nothing else known.
pub(crate) fn row(outcome: Outcome, detail: &str, verdict: Verdict) -> Row {
    Row {
        name: "test/server".to_owned(),
        url: "https://mcp.example.test/mcp".to_owned(),
        endpoint: None,
        host: None,
        site: None,
        declared_transport: None,
        declared_auth: None,
        outcome,
        detail: detail.to_owned(),
        verdict,
        hint: None,
        http_status: None,
        rpc_code: None,
        rpc_message: None,
        era: Era::Unknown,
        transport: None,
        protocol_version: None,
        server_name: None,
        server_version: None,
        auth_scheme: None,
        content_type: None,
        body_kind: None,
        redirects: 0,
        final_url: None,
        session: None,
        attempts: 1,
        flaky: false,
        findings: String::new(),
        dns_ms: None,
        connect_ms: None,
        tls_ms: None,
        first_byte_ms: None,
        total_ms: None,
        requests: 1,
        started_at: None,
    }
}

/// The same row at an address: its endpoint, its host, and the host's last two labels as its site.
pub(crate) fn at(host: &str, path: &str, row: Row) -> Row {
    let labels: Vec<&str> = host.rsplitn(3, '.').take(2).collect();
    Row {
        endpoint: Some(format!("https://{host}{path}")),
        host: Some(host.to_owned()),
        site: Some(format!("{}.{}", labels[1], labels[0])),
        ..row
    }
}

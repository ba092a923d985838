//! One input row's line of `results.csv`: flat, in a fixed order, each column's name spelt here only.
//! How a row comes by its values is `scan`'s and `classify`'s affair.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::classify::Reading;
use crate::exchange::{Exchange, Leg};
use crate::finding::Finding;
use crate::inquiry;
use crate::outcome::{BodyKind, Detail, Era, Framing, Hint, Outcome, Session, Transport, Verdict};
use crate::roll::{Aim, Entry};
use crate::settle::Settled;
use crate::target;
use crate::unseen;
use crate::wrap::end_of;

/// Declares the row, and `COLUMNS` with what each column holds.
macro_rules! columns {
    ($(#[$meta:meta])* pub struct $row:ident { $( #[doc = $about:literal] $column:ident: $type:ty, )+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $row { $( #[doc = $about] pub $column: $type, )+ }

        impl $row {
            /// Every column's name and what it holds, in the order of the file.
            pub const COLUMNS: &[(&str, &str)] = &[ $( (stringify!($column), $about), )+ ];

            /// What kind of value each column holds, in the same order.
            pub const KINDS: &[Kind] = &[ $( <$type as Cell>::KIND, )+ ];

            /// The row's cells, in the order of the columns, each inert in a spreadsheet.
            #[must_use]
            pub fn cells(&self) -> Vec<Cow<'_, str>> {
                vec![ $( made_inert(self.$column.cell()), )+ ]
            }
        }
    };
}

columns! {
    /// A row of the census. Empty where unknown.
    pub struct Row {
        /// The name the list gives.
        name: String,
        /// The address as listed, secrets taken out.
        url: String,
        /// The address that was asked: the endpoint's identity, secrets taken out.
        endpoint: Option<String>,
        /// Its host.
        host: Option<String>,
        /// The site whose lane it ran in: the registrable domain, private suffixes counted as public.
        site: Option<String>,
        /// The transport the list declares.
        declared_transport: Option<Transport>,
        /// The credentials the list declares: `none`, `optional` or `required`.
        declared_auth: Option<String>,
        /// The mechanical reading of the answer to `initialize`.
        outcome: Outcome,
        /// What narrows the outcome.
        detail: String,
        /// The roll-up that a headline uses.
        verdict: Verdict,
        /// What the text of the answer suggests; it decides nothing.
        hint: Option<Hint>,
        /// The HTTP status that decided.
        http_status: Option<u16>,
        /// The JSON-RPC error code.
        rpc_code: Option<i64>,
        /// The JSON-RPC error message, cut at 200 characters.
        rpc_message: Option<String>,
        /// The generation of the protocol that was seen.
        era: Era,
        /// The transport that was seen.
        transport: Option<Transport>,
        /// The revision the server answered with.
        protocol_version: Option<String>,
        /// `serverInfo.name`.
        server_name: Option<String>,
        /// `serverInfo.version`.
        server_version: Option<String>,
        /// The challenge of a 401 or 403, in lower case.
        auth_scheme: Option<String>,
        /// The media type of the answer, without parameters.
        content_type: Option<String>,
        /// What the body is, by its bytes.
        body_kind: Option<BodyKind>,
        /// How many redirects were followed.
        redirects: u32,
        /// The address that answered, where it is not the endpoint, secrets taken out.
        final_url: Option<String>,
        /// How the session we were given ended.
        session: Option<Session>,
        /// How many times the endpoint was asked.
        attempts: u32,
        /// The attempts disagree.
        flaky: bool,
        /// What was noticed beside the outcome, joined by `;`.
        findings: String,
        /// Name resolution, milliseconds.
        dns_ms: Option<f64>,
        /// TCP connection, milliseconds.
        connect_ms: Option<f64>,
        /// TLS handshake, milliseconds.
        tls_ms: Option<f64>,
        /// From the start of the request to the response's headers, milliseconds.
        first_byte_ms: Option<f64>,
        /// From the start of the request to its end, milliseconds.
        total_ms: Option<f64>,
        /// HTTP requests spent on the endpoint, all attempts together.
        requests: u32,
        /// When the endpoint was first asked, RFC 3339, UTC.
        started_at: Option<String>,
    }
}

/// What kind of value a column holds.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of a few words; they are given in order.
    Word(fn() -> Vec<&'static str>),
}

/// A value as it stands in a cell.
trait Cell {
    const KIND: Kind;
    fn cell(&self) -> Cow<'_, str>;
}

macro_rules! cells {
    ($($type:ty: $kind:expr, $cell:expr);+) => { $(
        impl Cell for $type {
            const KIND: Kind = $kind;
            fn cell(&self) -> Cow<'_, str> {
                let cell: fn(&Self) -> Cow<'_, str> = $cell;
                cell(self)
            }
        }
    )+ };
}
cells!(
    String: Kind::Text, |it| it.as_str().into();
    u16: Kind::Integer, |it| it.to_string().into();
    u32: Kind::Integer, |it| it.to_string().into();
    i64: Kind::Integer, |it| it.to_string().into();
    bool: Kind::Boolean, |it| if *it { "true" } else { "false" }.into()
);

macro_rules! words {
    ($($type:ty),+) => { cells!($(
        $type: Kind::Word(|| <$type>::ALL.iter().map(|it| it.name()).collect()), |it| it.name().into()
    );+); };
}
words!(Outcome, Verdict, Hint, Era, Transport, BodyKind, Session);

impl Cell for f64 {
    const KIND: Kind = Kind::Number;

    fn cell(&self) -> Cow<'_, str> {
        let mut cell = to_thousandths(*self);
        let kept = cell.trim_end_matches('0').trim_end_matches('.').len();
        cell.truncate(kept);
        cell.into()
    }
}

/// A number with three decimals. Most are whole thousandths, as times in microseconds are, and soon written.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "what does not come back the same is written the long way"
)]
fn to_thousandths(it: f64) -> String {
    let whole = (it * 1000.0).round() as u64;
    if (whole as f64 / 1000.0).to_bits() != it.to_bits() {
        return format!("{it:.3}");
    }
    let mut text = whole.to_string();
    if let Some(missing) = "0000".get(text.len()..) {
        text.insert_str(0, missing);
    }
    text.insert(text.len() - 3, '.');
    text
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;

    fn cell(&self) -> Cow<'_, str> {
        self.as_ref().map(Cell::cell).unwrap_or_default()
    }
}

/// What the name of a column of the input's own gets in front.
pub const INPUT_PREFIX: &str = "input_";

/// What the name of a vantage gets in front: the column of a merged run that has its verdict.
pub const VANTAGE_PREFIX: &str = "at_";

/// The longest text of a server's that a cell holds, in characters.
const LONGEST_SAID: usize = 200;

impl Row {
    /// The row of an entry. `settled` and `exchanges` are its endpoint's; none where nothing was asked, and
    /// then `otherwise` says what the row says instead.
    #[must_use]
    pub fn new(
        entry: &Entry,
        site: Option<String>,
        settled: Option<&Settled>,
        exchanges: &[Exchange],
        otherwise: Detail,
    ) -> Self {
        let address = match &entry.aim {
            Aim::Endpoint { address, .. } | Aim::LeftOut { address, .. } => Some(address),
            Aim::Unprobeable { .. } => None,
        };
        let unread = Reading::of(otherwise);
        let reading = settled.map_or(&unread, |it| &it.reading);
        let attempts = inquiry::attempts(exchanges);
        let attempt = settled.and_then(|it| attempts.get(it.speaks));
        let decided = attempt.and_then(|attempt| attempt.get(reading.decided_by));
        let timing = decided.map(|it| it.timing).unwrap_or_default();
        let last_hop =
            attempt.and_then(|attempt| attempt.iter().rfind(|it| it.leg == Leg::Initialize));
        let sent = exchanges.iter().filter(|it| !it.connection.shared);
        let findings: Vec<String> = entry
            .findings
            .iter()
            .chain(&reading.findings)
            .map(ToString::to_string)
            .collect();
        Self {
            name: entry.name.clone(),
            url: target::redacted_raw(&entry.url),
            endpoint: address.map(target::redacted),
            host: address.and_then(|url| url.host_str()).map(str::to_owned),
            site,
            declared_transport: entry.transport,
            declared_auth: entry.auth.clone(),
            outcome: reading.detail.outcome(),
            detail: reading.detail.to_string(),
            verdict: reading.verdict,
            hint: reading.hint,
            http_status: reading.http_status,
            rpc_code: reading.rpc_error.as_ref().map(|(code, _)| *code),
            rpc_message: reading
                .rpc_error
                .as_ref()
                .map(|(_, text)| said(text))
                .filter(|it| !it.is_empty()),
            era: reading.era,
            transport: reading.transport,
            protocol_version: reading.protocol_version.as_deref().map(said),
            server_name: reading.server.as_ref().map(|(name, _)| said(name)),
            server_version: reading.server.as_ref().map(|(_, version)| said(version)),
            auth_scheme: reading.auth_scheme.as_deref().map(said),
            content_type: reading.content_type.as_deref().map(said),
            body_kind: reading.body_kind,
            redirects: reading.redirects,
            final_url: last_hop
                .filter(|_| reading.redirects > 0)
                .map(|it| said(&it.request.url)),
            session: reading.session,
            attempts: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
            flaky: settled.is_some_and(|it| it.flaky),
            findings: findings.join(";"),
            dns_ms: timing.dns_ms,
            connect_ms: timing.connect_ms,
            tls_ms: timing.tls_ms,
            first_byte_ms: timing.first_byte_ms,
            total_ms: timing.total_ms,
            requests: u32::try_from(sent.count()).unwrap_or(u32::MAX),
            started_at: exchanges.first().map(|it| it.started_at.to_string()),
        }
    }

    /// Adds something that was noticed beside the outcome.
    pub fn notice(&mut self, finding: &Finding) {
        if !self.findings.is_empty() {
            self.findings.push(';');
        }
        self.findings.push_str(&finding.to_string());
    }
}

/// What a server said, short enough for a cell.
fn said(text: &str) -> String {
    match end_of(text, LONGEST_SAID) {
        Some(end) => text[..end].to_owned() + "...",
        None => text.to_owned(),
    }
}

/// How the answer was framed, as far as a finished row tells.
#[must_use]
pub fn framing(row: &Row) -> Option<Framing> {
    if row.outcome == Outcome::Success {
        Framing::named(&row.detail)
    } else {
        None
    }
}

/// Makes a cell inert in a spreadsheet: what a stranger's server said must not run there.
///
/// A value that starts with `=`, `+`, `-`, `@`, tab or carriage return and is no number gets a quote in
/// front; what acts becomes a space; what hides or reorders what a reader sees goes.
#[must_use]
pub fn inert(cell: &str) -> String {
    made_inert(cell.into()).into_owned()
}

fn made_inert(cell: Cow<'_, str>) -> Cow<'_, str> {
    // Most cells are harmless.
    if cell.bytes().all(|it| matches!(it, b' '..=b'~')) && !cell.starts_with(['=', '+', '-', '@']) {
        return cell;
    }
    let plain: String = cell
        .chars()
        .filter(|it| !unseen::hides(*it))
        .map(|it| if unseen::acts(it) { ' ' } else { it })
        .collect();
    let dangerous = cell.starts_with(['=', '+', '-', '@', '\t', '\r'])
        || plain.starts_with(['=', '+', '-', '@']);
    if dangerous && plain.parse::<f64>().is_err() {
        format!("'{plain}").into()
    } else {
        plain.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_three_decimals_at_most() {
        for it in [
            0.0,
            -0.0,
            0.001,
            1.5,
            12.0,
            1234.567,
            0.0005,
            1.0 / 3.0,
            -2.5,
            1e17,
            1e300,
            0.1 + 0.2,
        ] {
            assert_eq!(to_thousandths(it), format!("{it:.3}"));
        }
        let cells = [1234.567, 1.5, 12.0, 0.0].map(|it| it.cell().into_owned());
        assert_eq!(cells, ["1234.567", "1.5", "12", "0"]);
    }

    #[test]
    fn what_a_server_said_is_data() {
        for (said, want) in [
            ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
            ("-32601", "-32601"),
            ("-rm", "'-rm"),
            ("\t=1+1", "' =1+1"),
            ("a\u{202e}b", "ab"),
            ("\x1b[31mred", " [31mred"),
            ("ok", "ok"),
        ] {
            assert_eq!(inert(said), want);
        }
    }
}

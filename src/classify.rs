//! Exchanges -> a reading: the ladder. Total and deterministic: any status, headers and bytes have
//! exactly one reading, and it depends on nothing but the stored evidence.
//!
//! The body is read before the status, except for 401, 402, 403 and 429, whose meaning no body changes.
//! What to ask next is `inquiry`'s affair; how attempts are folded into a row is `settle`'s.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use url::Url;

use crate::body::{self, Body, Content, Stream};
use crate::challenge::challenges;
use crate::envelope::{self, Id, Said};
use crate::exchange::{Answer, BodyEnd, ConnectFault, Drop, Exchange, Fault, Leg, LocalFault, Reply, Stage};
use crate::finding::{Check, Finding};
use crate::hint;
use crate::mcp::{self, DISCOVER_ID, INITIALIZE_ID};
use crate::outcome::{
    BodyKind, Challenge, DeadEnd, Detail, Era, Framing, Hint, NotJson, Payment, Refusal, Session, Transport, Turn, Unmeasured,
    Unprobeable, Verdict, Violation, verdict,
};
use crate::redirect::{self, Step};

/// More than this to the first byte is slow, milliseconds.
const SLOW_FIRST_BYTE_MS: f64 = 3000.0;

/// What one attempt at an endpoint tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The outcome, and what narrows it.
    pub detail: Detail,
    /// The roll-up.
    pub verdict: Verdict,
    /// What the words suggest.
    pub hint: Option<Hint>,
    /// What was noticed, each once, in the order of noticing.
    pub findings: Vec<Finding>,
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    /// The JSON-RPC error, where there was one: code and message.
    pub rpc_error: Option<(i64, String)>,
    /// The protocol generation seen.
    pub era: Era,
    /// The transport seen.
    pub transport: Option<Transport>,
    /// The revision answered with.
    pub protocol_version: Option<String>,
    /// `serverInfo`: name and version.
    pub server: Option<(String, String)>,
    /// The challenge's scheme.
    pub auth_scheme: Option<String>,
    /// The media type of the deciding answer.
    pub content_type: Option<String>,
    /// What the deciding body is.
    pub body_kind: Option<BodyKind>,
    /// Redirects followed.
    pub redirects: u32,
    /// How a session ended.
    pub session: Option<Session>,
    /// Where the deciding exchange stands among the attempt's.
    pub decided_by: usize,
}

impl Reading {
    /// A reading that rests on no exchange.
    #[must_use]
    pub fn of(detail: Detail) -> Self {
        let verdict = verdict(&detail, None, false);
        Self {
            detail,
            verdict,
            hint: None,
            findings: Vec::new(),
            http_status: None,
            rpc_error: None,
            era: Era::Unknown,
            transport: None,
            protocol_version: None,
            server: None,
            auth_scheme: None,
            content_type: None,
            body_kind: None,
            redirects: 0,
            session: None,
            decided_by: 0,
        }
    }

    fn note(&mut self, finding: impl Into<Finding>) {
        let finding = finding.into();
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// Reads the exchanges of one attempt at one endpoint, in the order they happened.
#[must_use]
pub fn classify(asked_version: &str, declared: Option<Transport>, exchanges: &[Exchange]) -> Reading {
    let chain: Vec<&Exchange> = legs(exchanges, Leg::Initialize).collect();
    let mut reading = match (stream_reading(asked_version, exchanges), chain.last()) {
        (Some(reading), _) if reading.transport.is_some() || chain.is_empty() => reading,
        (_, Some(_)) => chain_reading(asked_version, exchanges, &chain),
        (Some(reading), None) => reading,
        (None, None) => return Reading::of(Detail::Unmeasured(Unmeasured::Interrupted)),
    };
    note_stream(&mut reading, exchanges);
    note_connection(&mut reading, exchanges);
    note_transport(&mut reading, declared);
    hear_discover(&mut reading, exchanges);
    hear_redirect_target(&mut reading, asked_version, exchanges);
    reading.session = session(exchanges);
    reading.verdict = verdict(&reading.detail, reading.hint, reading.findings.iter().any(|it| it.check == Check::DiscoverOk));
    reading
}

fn legs(exchanges: &[Exchange], leg: Leg) -> impl Iterator<Item = &Exchange> {
    exchanges.iter().filter(move |exchange| exchange.leg == leg)
}

fn position(exchanges: &[Exchange], wanted: &Exchange) -> usize {
    exchanges.iter().position(|exchange| std::ptr::eq(exchange, wanted)).unwrap_or_default()
}

/// The reading of the chain of `initialize` POSTs: one, or one for each redirect followed.
fn chain_reading(asked_version: &str, exchanges: &[Exchange], chain: &[&Exchange]) -> Reading {
    let last = chain[chain.len() - 1];
    let mut reading = judge(asked_version, last, chain);
    reading.decided_by = position(exchanges, last);
    if let Some(resumed) = legs(exchanges, Leg::SseResume).next() {
        let second = judge(asked_version, resumed, &[]);
        if matches!(second.detail, Detail::Framing(_) | Detail::Code(_)) {
            reading = Reading { decided_by: position(exchanges, resumed), ..second };
            reading.note(Check::SseResumed);
        }
    }
    reading.redirects = u32::try_from(chain.len() - 1).unwrap_or(u32::MAX);
    for pair in chain.windows(2) {
        let status = pair[0].answer().map_or(0, |answer| answer.status);
        reading.note(Check::Redirected.of(status.to_string()));
        if let (Ok(from), Ok(to)) = (Url::parse(&pair[0].request.url), Url::parse(&pair[1].request.url))
            && from.origin() != to.origin()
        {
            reading.note(Check::RedirectedCrossOrigin);
        }
    }
    if chain.len() > 1 {
        match reading.detail {
            Detail::Unprobeable(Unprobeable::PrivateAddress) => reading.detail = Detail::DeadEnd(DeadEnd::BlockedPrivate),
            Detail::Html => reading.detail = Detail::HtmlAfterRedirect,
            _ => {}
        }
    }
    reading
}

/// The reading of one exchange that carried `initialize`. `chain` ends with it, where redirects led to it.
fn judge(asked_version: &str, exchange: &Exchange, chain: &[&Exchange]) -> Reading {
    let answer = match &exchange.reply {
        Reply::Fault(fault) => return Reading::of(fault_detail(*fault)),
        Reply::Answer(answer) => answer,
    };
    let body = body::read(answer);
    let mut reading = Reading::of(Detail::Status(answer.status));
    reading.http_status = Some(answer.status);
    reading.content_type = Some(answer.media_type()).filter(|it| !it.is_empty());
    reading.body_kind = Some(body.kind);
    reading.findings.clone_from(&body.findings);
    if answer.version == "HTTP/1.0" {
        reading.note(Check::Http10);
    }
    note_session_header(&mut reading, answer);

    match answer.status {
        401 => return unauthorized(reading, answer, &body),
        402 => return payment(reading, answer, &body),
        403 => return forbidden(reading, answer, &body),
        429 => return rate_limited(reading, answer, &body),
        _ => {}
    }
    match redirect::step(chain) {
        Step::Here => {}
        Step::Follow(_) => {
            // Only where the run was stopped before the next hop was asked.
            reading.detail = Detail::Redirect(answer.status, None);
            return reading;
        }
        Step::Points(_, turn) => {
            reading.detail = Detail::Redirect(answer.status, turn);
            match turn {
                Some(Turn::Login) => reading.hint = Some(Hint::AuthLike),
                Some(Turn::HttpsUpgrade) => reading.note(Check::ListedAsPlainHttp),
                Some(Turn::Downgrade) => reading.note(Check::RedirectDowngrade),
                None => {}
            }
            return reading;
        }
        Step::Nowhere(end) => {
            reading.detail = Detail::DeadEnd(end);
            return reading;
        }
    }
    read_body(asked_version, reading, answer, &body)
}

fn fault_detail(fault: Fault) -> Detail {
    match fault {
        Fault::Dns(it) => Detail::Dns(it),
        Fault::PrivateAddress(_) => Detail::Unprobeable(Unprobeable::PrivateAddress),
        Fault::Connect(it) => Detail::Connect(it),
        Fault::Tls(it) => Detail::Tls(it),
        Fault::Deadline(stage) => Detail::Stage(stage),
        Fault::Dropped(it) => Detail::Drop(it),
        Fault::Local(LocalFault::NoNetwork) => Detail::Connect(ConnectFault::NoRoute),
        Fault::Local(LocalFault::Interrupted) => Detail::Unmeasured(Unmeasured::Interrupted),
        Fault::Local(LocalFault::Exhausted | LocalFault::Instrument) => Detail::Unmeasured(Unmeasured::InstrumentError),
    }
}

/// Rung 4 and below: the body, then the status.
fn read_body(asked_version: &str, mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let status = answer.status;
    let is_2xx = (200..300).contains(&status);
    let broken = match answer.end {
        BodyEnd::Broken(fault) => Some(fault),
        BodyEnd::Complete | BodyEnd::Left | BodyEnd::Page | BodyEnd::OverLimit => None,
    };
    if broken.is_some_and(|fault| matches!(fault, Fault::Dropped(Drop::IncompleteBody))) && answer.header("content-length").is_some() {
        reading.note(Check::ContentLengthMismatch);
    }
    match &body.content {
        Content::Events(stream) => return read_stream(asked_version, reading, answer, stream),
        _ if broken.is_some() => {
            reading.detail = broken.map(fault_detail).unwrap_or(reading.detail);
            return reading;
        }
        Content::Json(json) => return read_json(asked_version, reading, answer, &json.value),
        Content::Html if is_2xx => {
            reading.detail = Detail::Html;
            reading.hint = hint::family(&body.text).filter(|it| matches!(it, Hint::AuthLike | Hint::BotChallenge | Hint::DeploymentGone));
            return reading;
        }
        Content::OverLimit if is_2xx => {
            reading.detail = Detail::Violation(Violation::BodyOverLimit);
            return reading;
        }
        Content::Not(why) if is_2xx => reading.detail = Detail::NotJson(*why),
        Content::Truncated if is_2xx => reading.detail = Detail::Drop(Drop::IncompleteBody),
        Content::Empty | Content::Html | Content::OverLimit | Content::Not(_) | Content::Truncated => {}
    }
    if is_2xx {
        if status == 202 && body.content == Content::Empty {
            reading.note(Check::Status202ForRequest);
        }
        // Broken JSON has words of its own: its member names.
        reading.hint = hint::family(&body.text)
            .filter(|it| body.kind == BodyKind::Text && matches!(it, Hint::AuthLike | Hint::PaymentLike | Hint::BotChallenge | Hint::DeploymentGone));
        return reading;
    }
    by_status(reading, status, body)
}

/// No envelope, and no success: the status speaks, and the words give a hint.
fn by_status(mut reading: Reading, status: u16, body: &Body) -> Reading {
    reading.detail = Detail::Status(status);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    let words = hint::family(&body.text);
    reading.hint = match (status, words) {
        (407, _) => Some(Hint::Vantage),
        (404 | 410, Some(Hint::DeploymentGone)) => {
            reading.note(Check::PlatformAppMissing);
            words
        }
        (404 | 405 | 410, _) => None,
        (421, _) => {
            reading.note(Check::HostGuardMisconfigured);
            words.filter(|it| *it == Hint::McpSdkFingerprint)
        }
        (500.., Some(Hint::DeploymentGone | Hint::BotChallenge)) => words,
        (530, _) => Some(Hint::DeploymentGone),
        (500.., _) => Some(Hint::Transient),
        (_, Some(Hint::Transient)) => None,
        (_, Some(Hint::Session)) if !matches!(status, 400 | 404 | 409) => None,
        _ => words,
    };
    match (status, reading.hint) {
        (406, _) => reading.note(Check::RejectedAcceptHeader),
        (415, _) => reading.note(Check::RejectedContentType),
        (400, Some(Hint::Version)) => reading.note(if missing_version_header(&body.text) {
            Check::RequiresVersionHeader
        } else {
            Check::VersionRejectedAtHttp
        }),
        (400 | 404, Some(Hint::Session)) => reading.note(Check::RejectedForMissingSession),
        (400..500, Some(Hint::AuthLike)) => reading.note(Check::AuthWithWrongStatus),
        _ => {}
    }
    reading
}

fn missing_version_header(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("header") && ["missing", "required", "requires"].iter().any(|word| text.contains(word))
}

/// A body that is one JSON value.
fn read_json(asked_version: &str, mut reading: Reading, answer: &Answer, value: &Value) -> Reading {
    let said = envelope::said(value, INITIALIZE_ID);
    match said {
        Said::Error { .. } | Said::Result { .. } => message(asked_version, reading, answer, &said, Framing::Json),
        Said::Request { .. } | Said::Notification { .. } if (200..300).contains(&answer.status) => {
            reading.detail = Detail::Violation(Violation::NoResponse);
            if matches!(said, Said::Request { method: "initialize", .. }) {
                reading.note(Check::EchoesRequest);
            }
            reading
        }
        Said::Request { .. } | Said::Notification { .. } | Said::Foreign(_) => foreign(reading, answer.status, value, &said),
    }
}

/// JSON that is no JSON-RPC response.
fn foreign(mut reading: Reading, status: u16, value: &Value, said: &Said<'_>) -> Reading {
    let text = value.to_string();
    match value {
        Value::Array(items) if matches!(items.as_slice(), [only] if matches!(envelope::said(only, INITIALIZE_ID), Said::Result { .. } | Said::Error { .. })) => {
            reading.note(Check::BatchArrayReply);
        }
        Value::String(inner) if crate::json::read(inner).is_ok_and(|it| it.value.get("jsonrpc").is_some()) => {
            reading.note(Check::DoubleEncodedEnvelope);
        }
        Value::Object(members) => {
            if envelope::holds_request(value, INITIALIZE_ID) {
                reading.note(Check::EchoesRequest);
            }
            if members.get("code").is_some_and(Value::is_i64) && members.get("message").is_some_and(Value::is_string) {
                reading.note(Check::MalformedEnvelopeBody);
            }
        }
        _ => {}
    }
    if let Said::Foreign(why) = said
        && (200..300).contains(&status)
    {
        reading.detail = Detail::Envelope(*why);
        if status == 202 {
            reading.note(Check::Status202ForRequest);
        }
        reading.hint = hint::family(&words(value)).filter(|it| matches!(it, Hint::AuthLike | Hint::PaymentLike | Hint::DeploymentGone));
        return reading;
    }
    let body = Body { content: Content::Empty, kind: BodyKind::Json, text, findings: Vec::new() };
    by_status(reading, status, &body)
}

/// The strings of an error-like object: what it says, and not how it calls what it says.
fn words(value: &Value) -> String {
    const SAYING: [&str; 7] = ["error", "message", "detail", "error_description", "title", "reason", "status"];
    let mut words = String::new();
    let mut open = vec![value];
    for _ in 0..64 {
        match open.pop() {
            Some(Value::String(text)) => {
                words.push_str(text);
                words.push('\n');
            }
            Some(Value::Object(members)) => open.extend(SAYING.iter().filter_map(|member| members.get(*member))),
            Some(_) => {}
            None => break,
        }
    }
    words
}

/// A JSON-RPC response that came in answer to `initialize`.
fn message(asked_version: &str, mut reading: Reading, answer: &Answer, said: &Said<'_>, framing: Framing) -> Reading {
    reading.transport = Some(if framing == Framing::HttpSse { Transport::HttpSse } else { Transport::StreamableHttp });
    match said {
        Said::Error { code, text, data, id, null_result } => {
            refused(&mut reading, answer.status, *code, *text, *data, id);
            if *null_result {
                reading.note(Check::ResultNullMember);
            }
        }
        Said::Result { result, id, null_error } => {
            if *null_error {
                reading.note(Check::ErrorNullMember);
            }
            granted(asked_version, &mut reading, answer.status, result, id, framing);
        }
        Said::Request { .. } | Said::Notification { .. } | Said::Foreign(_) => {}
    }
    reading
}

/// A JSON-RPC error: `jsonrpc_error`, whatever the status.
fn refused(reading: &mut Reading, status: u16, code: i64, text: Option<&str>, data: Option<&Value>, id: &Id) {
    reading.detail = Detail::Code(code);
    reading.rpc_error = Some((code, text.unwrap_or_default().to_owned()));
    match id {
        Id::Ours | Id::OursAsFloat => {}
        Id::Null => reading.note(Check::ErrorIdNull),
        Id::Missing => reading.note(Check::ErrorIdAbsent),
        Id::OursAsString | Id::Other(_) => reading.note(Check::ErrorIdMismatch),
    }
    let Some(text) = text else {
        reading.note(Check::ErrorMessageInvalid);
        return;
    };
    let supported = data.map(mcp::supported).unwrap_or_default();
    let modern = matches!(code, -32022..=-32020) || (code == -32004 && !supported.is_empty()) || mcp::names_modern(&supported);
    reading.hint = match code {
        _ if modern => Some(Hint::EraModern),
        401 | 403 => Some(Hint::AuthLike),
        402 => Some(Hint::PaymentLike),
        -32601 if status == 404 => Some(Hint::EraModern),
        -32601 => None,
        _ => match hint::family(text) {
            Some(found @ (Hint::AuthLike | Hint::PaymentLike | Hint::Version | Hint::Session | Hint::EraModern)) => Some(found),
            _ if code == -32603 || status >= 500 => Some(Hint::Transient),
            other => other,
        },
    };
    if status >= 500 && !matches!(reading.hint, Some(Hint::AuthLike | Hint::PaymentLike | Hint::EraModern)) {
        reading.hint = Some(Hint::Transient);
    }
    if modern {
        reading.note(Check::ModernOnlyServer);
    }
    if code == -32601 {
        reading.note(Check::InitializeNotImplemented);
    }
    match reading.hint {
        Some(Hint::AuthLike) => reading.note(Check::AuthInJsonrpc),
        Some(Hint::PaymentLike) => reading.note(Check::PaymentInJsonrpc),
        Some(Hint::Version) => reading.note(Check::VersionRejected),
        _ => {}
    }
    if status == 406 {
        reading.note(Check::RejectedAcceptHeader);
    }
    if status == 415 {
        reading.note(Check::RejectedContentType);
    }
}

/// A JSON-RPC result: `success`, or the first thing wrong with it.
fn granted(asked_version: &str, reading: &mut Reading, status: u16, result: &Value, id: &Id, framing: Framing) {
    let violation = |it| Detail::Violation(it);
    reading.detail = match id {
        _ if !(200..300).contains(&status) => violation(Violation::ResultWithHttpError),
        Id::Ours => Detail::Framing(framing),
        Id::OursAsFloat => {
            reading.note(Check::IdFloatForm);
            Detail::Framing(framing)
        }
        Id::OursAsString => {
            reading.note(Check::IdTypeChanged);
            violation(Violation::IdTypeMismatch)
        }
        Id::Null => violation(Violation::IdNull),
        Id::Missing => violation(Violation::IdMissing),
        Id::Other(hardcoded) => {
            if *hardcoded {
                reading.note(Check::IdHardcoded);
            }
            violation(Violation::IdMismatch)
        }
    };
    if !matches!(reading.detail, Detail::Framing(_)) {
        return;
    }
    if !result.is_object() {
        reading.detail = violation(Violation::ResultNotObject);
        return;
    }
    match mcp::initialized(result) {
        Ok(initialized) => {
            reading.era = Era::Legacy;
            match status {
                200 => {}
                202 => reading.note(Check::Status202ForRequest),
                _ => reading.note(Check::StatusNot200.of(status.to_string())),
            }
            if initialized.null_optional {
                reading.note(Check::NullOptionalMember);
            }
            note_version(reading, asked_version, &initialized.version);
            reading.protocol_version = Some(initialized.version);
            reading.server = Some((initialized.name, initialized.server_version));
        }
        Err((path, problem)) => {
            reading.detail = Detail::Member(path, problem);
            reading.hint = hint::family(&content_text(result)).filter(|it| matches!(it, Hint::AuthLike | Hint::PaymentLike));
        }
    }
}

/// The text of a tool-style result, which some servers give to everything they refuse.
fn content_text(result: &Value) -> String {
    let items = result.get("content").and_then(Value::as_array);
    items.into_iter().flatten().filter_map(|item| item.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
}

fn note_version(reading: &mut Reading, asked: &str, answered: &str) {
    if answered >= mcp::MODERN_VERSION && mcp::VERSIONS.contains(&answered) {
        reading.note(Check::ModernVersionInLegacyHandshake);
    } else if !mcp::VERSIONS.contains(&answered) {
        reading.note(Check::UnknownVersion.of(answered));
    } else if answered < asked {
        reading.note(Check::NegotiatedDown.of(answered));
    } else if answered > asked {
        reading.note(Check::CounterOfferNewer);
    }
}

/// An event stream that came in answer to the `initialize` POST.
fn read_stream(asked_version: &str, mut reading: Reading, answer: &Answer, stream: &Stream) -> Reading {
    let heard = Heard::in_stream(stream);
    heard.note(&mut reading);
    if let Some((said, event_name)) = &heard.answer {
        if !event_name.is_empty() && event_name != "message" {
            reading.note(Check::SseNonstandardEventName.of(event_name.as_str()));
        }
        if answer.end == BodyEnd::Left {
            reading.note(Check::SseNotClosedAfterResponse);
        }
        return message(asked_version, reading, answer, &said.borrowed(), Framing::Sse);
    }
    if !(200..300).contains(&answer.status) {
        let body = Body { content: Content::Empty, kind: BodyKind::Sse, text: String::new(), findings: Vec::new() };
        return by_status(reading, answer.status, &body);
    }
    reading.detail = match answer.end {
        BodyEnd::OverLimit => Detail::Violation(Violation::BodyOverLimit),
        BodyEnd::Broken(Fault::Deadline(_)) => Detail::Stage(Stage::SseNoResponse),
        BodyEnd::Broken(Fault::Local(fault)) => fault_detail(Fault::Local(fault)),
        _ if heard.messages == 0 && heard.bad_json => Detail::NotJson(NotJson::SseData),
        _ if heard.messages == 0 && heard.foreign.is_some() => heard.foreign.map_or(Detail::SseNoEvents, Detail::Envelope),
        BodyEnd::Broken(_) => Detail::Drop(Drop::SseClosedBeforeResponse),
        BodyEnd::Complete | BodyEnd::Left | BodyEnd::Page => {
            if heard.messages == 0 && stream.events.is_empty() && stream.unterminated.is_none() && stream.last_id.is_empty() {
                Detail::SseNoEvents
            } else {
                Detail::Drop(Drop::SseClosedBeforeResponse)
            }
        }
    };
    reading
}

/// What was heard over a stream.
#[derive(Debug, Default)]
struct Heard {
    /// The best answer to our request, and the name of its event.
    answer: Option<(envelope::Owned, String)>,
    /// JSON-RPC messages that are no answer.
    messages: usize,
    bad_json: bool,
    foreign: Option<crate::outcome::Envelope>,
    findings: Vec<Finding>,
}

impl Heard {
    fn in_stream(stream: &Stream) -> Self {
        let mut heard = Self::default();
        for event in &stream.events {
            heard.event(&event.data, &event.name);
        }
        if let Some(event) = &stream.unterminated {
            let before = heard.answer.is_some();
            heard.event(&event.data, &event.name);
            if heard.answer.is_some() && !before {
                heard.findings.push(Check::SseUnterminatedEvent.into());
            }
        }
        heard
    }

    fn event(&mut self, data: &str, name: &str) {
        if data.is_empty() || name == "endpoint" {
            return;
        }
        let answered = self.answer.as_ref().is_some_and(|(said, _)| said.is_ours());
        let Ok(json) = crate::json::read(data) else {
            if !answered {
                self.bad_json = true;
                self.findings.push(Check::SseForeignEvent.into());
            }
            return;
        };
        match &json.value {
            Value::Array(items) => {
                self.findings.push(Check::SseArrayInEvent.into());
                for item in items {
                    self.message(item, name);
                }
            }
            value => self.message(value, name),
        }
    }

    fn message(&mut self, value: &Value, name: &str) {
        let answered = self.answer.as_ref().is_some_and(|(said, _)| said.is_ours());
        match envelope::said(value, INITIALIZE_ID) {
            Said::Foreign(why) => {
                if !answered {
                    self.foreign = Some(why);
                    self.findings.push(Check::SseForeignEvent.into());
                }
            }
            Said::Notification { .. } => self.messages += 1,
            Said::Request { .. } => {
                self.messages += 1;
                if !answered {
                    self.findings.push(Check::ServerRequestBeforeResponse.into());
                }
            }
            said @ (Said::Result { .. } | Said::Error { .. }) => {
                let owned = said.to_owned();
                if self.answer.as_ref().is_none_or(|(best, _)| owned.rank() > best.rank()) {
                    self.answer = Some((owned, name.to_owned()));
                }
            }
        }
    }

    fn note(&self, reading: &mut Reading) {
        for finding in &self.findings {
            reading.note(finding.clone());
        }
    }
}

/// Whether an event's data answers our `initialize`, so that nothing more need be read.
#[must_use]
pub fn is_answer(data: &str) -> bool {
    let Ok(json) = crate::json::read(data) else { return false };
    let answers = |value: &Value| match envelope::said(value, INITIALIZE_ID) {
        Said::Error { .. } => true,
        Said::Result { id, .. } => id.is_ours(),
        Said::Request { .. } | Said::Notification { .. } | Said::Foreign(_) => false,
    };
    // `server/discover` goes the same way.
    let discovered = |value: &Value| match envelope::said(value, DISCOVER_ID) {
        Said::Result { id, .. } => id.is_ours(),
        _ => false,
    };
    match &json.value {
        Value::Array(items) => items.iter().any(|item| answers(item) || discovered(item)),
        value => answers(value) || discovered(value),
    }
}

fn unauthorized(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let (found, readable) = challenges(answer.all("www-authenticate"));
    let kind = |scheme: &str| match scheme {
        "bearer" => Challenge::Bearer,
        "basic" => Challenge::Basic,
        "digest" => Challenge::Digest,
        "dpop" => Challenge::DPoP,
        "negotiate" | "ntlm" => Challenge::Negotiate,
        _ => Challenge::Other,
    };
    // Bearer is MCP's; it counts wherever it stands.
    let spoken = found.iter().find(|it| it.scheme == "bearer").or(found.first());
    let challenge = spoken.map_or(Challenge::NoChallenge, |it| kind(&it.scheme));
    reading.detail = Detail::Challenge(challenge);
    reading.auth_scheme = spoken.map(|it| it.scheme.clone());
    if answer.header("www-authenticate").is_none() {
        reading.note(Check::WwwAuthenticateMissing);
    } else if !readable || found.is_empty() {
        reading.note(Check::WwwAuthenticateMalformed);
    }
    if found.len() > 1 {
        reading.note(Check::MultipleChallenges);
    }
    if !found.is_empty() && challenge != Challenge::Bearer {
        reading.note(Check::ChallengeNotBearer);
    }
    if found.iter().any(crate::challenge::Challenge::repeats_a_param) {
        reading.note(Check::DuplicateChallengeParam);
    }
    note_error_body(&mut reading, body, Check::JsonrpcBodyOn401);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    reading
}

fn note_error_body(reading: &mut Reading, body: &Body, check: Check) {
    let Content::Json(json) = &body.content else { return };
    if let Said::Error { code, text, id, .. } = envelope::said(&json.value, INITIALIZE_ID) {
        reading.rpc_error = Some((code, text.unwrap_or_default().to_owned()));
        reading.note(check);
        match id {
            Id::Missing => reading.note(Check::ErrorIdAbsent),
            Id::Null => reading.note(Check::ErrorIdNull),
            Id::Ours | Id::OursAsFloat | Id::OursAsString | Id::Other(_) => {}
        }
    }
}

fn payment(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let in_body = match &body.content {
        Content::Json(json) => json.value.get("x402Version").and_then(Value::as_i64),
        _ => None,
    };
    // Version 2 moved its terms into a header, as base64 of JSON.
    let in_header = || {
        let terms = STANDARD.decode(answer.header("payment-required")?.trim()).ok()?;
        serde_json::from_slice::<Value>(&terms).ok()?.get("x402Version")?.as_i64()
    };
    let version = in_body.or_else(in_header);
    reading.detail = Detail::Payment(match version {
        Some(1) => Payment::X402V1,
        Some(2) => Payment::X402V2,
        _ => Payment::Plain,
    });
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    reading
}

fn forbidden(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let (found, _) = challenges(answer.all("www-authenticate"));
    reading.auth_scheme = found.first().map(|it| it.scheme.clone());
    note_error_body(&mut reading, body, Check::JsonrpcBodyOn403);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    let words = hint::family(&body.text);
    let refusal = if is_bot_challenge(answer, words) {
        Refusal::BotChallenge
    } else if found.iter().any(|it| it.param("error") == Some("insufficient_scope")) {
        Refusal::InsufficientScope
    } else if answer.header("x-amzn-errortype").is_some() || words == Some(Hint::AuthOrRoute) {
        Refusal::ApiGateway
    } else if reading.rpc_error.as_ref().is_some_and(|(_, text)| mentions_origin(text)) || mentions_origin(&body.text) {
        Refusal::Origin
    } else if is_edge_block(answer, body) {
        Refusal::EdgeBlock
    } else {
        Refusal::Plain
    };
    reading.detail = Detail::Refusal(refusal);
    reading.hint = match refusal {
        Refusal::BotChallenge => Some(Hint::BotChallenge),
        Refusal::InsufficientScope => Some(Hint::AuthLike),
        Refusal::ApiGateway => Some(Hint::AuthOrRoute),
        Refusal::Origin => None,
        Refusal::EdgeBlock => Some(Hint::Vantage),
        Refusal::Plain => words.filter(|it| *it != Hint::Transient),
    };
    reading
}

fn mentions_origin(text: &str) -> bool {
    text.len() < 500 && text.to_ascii_lowercase().contains("origin")
}

fn is_bot_challenge(answer: &Answer, words: Option<Hint>) -> bool {
    answer.header("cf-mitigated").is_some_and(|value| value.eq_ignore_ascii_case("challenge"))
        || answer.header("x-vercel-mitigated").is_some_and(|value| value.eq_ignore_ascii_case("challenge"))
        || words == Some(Hint::BotChallenge)
}

/// A page of the network's edge, in front of any server: the block is of us, from here.
fn is_edge_block(answer: &Answer, body: &Body) -> bool {
    const EDGES: [&str; 5] = ["cloudflare", "akamaighost", "sucuri/cloudproxy", "cloudfront", "imperva"];
    let server = answer.header("server").unwrap_or_default().to_ascii_lowercase();
    body.kind == BodyKind::Html && (EDGES.iter().any(|edge| server.starts_with(edge)) || answer.header("x-vercel-mitigated").is_some())
}

fn rate_limited(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let challenge = is_bot_challenge(answer, hint::family(&body.text).filter(|_| body.kind == BodyKind::Html));
    let seconds = answer.header("retry-after").and_then(|value| value.trim().parse().ok());
    reading.detail = match seconds {
        _ if challenge => Detail::RateLimitedChallenge,
        Some(seconds) => Detail::RetryAfter(seconds),
        None => Detail::Status(429),
    };
    reading.hint = challenge.then_some(Hint::BotChallenge);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    reading
}

/// The reading of the HTTP+SSE transport of 2024-11-05, where a GET was answered with a stream
/// that is one, or with something that ends the matter. `transport` is set where it is a stream.
fn stream_reading(asked_version: &str, exchanges: &[Exchange]) -> Option<Reading> {
    // The last stream asked for: an earlier one led elsewhere.
    let stream = legs(exchanges, Leg::SseStream).last()?;
    let answer = match &stream.reply {
        Reply::Fault(fault) => return Some(Reading { decided_by: position(exchanges, stream), ..Reading::of(fault_detail(*fault)) }),
        Reply::Answer(answer) => answer,
    };
    let Some(opened) = opened_stream(answer) else {
        let reading = judge(asked_version, stream, &[]);
        return Some(Reading { decided_by: position(exchanges, stream), transport: None, ..reading });
    };
    let mut reading = Reading::of(Detail::Stage(Stage::SseNoEndpoint));
    reading.decided_by = position(exchanges, stream);
    reading.http_status = Some(answer.status);
    reading.content_type = Some(answer.media_type()).filter(|it| !it.is_empty());
    reading.body_kind = Some(BodyKind::Sse);
    let Some(endpoint) = opened.events.iter().find(|event| event.name == "endpoint") else {
        // Whoever answers POST as well is not this transport: let the POST speak unless it refused like one.
        let posted = legs(exchanges, Leg::Initialize).last().and_then(Exchange::answer);
        if posted.is_none_or(|answer| matches!(answer.status, 400 | 404 | 405) && !has_envelope(answer)) {
            reading.transport = Some(Transport::HttpSse);
        }
        if !matches!(answer.end, BodyEnd::Broken(Fault::Deadline(_))) {
            reading.detail = match answer.end {
                BodyEnd::OverLimit => Detail::Violation(Violation::BodyOverLimit),
                BodyEnd::Broken(Fault::Local(fault)) => fault_detail(Fault::Local(fault)),
                _ => Detail::Drop(Drop::SseClosedBeforeResponse),
            };
        }
        return Some(reading);
    };
    reading.transport = Some(Transport::HttpSse);
    if let Ok(here) = Url::parse(&stream.request.url)
        && let Err(violation) = mcp::message_endpoint(&here, &endpoint.data)
    {
        reading.detail = Detail::Violation(violation);
        return Some(reading);
    }
    Some(message_reading(asked_version, exchanges, reading, answer, &opened))
}

/// The `initialize` that was POSTed to a stream's endpoint: answered over the stream, or by the POST itself.
fn message_reading(asked_version: &str, exchanges: &[Exchange], mut reading: Reading, answer: &Answer, opened: &Stream) -> Reading {
    let posted = legs(exchanges, Leg::SseMessage).last();
    let heard = Heard::in_stream(opened);
    heard.note(&mut reading);
    if let Some((said, _)) = &heard.answer {
        return message(asked_version, reading, answer, &said.borrowed(), Framing::HttpSse);
    }
    if let Some(posted) = posted {
        let second = Reading { decided_by: position(exchanges, posted), ..judge(asked_version, posted, &[]) };
        match second.detail {
            Detail::Framing(_) => {
                let detail = Detail::Framing(Framing::HttpSse);
                return Reading { detail, transport: Some(Transport::HttpSse), ..second };
            }
            // A 2xx without an answer means that the answer comes over the stream.
            _ if second.http_status.is_some_and(|status| (200..300).contains(&status)) && second.rpc_error.is_none() => {}
            _ => return Reading { transport: Some(Transport::HttpSse), ..second },
        }
    }
    reading.detail = match answer.end {
        BodyEnd::OverLimit => Detail::Violation(Violation::BodyOverLimit),
        BodyEnd::Broken(Fault::Local(fault)) => fault_detail(Fault::Local(fault)),
        BodyEnd::Broken(Fault::Deadline(_)) => Detail::Stage(Stage::SseNoResponse),
        BodyEnd::Complete | BodyEnd::Left | BodyEnd::Page | BodyEnd::Broken(_) => Detail::Drop(Drop::SseClosedBeforeResponse),
    };
    reading
}

/// The events of an answer to a GET, where it is an event stream.
fn opened_stream(answer: &Answer) -> Option<Stream> {
    if answer.status != 200 || answer.media_type() != body::EVENT_STREAM {
        return None;
    }
    match body::read(answer).content {
        Content::Events(stream) => Some(stream),
        _ => None,
    }
}

/// Whether an answer holds a JSON-RPC response.
#[must_use]
pub fn has_envelope(answer: &Answer) -> bool {
    match body::read(answer).content {
        Content::Json(json) => matches!(envelope::said(&json.value, INITIALIZE_ID), Said::Result { .. } | Said::Error { .. }),
        Content::Events(stream) => Heard::in_stream(&stream).answer.is_some(),
        _ => false,
    }
}

/// The stream's closing before our answer, and what it can be resumed with.
#[must_use]
pub fn resumable(answer: &Answer) -> Option<Stream> {
    if answer.status != 200 || answer.end != BodyEnd::Complete {
        return None;
    }
    match body::read(answer).content {
        Content::Events(stream) if !stream.last_id.is_empty() && Heard::in_stream(&stream).answer.is_none() => Some(stream),
        _ => None,
    }
}

fn note_stream(reading: &mut Reading, exchanges: &[Exchange]) {
    if reading.transport == Some(Transport::HttpSse) {
        reading.note(Check::LegacySse);
    }
    for answer in legs(exchanges, Leg::SseStream).filter_map(Exchange::answer) {
        if (200..300).contains(&answer.status) && body::read(answer).kind == BodyKind::Html {
            reading.note(Check::GetServesHtml);
        }
    }
}

fn note_connection(reading: &mut Reading, exchanges: &[Exchange]) {
    let Some(decided) = exchanges.get(reading.decided_by) else { return };
    if exchanges.iter().any(|it| it.connection.ipv6_unreachable) {
        reading.note(Check::Ipv6Unreachable);
    }
    let first_byte = decided.timing.first_byte_ms.unwrap_or_default();
    if decided.answer().is_some() && first_byte > SLOW_FIRST_BYTE_MS {
        reading.note(Check::SlowFirstByte);
    }
}

fn note_transport(reading: &mut Reading, declared: Option<Transport>) {
    if let (Some(declared), Some(seen)) = (declared, reading.transport)
        && declared != seen
        && matches!(reading.detail, Detail::Framing(_))
    {
        reading.note(Check::TransportMismatch.of(format!("declared_{declared}")));
    }
}

fn note_session_header(reading: &mut Reading, answer: &Answer) {
    let mut ids = answer.all("mcp-session-id");
    let Some(first) = ids.next() else { return };
    if ids.next().is_some() {
        reading.note(Check::SessionIdDuplicated);
    }
    // Visible ASCII (2025-11-25 transports, "Session Management" 1).
    if first.is_empty() || !first.bytes().all(|byte| (0x21..=0x7E).contains(&byte)) {
        reading.note(Check::SessionIdInvalidChars);
    }
}

/// What `server/discover` adds: the era, and the server's name where `initialize` gave none.
fn hear_discover(reading: &mut Reading, exchanges: &[Exchange]) {
    let Some(answer) = legs(exchanges, Leg::Discover).last().and_then(Exchange::answer) else { return };
    let Some(value) = answer_value(answer) else { return };
    match envelope::said(&value, DISCOVER_ID) {
        Said::Result { result, id, .. } if id.is_ours() => match mcp::discovered(result) {
            Ok(found) => {
                reading.note(Check::DiscoverOk);
                if let Some((path, problem)) = found.caching {
                    reading.note(Check::DiscoverInvalid.of(format!("{path}_{problem}")));
                }
                if found.rc_shape {
                    reading.note(Check::DiscoverRcShape);
                }
                if matches!(reading.detail, Detail::Framing(_)) {
                    reading.era = Era::Dual;
                } else {
                    reading.era = Era::Modern;
                    reading.note(Check::ModernOnlyServer);
                    reading.hint = Some(Hint::EraModern);
                    reading.protocol_version = found.versions.iter().max().cloned();
                    reading.server = found.name.map(|name| (name, found.server_version.unwrap_or_default()));
                }
            }
            Err((path, problem)) => reading.note(Check::DiscoverInvalid.of(format!("{path}_{problem}"))),
        },
        Said::Error { code: -32022, data: Some(data), .. } if mcp::names_modern(&mcp::supported(data)) => {
            reading.era = if reading.era == Era::Legacy { Era::Dual } else { Era::Modern };
        }
        _ => {}
    }
    // A refusal in the modern era's own words, where nothing contradicts it.
    if reading.era == Era::Unknown && reading.findings.iter().any(|it| it.check == Check::ModernOnlyServer) {
        reading.hint = Some(Hint::EraModern);
    }
}

/// The JSON-RPC response in an answer, framed either way.
fn answer_value(answer: &Answer) -> Option<Value> {
    match body::read(answer).content {
        Content::Json(json) => Some(json.value),
        Content::Events(stream) => stream.events.iter().find(|event| is_answer(&event.data)).and_then(|event| serde_json::from_str(&event.data).ok()),
        _ => None,
    }
}

fn hear_redirect_target(reading: &mut Reading, asked_version: &str, exchanges: &[Exchange]) {
    let Some(target) = legs(exchanges, Leg::RedirectTarget).last() else { return };
    let said = judge(asked_version, target, &[]);
    if matches!(said.detail, Detail::Framing(_)) {
        reading.note(Check::RedirectTargetWouldSucceed);
        reading.note(Check::RedirectTargetSays.of(said.detail.outcome().name()));
    } else {
        reading.note(Check::RedirectTargetSays.of(format!("{}/{}", said.detail.outcome(), said.detail)));
    }
}

fn session(exchanges: &[Exchange]) -> Option<Session> {
    let given = exchanges.iter().any(|exchange| exchange.leg != Leg::Close && exchange.session().is_some());
    let closed = legs(exchanges, Leg::Close).last();
    match closed.map(|exchange| exchange.answer().map(|answer| answer.status)) {
        None => given.then_some(Session::Left),
        // 404: it is gone already.
        Some(Some(200..=299 | 404 | 410)) => Some(Session::Closed),
        Some(Some(_)) => Some(Session::Refused),
        Some(None) => Some(Session::Left),
    }
}

#[cfg(test)]
mod tests;

//! The four statuses that no body changes: 401, 402, 403 and 429.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::body::{Body, Content};
use crate::challenge::challenges;
use crate::envelope::{self, Id, Said};
use crate::exchange::Answer;
use crate::finding::Check;
use crate::hint;
use crate::mcp::INITIALIZE_ID;
use crate::outcome::{BodyKind, Challenge, Detail, Hint, Payment, Refusal};

use super::Reading;

pub(super) fn unauthorized(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
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
    let spoken = found
        .iter()
        .find(|it| it.scheme == "bearer")
        .or(found.first());
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
    if found
        .iter()
        .any(crate::challenge::Challenge::repeats_a_param)
    {
        reading.note(Check::DuplicateChallengeParam);
    }
    note_error_body(&mut reading, body, Check::JsonrpcBodyOn401);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    reading
}

pub(super) fn note_error_body(reading: &mut Reading, body: &Body, check: Check) {
    let Content::Json(json) = &body.content else {
        return;
    };
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

pub(super) fn payment(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let in_body = match &body.content {
        Content::Json(json) => json.value.get("x402Version").and_then(Value::as_i64),
        _ => None,
    };
    // Version 2 moved its terms into a header, as base64 of JSON.
    let in_header = || {
        let terms = STANDARD
            .decode(answer.header("payment-required")?.trim())
            .ok()?;
        serde_json::from_slice::<Value>(&terms)
            .ok()?
            .get("x402Version")?
            .as_i64()
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

pub(super) fn forbidden(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let (found, _) = challenges(answer.all("www-authenticate"));
    reading.auth_scheme = found.first().map(|it| it.scheme.clone());
    note_error_body(&mut reading, body, Check::JsonrpcBodyOn403);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    let words = hint::family(&body.text);
    let refusal = if is_bot_challenge(answer, words) {
        Refusal::BotChallenge
    } else if found
        .iter()
        .any(|it| it.param("error") == Some("insufficient_scope"))
    {
        Refusal::InsufficientScope
    } else if answer.header("x-amzn-errortype").is_some() || words == Some(Hint::AuthOrRoute) {
        Refusal::ApiGateway
    } else if reading
        .rpc_error
        .as_ref()
        .is_some_and(|(_, text)| mentions_origin(text))
        || mentions_origin(&body.text)
    {
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

pub(super) fn mentions_origin(text: &str) -> bool {
    text.len() < 500 && text.to_ascii_lowercase().contains("origin")
}

pub(super) fn is_bot_challenge(answer: &Answer, words: Option<Hint>) -> bool {
    answer
        .header("cf-mitigated")
        .is_some_and(|value| value.eq_ignore_ascii_case("challenge"))
        || answer
            .header("x-vercel-mitigated")
            .is_some_and(|value| value.eq_ignore_ascii_case("challenge"))
        || words == Some(Hint::BotChallenge)
}

/// A page of the network's edge, in front of any server: the block is of us, from here.
pub(super) fn is_edge_block(answer: &Answer, body: &Body) -> bool {
    const EDGES: [&str; 5] = [
        "cloudflare",
        "akamaighost",
        "sucuri/cloudproxy",
        "cloudfront",
        "imperva",
    ];
    let server = answer
        .header("server")
        .unwrap_or_default()
        .to_ascii_lowercase();
    body.kind == BodyKind::Html
        && (EDGES.iter().any(|edge| server.starts_with(edge))
            || answer.header("x-vercel-mitigated").is_some())
}

pub(super) fn rate_limited(mut reading: Reading, answer: &Answer, body: &Body) -> Reading {
    let challenge = is_bot_challenge(
        answer,
        hint::family(&body.text).filter(|_| body.kind == BodyKind::Html),
    );
    let seconds = answer
        .header("retry-after")
        .and_then(|value| value.trim().parse().ok());
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

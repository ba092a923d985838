//! A JSON-RPC response to `initialize`: refused with an error, or granted with a result that is checked.

use serde_json::Value;

use crate::envelope::{Id, Said};
use crate::exchange::Answer;
use crate::finding::Check;
use crate::hint;
use crate::jsonrpc::{
    self, CodeGroup, DRAFT_UNSUPPORTED_PROTOCOL_VERSION, INTERNAL_ERROR, METHOD_NOT_FOUND,
};
use crate::mcp;
use crate::outcome::{Detail, Era, Framing, Hint, Transport, Violation};

use super::Reading;

/// A JSON-RPC response that came in answer to `initialize`.
pub(super) fn message(
    asked_version: &str,
    mut reading: Reading,
    answer: &Answer,
    said: &Said<'_>,
    framing: Framing,
) -> Reading {
    reading.transport = Some(if framing == Framing::HttpSse {
        Transport::HttpSse
    } else {
        Transport::StreamableHttp
    });
    match said {
        Said::Error {
            code,
            text,
            data,
            id,
            null_result,
        } => {
            refused(&mut reading, answer.status, *code, *text, *data, *id);
            if *null_result {
                reading.note(Check::ResultNullMember);
            }
        }
        Said::Result {
            result,
            id,
            null_error,
        } => {
            if *null_error {
                reading.note(Check::ErrorNullMember);
            }
            granted(
                asked_version,
                &mut reading,
                answer.status,
                result,
                *id,
                framing,
            );
        }
        Said::Request { .. } | Said::Notification { .. } | Said::Foreign(_) => {}
    }
    reading
}

/// A JSON-RPC error: `jsonrpc_error`, whatever the status.
pub(super) fn refused(
    reading: &mut Reading,
    status: u16,
    code: i64,
    text: Option<&str>,
    data: Option<&Value>,
    id: Id,
) {
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
    let modern = jsonrpc::group(code) == CodeGroup::McpReservedDefined
        || (code == DRAFT_UNSUPPORTED_PROTOCOL_VERSION && !supported.is_empty())
        || mcp::names_only_modern(&supported);
    reading.hint = match code {
        _ if modern => Some(Hint::EraModern),
        401 | 403 => Some(Hint::AuthLike),
        402 => Some(Hint::PaymentLike),
        METHOD_NOT_FOUND if status == 404 => Some(Hint::EraModern),
        METHOD_NOT_FOUND => None,
        _ => match hint::family(text) {
            Some(
                found @ (Hint::AuthLike
                | Hint::PaymentLike
                | Hint::Version
                | Hint::Session
                | Hint::EraModern),
            ) => Some(found),
            _ if code == INTERNAL_ERROR || status >= 500 => Some(Hint::Transient),
            other => other,
        },
    };
    if status >= 500
        && !matches!(
            reading.hint,
            Some(Hint::AuthLike | Hint::PaymentLike | Hint::EraModern)
        )
    {
        reading.hint = Some(Hint::Transient);
    }
    if modern {
        reading.note(Check::ModernOnlyServer);
    }
    if code == METHOD_NOT_FOUND {
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
pub(super) fn granted(
    asked_version: &str,
    reading: &mut Reading,
    status: u16,
    result: &Value,
    id: Id,
    framing: Framing,
) {
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
            if hardcoded {
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
            reading.hint = hint::family(&content_text(result))
                .filter(|it| matches!(it, Hint::AuthLike | Hint::PaymentLike));
        }
    }
}

/// The text of a tool-style result, which some servers give to everything they refuse.
pub(super) fn content_text(result: &Value) -> String {
    let items = result.get("content").and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("text")?.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn note_version(reading: &mut Reading, asked: &str, answered: &str) {
    if answered >= mcp::MODERN_VERSION && mcp::VERSIONS.contains(&answered) {
        reading.note(Check::ModernVersionInLegacyHandshake);
    } else if !mcp::VERSIONS.contains(&answered) {
        reading.note(Check::UnknownVersion.of(answered));
    } else if answered < asked && asked < mcp::MODERN_VERSION {
        reading.note(Check::NegotiatedDown.of(answered));
    } else if answered > asked {
        reading.note(Check::CounterOfferNewer);
    }
}

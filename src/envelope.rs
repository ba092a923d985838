//! A JSON value -> what it is in JSON-RPC 2.0, when a response with our id is expected.
//! Whether a result is a good one is `mcp`'s affair.

use serde_json::Value;

use crate::outcome::Envelope;

/// How a response's id relates to ours. The comparison is by type: `"7"` is not `7` (MCP basic, "Responses").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// It is ours.
    Ours,
    /// It is the same number, written with a fraction.
    OursAsFloat,
    /// It is ours, as a string.
    OursAsString,
    /// It is null.
    Null,
    /// There is none.
    Missing,
    /// It is another; `true` where it is one that programs have written in, 0 or 1.
    Other(bool),
}

impl Id {
    /// Whether it answers us.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::OursAsFloat)
    }

    /// What an `id` member is.
    #[must_use]
    pub fn of(value: Option<&Value>, ours: i64) -> Self {
        match value {
            None => Self::Missing,
            Some(Value::Null) => Self::Null,
            Some(Value::Number(number)) if number.as_i64() == Some(ours) => Self::Ours,
            #[expect(
                clippy::cast_precision_loss,
                reason = "our ids are small, and exactly representable"
            )]
            Some(Value::Number(number)) if number.as_f64() == Some(ours as f64) => {
                Self::OursAsFloat
            }
            Some(Value::String(text)) if *text == ours.to_string() => Self::OursAsString,
            Some(other) => Self::Other(matches!(other.as_i64(), Some(0 | 1))),
        }
    }
}

/// What a value says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Said<'a> {
    /// A result response.
    Result {
        /// The `result` member.
        result: &'a Value,
        /// Its id.
        id: Id,
        /// `error` stands beside it, as null.
        null_error: bool,
    },
    /// An error response.
    Error {
        /// `error.code`.
        code: i64,
        /// `error.message`, where it is a string.
        text: Option<&'a str>,
        /// `error.data`.
        data: Option<&'a Value>,
        /// Its id.
        id: Id,
        /// `result` stands beside it, as null.
        null_result: bool,
    },
    /// A request of the server's own.
    Request {
        /// Its method.
        method: &'a str,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: &'a str,
    },
    /// No JSON-RPC message.
    Foreign(Envelope),
}

/// Reads a value.
#[must_use]
pub fn said(value: &Value, ours: i64) -> Said<'_> {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(_) => return Said::Foreign(Envelope::Array),
        Value::String(_) => return Said::Foreign(Envelope::JsonString),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            return Said::Foreign(Envelope::JsonScalar);
        }
    };
    match members.get("jsonrpc") {
        Some(Value::String(version)) if version == "2.0" => {}
        Some(_) => return Said::Foreign(Envelope::BadJsonrpcVersion),
        None => return Said::Foreign(without_version(value)),
    }
    let id = Id::of(members.get("id"), ours);
    let (result, error) = (members.get("result"), members.get("error"));
    match (result, error.filter(|it| !it.is_null())) {
        (Some(result), Some(_)) if !result.is_null() => Said::Foreign(Envelope::ResultAndError),
        (result, Some(Value::Object(error))) => match error.get("code").and_then(integer) {
            Some(code) => Said::Error {
                code,
                text: error.get("message").and_then(Value::as_str),
                data: error.get("data"),
                id,
                null_result: result.is_some(),
            },
            None => Said::Foreign(Envelope::ErrorCodeInvalid),
        },
        (_, Some(_)) => Said::Foreign(Envelope::ErrorNotObject),
        (Some(result), None) => Said::Result {
            result,
            id,
            null_error: error.is_some(),
        },
        (None, None) => match (members.get("method").and_then(Value::as_str), id) {
            (Some(method), Id::Missing | Id::Null) => Said::Notification { method },
            (Some(method), _) => Said::Request { method },
            (None, _) => Said::Foreign(Envelope::NeitherResultNorError),
        },
    }
}

/// `-32601.0` is the integer -32601 to JSON.
fn integer(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers inside the range of exact floats get here"
    )]
    value.as_i64().or_else(|| {
        value
            .as_f64()
            .filter(|it| it.fract() == 0.0 && it.abs() < 1e15)
            .map(|it| it as i64)
    })
}

/// An object without `jsonrpc`: nearly an envelope, nearly a result, or something else.
fn without_version(value: &Value) -> Envelope {
    let has = |member: &str| value.get(member).is_some();
    let is_response =
        has("id") && (has("result") || value.get("error").is_some_and(Value::is_object));
    let is_bare_error = value.get("error").is_some_and(|error| {
        error.get("code").is_some_and(Value::is_i64) && error.get("message").is_some()
    });
    let is_bare_result = |value: &Value| {
        value.get("protocolVersion").is_some_and(Value::is_string)
            && (value.get("capabilities").is_some() || value.get("serverInfo").is_some())
    };
    if is_response || is_bare_error || value.get("result").is_some_and(is_bare_result) {
        Envelope::MissingJsonrpc
    } else if is_bare_result(value) {
        Envelope::BareResult
    } else {
        Envelope::UnrelatedJson
    }
}

/// Whether our own request stands somewhere in a value, as in the answer of an echo service.
#[must_use]
pub fn holds_request(value: &Value, ours: i64) -> bool {
    let is_request = |value: &Value| {
        value.get("method").and_then(Value::as_str) == Some("initialize")
            && value.get("id").and_then(Value::as_i64) == Some(ours)
    };
    let holds = |value: &Value| match value {
        Value::String(text) => crate::json::read(text).is_ok_and(|json| is_request(&json.value)),
        other => is_request(other),
    };
    match value {
        Value::Object(members) => holds(value) || members.values().any(holds),
        other => holds(other),
    }
}

/// What a response said, free of the value it was read from.
#[derive(Debug, Clone, PartialEq)]
pub enum Owned {
    /// A result response.
    Result {
        /// The `result` member.
        result: Value,
        /// Its id.
        id: Id,
        /// `error` stands beside it, as null.
        null_error: bool,
    },
    /// An error response.
    Error {
        /// `error.code`.
        code: i64,
        /// `error.message`.
        text: Option<String>,
        /// `error.data`.
        data: Option<Value>,
        /// Its id.
        id: Id,
        /// `result` stands beside it, as null.
        null_result: bool,
    },
    /// No response.
    Nothing,
}

impl Said<'_> {
    /// Keeps a response.
    #[must_use]
    pub fn to_owned(self) -> Owned {
        match self {
            Self::Result {
                result,
                id,
                null_error,
            } => Owned::Result {
                result: result.clone(),
                id,
                null_error,
            },
            Self::Error {
                code,
                text,
                data,
                id,
                null_result,
            } => Owned::Error {
                code,
                text: text.map(str::to_owned),
                data: data.cloned(),
                id,
                null_result,
            },
            Self::Request { .. } | Self::Notification { .. } | Self::Foreign(_) => Owned::Nothing,
        }
    }
}

impl Owned {
    /// The same, borrowed.
    #[must_use]
    pub fn borrowed(&self) -> Said<'_> {
        match self {
            Self::Result {
                result,
                id,
                null_error,
            } => Said::Result {
                result,
                id: *id,
                null_error: *null_error,
            },
            Self::Error {
                code,
                text,
                data,
                id,
                null_result,
            } => Said::Error {
                code: *code,
                text: text.as_deref(),
                data: data.as_ref(),
                id: *id,
                null_result: *null_result,
            },
            Self::Nothing => Said::Foreign(Envelope::NeitherResultNorError),
        }
    }

    /// Whether it answers our request.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Result { id, .. } | Self::Error { id, .. } if id.is_ours())
    }

    /// Which of several responses to believe: one with our id, then any error, then any result.
    #[must_use]
    pub const fn rank(&self) -> u8 {
        match self {
            _ if self.is_ours() => 3,
            Self::Error { .. } => 2,
            Self::Result { .. } => 1,
            Self::Nothing => 0,
        }
    }
}

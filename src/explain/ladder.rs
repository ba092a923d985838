//! The steps of the ladder in words: by which rule an answer is read as which outcome. The ladder itself is `classify`'s.

use crate::outcome::Outcome;

/// The step that an outcome stands on.
pub(super) const fn rule(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => {
            "A JSON-RPC result under a 2xx status, with our id, and with the members that its schema requires."
        }
        Outcome::JsonrpcError => {
            "A JSON-RPC error in the body counts before the HTTP status, but for 401, 402, 403 and 429."
        }
        Outcome::ProtocolViolation => {
            "The body is a JSON-RPC message, so it counts before the status; it is held against our request and the \
             schema, and the first thing that is wrong names the detail."
        }
        Outcome::AuthRequired => "HTTP 401 counts before the body.",
        Outcome::PaymentRequired => "HTTP 402 counts before the body.",
        Outcome::Forbidden => "HTTP 403 counts before the body.",
        Outcome::RateLimited => "HTTP 429 counts before the body.",
        Outcome::Redirect => {
            "A POST is sent again after 307 and 308 only; any other redirect, and one that leads nowhere, is where it \
             ends."
        }
        Outcome::NotFound => "No JSON-RPC message in the body, so the status counts: 404 or 410.",
        Outcome::MethodNotAllowed => {
            "No JSON-RPC message in the body, so the status counts: 405, and a GET opens no event stream either."
        }
        Outcome::HttpError => "No JSON-RPC message in the body, so the status counts.",
        Outcome::EmptyBody => "A 2xx status, and nothing in the body.",
        Outcome::HtmlPage => {
            "A 2xx status and a body that is a web page by its bytes, whatever its label says."
        }
        Outcome::InvalidJson => {
            "A 2xx status and a body that is neither a web page nor, by its bytes, JSON or an event stream of JSON."
        }
        Outcome::NonEnvelope => "A 2xx status and JSON that is no JSON-RPC message.",
        Outcome::Timeout => "No answer before the deadline; how far it had come names the detail.",
        Outcome::DnsFailure => "There was no address to connect to.",
        Outcome::ConnectFailure => "There was an address, and no TCP connection.",
        Outcome::TlsFailure => "There was a TCP connection, and no TLS session.",
        Outcome::ConnectionDropped => {
            "There was a connection, and it ended before a complete response."
        }
        Outcome::Unprobeable => {
            "The listing is read before anything is sent, and this one ends there."
        }
        Outcome::Unmeasured => "Nothing was measured, for a reason of our own.",
    }
}

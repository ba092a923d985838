//! What each JSON-RPC error code means, by revision of the protocol: the one table of codes there is.
//! What a code earns the row that carries it is `classify`'s affair.

use std::ops::RangeInclusive;

use crate::names::names;

names! {
    /// Whose a code is.
    pub enum CodeGroup {
        /// Defined by JSON-RPC 2.0 itself.
        Standard = "standard",
        /// -32000 to -32019, which 2026-07-28 calls legacy: no meaning is to be read into one, save -32002.
        LegacyRange = "legacy_range",
        /// -32020 to -32099 are the specification's own since 2026-07-28, and this is one of the three it defines.
        McpReservedDefined = "mcp_reserved_defined",
        /// In the specification's own range, defined by 2025-11-25, retired by 2026-07-28.
        McpReservedRetired = "mcp_reserved_retired",
        /// In the specification's own range since 2026-07-28, and not defined.
        McpReservedUndefined = "mcp_reserved_undefined",
        /// Reserved by JSON-RPC 2.0 and not defined.
        JsonrpcReservedOther = "jsonrpc_reserved_other",
        /// Outside every reserved range: the server's own.
        Application = "application",
    }
}

/// What a code, or every code of a range, means.
#[derive(Debug)]
pub struct CodeMeaning {
    /// The codes it speaks of.
    pub codes: RangeInclusive<i64>,
    /// The name a specification gives it.
    pub name: Option<&'static str>,
    /// Whose it is.
    pub group: CodeGroup,
    /// What it means by each of [`REVISIONS`], in that order.
    pub meanings: [&'static str; REVISIONS.len()],
    /// Where it has been met.
    pub seen: &'static str,
    /// What the operator of a server that sends it in answer to `initialize` can do.
    pub remedy: &'static str,
}

/// The revisions between which the meaning of a code changed.
pub const REVISIONS: [&str; 3] = ["up to 2025-06-18", "2025-11-25", "2026-07-28"];

/// How 2026-07-28 divides the range that JSON-RPC 2.0 leaves to servers.
pub const SPLIT: &str = "2026-07-28 splits the range -32000 to -32099 in two. -32000 to -32019 is \
    legacy: codes that implementations gave themselves before, into which a receiver must not read a \
    meaning, save -32002. -32020 to -32099 is the specification's: it defines -32020, -32021 and -32022, \
    and a server must not send any other of them.";

/// The request is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The request is JSON and no request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is not there.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The resource is not there, until 2025-11-25.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// An HTTP header is missing or contradicts the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The version is not served (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// What [`UNSUPPORTED_PROTOCOL_VERSION`] was in drafts of 2026-07-28.
pub const DRAFT_UNSUPPORTED_PROTOCOL_VERSION: i64 = -32004;
/// The user has to visit an address first (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

const SAME: &str = "As before.";
const FREE: &str = "Left to implementations: no meaning in MCP.";
const LEGACY: &str =
    "Legacy range: no meaning is to be read into it, and new servers should not use it.";
const UNSEEN: &str = "Nothing particular.";
const OWN_CODE: &str = "Say what is meant where clients look for it: HTTP 401 with a challenge for missing \
    credentials, 429 for a limit, another protocol version in the result for a version that is not served. \
    A code of one's own belongs outside -32768 to -32000.";
const MODERN_ONLY: &str = "Nothing, if only clients of 2026-07-28 are to be served; `server/discover` then \
    has to work. To serve older clients too, answer `initialize` as well.";

/// The reserved codes: the first entry that holds a code speaks of it. Single codes stand before ranges.
pub static CODES: &[CodeMeaning] = &[
    CodeMeaning {
        codes: PARSE_ERROR..=PARSE_ERROR,
        name: Some("Parse error"),
        group: CodeGroup::Standard,
        meanings: ["The request could not be read as JSON.", SAME, SAME],
        seen: "One SDK also gives it for JSON that is no JSON-RPC message. In answer to a well-formed request \
            it suggests that something on the way mangled the body.",
        remedy: "Compare the body the server received with the one `check` shows as sent: a proxy or a body \
            parser in front is the usual culprit.",
    },
    CodeMeaning {
        codes: INVALID_REQUEST..=INVALID_REQUEST,
        name: Some("Invalid Request"),
        group: CodeGroup::Standard,
        meanings: [
            "JSON that is no request object.",
            "As before; also a request that was not sent as a task where the server demands one.",
            "JSON that is no request object.",
        ],
        seen: "One SDK's word for nearly every refusal at the transport: no session or an unknown one (HTTP \
            400 or 404), an Accept header it does not like, a version it does not serve.",
        remedy: "`initialize` opens a session: it must not be refused for want of one. Answer it before \
            anything that asks for a session or a version header.",
    },
    CodeMeaning {
        codes: METHOD_NOT_FOUND..=METHOD_NOT_FOUND,
        name: Some("Method not found"),
        group: CodeGroup::Standard,
        meanings: [
            "The method is unknown, or belongs to a capability the server does not have.",
            SAME,
            "The method is unknown, or belongs to a capability the server did not advertise. Under HTTP it \
                comes with status 404.",
        ],
        seen: "For `initialize`: from servers of 2026-07-28 only, from JSON-RPC servers that are no MCP \
            servers, and from one SDK for an `initialize` whose parameters it could not read.",
        remedy: "Serve `initialize` (revisions up to 2025-11-25) or `server/discover` (2026-07-28). If the \
            address serves another protocol, the listing should not name it.",
    },
    CodeMeaning {
        codes: INVALID_PARAMS..=INVALID_PARAMS,
        name: Some("Invalid params"),
        group: CodeGroup::Standard,
        meanings: [
            "An unknown tool or prompt, bad arguments, a bad cursor. The lifecycle page also shows it for a \
                protocol version that is not served, with `supported` and `requested` in its data, against \
                its own rule that another version is to be offered.",
            "As before; also a mode of elicitation that was not declared, and errors of tasks.",
            "As before; also a request without its required `_meta` members (HTTP 400), a resource that does \
                not exist, a bad log level.",
        ],
        seen: "One SDK's older line gives it for unknown methods. In answer to a complete `initialize` it is \
            nearly always about the version.",
        remedy: "A server that does not serve the version asked for has to answer with one it serves, not \
            with an error. If it serves 2026-07-28 only, -32022 says so.",
    },
    CodeMeaning {
        codes: INTERNAL_ERROR..=INTERNAL_ERROR,
        name: Some("Internal error"),
        group: CodeGroup::Standard,
        meanings: ["The server failed while handling the request.", SAME, SAME],
        seen: "Crashes behind a working front; one SDK also gives it for an `initialize` that fails its schema.",
        remedy: "Look in the server's own log at the time of the row's `started_at`.",
    },
    CodeMeaning {
        codes: -32000..=-32000,
        name: None,
        group: CodeGroup::LegacyRange,
        meanings: [FREE, SAME, LEGACY],
        seen: "The commonest of the legacy codes. One SDK's catch-all for refusals at the transport: bad \
            request, not acceptable, method not allowed, server not initialized, version not served. Also \
            rate limits and missing credentials.",
        remedy: OWN_CODE,
    },
    CodeMeaning {
        codes: -32001..=-32001,
        name: None,
        group: CodeGroup::LegacyRange,
        meanings: [FREE, SAME, LEGACY],
        seen: "Three things that have nothing in common: one SDK's `Session not found` (HTTP 404) and its \
            local request timeout; HeaderMismatch in drafts of 2026-07-28 until June 2026; and, from servers \
            of their own making, missing or wrong credentials, for which the authorization chapter wants HTTP 401.",
        remedy: "If it stands for missing credentials, answer HTTP 401 with a WWW-Authenticate challenge: \
            clients begin to authorize on the status, not on this code.",
    },
    CodeMeaning {
        codes: RESOURCE_NOT_FOUND..=RESOURCE_NOT_FOUND,
        name: Some("Resource not found"),
        group: CodeGroup::LegacyRange,
        meanings: [
            "`resources/read` of a resource that does not exist.",
            SAME,
            "Replaced by -32602 and not to be sent any more; clients should still understand it. The one code \
                of the legacy range that keeps a meaning.",
        ],
        seen: "Also for `not initialized`, which no revision says.",
        remedy: OWN_CODE,
    },
    CodeMeaning {
        codes: -32003..=-32003,
        name: None,
        group: CodeGroup::LegacyRange,
        meanings: [FREE, SAME, LEGACY],
        seen: "MissingRequiredClientCapability in drafts of 2026-07-28 until June 2026.",
        remedy: OWN_CODE,
    },
    CodeMeaning {
        codes: DRAFT_UNSUPPORTED_PROTOCOL_VERSION..=DRAFT_UNSUPPORTED_PROTOCOL_VERSION,
        name: None,
        group: CodeGroup::LegacyRange,
        meanings: [FREE, SAME, LEGACY],
        seen: "UnsupportedProtocolVersion in drafts of 2026-07-28 until June 2026: with `supported` in its data \
            it marks a server built on one.",
        remedy: "Update the SDK: the code has been -32022 since June 2026.",
    },
    CodeMeaning {
        codes: -32019..=-32005,
        name: None,
        group: CodeGroup::LegacyRange,
        meanings: [FREE, SAME, LEGACY],
        seen: UNSEEN,
        remedy: OWN_CODE,
    },
    CodeMeaning {
        codes: HEADER_MISMATCH..=HEADER_MISMATCH,
        name: Some("HeaderMismatch"),
        group: CodeGroup::McpReservedDefined,
        meanings: [
            FREE,
            SAME,
            "A required HTTP header is missing, malformed, or contradicts the body. Comes with HTTP 400.",
        ],
        seen: "For `initialize`, which lacks those headers: from servers of 2026-07-28 only.",
        remedy: MODERN_ONLY,
    },
    CodeMeaning {
        codes: MISSING_CLIENT_CAPABILITY..=MISSING_CLIENT_CAPABILITY,
        name: Some("MissingRequiredClientCapability"),
        group: CodeGroup::McpReservedDefined,
        meanings: [
            FREE,
            SAME,
            "The request needs a client capability that was not declared; the object `requiredCapabilities` \
                in the data names it. Comes with HTTP 400.",
        ],
        seen: UNSEEN,
        remedy: "`initialize` and `server/discover` need no client capability: serve them without.",
    },
    CodeMeaning {
        codes: UNSUPPORTED_PROTOCOL_VERSION..=UNSUPPORTED_PROTOCOL_VERSION,
        name: Some("UnsupportedProtocolVersion"),
        group: CodeGroup::McpReservedDefined,
        meanings: [
            FREE,
            SAME,
            "The version asked for is not served; `supported` in the data lists those that are, `requested` \
                repeats the one asked for. Comes with HTTP 400.",
        ],
        seen: "For `initialize`: from servers of 2026-07-28 only, sometimes without `requested`. Most servers \
            say the same with -32000, -32600 or -32602.",
        remedy: MODERN_ONLY,
    },
    CodeMeaning {
        codes: URL_ELICITATION_REQUIRED..=URL_ELICITATION_REQUIRED,
        name: Some("URLElicitationRequired"),
        group: CodeGroup::McpReservedRetired,
        meanings: [
            FREE,
            "The user has to visit an address first; `elicitations` in the data lists them.",
            "Retired: reserved for the specification and not to be sent.",
        ],
        seen: "Only fits calls of tools, prompts and resources; never an answer to `initialize`.",
        remedy: OWN_CODE,
    },
    CodeMeaning {
        codes: -32099..=-32020,
        name: None,
        group: CodeGroup::McpReservedUndefined,
        meanings: [
            FREE,
            SAME,
            "Reserved for the specification and not defined: a server must not send it.",
        ],
        seen: UNSEEN,
        remedy: OWN_CODE,
    },
    CodeMeaning {
        codes: -32768..=-32000,
        name: None,
        group: CodeGroup::JsonrpcReservedOther,
        meanings: [
            "Reserved by JSON-RPC 2.0 for its own future use: a server must not send it.",
            SAME,
            SAME,
        ],
        seen: UNSEEN,
        remedy: OWN_CODE,
    },
];

/// Every code outside the reserved ranges.
pub static APPLICATION: CodeMeaning = CodeMeaning {
    codes: i64::MIN..=i64::MAX,
    name: None,
    group: CodeGroup::Application,
    meanings: [
        "The server's own: what it means is for the server to document.",
        SAME,
        "As before; new codes of an application belong here.",
    ],
    seen: "HTTP statuses as codes, 0 and -1. 401 and 403 are read as a want of credentials, 402 as a want \
        of payment.",
    remedy: OWN_CODE,
};

/// What a code means.
#[must_use]
pub fn meaning(code: i64) -> &'static CodeMeaning {
    CODES
        .iter()
        .find(|it| it.codes.contains(&code))
        .unwrap_or(&APPLICATION)
}

/// The name a specification gives a code, or whose it is.
#[must_use]
pub fn code_name(code: i64) -> &'static str {
    let meaning = meaning(code);
    meaning.name.unwrap_or(meaning.group.name())
}

/// Whose a code is.
#[must_use]
pub fn group(code: i64) -> CodeGroup {
    meaning(code).group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_name_and_one_owner() {
        for (code, name, owner) in [
            (-32700, "Parse error", CodeGroup::Standard),
            (-32600, "Invalid Request", CodeGroup::Standard),
            (-32601, "Method not found", CodeGroup::Standard),
            (-32603, "Internal error", CodeGroup::Standard),
            (-32000, "legacy_range", CodeGroup::LegacyRange),
            (-32001, "legacy_range", CodeGroup::LegacyRange),
            (-32002, "Resource not found", CodeGroup::LegacyRange),
            (-32019, "legacy_range", CodeGroup::LegacyRange),
            (-32020, "HeaderMismatch", CodeGroup::McpReservedDefined),
            (
                -32022,
                "UnsupportedProtocolVersion",
                CodeGroup::McpReservedDefined,
            ),
            (
                -32023,
                "mcp_reserved_undefined",
                CodeGroup::McpReservedUndefined,
            ),
            (
                -32042,
                "URLElicitationRequired",
                CodeGroup::McpReservedRetired,
            ),
            (
                -32099,
                "mcp_reserved_undefined",
                CodeGroup::McpReservedUndefined,
            ),
            (
                -32100,
                "jsonrpc_reserved_other",
                CodeGroup::JsonrpcReservedOther,
            ),
            (
                -32604,
                "jsonrpc_reserved_other",
                CodeGroup::JsonrpcReservedOther,
            ),
            (
                -32768,
                "jsonrpc_reserved_other",
                CodeGroup::JsonrpcReservedOther,
            ),
            (-32769, "application", CodeGroup::Application),
            (-31999, "application", CodeGroup::Application),
            (401, "application", CodeGroup::Application),
            (i64::MIN, "application", CodeGroup::Application),
        ] {
            assert_eq!((code_name(code), group(code)), (name, owner), "{code}");
        }
    }

    #[test]
    fn no_entry_is_hidden_behind_an_earlier_one() {
        for (at, entry) in CODES.iter().enumerate() {
            let hidden = CODES[..at].iter().any(|it| {
                it.codes.contains(entry.codes.start()) && it.codes.contains(entry.codes.end())
            });
            assert!(!hidden, "{:?}", entry.codes);
        }
    }
}

//! JSON-RPC 2.0: the shape of one message, the error a receiver owes to it, and (in `code`) what error codes mean.
//! What an answer to `initialize` earns its row is `classify`'s affair.

mod code;

use std::collections::BTreeMap;

pub use code::*;

use serde_json::value::RawValue;

use crate::json;
use crate::names::names;

names! {
    /// What one message is.
    pub enum Shape {
        /// A method and an id: it wants an answer.
        Request = "request",
        /// A method and no id: it gets no answer.
        Notification = "notification",
        /// The answer to a request.
        Result = "result",
        /// The refusal of a request.
        Error = "error",
        /// None of these.
        Invalid = "invalid",
    }
}

impl Shape {
    /// The shape of one message.
    ///
    /// A member that is null counts as absent in `result`, `error` and in the id of an error; the id of
    /// a request is never null (2025-11-25 basic, "Requests").
    #[must_use]
    pub fn of(text: &str) -> Self {
        Members::read(text).map_or(Self::Invalid, |members| members.shape())
    }
}

/// The members of a message, each as its text; the last one counts where a member stands twice.
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    /// `None` where the text is no JSON object.
    fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    fn get(&self, member: &str) -> Option<&'a str> {
        self.0.get(member).map(|it| it.get())
    }

    /// A member that is there and not null.
    fn some(&self, member: &str) -> Option<&'a str> {
        self.get(member).filter(|it| *it != "null")
    }

    fn string(&self, member: &str) -> Option<String> {
        serde_json::from_str(self.get(member)?).ok()
    }

    /// The id's text, where it is a string or an integer.
    fn id(&self) -> Option<&'a str> {
        self.get("id").filter(|id| {
            id.starts_with('"')
                || id
                    .strip_prefix('-')
                    .unwrap_or(id)
                    .bytes()
                    .all(|it| it.is_ascii_digit())
        })
    }

    fn shape(&self) -> Shape {
        if self.string("jsonrpc").as_deref() != Some("2.0") {
            return Shape::Invalid;
        }
        let method = self.get("method");
        let error = self.some("error");
        let has_id = self.get("id").is_some();
        if let Some(method) = method {
            let answers = error.is_some() || self.some("result").is_some();
            return match (method.starts_with('"') && !answers, self.id(), has_id) {
                (true, Some(_), _) => Shape::Request,
                (true, None, false) => Shape::Notification,
                _ => Shape::Invalid,
            };
        }
        match error {
            Some(error) => {
                let may_have_id = self.id().is_some() || self.some("id").is_none();
                if error.starts_with('{') && may_have_id && self.some("result").is_none() {
                    Shape::Error
                } else {
                    Shape::Invalid
                }
            }
            None if self.id().is_some() && self.get("result").is_some() => Shape::Result,
            None => Shape::Invalid,
        }
    }
}

/// What [`answer`] says of a request it can serve.
pub const SUPPORTED: &str = "supported";

/// What a receiver that serves the methods `supports` owes to one line: [`SUPPORTED`], or an error response.
/// `None` for what gets no answer: notifications, results and errors.
#[must_use]
pub fn answer(line: &str, supports: &[String]) -> Option<String> {
    if json::read(line).is_err() {
        return Some(refusal(None, PARSE_ERROR));
    }
    let members = Members::read(line).unwrap_or(Members(BTreeMap::new()));
    match members.shape() {
        Shape::Request => {
            let serves = members
                .string("method")
                .is_some_and(|method| supports.contains(&method));
            Some(if serves {
                SUPPORTED.to_owned()
            } else {
                refusal(members.id(), METHOD_NOT_FOUND)
            })
        }
        Shape::Notification | Shape::Result | Shape::Error => None,
        Shape::Invalid => Some(refusal(members.id(), INVALID_REQUEST)),
    }
}

/// An error response. The id stands there as it came: `1e2` or `"\u0061"` would not survive being read.
fn refusal(id: Option<&str>, code: i64) -> String {
    let id = id.unwrap_or("null");
    let message = code_name(code);
    format!(
        r#"{{"jsonrpc": "2.0", "id": {id}, "error": {{"code": {code}, "message": "{message}"}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_shape() {
        for (text, want) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
                Shape::Request,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"x","params":{}}"#,
                Shape::Request,
            ),
            (
                r#"{"jsonrpc":"2.0","id":0,"method":"x","error":null}"#,
                Shape::Request,
            ),
            (
                r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}"#,
                Shape::Request,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                Shape::Notification,
            ),
            (r#" {"jsonrpc":"2.0","id":-7,"result":{}} "#, Shape::Result),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
                Shape::Result,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
                Shape::Error,
            ),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, Shape::Error),
            (
                r#"{"jsonrpc":"2.0","error":{},"result":null}"#,
                Shape::Error,
            ),
            (
                r#"{"jsonrpc":"2.0","id":true,"id":2,"method":"x"}"#,
                Shape::Request,
            ),
        ] {
            assert_eq!(Shape::of(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_invalid() {
        for text in [
            "",
            "hello",
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "null",
            "{}",
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1e2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":[1],"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#,
        ] {
            assert_eq!(Shape::of(text), Shape::Invalid, "{text}");
        }
    }

    #[track_caller]
    fn check(line: &str, want: Option<&str>) {
        let supports = ["initialize", "tools/list"].map(str::to_owned);
        assert_eq!(answer(line, &supports).as_deref(), want, "{line}");
    }

    #[test]
    fn a_request_is_served_or_refused() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            Some("supported"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            Some(
                r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}"#,
            ),
        );
        check(
            r#"{"method":"x","id": "\u0061\"b" ,"jsonrpc":"2.0"}"#,
            Some(
                r#"{"jsonrpc": "2.0", "id": "\u0061\"b", "error": {"code": -32601, "message": "Method not found"}}"#,
            ),
        );
    }

    #[test]
    fn what_is_no_request_is_refused_and_what_wants_no_answer_gets_none() {
        for (line, id, error) in [
            ("{", "null", r#""code": -32700, "message": "Parse error""#),
            ("", "null", r#""code": -32700, "message": "Parse error""#),
            (
                "[]",
                "null",
                r#""code": -32600, "message": "Invalid Request""#,
            ),
            (
                r#"{"id":7}"#,
                "7",
                r#""code": -32600, "message": "Invalid Request""#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
                "null",
                r#""code": -32600, "message": "Invalid Request""#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
                "null",
                r#""code": -32600, "message": "Invalid Request""#,
            ),
        ] {
            let want = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "error": {{{error}}}}}"#);
            check(line, Some(&want));
        }
        check(r#"{"jsonrpc":"2.0","method":"tools/list"}"#, None);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None);
        check(r#"{"jsonrpc":"2.0","error":{}}"#, None);
    }

    proptest::proptest! {
        #[test]
        fn any_line_has_a_shape_and_at_most_one_line_of_answer(line: String) {
            let _ = Shape::of(&line);
            if let Some(answer) = answer(&line, &[]) {
                proptest::prop_assert!(!answer.contains('\n'));
            }
        }
    }
}

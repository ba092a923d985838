//! `explain`: a page on a JSON-RPC error code, an outcome, a detail, a verdict, a hint, a finding or a check of the
//! specification. The words come from where the names are declared; what only an operator needs is in `advice`.

mod advice;
mod details;
mod ladder;

use std::fmt::Write as _;

use crate::catalogue::{CheckId, Rule};
use crate::finding::Check;
use crate::jsonrpc::{REVISIONS, SPLIT, code_name, meaning};
use crate::outcome::{Hint, Outcome, Verdict, verdict};
use crate::wrap::wrap;
use details::{Narrowing, details};

/// How wide a page is, in columns.
const WIDTH: usize = 78;

/// How many names an error suggests.
const SUGGESTIONS: usize = 5;

/// Nothing is called that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what:?} is no JSON-RPC code, outcome, detail, verdict, hint, finding or check{}", suggestion(.near))]
pub struct Unknown {
    /// What was asked for.
    pub what: String,
    /// Names that look like it, the likest first.
    pub near: Vec<&'static str>,
}

/// What a detail means where it stands in a row: in a sentence, empty where there is nothing to say.
#[must_use]
pub fn detail(outcome: Outcome, detail: &str) -> String {
    match detail.parse() {
        Ok(code) if outcome == Outcome::JsonrpcError => {
            let meaning = meaning(code);
            format!("{}. {}", code_name(code), meaning.group.about())
        }
        _ => details::meaning(outcome, detail)
            .unwrap_or_default()
            .to_owned(),
    }
}

/// What the operator of a server can do about an outcome.
#[must_use]
pub const fn advice(outcome: Outcome) -> &'static str {
    advice::of_outcome(outcome)
}

/// The rule by which an answer is read as an outcome: a step of the ladder whose first step that fits decides.
#[must_use]
pub const fn rule(outcome: Outcome) -> &'static str {
    ladder::rule(outcome)
}

fn suggestion(names: &[&str]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("; the nearest: {}", names.join(", "))
    }
}

/// A page on what is called `what`; on all of it, where one name has several uses.
///
/// # Errors
/// When nothing is called that.
pub fn explain(what: &str) -> Result<String, Unknown> {
    let what = what.trim();
    let mut pages = Vec::new();
    if let Ok(code) = what.parse() {
        pages.push(of_code(code));
    }
    pages.extend(Outcome::named(what).map(of_outcome));
    pages.extend(Verdict::named(what).map(of_verdict));
    if Outcome::named(what).is_none() {
        pages.extend(of_detail(what));
    }
    pages.extend(Hint::named(what).map(of_hint));
    pages.extend(Check::named(what).map(of_check));
    pages.extend(CheckId::named(what).map(|it| of_rule(it.rule())));
    if pages.is_empty() {
        return Err(Unknown {
            what: what.to_owned(),
            near: likest(what),
        });
    }
    Ok(pages.join("\n"))
}

/// A page under way.
struct Page(String);

impl Page {
    fn new(name: &str, kind: &str) -> Self {
        Self(format!("{name}: {kind}\n"))
    }

    fn paragraph(mut self, text: &str) -> Self {
        let _ = writeln!(self.0, "\n{}", wrap(text, WIDTH, ""));
        self
    }

    fn section(mut self, heading: &str, text: &str) -> Self {
        let _ = writeln!(self.0, "\n{heading}:\n{}", wrap(text, WIDTH, "  "));
        self
    }

    /// Names and what they mean, in two columns.
    fn list<'a>(mut self, heading: &str, items: impl Iterator<Item = (String, &'a str)>) -> Self {
        let items: Vec<(String, &str)> = items.collect();
        if items.is_empty() {
            return self;
        }
        let column = items.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 4;
        let indent = " ".repeat(column);
        let _ = writeln!(self.0, "\n{heading}:");
        for (name, about) in items {
            let text = wrap(about, WIDTH, &indent);
            let text = text.get(column..).unwrap_or_default();
            let _ = writeln!(self.0, "  {name:<width$}  {text}", width = column - 4);
        }
        self
    }
}

const REMEDY: &str = "What an operator can do";

/// The codes of which 2026-07-28 speaks when it splits the range of servers' own errors.
const SPLIT_RANGE: std::ops::RangeInclusive<i64> = -32099..=-32000;

fn of_code(code: i64) -> String {
    let meaning = meaning(code);
    let group = meaning.group;
    let mut page = Page::new(&code.to_string(), "a JSON-RPC error code");
    if meaning.name.is_some() {
        page = page.paragraph(&format!("{}.", code_name(code)));
    }
    page = page.paragraph(&format!("Group {group}: {}", group.about()));
    page = page.list(
        "What it means, by revision of the protocol",
        REVISIONS
            .iter()
            .map(|it| (*it).to_owned())
            .zip(meaning.meanings),
    );
    if SPLIT_RANGE.contains(&code) {
        page = page.section("The split of 2026-07-28", SPLIT);
    }
    page.section("Seen in practice", meaning.seen)
        .section("Verdict that follows", &of_refusals())
        .section(REMEDY, meaning.remedy)
        .0
}

/// The verdicts of a JSON-RPC error.
fn of_refusals() -> String {
    let detail = crate::outcome::Detail::Code(0);
    format!(
        "The outcome is {}, whatever the HTTP status (401, 402, 403 and 429 come first). The verdict is {}; \
         {} where the text asks for credentials or payment (hint {} or {}); {} where the server then answers \
         `server/discover`.",
        Outcome::JsonrpcError,
        verdict(&detail, None, false),
        verdict(&detail, Some(Hint::AuthLike), false),
        Hint::AuthLike,
        Hint::PaymentLike,
        verdict(&detail, None, true),
    )
}

fn of_outcome(outcome: Outcome) -> String {
    Page::new(outcome.name(), "an outcome")
        .paragraph(outcome.about())
        .section("The rule", ladder::rule(outcome))
        .section("Verdict that follows", &verdicts(outcome))
        .list(
            "Details it can carry",
            details(outcome)
                .iter()
                .map(|it| (it.name.clone(), it.about)),
        )
        .section(REMEDY, advice::of_outcome(outcome))
        .0
}

/// The verdicts that an outcome's details lead to, the usual one first.
fn verdicts(outcome: Outcome) -> String {
    if outcome == Outcome::JsonrpcError {
        return of_refusals();
    }
    let details = details(outcome);
    let share = |verdict: Verdict| details.iter().filter(|it| it.verdict == verdict).count();
    let mut found: Vec<Verdict> = Verdict::ALL
        .iter()
        .copied()
        .filter(|it| share(*it) > 0)
        .collect();
    found.sort_by_key(|it| std::cmp::Reverse(share(*it)));
    let said: Vec<String> = found
        .iter()
        .enumerate()
        .map(|(at, verdict)| {
            let names: Vec<&str> = details
                .iter()
                .filter(|it| it.verdict == *verdict)
                .map(|it| it.name.as_str())
                .collect();
            match at {
                0 => verdict.name().to_owned(),
                _ => format!("{verdict} for {}", names.join(", ")),
            }
        })
        .collect();
    format!("{}.", said.join("; "))
}

fn of_verdict(verdict: Verdict) -> String {
    let leads = |it: &Outcome| {
        details(*it).iter().any(|it| it.verdict == verdict)
            || (*it == Outcome::JsonrpcError
                && matches!(verdict, Verdict::Working | Verdict::Gated))
    };
    Page::new(verdict.name(), "a verdict")
        .paragraph(verdict.about())
        .list(
            "Outcomes that can lead to it",
            Outcome::ALL
                .iter()
                .filter(|it| leads(it))
                .map(|it| (it.name().to_owned(), it.about())),
        )
        .section(REMEDY, advice::of_verdict(verdict))
        .0
}

/// A page on the detail of an outcome; several outcomes may have one of the same name.
fn of_detail(what: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for &outcome in Outcome::ALL {
        for Narrowing {
            name,
            about,
            verdict,
        } in details(outcome)
        {
            if name == what {
                pages.push(
                    Page::new(&name, &format!("a detail of the outcome {outcome}"))
                        .paragraph(about)
                        .section("Verdict that follows", &format!("{verdict}."))
                        .section(REMEDY, advice::of_outcome(outcome))
                        .0,
                );
            }
        }
    }
    pages
}

fn of_hint(hint: Hint) -> String {
    let verdict = match hint {
        Hint::AuthLike | Hint::PaymentLike => of_refusals(),
        Hint::AuthOrRoute
        | Hint::Version
        | Hint::Session
        | Hint::BotChallenge
        | Hint::DeploymentGone
        | Hint::Transient
        | Hint::EraModern
        | Hint::Vantage
        | Hint::McpSdkFingerprint
        | Hint::SchemeMismatch => {
            "None: a hint is read off the words of an answer, and words decide nothing.".to_owned()
        }
    };
    Page::new(hint.name(), "a hint")
        .paragraph(hint.about())
        .section("Verdict that follows", &verdict)
        .0
}

fn of_check(check: Check) -> String {
    Page::new(check.name(), "a finding")
        .paragraph(check.about())
        .section(
            "Verdict that follows",
            "None: a finding is what was noticed beside the outcome, and changes neither.",
        )
        .section(REMEDY, advice::of_check(check))
        .0
}

fn of_rule(rule: &Rule) -> String {
    let mut page = Page::new(rule.id.name(), "a check of the specification")
        .paragraph(rule.id.about())
        .section(
            "Demanded",
            &format!(
                "{}, revisions {}: {}. It is number {} of the catalogue.",
                rule.level,
                rule.revisions(),
                rule.section,
                rule.number
            ),
        )
        .section("How it is seen", rule.seen)
        .section("What is asked for it", &cost(rule));
    if rule.is_intrusive() {
        page = page.section(
            "Of whom it is asked",
            "Of servers of one's own alone, with `--intrusive`: those listed by an address inside `--allow-net`, and \
             hosts that `--mine` names. Nobody else is sent such a request.",
        );
    }
    if let Some(position) = rule.position {
        page = page.section("How the specification is read here", position);
    }
    page.section(REMEDY, rule.remedy).0
}

fn cost(rule: &Rule) -> String {
    let part = rule.part.about();
    match rule.cost {
        0 => format!("{part} No request beyond those of other checks."),
        1 => format!("{part} One request."),
        more => format!("{part} At most {more} requests."),
    }
}

/// Every name there is a page for.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Outcome::ALL
        .iter()
        .map(|it| it.name())
        .chain(Verdict::ALL.iter().map(|it| it.name()))
        .chain(Check::ALL.iter().map(|it| it.name()))
        .chain(Hint::ALL.iter().map(|it| it.name()))
        .chain(CheckId::ALL.iter().map(|it| it.name()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The names that look like what was asked for: few changes away, or a part of one another.
fn likest(what: &str) -> Vec<&'static str> {
    const PART: usize = 4;
    let what: String = what
        .chars()
        .take(64)
        .map(|it| {
            if it == '-' || it == ' ' {
                '_'
            } else {
                it.to_ascii_lowercase()
            }
        })
        .collect();
    let mut found: Vec<(usize, &str)> = names()
        .into_iter()
        .filter_map(|name| {
            let plain = name.replace('-', "_");
            let distance = distance(&what, &plain);
            let is_part = what.len() >= PART && (plain.contains(&what) || what.contains(&plain));
            (is_part || distance <= (name.len() / 3).min(4)).then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.truncate(SUGGESTIONS);
    found.into_iter().map(|(_, name)| name).collect()
}

/// How many characters have to be changed, put in or taken out to make one text the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, it) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for column in 0..other.len() {
            let changed = diagonal + usize::from(it != other[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_explained_by_revision_and_with_the_split() {
        let want = "\
-32001: a JSON-RPC error code

Group legacy_range: -32000 to -32019, which 2026-07-28 calls legacy: no
meaning is to be read into one, save -32002.

What it means, by revision of the protocol:
  up to 2025-06-18  Left to implementations: no meaning in MCP.
  2025-11-25        As before.
  2026-07-28        Legacy range: no meaning is to be read into it, and new
                    servers should not use it.

The split of 2026-07-28:
  2026-07-28 splits the range -32000 to -32099 in two. -32000 to -32019 is
  legacy: codes that implementations gave themselves before, into which a
  receiver must not read a meaning, save -32002. -32020 to -32099 is the
  specification's: it defines -32020, -32021 and -32022, and a server must not
  send any other of them.

Seen in practice:
  Three things that have nothing in common: one SDK's `Session not found`
  (HTTP 404) and its local request timeout; HeaderMismatch in drafts of
  2026-07-28 until June 2026; and, from servers of their own making, missing
  or wrong credentials, for which the authorization chapter wants HTTP 401.

Verdict that follows:
  The outcome is jsonrpc_error, whatever the HTTP status (401, 402, 403 and
  429 come first). The verdict is faulty; gated where the text asks for
  credentials or payment (hint auth_like or payment_like); working where the
  server then answers `server/discover`.

What an operator can do:
  If it stands for missing credentials, answer HTTP 401 with a
  WWW-Authenticate challenge: clients begin to authorize on the status, not on
  this code.
";
        assert_eq!(explain("-32001").unwrap(), want);
        assert!(!explain("-32601").unwrap().contains("The split"));
        assert!(
            explain("-32022")
                .unwrap()
                .contains("UnsupportedProtocolVersion.")
        );
        assert!(explain("1234567").unwrap().contains("Group application"));
    }

    #[test]
    fn an_outcome_is_explained_with_its_details_and_verdicts() {
        let want = "\
forbidden: an outcome

HTTP 403.

The rule:
  HTTP 403 counts before the body.

Verdict that follows:
  gated; unmeasured for edge_block, bot_challenge.

Details it can carry:
  403                 Nothing more is known.
  insufficient_scope  `error=\"insufficient_scope\"` (RFC 6750 §3.1).
  origin              The `Origin` is refused.
  api_gateway         An API gateway, before any server.
  edge_block          The edge of a network refuses us.
  bot_challenge       A challenge for browsers.

What an operator can do:
  Find out who refuses: the server itself, whose status for missing
  credentials should be 401; its guard against foreign hosts and origins,
  which has to know the public name; or the network's edge, whose rules may
  take every program for an attack.
";
        assert_eq!(explain(" forbidden\n").unwrap(), want);
    }

    #[test]
    fn one_name_can_have_several_pages() {
        for (what, kinds) in [
            ("unmeasured", &["an outcome", "a verdict"][..]),
            ("nxdomain", &["a detail of the outcome dns_failure"]),
            (
                "404",
                &["a JSON-RPC error code", "a detail of the outcome not_found"],
            ),
            ("closed", &["a detail of the outcome tls_failure"]),
            (
                "bot_challenge",
                &[
                    "a detail of the outcome forbidden",
                    "a detail of the outcome rate_limited",
                    "a hint",
                ],
            ),
            (
                "echoes_request",
                &["a detail of the outcome protocol_violation", "a finding"],
            ),
        ] {
            let page = explain(what).unwrap();
            let found: Vec<&str> = page
                .lines()
                .filter_map(|it| it.strip_prefix(&format!("{what}: ")))
                .collect();
            assert_eq!(found, kinds);
        }
    }

    #[test]
    fn everything_has_a_page_of_80_columns() {
        let codes: Vec<String> = (-32800..=-31990)
            .chain([-1, 0, 402])
            .map(|it: i64| it.to_string())
            .collect();
        for what in names().into_iter().chain(codes.iter().map(String::as_str)) {
            let page = explain(what).unwrap();
            for line in page.lines() {
                assert!(line.chars().count() <= 80, "{what}: {line}");
                assert!(!line.ends_with(' '), "{what}: {line:?}");
            }
        }
    }

    #[test]
    fn what_has_no_page_is_told_what_it_may_have_meant() {
        for (what, near) in [
            ("auth-required", &["auth_required"][..]),
            ("timout", &["timeout"]),
            ("sucess", &["success"]),
            ("env.id_echo", &["env.id-echo"]),
            ("zebra", &[]),
        ] {
            assert_eq!(explain(what).unwrap_err().near, near, "{what}");
        }
        assert_eq!(
            explain("timout").unwrap_err().to_string(),
            "\"timout\" is no JSON-RPC code, outcome, detail, verdict, hint, finding or check; the nearest: timeout"
        );
        assert_eq!(explain("redirected_").unwrap_err().near[0], "redirected");
    }
}

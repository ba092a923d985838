//! The checks of a run as JUnit XML, which CI systems show: a suite a server, a case a check. What we failed to measure
//! is an error; what a server breaks is a failure; what is accepted or was not decided is skipped.

use std::fmt::Write as _;

use crate::catalogue::{Baseline, Checked, Server, Status};

/// The document. `baseline` has the failures that are accepted.
#[must_use]
pub fn junit(tool: &str, servers: &[Server], baseline: &Baseline) -> String {
    let mut suites = String::new();
    let mut total = Counts::default();
    for server in servers {
        let (cases, counts) = cases(server, baseline);
        total.add(counts);
        let _ = write!(
            suites,
            "  <testsuite name=\"{}\" {}>\n{cases}  </testsuite>\n",
            escaped(&server.url),
            counts.attributes(true)
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n{suites}</testsuites>\n",
        escaped(tool),
        total.attributes(false)
    )
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
    }

    /// The schema has `skipped` on a suite only.
    fn attributes(self, of_suite: bool) -> String {
        let mut text = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\"",
            self.tests, self.failures, self.errors
        );
        if of_suite {
            let _ = write!(text, " skipped=\"{}\"", self.skipped);
        }
        text
    }
}

fn cases(server: &Server, baseline: &Baseline) -> (String, Counts) {
    let mut text = String::new();
    let mut counts = Counts::default();
    // A dot would make packages of a name.
    let class = escaped(if server.name.is_empty() {
        &server.url
    } else {
        &server.name
    });
    let mut case = |name: &str, inner: &str| {
        let _ = if inner.is_empty() {
            writeln!(
                text,
                "    <testcase classname=\"{class}\" name=\"{name}\"/>"
            )
        } else {
            writeln!(
                text,
                "    <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>"
            )
        };
    };
    if let Some(why) = &server.unmeasured {
        counts.tests += 1;
        counts.errors += 1;
        let why = escaped(why);
        case(
            "measured",
            &format!("<error message=\"{why}\" type=\"unmeasured\"/>"),
        );
    }
    for checked in &server.checked {
        counts.tests += 1;
        let accepted = baseline.accepts(&server.url, checked.check);
        let inner = match checked.status {
            Status::Pass => String::new(),
            Status::Fail if accepted => {
                counts.skipped += 1;
                skipped(&format!("expected: {}", checked.detail))
            }
            Status::Fail => {
                counts.failures += 1;
                failure(checked)
            }
            Status::Warn => format!(
                "<system-out>warning: {}</system-out>",
                escaped(&checked.detail)
            ),
            Status::NotApplicable(_) | Status::NotObserved(_) => {
                counts.skipped += 1;
                let why = checked.status.why().unwrap_or_default();
                skipped(&format!("{}: {why}", checked.status))
            }
        };
        case(checked.check.name(), &inner);
    }
    (text, counts)
}

fn skipped(why: &str) -> String {
    format!("<skipped message=\"{}\"/>", escaped(why))
}

fn failure(checked: &Checked) -> String {
    let rule = checked.check.rule();
    format!(
        "<failure message=\"{}\" type=\"{}\">{}</failure>",
        escaped(&checked.detail),
        rule.level,
        escaped(&format!(
            "{} ({}) {}",
            checked.check.about(),
            rule.section,
            rule.remedy
        ))
    )
}

/// Text as XML has it: characters that XML has not are shown as U+FFFD.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\r' | '\t' => safe.push(' '),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push('\u{fffd}');
            }
            it => safe.push(it),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{CheckId, Missing};

    #[test]
    fn a_suite_is_a_server_and_a_case_is_a_check() {
        let checked = |check, status, detail: &str| Checked {
            check,
            status,
            detail: detail.into(),
        };
        let servers = [
            Server {
                name: "a & b".into(),
                url: "https://a.example/?x=<1>".into(),
                checked: vec![
                    checked(CheckId::EnvJsonrpc, Status::Pass, ""),
                    checked(CheckId::EnvIdEcho, Status::Fail, "the \"id\"\u{1}"),
                    checked(CheckId::EncUtf8, Status::Fail, "known"),
                    checked(CheckId::SsePriming, Status::Warn, "w"),
                    checked(CheckId::Notif202, Status::NotObserved(Missing::Budget), ""),
                ],
                ..Server::default()
            },
            Server {
                url: "https://b.example/".into(),
                unmeasured: Some("unmeasured: interrupted".into()),
                ..Server::default()
            },
        ];
        let baseline = Baseline::read("https://a.example/?x=<1>,enc.utf8\n").unwrap();
        let want = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"mcp-census 1\" tests=\"6\" failures=\"1\" errors=\"1\">
  <testsuite name=\"https://a.example/?x=&lt;1&gt;\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"2\">
    <testcase classname=\"a &amp; b\" name=\"env.jsonrpc\"/>
    <testcase classname=\"a &amp; b\" name=\"env.id-echo\"><failure message=\"the &quot;id&quot;\u{fffd}\" type=\"MUST\">A response carries the id of its request, with the same type. (basic, Responses) Copy the id as it came: a number stays a number. Errors too carry it, where the request could be read.</failure></testcase>
    <testcase classname=\"a &amp; b\" name=\"enc.utf8\"><skipped message=\"expected: known\"/></testcase>
    <testcase classname=\"a &amp; b\" name=\"sse.priming\"><system-out>warning: w</system-out></testcase>
    <testcase classname=\"a &amp; b\" name=\"notif.202\"><skipped message=\"not_observed: budget\"/></testcase>
  </testsuite>
  <testsuite name=\"https://b.example/\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">
    <testcase classname=\"https://b.example/\" name=\"measured\"><error message=\"unmeasured: interrupted\" type=\"unmeasured\"/></testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(junit("mcp-census 1", &servers, &baseline), want);
    }

    proptest::proptest! {
        #[test]
        fn nothing_a_server_says_leaves_its_attribute(text: String) {
            let safe = escaped(&text);
            let breaks = safe.contains(['<', '>', '"', '\u{0}', '\u{1b}', '\n']);
            proptest::prop_assert!(!breaks);
        }
    }
}

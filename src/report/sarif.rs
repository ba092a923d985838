//! The checks of a run as SARIF 2.1.0 (OASIS), which code hosts show: what fails and what is warned of, each with its
//! rule; what we failed to measure is a notification of the tool's, and no result.

use serde_json::{Value, json};

use crate::catalogue::{Baseline, Checked, Rule, Server, Status, rules};

/// Where the format is described, in the words of the format itself.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The document. With a baseline, a result says whether it is new.
#[must_use]
pub fn sarif(tool: &str, version: &str, servers: &[Server], baseline: Option<&Baseline>) -> String {
    let rules: Vec<&Rule> = rules().collect();
    let mut results = Vec::new();
    let mut notifications = Vec::new();
    for server in servers {
        if let Some(why) = &server.unmeasured {
            notifications.push(json!({
                "level": "warning",
                "message": { "text": format!("{}: {why}", server.url) },
            }));
        }
        for checked in &server.checked {
            let at = rules.iter().position(|it| it.id == checked.check);
            results.extend(result(server, checked, at, baseline));
        }
    }
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": tool,
                "version": version,
                "rules": rules.iter().map(|it| described(it)).collect::<Vec<_>>(),
            } },
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    // Strings, numbers and lists of them: there is nothing that JSON cannot say.
    serde_json::to_string_pretty(&document).map_or_else(|_| String::new(), |text| text + "\n")
}

fn described(rule: &Rule) -> Value {
    let mut help = format!("{} {}", rule.seen, rule.remedy);
    if let Some(position) = rule.position {
        help.push(' ');
        help.push_str(position);
    }
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.id.about() },
        "fullDescription": {
            "text": format!("{} {}, revisions {}: {}.", rule.id.about(), rule.level, rule.revisions(), rule.section),
        },
        "help": { "text": help },
        "defaultConfiguration": { "level": level(rule.level.broken()) },
    })
}

const fn level(status: Status) -> &'static str {
    match status {
        Status::Fail => "error",
        Status::Warn => "warning",
        Status::Pass | Status::NotApplicable(_) | Status::NotObserved(_) => "none",
    }
}

fn result(
    server: &Server,
    checked: &Checked,
    at: Option<usize>,
    baseline: Option<&Baseline>,
) -> Option<Value> {
    if !matches!(checked.status, Status::Fail | Status::Warn) {
        return None;
    }
    let text = match checked.detail.as_str() {
        "" => checked.check.about().to_owned(),
        detail => format!("{} Seen: {detail}.", checked.check.about()),
    };
    let mut result = json!({
        "ruleId": checked.check,
        "ruleIndex": at,
        "level": level(checked.status),
        "message": { "text": text },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": server.url } },
            "logicalLocations": [{ "name": server.name, "fullyQualifiedName": server.url, "kind": "resource" }],
        }],
        "partialFingerprints": { "server/v1": format!("{} {}", server.url, checked.check) },
    });
    if let Some(baseline) = baseline
        && checked.status == Status::Fail
    {
        let known = baseline.accepts(&server.url, checked.check);
        result["baselineState"] = json!(if known { "unchanged" } else { "new" });
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::CheckId;

    #[test]
    fn what_fails_is_a_result_with_its_rule() {
        let checked = |check, status| Checked {
            check,
            status,
            detail: "d".into(),
        };
        let servers = [
            Server {
                name: "a".into(),
                url: "https://a.example/".into(),
                checked: vec![
                    checked(CheckId::EnvJsonrpc, Status::Pass),
                    checked(CheckId::EnvIdEcho, Status::Fail),
                    checked(CheckId::EncUtf8, Status::Fail),
                    checked(CheckId::SsePriming, Status::Warn),
                ],
                ..Server::default()
            },
            Server {
                url: "https://b.example/".into(),
                unmeasured: Some("interrupted".into()),
                ..Server::default()
            },
        ];
        let baseline = Baseline::read("https://a.example/,enc.utf8\n").unwrap();
        let text = sarif("mcp-census", "1", &servers, Some(&baseline));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["version"], "2.1.0");
        let run = &document["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), crate::catalogue::rules().count());
        let results = run["results"].as_array().unwrap();
        let told: Vec<String> = results
            .iter()
            .map(|it| {
                let rule = &rules[usize::try_from(it["ruleIndex"].as_u64().unwrap()).unwrap()];
                assert_eq!(rule["id"], it["ruleId"]);
                assert_eq!(
                    it["message"]["text"]
                        .as_str()
                        .unwrap()
                        .split(" Seen: ")
                        .nth(1),
                    Some("d.")
                );
                format!("{} {} {}", it["ruleId"], it["level"], it["baselineState"])
            })
            .collect();
        assert_eq!(
            told,
            [
                r#""env.id-echo" "error" "new""#,
                r#""enc.utf8" "error" "unchanged""#,
                r#""sse.priming" "warning" null"#
            ]
        );
        let notes = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(
            notes[0]["message"]["text"],
            "https://b.example/: interrupted"
        );
        assert!(!sarif("x", "1", &servers, None).contains("baselineState"));
    }
}

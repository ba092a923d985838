//! The checks of a run as tables: by check with shares and intervals, by server with its score in parts, and how far
//! the servers are on the way to 2026-07-28.

use std::fmt::Write as _;

use csv::Writer;

use crate::catalogue::{Discovery, Readiness, Server, Status, Tally};
use crate::row::{Kind, inert};
use crate::stats::{fraction, wilson};
use crate::tally::Share;
use crate::wrap::wrap;

use super::{interval, percent};

/// The columns of the table by check: what each holds, and as what.
pub(super) const BY_CHECK: [(&str, &str, Kind); 12] = [
    ("check", "The check.", Kind::Text),
    ("number", "Its number in the catalogue.", Kind::Integer),
    ("level", "How binding it is.", Kind::Text),
    ("revisions", "The revisions it holds for.", Kind::Text),
    (
        "applicable",
        "Servers to which it applies, and of which it was decided.",
        Kind::Integer,
    ),
    ("passed", "Those that hold to it.", Kind::Integer),
    ("failed", "Those that break a demand.", Kind::Integer),
    (
        "warned",
        "Those that leave a recommendation.",
        Kind::Integer,
    ),
    (
        "share",
        "The passed as a fraction of the applicable.",
        Kind::Number,
    ),
    ("low", "The lower end of its 95 % interval.", Kind::Number),
    ("high", "The upper end of its 95 % interval.", Kind::Number),
    (
        "not_decided",
        "Servers of which it was not decided, by why, joined by `;`.",
        Kind::Text,
    ),
];

/// The columns of the table by server: what each holds, and as what.
pub(super) const BY_SERVER: [(&str, &str, Kind); 10] = [
    ("name", "The name the list gives.", Kind::Text),
    (
        "url",
        "The address as listed, secrets taken out.",
        Kind::Text,
    ),
    ("revision", "The revision it answered with.", Kind::Text),
    ("musts_passed", "Demands that it holds to.", Kind::Integer),
    (
        "musts_applicable",
        "Demands that apply and were decided.",
        Kind::Integer,
    ),
    (
        "failed",
        "Demands that it breaks, joined by `;`.",
        Kind::Text,
    ),
    (
        "warned",
        "Recommendations that it leaves, joined by `;`.",
        Kind::Text,
    ),
    (
        "readiness",
        "How far it is on the way to 2026-07-28.",
        Kind::Word(|| Readiness::ALL.iter().map(|it| it.name()).collect()),
    ),
    (
        "way_in",
        "How far a client finds the way to its authorization server, after a 401.",
        Kind::Word(|| Discovery::ALL.iter().map(|it| it.name()).collect()),
    ),
    (
        "unmeasured",
        "Why nothing was measured, where that is so.",
        Kind::Text,
    ),
];

/// The columns of the table by readiness: what each holds, and as what.
pub(super) const BY_READINESS: [(&str, &str, Kind); 6] = [
    (
        "readiness",
        "How far on the way to 2026-07-28.",
        Kind::Word(|| Readiness::ALL.iter().map(|it| it.name()).collect()),
    ),
    ("servers", "Servers that are as far.", Kind::Integer),
    (
        "share",
        "The same as a fraction of all servers.",
        Kind::Number,
    ),
    ("low", "The lower end of its 95 % interval.", Kind::Number),
    ("high", "The upper end of its 95 % interval.", Kind::Number),
    (
        "in_the_way",
        "What keeps them from being ready: checks and how many servers break each, joined by `;`.",
        Kind::Text,
    ),
];

/// A line a check, in the order of the catalogue: to how many servers it applied as far as that was seen, and the share
/// of those that hold to it with its 95 % interval.
#[must_use]
pub fn by_check(tally: &Tally) -> String {
    written(|out| {
        out.write_record(BY_CHECK.map(|(name, _, _)| name))?;
        for (check, line) in &tally.checks {
            let rule = check.rule();
            let of = line.decided();
            let interval = wilson(line.passed, of);
            let number = |it: f64| format!("{it:.6}");
            let undecided: Vec<String> = (line.outside.iter().map(|(why, n)| (why.name(), n)))
                .chain(line.missing.iter().map(|(why, n)| (why.name(), n)))
                .map(|(why, count)| format!("{why}:{count}"))
                .collect();
            out.write_record([
                check.name(),
                &rule.number.to_string(),
                rule.level.name(),
                &rule.revisions(),
                &of.to_string(),
                &line.passed.to_string(),
                &line.failed.to_string(),
                &line.warned.to_string(),
                &interval.map_or_else(String::new, |_| number(fraction(line.passed, of))),
                &interval.map_or_else(String::new, |it| number(it.low)),
                &interval.map_or_else(String::new, |it| number(it.high)),
                &undecided.join(";"),
            ])?;
        }
        Ok(())
    })
}

/// A line a server. The score is its parts: there is no grade.
#[must_use]
pub fn by_server(servers: &[Server]) -> String {
    written(|out| {
        out.write_record(BY_SERVER.map(|(name, _, _)| name))?;
        for server in servers {
            let score = server.score();
            let names = |status: Status| -> String {
                let names: Vec<&str> = server.with(status).map(|it| it.check.name()).collect();
                names.join(";")
            };
            let readiness = if server.checked.is_empty() {
                Readiness::Unknown
            } else {
                server.readiness()
            };
            out.write_record([
                &inert(&server.name),
                &inert(&server.url),
                &inert(server.revision.as_deref().unwrap_or_default()),
                &score.passed.to_string(),
                &score.applicable.to_string(),
                &names(Status::Fail),
                &names(Status::Warn),
                &readiness.to_string(),
                &server.way_in.map_or_else(String::new, |it| it.to_string()),
                &inert(server.unmeasured.as_deref().unwrap_or_default()),
            ])?;
        }
        Ok(())
    })
}

/// A line for each stage of readiness for 2026-07-28: how many servers are there, the share of all with its 95 %
/// interval, and which demands keep those that are partly there.
#[must_use]
pub fn by_readiness(tally: &Tally) -> String {
    written(|out| {
        out.write_record(BY_READINESS.map(|(name, _, _)| name))?;
        for &stage in Readiness::ALL {
            let count = tally.readiness.get(&stage).copied().unwrap_or(0);
            let interval = wilson(count, tally.servers);
            let number = |it: f64| format!("{it:.6}");
            let in_the_way = if stage == Readiness::Partly {
                in_the_way(tally, ":", ";")
            } else {
                String::new()
            };
            out.write_record([
                stage.name(),
                &count.to_string(),
                &interval.map_or_else(String::new, |_| number(fraction(count, tally.servers))),
                &interval.map_or_else(String::new, |it| number(it.low)),
                &interval.map_or_else(String::new, |it| number(it.high)),
                &in_the_way,
            ])?;
        }
        Ok(())
    })
}

/// The demands that keep servers from being ready, the most often broken first.
fn in_the_way(tally: &Tally, before: &str, between: &str) -> String {
    let mut broken: Vec<_> = tally.in_the_way.iter().collect();
    broken.sort_by_key(|(check, count)| (std::cmp::Reverse(**count), **check));
    let said: Vec<String> = broken
        .iter()
        .map(|(check, count)| format!("{check}{before}{count}"))
        .collect();
    said.join(between)
}

/// What a reader wants first, in 80 columns: the score of all, readiness, and the checks that are broken, the most
/// often broken first.
#[must_use]
pub fn told(tally: &Tally) -> String {
    let mut text = format!(
        "\nChecks of the specification, {} servers\n\n",
        tally.servers
    );
    if tally.score.applicable > 0 {
        let _ = writeln!(
            text,
            "  {} of {} demands that applied and were seen are held to ({}).",
            tally.score.passed,
            tally.score.applicable,
            percent(fraction(tally.score.passed, tally.score.applicable))
        );
    }
    let _ = writeln!(
        text,
        "\n  {:<10}{:>7}{:>9}  {:<15}for 2026-07-28",
        "ready", "servers", "share", "95 % interval"
    );
    for &stage in Readiness::ALL {
        let count = tally.readiness.get(&stage).copied().unwrap_or(0);
        let (share, interval) = match Share::new(count, tally.servers) {
            Some(share) => (percent(share.fraction), interval(&share)),
            None => (String::new(), String::new()),
        };
        let _ = writeln!(
            text,
            "  {stage:<10}{count:>7}{share:>9}  {interval:<15}{}",
            stage.about()
        );
    }
    if !tally.in_the_way.is_empty() {
        let said = format!("In the way: {}.", in_the_way(tally, " ", ", "));
        let _ = writeln!(text, "{}", wrap(&said, 80, "  "));
    }
    if !tally.ways_in.is_empty() {
        let ways: Vec<String> = tally
            .ways_in
            .iter()
            .map(|(way, count)| format!("{way} {count}"))
            .collect();
        let said = format!("From a 401, the way in: {}.", ways.join(", "));
        let _ = writeln!(text, "\n{}", wrap(&said, 80, "  "));
    }
    let mut broken: Vec<_> = tally
        .checks
        .iter()
        .filter(|(_, line)| line.failed + line.warned > 0)
        .collect();
    broken.sort_by_key(|(check, line)| (std::cmp::Reverse((line.failed, line.warned)), **check));
    if broken.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\n  {:<30}{:<10}{:>7}{:>7}{:>7}  passed",
        "check", "level", "seen", "failed", "warned"
    );
    for (check, line) in broken {
        let of = line.decided();
        let _ = writeln!(
            text,
            "  {:<30}{:<10}{of:>7}{:>7}{:>7}  {}",
            check.name(),
            check.rule().level,
            line.failed,
            line.warned,
            percent(fraction(line.passed, of))
        );
    }
    text
}

fn written(write: impl FnOnce(&mut Writer<Vec<u8>>) -> csv::Result<()>) -> String {
    let mut out = Writer::from_writer(Vec::new());
    // Neither can fail: the writer is memory, every record has as many fields, and all of them are text.
    let _ = write(&mut out);
    out.into_inner()
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{CheckId, Checked, Missing};

    #[test]
    fn tables_by_check_and_by_server_add_up() {
        let server = |url: &str, echo: Status| Server {
            name: "=a".into(),
            url: url.into(),
            revision: Some("2025-11-25".into()),
            checked: vec![
                Checked {
                    check: CheckId::EnvJsonrpc,
                    status: Status::Pass,
                    detail: String::new(),
                },
                Checked {
                    check: CheckId::EnvIdEcho,
                    status: echo,
                    detail: String::new(),
                },
            ],
            way_in: None,
            unmeasured: None,
        };
        let servers = [
            server("https://a.example/", Status::Pass),
            server("https://b.example/", Status::Fail),
            server("https://c.example/", Status::NotObserved(Missing::Gated)),
        ];
        let mut tally = Tally::default();
        for server in &servers {
            tally.add(server);
        }
        assert_eq!(
            by_check(&tally),
            "check,number,level,revisions,applicable,passed,failed,warned,share,low,high,not_decided\n\
             env.jsonrpc,3,MUST,all,3,3,0,0,1.000000,0.438503,1.000000,\n\
             env.id-echo,4,MUST,all,2,1,1,0,0.500000,0.094531,0.905469,gated:1\n"
        );
        let table = by_server(&servers);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[2],
            "'=a,https://b.example/,2025-11-25,1,2,env.id-echo,,unknown,,"
        );
        let stages = by_readiness(&tally);
        let lines: Vec<&str> = stages.lines().collect();
        assert_eq!(lines[0], "readiness,servers,share,low,high,in_the_way");
        assert_eq!(lines[4], "unknown,3,1.000000,0.438503,1.000000,");
        let told = told(&tally);
        assert!(told.contains("4 of 5 demands"), "{told}");
        assert!(told.lines().all(|it| it.len() <= 80), "{told}");
    }

    #[test]
    fn what_keeps_servers_from_being_ready_is_counted() {
        let modern = |ttl: Status| Server {
            url: "https://a.example/".into(),
            checked: [
                (CheckId::DiscImplemented, Status::Pass),
                (CheckId::DiscTtlMs, ttl),
            ]
            .into_iter()
            .map(|(check, status)| Checked {
                check,
                status,
                detail: String::new(),
            })
            .collect(),
            way_in: Some(Discovery::Full),
            ..Server::default()
        };
        let mut tally = Tally::default();
        for status in [Status::Pass, Status::Fail, Status::Fail] {
            tally.add(&modern(status));
        }
        let stages = by_readiness(&tally);
        let partly = stages.lines().nth(2).unwrap();
        assert!(partly.starts_with("partly,2,0.666667,0."), "{stages}");
        assert!(partly.ends_with(",disc.ttlMs:2"), "{stages}");
        let told = told(&tally);
        assert!(told.contains("In the way: disc.ttlMs 2."), "{told}");
        assert!(told.contains("the way in: oauth_full 3."), "{told}");
        assert!(told.lines().all(|it| it.len() <= 80), "{told}");
    }
}

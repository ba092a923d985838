//! A baseline: the failures that are known and accepted, one a line. New ones are told apart from them, and those that
//! are gone are reported, so that the baseline shrinks. A file in, a file out; reading and writing it is `cli`'s.

use std::collections::{BTreeMap, BTreeSet};

use super::id::CheckId;
use super::score::Server;
use super::status::Status;

/// The first line of the file.
const HEAD: &str = "url,check";

/// Failures that are accepted, by server and check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline(BTreeSet<(String, CheckId)>);

/// A line that is no accepted failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is no failure to accept; write url,check as in findings.csv")]
pub struct BadLine {
    /// The line's number, counted from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
}

/// What a run says of a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compared {
    /// Failures that are in the baseline.
    pub accepted: Vec<(String, CheckId)>,
    /// Failures that are not.
    pub new: Vec<(String, CheckId)>,
    /// What is in the baseline and was seen not to fail.
    pub fixed: Vec<(String, CheckId)>,
}

impl Baseline {
    /// Reads the file: a head line, `#` starts a comment, an address has no comma that is not escaped.
    ///
    /// # Errors
    /// The first line that is no accepted failure.
    pub fn read(text: &str) -> Result<Self, BadLine> {
        let mut accepted = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line == HEAD {
                continue;
            }
            let bad = || BadLine {
                line: number + 1,
                text: line.to_owned(),
            };
            // The check comes last and has no comma; an address may have some.
            let (url, check) = line.rsplit_once(',').ok_or_else(bad)?;
            let check = CheckId::named(check.trim()).ok_or_else(bad)?;
            accepted.insert((url.trim().to_owned(), check));
        }
        Ok(Self(accepted))
    }

    /// The file, in a fixed order.
    #[must_use]
    pub fn write(&self) -> String {
        let lines = self.0.iter().map(|(url, check)| format!("{url},{check}\n"));
        std::iter::once(format!("{HEAD}\n")).chain(lines).collect()
    }

    /// Whether a failure is accepted.
    #[must_use]
    pub fn accepts(&self, url: &str, check: CheckId) -> bool {
        self.0.contains(&(url.to_owned(), check))
    }

    /// How many failures are accepted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a run says of it.
    #[must_use]
    pub fn compare(&self, servers: &[Server]) -> Compared {
        let mut compared = Compared::default();
        for (failure, status) in statuses(servers) {
            match (status, self.0.contains(&failure)) {
                (Status::Fail, true) => compared.accepted.push(failure),
                (Status::Fail, false) => compared.new.push(failure),
                (Status::Pass | Status::Warn | Status::NotApplicable(_), true) => {
                    compared.fixed.push(failure);
                }
                // What was not seen this time is not fixed.
                (Status::NotObserved(_), true) | (_, false) => {}
            }
        }
        compared
    }

    /// The baseline after a run: what failed, and what was accepted and not seen.
    #[must_use]
    pub fn updated(&self, servers: &[Server]) -> Self {
        let compared = self.compare(servers);
        let mut accepted = self.0.clone();
        for fixed in &compared.fixed {
            accepted.remove(fixed);
        }
        accepted.extend(compared.new);
        Self(accepted)
    }
}

/// The statuses by server and check. Where an address is listed twice, a failure counts.
fn statuses(servers: &[Server]) -> BTreeMap<(String, CheckId), Status> {
    let mut found: BTreeMap<(String, CheckId), Status> = BTreeMap::new();
    for server in servers {
        for checked in &server.checked {
            let status = found
                .entry((server.url.clone(), checked.check))
                .or_insert(checked.status);
            if checked.status == Status::Fail {
                *status = Status::Fail;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Checked, Missing};

    fn server(url: &str, statuses: &[(CheckId, Status)]) -> Server {
        let checked = statuses.iter().map(|&(check, status)| Checked {
            check,
            status,
            detail: String::new(),
        });
        Server {
            url: url.into(),
            checked: checked.collect(),
            ..Server::default()
        }
    }

    #[test]
    fn known_failures_are_accepted_new_ones_told_and_fixed_ones_reported() {
        let text = "url,check\n# known\nhttps://a.example/?x=1,2,env.jsonrpc\nhttps://a.example/?x=1,2,env.id-echo\n\
                    https://a.example/?x=1,2,sess.ascii\nhttps://b.example/,env.jsonrpc\n";
        let baseline = Baseline::read(text).unwrap();
        let run = [server(
            "https://a.example/?x=1,2",
            &[
                (CheckId::EnvJsonrpc, Status::Fail),
                (CheckId::EnvIdEcho, Status::Pass),
                (CheckId::SessAscii, Status::NotObserved(Missing::TimedOut)),
                (CheckId::EncUtf8, Status::Fail),
                (CheckId::SsePriming, Status::Warn),
            ],
        )];
        let compared = baseline.compare(&run);
        let names = |found: &[(String, CheckId)]| -> Vec<&'static str> {
            found.iter().map(|(_, check)| check.name()).collect()
        };
        assert_eq!(names(&compared.accepted), ["env.jsonrpc"]);
        assert_eq!(names(&compared.new), ["enc.utf8"]);
        assert_eq!(names(&compared.fixed), ["env.id-echo"]);
        let updated = baseline.updated(&run);
        assert_eq!(
            updated.write(),
            "url,check\nhttps://a.example/?x=1,2,env.jsonrpc\nhttps://a.example/?x=1,2,sess.ascii\n\
             https://a.example/?x=1,2,enc.utf8\nhttps://b.example/,env.jsonrpc\n"
        );
        assert_eq!(Baseline::read(&updated.write()), Ok(updated.clone()));
        assert!(updated.compare(&run).new.is_empty());
    }

    #[test]
    fn a_line_that_is_no_failure_is_named() {
        let error = Baseline::read("url,check\nhttps://a.example/,no.such\n").unwrap_err();
        assert_eq!(error.line, 2);
    }
}

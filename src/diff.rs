//! Two runs -> what changed between them: in the world, and in the instrument. A change that the instrument explains
//! is never counted as the world's. Reading runs is `cli`'s affair, how a difference looks is `report`'s.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{Manifest, Setting};
use crate::names::names;
use crate::outcome::{Outcome, Unprobeable, Verdict};
use crate::stats;
use crate::tally::Share;

names! {
    /// What of an endpoint is compared.
    pub enum Aspect {
        /// The outcome.
        Outcome = "outcome",
        /// The verdict.
        Verdict = "verdict",
        /// The generation of the protocol.
        Era = "era",
        /// The protocol version.
        Version = "protocol_version",
        /// The challenge of a 401 or 403.
        Auth = "auth_scheme",
        /// The server's name for itself.
        Server = "server_name",
    }
}

names! {
    /// Why a difference says nothing of the world.
    pub enum Cause {
        /// It was not measured in one of the runs.
        NotMeasured = "not_measured",
        /// The runs were read by other rules.
        Rules = "rules",
        /// They were asked from elsewhere.
        Vantage = "vantage",
        /// Another protocol version was asked for, or something else was asked first.
        Asked = "asked",
        /// They were given another time to answer.
        Timeout = "timeout",
        /// Doubtful answers were asked again another number of times.
        Confirm = "confirm",
        /// What may be asked, who is asked for names or who is trusted differs.
        Reach = "reach",
        /// The same list was frozen differently.
        List = "list",
    }
}

/// An endpoint as one run saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its address; that of the list where it has none.
    pub endpoint: String,
    /// The name that the list gives.
    pub name: String,
    /// The outcome.
    pub outcome: Outcome,
    /// What narrows it.
    pub detail: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The generation of the protocol.
    pub era: String,
    /// The protocol version.
    pub version: String,
    /// The challenge.
    pub auth: String,
    /// The server's name.
    pub server: String,
    /// Its attempts agree, and an accusation was asked again. Only then is a change an alert.
    pub confirmed: bool,
}

impl Seen {
    fn aspect(&self, aspect: Aspect) -> &str {
        match aspect {
            Aspect::Outcome => self.outcome.name(),
            Aspect::Verdict => self.verdict.name(),
            Aspect::Era => &self.era,
            Aspect::Version => &self.version,
            Aspect::Auth => &self.auth,
            Aspect::Server => &self.server,
        }
    }
}

/// A run to compare.
#[derive(Debug)]
pub struct Side<'a> {
    /// What it is called.
    pub label: String,
    /// What it was.
    pub manifest: &'a Manifest,
    /// Its rows; of several with one address the first stands for it.
    pub rows: Vec<Seen>,
}

/// A setting of the instrument that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// Which.
    pub setting: Setting,
    /// What it can explain.
    pub cause: Cause,
    /// Its value in the first run.
    pub before: String,
    /// Its value in the second.
    pub after: String,
}

/// An endpoint that only one run has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lone {
    /// Its address.
    pub endpoint: String,
    /// Its name in the list.
    pub name: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Why that says nothing of the world, if it does not.
    pub cause: Option<Cause>,
}

/// A change of one aspect of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its address.
    pub endpoint: String,
    /// Its name in the second run's list.
    pub name: String,
    /// What changed.
    pub aspect: Aspect,
    /// What it was; empty where it was nothing.
    pub before: String,
    /// What it is.
    pub after: String,
    /// Why that says nothing of the world, if it does not.
    pub cause: Option<Cause>,
    /// In both runs the attempts agree, and an accusation was asked again.
    pub confirmed: bool,
}

/// A share in both runs, and how sure its change is.
#[derive(Debug, Clone, PartialEq)]
pub struct Shift {
    /// Whether it is of a verdict or of an outcome.
    pub aspect: Aspect,
    /// Which.
    pub value: &'static str,
    /// In the first run, of the endpoints that are compared.
    pub before: u64,
    /// In the second run, of the same.
    pub after: u64,
    /// Endpoints that are compared: measured in both runs, and not changed by the instrument.
    pub of: u64,
    /// Endpoints that came to be it.
    pub gained: u64,
    /// Endpoints that ceased to be it.
    pub lost: u64,
    /// How likely that is to be chance: the p of [`stats::mcnemar`].
    pub p: f64,
    /// In each run, of everything it measured.
    pub whole: [(u64, u64); 2],
    /// The p of the two-proportion z test of those, which takes the runs for separate samples.
    pub p_whole: Option<f64>,
}

impl Shift {
    /// The shares of the endpoints that are compared.
    #[must_use]
    pub fn shares(&self) -> [Option<Share>; 2] {
        [self.before, self.after].map(|count| Share::new(count, self.of))
    }
}

/// What differs between two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// What the runs are called.
    pub labels: [String; 2],
    /// Settings of the instrument that differ.
    pub instrument: Vec<Differs>,
    /// Endpoints that both runs have.
    pub common: u64,
    /// Endpoints of the second run alone.
    pub appeared: Vec<Lone>,
    /// Endpoints of the first run alone.
    pub gone: Vec<Lone>,
    /// What changed, by endpoint.
    pub changes: Vec<Change>,
    /// The shares.
    pub shifts: Vec<Shift>,
}

/// The runs are of different populations, and their shares are of different things.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the runs are of different lists: {gone} endpoints are in the first alone, {appeared} in the second alone, \
     {common} in both; --intersect compares what is in both"
)]
pub struct OtherPopulation {
    /// Endpoints of the second run alone.
    pub appeared: usize,
    /// Endpoints of the first run alone.
    pub gone: usize,
    /// Endpoints of both.
    pub common: usize,
}

impl Diff {
    /// Compares two runs. With `intersect` they may be of different lists; what both have is compared.
    ///
    /// # Errors
    /// When they are of different lists, and that was not asked for.
    pub fn between(
        before: &Side<'_>,
        after: &Side<'_>,
        intersect: bool,
    ) -> Result<Self, OtherPopulation> {
        let instrument = instrument(before.manifest, after.manifest);
        let causes: BTreeSet<Cause> = instrument.iter().map(|it| it.cause).collect();
        let (olds, news) = (by_endpoint(&before.rows), by_endpoint(&after.rows));
        let is_same_list = lists(before.manifest) == lists(after.manifest);
        let lone = |rows: &BTreeMap<&str, &Seen>, others: &BTreeMap<&str, &Seen>| -> Vec<Lone> {
            rows.values()
                .filter(|it| !others.contains_key(it.endpoint.as_str()))
                .map(|it| Lone {
                    endpoint: it.endpoint.clone(),
                    name: it.name.clone(),
                    outcome: it.outcome,
                    cause: is_same_list.then_some(Cause::List),
                })
                .collect()
        };
        let (appeared, gone) = (lone(&news, &olds), lone(&olds, &news));
        let pairs: Vec<(&Seen, &Seen)> = olds
            .iter()
            .filter_map(|(endpoint, old)| Some((*old, *news.get(endpoint)?)))
            .collect();
        if !(intersect || is_same_list || appeared.is_empty() && gone.is_empty()) {
            return Err(OtherPopulation {
                appeared: appeared.len(),
                gone: gone.len(),
                common: pairs.len(),
            });
        }
        let mut changes = Vec::new();
        let mut compared = Vec::new();
        for (old, new) in &pairs {
            let moved: Vec<Aspect> = Aspect::ALL
                .iter()
                .copied()
                .filter(|it| old.aspect(*it) != new.aspect(*it))
                .collect();
            let cause = if moved.is_empty() {
                None
            } else {
                explained(old, new, &causes)
            };
            if cause.is_none() && old.verdict.is_measured() && new.verdict.is_measured() {
                compared.push((*old, *new));
            }
            changes.extend(moved.into_iter().map(|aspect| Change {
                endpoint: new.endpoint.clone(),
                name: new.name.clone(),
                aspect,
                before: old.aspect(aspect).to_owned(),
                after: new.aspect(aspect).to_owned(),
                cause,
                confirmed: old.confirmed && new.confirmed,
            }));
        }
        Ok(Self {
            labels: [before.label.clone(), after.label.clone()],
            instrument,
            common: pairs.len() as u64,
            appeared,
            gone,
            changes,
            shifts: shifts(&compared, [&olds, &news]),
        })
    }

    /// Changes that are the world's, as far as the runs can tell.
    pub fn of_the_world(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|it| it.cause.is_none())
    }

    /// Changes that the instrument explains, by cause.
    #[must_use]
    pub fn set_apart(&self) -> BTreeMap<Cause, u64> {
        let mut counts = BTreeMap::new();
        for cause in self.changes.iter().filter_map(|it| it.cause) {
            *counts.entry(cause).or_default() += 1;
        }
        counts
    }
}

fn by_endpoint(rows: &[Seen]) -> BTreeMap<&str, &Seen> {
    let mut found = BTreeMap::new();
    for row in rows {
        found.entry(row.endpoint.as_str()).or_insert(row);
    }
    found
}

fn lists(manifest: &Manifest) -> Vec<(&str, &str)> {
    manifest
        .lists
        .iter()
        .map(|it| (it.sha256.as_str(), it.format.as_str()))
        .collect()
}

/// The settings of the instrument, told apart in few characters: runs with the same are of the same instrument.
#[must_use]
pub fn fingerprint(manifest: &Manifest) -> String {
    let moving = Setting::ALL.iter().filter(|it| cause(**it).is_some());
    let said: Vec<String> = moving
        .map(|it| format!("{it}={}", manifest.setting(*it)))
        .collect();
    stats::fingerprint(said.iter().map(String::as_str))
}

/// The settings that differ and could move a row.
#[must_use]
pub fn instrument(one: &Manifest, other: &Manifest) -> Vec<Differs> {
    Setting::ALL
        .iter()
        .filter_map(|&setting| {
            let (before, after) = (one.setting(setting), other.setting(setting));
            Some(Differs {
                setting,
                cause: cause(setting)?,
                before,
                after,
            })
        })
        .filter(|it| it.before != it.after)
        .collect()
}

/// What another value of a setting can explain, if anything.
const fn cause(setting: Setting) -> Option<Cause> {
    match setting {
        Setting::Tool | Setting::RulesVersion => Some(Cause::Rules),
        Setting::Vantage => Some(Cause::Vantage),
        Setting::ProtocolVersion
        | Setting::Opening
        | Setting::Profile
        | Setting::Budget
        | Setting::Intrusive
        | Setting::Mine => Some(Cause::Asked),
        Setting::Timeout | Setting::ConnectTimeout => Some(Cause::Timeout),
        Setting::Confirm => Some(Cause::Confirm),
        Setting::DnsServer | Setting::CaCert | Setting::AllowNet => Some(Cause::Reach),
        Setting::Robots | Setting::Shard | Setting::Sample | Setting::MaxPerSite => {
            Some(Cause::NotMeasured)
        }
        // How hard it pushed, how it was tried, and whom it left alone, which each row says.
        Setting::Width
        | Setting::Depth
        | Setting::Gap
        | Setting::Rate
        | Setting::PerAddress
        | Setting::Excluded
        | Setting::Seed
        | Setting::SelfCheck
        | Setting::Control
        | Setting::Complete => None,
    }
}

/// Why a change says nothing of the world: the first cause that could have brought it about. It is better to leave a
/// change of the world aside than to take one of ours for one.
fn explained(old: &Seen, new: &Seen, differs: &BTreeSet<Cause>) -> Option<Cause> {
    let either = |is: fn(&Seen) -> bool| is(old) || is(new);
    let could = |cause: Cause| match cause {
        Cause::NotMeasured => either(|it| it.verdict == Verdict::Unmeasured),
        Cause::Rules | Cause::Vantage => true,
        // Who did not answer was not moved by what was asked.
        Cause::Asked => !either(|it| it.verdict == Verdict::Down),
        Cause::Timeout => {
            either(|it| it.outcome == Outcome::Timeout)
                || either(|it| it.outcome == Outcome::DnsFailure && it.detail == "timeout")
        }
        // What passes when it is asked again shows up where it is not.
        Cause::Confirm => either(|it| {
            matches!(
                it.verdict,
                Verdict::Down | Verdict::Faulty | Verdict::NotMcp
            )
        }),
        Cause::Reach => either(|it| {
            matches!(it.outcome, Outcome::DnsFailure | Outcome::TlsFailure)
                || (it.outcome == Outcome::Unprobeable
                    && it.detail == Unprobeable::PrivateAddress.name())
        }),
        Cause::List => false,
    };
    // Whom the operator left out was not asked, whatever differs.
    if either(|it| {
        it.outcome == Outcome::Unprobeable
            && [Unprobeable::Excluded, Unprobeable::Robots]
                .iter()
                .any(|why| it.detail == why.name())
    }) {
        return Some(Cause::NotMeasured);
    }
    Cause::ALL
        .iter()
        .copied()
        .find(|it| (*it == Cause::NotMeasured || differs.contains(it)) && could(*it))
}

fn shifts(compared: &[(&Seen, &Seen)], runs: [&BTreeMap<&str, &Seen>; 2]) -> Vec<Shift> {
    let verdicts = Verdict::ALL
        .iter()
        .filter(|it| it.is_measured())
        .map(|it| (Aspect::Verdict, it.name()));
    let outcomes = Outcome::ALL.iter().map(|it| (Aspect::Outcome, it.name()));
    verdicts
        .chain(outcomes)
        .map(|(aspect, value)| {
            let is = |it: &Seen| it.aspect(aspect) == value;
            let count = |which: &dyn Fn(&Seen, &Seen) -> bool| {
                compared.iter().filter(|(old, new)| which(old, new)).count() as u64
            };
            let whole = runs.map(|rows| {
                let measured = || rows.values().filter(|it| it.verdict.is_measured());
                (
                    measured().filter(|it| is(it)).count() as u64,
                    measured().count() as u64,
                )
            });
            let gained = count(&|old, new| !is(old) && is(new));
            let lost = count(&|old, new| is(old) && !is(new));
            Shift {
                aspect,
                value,
                before: count(&|old, _| is(old)),
                after: count(&|_, new| is(new)),
                of: compared.len() as u64,
                gained,
                lost,
                p: stats::mcnemar(gained, lost),
                whole,
                p_whole: stats::two_proportions(whole[0], whole[1]),
            }
        })
        // An outcome that neither run has is no news.
        .filter(|it| it.aspect == Aspect::Verdict || it.whole.iter().any(|(count, _)| *count > 0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::ListFile;

    fn manifest(edit: impl FnOnce(&mut Manifest)) -> Manifest {
        let text = r#"{"tool":"t 1","rules_version":1,"command":[],"lists":[],"seed":0,"parameters":{"protocol_version":"2025-11-25",
            "width":1,"depth":1,"gap_ms":0,"rate":0,"timeout_ms":1000,"connect_timeout_ms":500,"confirm":1},
            "started_at":"2026-11-30T12:00:00Z","ended_at":null,"complete":true,"rows":0,"endpoints":0,"requests":0,"most_asked":null}"#;
        let mut manifest: Manifest = serde_json::from_str(text).unwrap();
        manifest.lists.push(ListFile {
            partial: false,
            headers_sent: Vec::new(),
            path: "l".into(),
            format: "csv".into(),
            sha256: "aa".into(),
            rows: 0,
            extra_columns: Vec::new(),
        });
        edit(&mut manifest);
        manifest
    }

    fn seen(endpoint: &str, outcome: Outcome, detail: &str, verdict: Verdict) -> Seen {
        Seen {
            endpoint: endpoint.into(),
            name: endpoint.into(),
            outcome,
            detail: detail.into(),
            verdict,
            era: "unknown".into(),
            version: String::new(),
            auth: String::new(),
            server: String::new(),
            confirmed: true,
        }
    }

    fn works(endpoint: &str) -> Seen {
        seen(endpoint, Outcome::Success, "json", Verdict::Working)
    }

    fn times_out(endpoint: &str) -> Seen {
        seen(endpoint, Outcome::Timeout, "first_byte", Verdict::Down)
    }

    fn side(manifest: &Manifest, rows: Vec<Seen>) -> Side<'_> {
        Side {
            label: "run".into(),
            manifest,
            rows,
        }
    }

    #[track_caller]
    fn check(edit: impl FnOnce(&mut Manifest), old: Seen, new: Seen, want: Option<Cause>) {
        let (one, other) = (manifest(|_| ()), manifest(edit));
        let diff = Diff::between(&side(&one, vec![old]), &side(&other, vec![new]), false).unwrap();
        assert!(!diff.changes.is_empty());
        assert!(
            diff.changes.iter().all(|it| it.cause == want),
            "{:?}",
            diff.changes
        );
        assert_eq!(
            diff.shifts[0].of,
            u64::from(want.is_none()),
            "what the instrument explains is in no share"
        );
    }

    #[test]
    fn what_the_instrument_explains_is_never_the_worlds() {
        let gone = || seen("a", Outcome::NotFound, "404", Verdict::NotMcp);
        let paused = || seen("a", Outcome::Unmeasured, "site_paused", Verdict::Unmeasured);
        check(|_| (), works("a"), gone(), None);
        check(|_| (), works("a"), paused(), Some(Cause::NotMeasured));
        check(
            |it| it.rules_version = 2,
            works("a"),
            gone(),
            Some(Cause::Rules),
        );
        check(
            |it| it.vantage = Some("x".into()),
            works("a"),
            gone(),
            Some(Cause::Vantage),
        );
        let asked = |it: &mut Manifest| it.parameters.protocol_version = "2024-11-05".into();
        check(asked, works("a"), gone(), Some(Cause::Asked));
        check(asked, works("a"), times_out("a"), None);
        let timeout = |it: &mut Manifest| it.parameters.timeout_ms = 9000;
        check(timeout, works("a"), times_out("a"), Some(Cause::Timeout));
        check(timeout, works("a"), gone(), None);
    }

    #[test]
    fn runs_of_different_lists_are_compared_where_they_meet_and_only_when_asked() {
        let (one, other) = (
            manifest(|_| ()),
            manifest(|it| it.lists[0].sha256 = "bb".into()),
        );
        let (old, new) = (
            side(&one, vec![works("a"), works("b")]),
            side(&other, vec![works("b"), times_out("c")]),
        );
        let refused = Diff::between(&old, &new, false).unwrap_err();
        assert_eq!((refused.appeared, refused.gone, refused.common), (1, 1, 1));
        let diff = Diff::between(&old, &new, true).unwrap();
        assert_eq!((diff.common, diff.shifts[0].of), (1, 1));
        assert_eq!(
            (diff.appeared[0].endpoint.as_str(), diff.appeared[0].cause),
            ("c", None)
        );
        // The same list, frozen differently, is ours.
        let again = side(&one, vec![works("b"), times_out("c")]);
        let diff = Diff::between(&old, &again, false).unwrap();
        assert_eq!(diff.gone[0].cause, Some(Cause::List));
    }

    #[test]
    fn a_share_says_how_many_came_and_went() {
        let same = manifest(|_| ());
        let old = side(&same, ["a", "b", "c", "d"].map(works).into());
        let new = side(
            &same,
            vec![works("a"), times_out("b"), times_out("c"), works("d")],
        );
        let diff = Diff::between(&old, &new, false).unwrap();
        let working = &diff.shifts[0];
        assert_eq!(
            (working.before, working.after, working.gained, working.lost),
            (4, 2, 0, 2)
        );
        // Two tosses of a coin, both the same: 2 / 4.
        assert!((working.p - 0.5).abs() < 1e-9);
        assert_eq!(
            diff.of_the_world().count(),
            4,
            "an outcome and a verdict of each"
        );
    }
}

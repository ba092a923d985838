//! A year of daily runs on a clock that costs nothing: outages, restarts, kills, summer time, runs that take too long, a
//! list that changes and rules that do. The history has to say exactly what happened.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::civil::{Date, date};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use mcp_census::exchange::{Answer, Body, BodyEnd, Connection, Exchange, Leg, Reply, Timing};
use mcp_census::manifest::Manifest;
use mcp_census::mcp::{ASKED_VERSION, INITIALIZE_ID, Identity};
use mcp_census::periodic::file;
use mcp_census::periodic::history::{self, Line, Reason, Status};
use mcp_census::periodic::metrics::Standing;
use mcp_census::periodic::plan::{Sweep, Sweeps};
use mcp_census::reckon;
use mcp_census::roll::{Aim, Freezer, Listed};
use mcp_census::row::Row;
use mcp_census::store::{self, RunDir};
use mcp_census::sweep::{Delivery, Desk, Failure, Keeper, Order, Tables, Woken};
use mcp_census::tally::{RunFacts, Tally};

/// Where the year is lived.
const ZONE: &str = "Europe/Berlin";

/// What happens to the program, and to its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    /// The program does not run until then.
    Down(Timestamp),
    /// The clock is set to this.
    Set(Timestamp),
}

/// What happens in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// It takes so long, and the clock with it.
    Takes(SignedDuration),
    /// The program is asked to stop after the first endpoint.
    Drained,
    /// The program is killed after the first endpoint, and nobody is there for two days.
    Killed,
    /// The disk is full after the first endpoint.
    DiskFull,
    /// The list cannot be read.
    NoList,
}

/// A desk with a clock of its own. The world is as the scenario says.
struct Stage {
    now: Timestamp,
    events: Vec<(Timestamp, Event)>,
    fates: BTreeMap<Date, Fate>,
    next_event: usize,
    told: Vec<Delivery>,
    said: Vec<String>,
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn day_of(at: Timestamp) -> Date {
    at.in_tz(ZONE).unwrap().date()
}

impl Stage {
    fn population(&self) -> usize {
        if day_of(self.now) < date(2026, 7, 1) {
            3
        } else {
            4
        }
    }

    fn rules(&self) -> u32 {
        if day_of(self.now) < date(2026, 10, 1) {
            1
        } else {
            2
        }
    }

    /// The second server is broken from 10 to 12 May.
    fn works(&self, endpoint: u32) -> bool {
        let day = day_of(self.now);
        !(endpoint == 1 && date(2026, 5, 10) <= day && day <= date(2026, 5, 12))
    }

    /// Asks the endpoints from one on, up to another.
    fn ask(&self, dir: &RunDir, from: u32, to: u32) {
        let mut writer = dir.append_evidence().unwrap();
        for endpoint in from..to {
            for attempt in 0..=u8::from(!self.works(endpoint)) {
                let exchange = self.exchange(endpoint, attempt);
                writer.add(&store::line(&exchange).unwrap()).unwrap();
            }
        }
        writer.flush().unwrap();
    }

    fn exchange(&self, endpoint: u32, attempt: u8) -> Exchange {
        let url = format!("https://s{endpoint}.example/mcp").parse().unwrap();
        let result = serde_json::json!({ "jsonrpc": "2.0", "id": INITIALIZE_ID, "result": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } } });
        let works = self.works(endpoint);
        Exchange {
            endpoint,
            attempt,
            leg: Leg::Initialize,
            started_at: self.now,
            request: Identity { contact: None }.initialize(&url, ASKED_VERSION),
            reply: Reply::Answer(Answer {
                version: "HTTP/1.1".into(),
                status: if works { 200 } else { 404 },
                headers: vec![("content-type".into(), "application/json".into())],
                body: Body(if works {
                    result.to_string().into_bytes()
                } else {
                    Vec::new()
                }),
                end: BodyEnd::Complete,
            }),
            timing: Timing::default(),
            connection: Connection::default(),
        }
    }

    fn freeze(&self, order: &Order<'_>) -> (RunDir, Manifest) {
        let dir = RunDir::create(order.dir).unwrap();
        let mut freezer = Freezer::default();
        let count = self.population();
        dir.replace(store::file::TARGETS, |to| {
            for number in 0..count {
                let entry = freezer.freeze(Listed {
                    name: format!("server {number}"),
                    url: format!("https://s{number}.example/mcp"),
                    ..Listed::default()
                });
                assert!(matches!(entry.aim, Aim::Endpoint { .. }));
                serde_json::to_writer(&mut *to, &entry)?;
                to.write_all(b"\n")?;
            }
            Ok(())
        })
        .unwrap();
        let mut manifest: Manifest = serde_json::from_value(serde_json::json!({
            "tool": "mcp-census 0.1.0", "rules_version": self.rules(), "command": [],
            "lists": [{ "path": "l", "format": "csv", "sha256": count.to_string(), "rows": count }], "seed": 0,
            "parameters": { "protocol_version": ASKED_VERSION, "width": 1, "depth": 1, "gap_ms": 0, "rate": 0,
                "timeout_ms": 1000, "connect_timeout_ms": 500, "confirm": 1 },
            "started_at": self.now, "ended_at": null, "complete": false, "rows": count, "endpoints": count,
            "requests": 0, "most_asked": null, "population": count.to_string(),
        }))
        .unwrap();
        manifest.occasion = Some(order.occasion.clone());
        (dir, manifest)
    }
}

fn save(dir: &RunDir, manifest: &Manifest) {
    mcp_census::scan::write_manifest(dir, manifest).unwrap();
}

impl Desk for Stage {
    fn now(&mut self) -> Timestamp {
        self.now
    }

    fn wait(&mut self, until: Timestamp) -> Woken {
        match self.events.get(self.next_event) {
            Some((time, event)) if *time <= until => {
                self.next_event += 1;
                self.now = *time;
                match event {
                    Event::Down(until) => {
                        self.now = *until;
                        Woken::Stop
                    }
                    Event::Set(to) => {
                        self.now = *to;
                        Woken::Time
                    }
                }
            }
            Some(_) => {
                self.now = self.now.max(until);
                Woken::Time
            }
            None => Woken::Stop,
        }
    }

    fn scan(&mut self, order: &Order<'_>) -> Result<Option<Reason>, Failure> {
        let count = u32::try_from(self.population()).unwrap();
        let fate = if order.is_resumed {
            Fate::Takes(SignedDuration::from_mins(10))
        } else {
            let usual = Fate::Takes(SignedDuration::from_mins(20));
            self.fates.get(&day_of(self.now)).copied().unwrap_or(usual)
        };
        let (dir, mut manifest) = if order.is_resumed {
            let dir = RunDir::resume(order.dir).unwrap();
            let mut manifest: Manifest = dir.read_json(store::file::MANIFEST).unwrap();
            manifest.occasion = Some(order.occasion.clone());
            (dir, manifest)
        } else if fate == Fate::NoList {
            let error = anyhow::anyhow!("cannot read the list");
            return Err(Failure {
                reason: Reason::List,
                error,
            });
        } else {
            self.freeze(order)
        };
        save(&dir, &manifest);
        let from = u32::from(order.is_resumed);
        let end = match fate {
            Fate::Takes(takes) => {
                self.ask(&dir, from, count);
                self.now = self.now.saturating_add(takes).unwrap();
                manifest.complete = true;
                Ok(None)
            }
            Fate::Drained | Fate::Killed => {
                self.ask(&dir, 0, 1);
                let away = if fate == Fate::Killed { 3330 } else { 5 };
                self.now = self.now.saturating_add(away.minutes()).unwrap();
                Ok(Some(Reason::Interrupted))
            }
            Fate::DiskFull => {
                self.ask(&dir, 0, 1);
                let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
                Err(Failure {
                    reason: Reason::Killed,
                    error: error.into(),
                })
            }
            Fate::NoList => unreachable!(),
        };
        if !matches!(fate, Fate::Killed | Fate::DiskFull) {
            manifest.ended_at = Some(self.now);
            save(&dir, &manifest);
        }
        end
    }

    fn tables(&mut self, _: &Sweep, dir: &Path) -> anyhow::Result<Tables> {
        let dir = RunDir::open(dir)?;
        let mut tally = Tally::default();
        dir.replace(store::file::RESULTS, |to| {
            let mut results = csv::Writer::from_writer(to);
            results.write_record(Row::COLUMNS.iter().map(|(name, _)| *name))?;
            reckon::each_row(&dir, |reckoned| {
                tally.add(&reckoned.row);
                Ok(results.write_record(reckoned.row.cells().iter().map(|it| it.as_bytes()))?)
            })?;
            Ok(results.flush()?)
        })?;
        Ok(Tables {
            summary: tally.summary(&RunFacts::default()),
            new_failures: Vec::new(),
        })
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.told.push(delivery);
    }

    fn note(&mut self, _: &str, _: &Standing) {}

    fn say(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }
}

fn sweeps(dir: &Path) -> Sweeps {
    let text = format!(
        "dir = {:?}\n[sweep.daily]\nlists = [\"l\"]\ncron = \"30 2 * * *\"\ntime_zone = {ZONE:?}\nself_check = false\n\
         [sweep.daily.retention]\nruns = 30\n\
         [sweep.daily.on_change]\ncommand = [\"c\"]\n[sweep.daily.on_regression]\ncommand = [\"r\"]\n\
         [sweep.daily.on_failure]\ncommand = [\"f\"]\n",
        dir.to_str().unwrap()
    );
    file::read(&text, jiff::tz::db()).unwrap()
}

/// Lives a scenario until the end of the year.
fn live(dir: &Path, mut stage: Stage) -> Stage {
    let end = at("2026-12-31T22:00:00Z");
    stage.events.push((end, Event::Down(end)));
    while stage.now < end {
        let mut keeper = Keeper::open(sweeps(dir), &mut stage)
            .unwrap()
            .napping(SignedDuration::from_hours(6));
        keeper.keep(&mut stage, || unreachable!("nobody reloads"));
        // Started again after what stopped it, as a service is.
        if stage.now < end {
            stage.now = stage.now.saturating_add(1.minutes()).unwrap();
        }
    }
    stage
}

fn starts() -> Vec<Timestamp> {
    let mut day = date(2026, 1, 1);
    let mut starts = Vec::new();
    while day <= date(2026, 12, 31) {
        // On 29 March there is no 02:30, and the start is at 03:00, 01:00Z. On 25 October there are two, and the
        // first counts.
        let summer = date(2026, 3, 30) <= day && day <= date(2026, 10, 25);
        let hour = i8::from(!summer);
        let minute = if day == date(2026, 3, 29) { 0 } else { 30 };
        let start = day.at(hour, minute, 0, 0).in_tz("UTC").unwrap();
        starts.push(start.timestamp());
        day = day.tomorrow().unwrap();
    }
    starts
}

/// A folder in memory where there is one: a year waits for the disk some three thousand times.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A year in which much happens.
fn eventful() -> Stage {
    let hours = SignedDuration::from_hours;
    Stage {
        now: at("2025-12-31T12:00:00Z"),
        events: vec![
            // Down for three starts; the last is caught up.
            (
                at("2026-02-03T12:00:00Z"),
                Event::Down(at("2026-02-06T09:00:00Z")),
            ),
            // A restart that misses nothing.
            (
                at("2026-02-20T12:00:00Z"),
                Event::Down(at("2026-02-20T12:05:00Z")),
            ),
            // The clock is set back over a start that was kept.
            (
                at("2026-06-05T01:10:00Z"),
                Event::Set(at("2026-06-05T00:10:00Z")),
            ),
            // The clock is set forward over two.
            (
                at("2026-06-20T12:00:00Z"),
                Event::Set(at("2026-06-22T10:00:00Z")),
            ),
        ],
        fates: BTreeMap::from([
            (date(2026, 3, 10), Fate::Drained),
            (date(2026, 4, 10), Fate::Killed),
            (date(2026, 8, 3), Fate::Takes(hours(30))),
            (date(2026, 8, 10), Fate::Takes(hours(55))),
            (date(2026, 9, 1), Fate::NoList),
            (date(2026, 9, 5), Fate::DiskFull),
        ]),
        next_event: 0,
        told: Vec::new(),
        said: Vec::new(),
    }
}

#[test]
fn a_year_is_told_as_it_was() {
    let folder = folder();
    let stage = live(folder.path(), eventful());

    let text = fs::read_to_string(folder.path().join("history.csv")).unwrap();
    let lines = history::read(&text).unwrap();
    let told: Vec<Timestamp> = lines.iter().map(|it| it.scheduled_at.unwrap()).collect();
    assert_eq!(
        told,
        starts(),
        "each start once, and nothing else: {:#?}",
        stage.said
    );

    let odd: Vec<String> = lines
        .iter()
        .filter(|it| it.status != Some(Status::Complete) || it.late_s > 0 || it.resumed > 0)
        .map(in_words)
        .collect();
    let want = [
        "2026-02-04 missed down",
        "2026-02-05 missed down",
        "2026-02-06 complete caught_up 27060",
        "2026-03-10 complete on_time 0 resumed 1",
        "2026-04-10 incomplete killed on_time 0",
        "2026-04-11 missed down",
        "2026-04-12 complete caught_up 27060",
        "2026-06-21 missed down",
        "2026-06-22 complete caught_up 34200",
        "2026-08-04 complete late 21600",
        "2026-08-11 missed overlap",
        "2026-08-12 complete late 25200",
        "2026-09-01 failed list on_time 0",
        "2026-09-05 incomplete not_written on_time 0",
    ];
    assert_eq!(odd, want);

    // What was not asked is unmeasured, and down for nobody.
    let killed = lines.iter().find(|it| it.reason == "killed").unwrap();
    assert_eq!((killed.working, killed.unmeasured, killed.down), (1, 2, 0));

    // The series breaks where the list changed and where the rules did, and nowhere else.
    let breaks: Vec<String> = lines
        .iter()
        .filter(|it| !it.breaks.is_empty())
        .map(|it| format!("{} {}", day_of(it.scheduled_at.unwrap()), it.breaks))
        .collect();
    assert_eq!(
        breaks,
        ["2026-07-01 population", "2026-10-01 rules_version"]
    );
    let points = mcp_census::periodic::series::stretches(&lines);
    assert_eq!(points.len(), 3);

    // Every run is a directory, every directory a line.
    let mut runs: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| it.ends_with("-daily"))
        .collect();
    runs.sort();
    let named: Vec<String> = lines
        .iter()
        .map(|it| it.run.clone())
        .filter(|it| !it.is_empty())
        .collect();
    assert_eq!(runs, named);
    // Evidence is kept of the last thirty, tables of all.
    let has = |name: &str| {
        runs.iter()
            .filter(|it| folder.path().join(it).join(name).exists())
            .count()
    };
    assert_eq!(
        (has("evidence.ndjson"), has("results.csv")),
        (30, runs.len())
    );

    alerts_are_as_they_should_be(&stage);
    let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(
        page.contains("2026-07-01 (population)") && page.contains("2026-10-01 (rules_version)")
    );
}

fn in_words(line: &Line) -> String {
    let mut said = vec![
        day_of(line.scheduled_at.unwrap()).to_string(),
        line.status.unwrap().to_string(),
    ];
    if !line.reason.is_empty() {
        said.push(line.reason.clone());
    }
    if let Some(start) = line.start {
        said.push(format!("{start} {}", line.late_s));
    }
    if line.resumed > 0 {
        said.push(format!("resumed {}", line.resumed));
    }
    said.join(" ")
}

/// The server that broke in May is told when it broke, when it had left, and when it was back; failures are told each
/// once, and neither the new rules nor what was not measured is anyone's change.
fn alerts_are_as_they_should_be(stage: &Stage) {
    let told: Vec<String> = stage
        .told
        .iter()
        .map(|it| {
            let message: serde_json::Value = serde_json::from_str(&it.message).unwrap();
            let day = message["run"]["scheduled_at"].as_str().unwrap();
            let day = day_of(day.parse().unwrap());
            format!(
                "{} {day} {}",
                it.hook.command[0],
                message["reasons"].as_array().unwrap().len()
            )
        })
        .collect();
    let want = [
        "f 2026-02-05 1",
        "f 2026-04-10 1",
        "f 2026-04-11 1",
        "c 2026-05-10 4",
        "r 2026-05-11 1",
        "c 2026-05-13 4",
        "f 2026-06-21 1",
        "c 2026-07-01 1",
        "f 2026-08-11 1",
        "f 2026-09-01 1",
        "f 2026-09-05 1",
    ];
    assert_eq!(
        told,
        want,
        "{:#?}",
        stage.told.iter().map(|it| &it.message).collect::<Vec<_>>()
    );
}

#[test]
fn a_run_that_cannot_be_recorded_is_recorded_later() {
    let folder = folder();
    let mut stage = Stage {
        now: at("2025-12-31T12:00:00Z"),
        events: vec![(
            at("2026-01-01T12:00:00Z"),
            Event::Down(at("2026-01-01T12:05:00Z")),
        )],
        fates: BTreeMap::new(),
        next_event: 0,
        told: Vec::new(),
        said: Vec::new(),
    };
    let open = |stage: &mut Stage| Keeper::open(sweeps(folder.path()), stage).unwrap();
    open(&mut stage).keep(&mut stage, || unreachable!());
    // Killed between the run and its line.
    let history: PathBuf = folder.path().join("history.csv");
    let whole = fs::read_to_string(&history).unwrap();
    let (header, _) = whole.split_once('\n').unwrap();
    fs::write(&history, format!("{header}\n")).unwrap();
    // And one was killed while it froze its list.
    let begun = folder.path().join("20260101T120500Z-daily");
    fs::create_dir(&begun).unwrap();
    fs::write(begun.join("targets.ndjson"), "").unwrap();
    stage.events.push((
        at("2026-01-01T13:00:00Z"),
        Event::Down(at("2026-01-01T13:00:00Z")),
    ));
    open(&mut stage).keep(&mut stage, || unreachable!());
    assert_eq!(fs::read_to_string(&history).unwrap(), whole);
    assert!(!begun.exists());
    // Twice is as good as once.
    open(&mut stage).keep(&mut stage, || panic!("no more"));
    assert_eq!(fs::read_to_string(&history).unwrap(), whole);
}

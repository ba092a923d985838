//! How time is spent: against ideal schedules, and as the servers see it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::{Bench, Figure, ON_ITS_CORE, Scan, Times, all_succeeded, host_of, middle};
use crate::cost::{self, Cost};
use crate::latency::Latency;
use crate::lists::{self, Hosts, Order, Place};
use crate::schedule::{self, Manners};
use crate::server::{Serve, Servers, is_dead};

/// Latencies as they are on the internet, against a schedule that loses no time.
pub(crate) fn latency(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 20_000;
    const WIDTH: usize = 1_000;
    const DEADLINE: Duration = Duration::from_secs(10);
    let latency = Latency::Lognormal {
        median_ms: 400.0,
        sigma: 0.8,
        hanging: 5.0,
    };
    let servers = Servers::start(&Serve {
        latency,
        ..Serve::default()
    })?;
    let list = bench.list(
        &lists::one_each(HOSTS),
        "http",
        Hosts::Addresses,
        servers.port,
    )?;
    let takes = |host: u32| latency.of(host, 0).map_or(DEADLINE, |it| it.min(DEADLINE));
    let cost = bench.scan(&list, &Scan::wide(WIDTH))?;
    let mut times = bench.times()?;
    times.sort_by(|a, b| a.start.total_cmp(&b.start));
    let end = times.iter().map(|it| it.end).fold(0.0, f64::max);
    let asked: Vec<u32> = times
        .iter()
        .map(|it| host_of(&it.url))
        .collect::<Result<_>>()?;
    let as_listed = schedule::greedy((0..HOSTS).map(takes), WIDTH).as_secs_f64();
    let as_asked = schedule::greedy(asked.into_iter().map(takes), WIDTH).as_secs_f64();
    let (mut wrong, mut timed_out) = (0, 0);
    for row in bench.results()? {
        let host = host_of(&row.url)?;
        let is_timeout = row.outcome == "timeout";
        timed_out += usize::from(is_timeout);
        wrong += usize::from(is_timeout != (takes(host) == DEADLINE));
    }
    Ok(vec![Figure {
        what: format!("latency run, {HOSTS} hosts, width {WIDTH}, 5 % hanging to 10 s"),
        wanted: "1.02 of an exact greedy schedule; exactly the hanging ones timed out",
        measured: format!(
            "{:.3} of the schedule in the order asked ({as_asked:.2} s), {:.3} of that in list order ({as_listed:.2} s); last answer after {end:.2} s, process {:.2} s, {:.2} CPU s, {:.0} MiB; {timed_out} timed out, {wrong} wrongly or wrongly not",
            end / as_asked,
            end / as_listed,
            cost.wall,
            cost.cpu(),
            cost.peak,
        ),
    }])
}

/// A list of the registry's shape, with the default manners ten times as fast.
pub(crate) fn registry(bench: &Bench) -> Result<Vec<Figure>> {
    const SCALE: f64 = 10.0;
    let manners = Manners {
        width: 256,
        depth: 2,
        gap: Duration::from_secs_f64(0.5 / SCALE),
        tick: Duration::from_secs_f64(1.0 / (100.0 * SCALE)),
    };
    let latency = Latency::Lognormal {
        median_ms: 400.0 / SCALE,
        sigma: 0.8,
        hanging: 0.0,
    };
    let servers = Servers::start(&Serve {
        latency,
        ..Serve::default()
    })?;
    let scan = Scan::wide(manners.width).with([
        "--gap",
        "50ms",
        "--rate",
        "1000",
        "--per-address",
        "200",
        "--depth",
        "2",
    ]);
    let mut figures = Vec::new();
    let without: Vec<Place> = lists::registry()
        .into_iter()
        .filter(|it| it.host != 0)
        .collect();
    let small = bench.list(
        &lists::ordered(without.clone(), Order::Listed),
        "http",
        Hosts::Addresses,
        servers.port,
    )?;
    bench.scan(&small, &scan)?;
    let alone = ninetieth(&bench.times()?)?;
    let ideal_alone = ideal(&without, latency, manners);
    figures.push(Figure {
        what: "registry-shaped list without its largest host".to_owned(),
        wanted: "",
        measured: format!(
            "90 % after {alone:.2} s, ideally {:.2} s",
            ideal_alone.ninetieth
        ),
    });
    for order in [Order::Listed, Order::Sorted, Order::Shuffled] {
        let places = lists::ordered(lists::registry(), order);
        let list = bench.list(&places, "http", Hosts::Addresses, servers.port)?;
        let cost = bench.scan(&list, &scan)?;
        let times = bench.times()?;
        let end = times.iter().map(|it| it.end).fold(0.0, f64::max);
        let ideal = ideal(&places, latency, manners);
        let others = ninetieth(&times)?;
        figures.push(Figure {
            what: format!("registry-shaped list, {order:?}, default manners ten times as fast"),
            wanted: "1.05 of an ideal greedy schedule; 90 % of the others as early as without the largest host",
            measured: format!(
                "{:.3} ({end:.2} s to {:.2} s); 90 % of the others after {others:.2} s, {:.3} of {alone:.2} s (ideally {:.2} s); {:.2} CPU s, {:.0} MiB",
                end / ideal.makespan,
                ideal.makespan,
                others / alone,
                ideal.ninetieth,
                cost.cpu(),
                cost.peak
            ),
        });
    }
    Ok(figures)
}

/// When nine tenths of what is not on host 0 were done.
fn ninetieth(times: &[Times]) -> Result<f64> {
    let mut ends = Vec::new();
    for it in times {
        if host_of(&it.url)? != 0 {
            ends.push(it.end);
        }
    }
    Ok(at_ninety(ends))
}

fn at_ninety(mut ends: Vec<f64>) -> f64 {
    ends.sort_by(f64::total_cmp);
    ends.get(ends.len() * 9 / 10).copied().unwrap_or(f64::NAN)
}

struct Ideal {
    makespan: f64,
    ninetieth: f64,
}

fn ideal(places: &[Place], latency: Latency, manners: Manners) -> Ideal {
    let mut by_host: BTreeMap<u32, Vec<Duration>> = BTreeMap::new();
    for place in places {
        by_host
            .entry(place.host)
            .or_default()
            .push(latency.of(place.host, place.path).unwrap_or_default());
    }
    let hosts: Vec<u32> = by_host.keys().copied().collect();
    let lanes: Vec<Vec<Duration>> = by_host.into_values().collect();
    let done = schedule::polite(&lanes, manners);
    let ends = |which: &dyn Fn(u32) -> bool| -> Vec<f64> {
        hosts
            .iter()
            .zip(&done)
            .filter(|it| which(*it.0))
            .flat_map(|it| it.1.iter().map(Duration::as_secs_f64))
            .collect()
    };
    Ideal {
        makespan: ends(&|_| true).into_iter().fold(0.0, f64::max),
        ninetieth: at_ninety(ends(&|host| host != 0)),
    }
}

/// Names that no name server answers for.
pub(crate) fn dead_names(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 20_000;
    const DEAD: u32 = 5;
    let servers = Servers::start(&Serve {
        dead_names: DEAD,
        ..Serve::default()
    })?;
    let list = bench.list(&lists::one_each(HOSTS), "http", Hosts::Names, servers.port)?;
    let dns = servers.dns.to_string();
    let cost = bench.scan(&list, &Scan::wide(1_000).with(["--dns-server", &dns]))?;
    let mut wrong = 0;
    for row in bench.results()? {
        let is_dead = is_dead(host_of(&row.url)?, DEAD);
        let wanted = if is_dead { "dns_failure" } else { "success" };
        wrong += usize::from(row.outcome != wanted);
    }
    Ok(vec![Figure {
        what: format!("{HOSTS} names, 5 % dead, width 1,000"),
        wanted: "15 s; DNS failures their own outcome",
        measured: format!(
            "{:.1} s; {:?}, {wrong} wrong; {:.2} CPU s, {:.0} MiB",
            cost.wall,
            bench.counts()?,
            cost.cpu(),
            cost.peak
        ),
    }])
}

/// Gaps, as the servers see them: those that a scan keeps unless told otherwise, and five times as many requests a
/// second, most of what one core sends.
pub(crate) fn gaps(bench: &Bench) -> Result<Vec<Figure>> {
    [500, 100].into_iter().map(|ms| gap(bench, ms)).collect()
}

fn gap(bench: &Bench, gap_ms: u32) -> Result<Figure> {
    const HOSTS: u32 = 400;
    const ENDPOINTS: u32 = 250;
    let mut servers = Servers::start(&Serve {
        latency: Latency::Lognormal {
            median_ms: 40.0,
            sigma: 0.8,
            hanging: 0.0,
        },
        log: true,
        ..Serve::default()
    })?;
    let places = lists::even(HOSTS, ENDPOINTS);
    let list = bench.list(&places, "http", Hosts::Addresses, servers.port)?;
    let flag = format!("{gap_ms}ms");
    let gap_ms = f64::from(gap_ms);
    let cost = bench.scan(&list, &Scan::wide(1_000).with(["--gap", &flag]))?;
    all_succeeded(bench, places.len())?;
    let arrivals = servers.arrivals()?;
    let seen = arrivals
        .iter()
        .map(|it| (it.host, it.micros as f64 / 1000.0));
    let short = shortfalls(seen, gap_ms);
    let worst = short.last().copied().unwrap_or(f64::NAN);
    let bad = short.iter().filter(|it| **it > 5.0).count();
    let mut left = Vec::new();
    for it in bench.times()? {
        left.push((host_of(&it.url)?, it.left * 1000.0));
    }
    let ours = shortfalls(left.into_iter(), gap_ms);
    let worst_left = ours.last().copied().unwrap_or(f64::NAN);
    let ideal = f64::from(ENDPOINTS - 1) * gap_ms / 1000.0;
    Ok(Figure {
        what: format!(
            "gaps of {gap_ms} ms, as seen by the servers, {} requests",
            arrivals.len()
        ),
        wanted: "none short by more than 5 ms",
        measured: format!(
            "{bad} short by more than 5 ms, the worst by {worst:.2} ms; as they left, the worst by {worst_left:.2} ms; {:.1} s where {ideal:.1} s is least; {:.2} CPU s",
            cost.wall,
            cost.cpu()
        ),
    })
}

/// By how much each gap between two requests to a host is shorter than it should be, in milliseconds, the worst last.
fn shortfalls(times: impl Iterator<Item = (u32, f64)>, gap: f64) -> Vec<f64> {
    let mut by_host: HashMap<u32, Vec<f64>> = HashMap::new();
    for (host, at) in times {
        by_host.entry(host).or_default().push(at);
    }
    let mut short = Vec::new();
    for times in by_host.values_mut() {
        times.sort_by(f64::total_cmp);
        short.extend(times.windows(2).map(|it| gap - (it[1] - it[0])));
    }
    short.sort_by(f64::total_cmp);
    short
}

/// What waiting costs.
pub(crate) fn waiting(bench: &Bench) -> Result<Vec<Figure>> {
    let wait = |further: &[&str]| {
        let mut command: Vec<OsString> = vec![std::env::current_exe()?.into()];
        command.extend(["wait", "--tasks", "2000", "--rate", "200"].map(OsString::from));
        command.extend(further.iter().map(OsString::from));
        let cost = cost::of(ON_ITS_CORE, &command)?;
        ensure!(cost.said.trim() == "0", "served out of order");
        Ok(cost)
    };
    let [lane, rate, asleep] = bench.rounds([&|| wait(&["--one-lane"]), &|| wait(&[]), &|| {
        wait(&["--asleep"])
    }])?;
    let sleeping = middle(&asleep, Cost::cpu);
    let figure = |what, costs: &[Cost]| Figure {
        what: format!("2,000 tasks waiting on {what}, 200 turns a second"),
        wanted: "0.1 CPU s, served in order",
        measured: format!(
            "{:.3} CPU s, of which {sleeping:.3} is what a task costs that only sleeps as often; in order, {:.2} s where 10.00 s is least",
            middle(costs, Cost::cpu),
            middle(costs, |it| it.wall)
        ),
    };
    Ok(vec![
        figure("one lane", &lane),
        figure("the rate of the run", &rate),
    ])
}

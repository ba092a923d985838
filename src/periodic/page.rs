//! All sweeps on one page for a browser: their runs, what the series of each shows, and how endpoints fared. Lines in, a
//! string out. The page has no script and asks nobody for anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;

use super::history::{Line, read_counts};
use super::series::{Endpoints, SPANS, Track, stretches};
use crate::outcome::Verdict;
use crate::report::{Curve, Plot, Point, Tone, html_escaped as escaped, percent, still, visible};
use crate::stats;
use crate::tally::grouped;

/// Runs that are listed.
pub const RUNS: usize = 100;

/// Endpoints that are listed.
const ENDPOINTS: usize = 200;

/// Breaks that are told in words; all are drawn, unless there are so many that they hide the lines.
const BREAKS_TOLD: usize = 12;
const BREAKS_DRAWN: usize = 40;

/// Curves of one figure that is no verdict's.
const CURVES: usize = 5;

/// The colours of those.
const TONES: [Tone; CURVES] = [
    Tone::Of(Verdict::Gated),
    Tone::Of(Verdict::Faulty),
    Tone::Of(Verdict::NotMcp),
    Tone::Of(Verdict::Working),
    Tone::Of(Verdict::Down),
];

const STYLE: &str = include_str!("page.css");

/// What is shown of a sweep.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Its last runs, first to last, with those that were missed.
    pub lines: Vec<Line>,
    /// Its endpoints over them.
    pub endpoints: Endpoints,
    /// When it starts next, where that is known.
    pub next_start: Option<Timestamp>,
    /// Runs that have a page of their own.
    pub pages: BTreeSet<String>,
}

/// The page.
#[must_use]
pub fn index(sweeps: &[Shown]) -> String {
    let mut body = String::from("<header>\n<h1>MCP census: periodic sweeps</h1>\n");
    if sweeps.len() > 1 {
        body.push_str("<nav><ul>");
        for shown in sweeps {
            let _ = write!(
                body,
                "<li><a href=\"#sweep-{0}\">{0}</a></li>",
                escaped(&shown.name)
            );
        }
        body.push_str("</ul></nav>\n");
    }
    body.push_str("</header>\n<main>\n");
    for shown in sweeps {
        section(&mut body, shown);
    }
    body.push_str(
        "</main>\n<footer><p>Made from <code>history.csv</code> and the runs beside it. Shares are of measured rows, \
         with 95 % intervals. Points are joined where the same endpoints were asked by the same instrument; a dashed \
         rule stands where they were not. Available means working or gated.</p></footer>\n",
    );
    still("MCP census: periodic sweeps", STYLE, &body)
}

fn section(out: &mut String, shown: &Shown) {
    let name = escaped(&shown.name);
    let _ = writeln!(
        out,
        "<section id=\"sweep-{name}\" aria-labelledby=\"title-{name}\">\n<h2 id=\"title-{name}\">{name}</h2>"
    );
    let last = shown.lines.iter().rfind(|it| it.is_measured());
    let _ = writeln!(out, "<p class=\"headline\">{}</p>", headline(last));
    if let Some(next) = shown.next_start {
        let _ = writeln!(out, "<p class=\"caveat\">Next start: {}.</p>", minute(next));
    }
    let stretches = stretches(&shown.lines);
    let breaks = breaks(&stretches);
    figures(out, &stretches, &breaks);
    tell_breaks(out, &breaks);
    endpoints(out, &shown.endpoints);
    runs(out, shown);
    out.push_str("</section>\n");
}

fn headline(last: Option<&Line>) -> String {
    let Some((line, share)) = last.and_then(|it| Some((it, it.share_of(Verdict::Working)?))) else {
        return "<span>Nothing has been measured yet.</span>".to_owned();
    };
    format!(
        "<strong>{}</strong> <span>of {} measured rows work in the last run that measured any, of {} (95 % interval {} \
         to {}).</span>",
        percent(share.fraction),
        grouped(share.of),
        line.started_at.map(minute).unwrap_or_default(),
        percent(share.low),
        percent(share.high),
    )
}

/// Where a stretch begins that is not the first, and why.
fn breaks(stretches: &[Vec<&Line>]) -> Vec<(Timestamp, String)> {
    stretches
        .iter()
        .skip(1)
        .filter_map(|it| it.first())
        .filter_map(|line| Some((line.started_at?, said_breaks(line))))
        .collect()
}

fn said_breaks(line: &Line) -> String {
    if line.breaks.is_empty() {
        return "the run before cannot be read".to_owned();
    }
    line.breaks.replace(';', ", ")
}

fn tell_breaks(out: &mut String, breaks: &[(Timestamp, String)]) {
    if breaks.is_empty() {
        return;
    }
    let told: Vec<String> = breaks
        .iter()
        .rev()
        .take(BREAKS_TOLD)
        .map(|(at, why)| format!("{} ({})", day(at.as_second()), escaped(why)))
        .collect();
    let more = breaks.len().saturating_sub(BREAKS_TOLD);
    let more = if more > 0 {
        format!(", and {more} before")
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "<p class=\"basis\">Breaks, where the population or the instrument changed: {}{more}.</p>",
        told.join(", ")
    );
}

/// A column of the history that holds counts by key.
type Column = fn(&Line) -> &str;

/// A figure: its heading, and what each colour stands for.
type Figure = (String, Vec<(String, Curve)>);

fn figures(out: &mut String, stretches: &[Vec<&Line>], breaks: &[(Timestamp, String)]) {
    if stretches.is_empty() {
        return;
    }
    let drawn: Vec<i64> = breaks.iter().map(|(at, _)| at.as_second()).collect();
    let drawn = if drawn.len() > BREAKS_DRAWN {
        &[]
    } else {
        drawn.as_slice()
    };
    let verdicts = Verdict::ALL
        .iter()
        .filter(|it| it.is_measured())
        .map(|verdict| {
            let curve = curve(
                Tone::Of(*verdict),
                stretches,
                &|line| (line.count(*verdict), line.measured()),
                true,
            );
            (
                heading(verdict.name()),
                vec![(verdict.name().to_owned(), curve)],
            )
        });
    let others: [(&str, Column); 3] = [
        ("Protocol versions", |line| &line.versions),
        ("Gates", |line| &line.auth),
        ("JSON-RPC error codes", |line| &line.errors),
    ];
    let others = others
        .into_iter()
        .map(|(title, of)| (title.to_owned(), keyed(stretches, of)));
    out.push_str("<div class=\"figures\">\n");
    for (title, curves) in verdicts
        .chain(others)
        .filter(|(_, curves)| !curves.is_empty())
    {
        figure(out, &(title, curves), drawn);
    }
    out.push_str("</div>\n");
}

fn figure(out: &mut String, (title, curves): &Figure, breaks: &[i64]) {
    let described: Vec<String> = curves
        .iter()
        .filter_map(|(name, curve)| {
            let last = curve.stretches.last()?.last()?;
            Some(format!("{name}: {:.1} % in the last run", last.share))
        })
        .collect();
    let plot = Plot {
        title,
        described: &described.join("; "),
        curves: curves.iter().map(|(_, curve)| curve.clone()).collect(),
        breaks,
        date: day,
    };
    let _ = write!(
        out,
        "<figure><figcaption>{}</figcaption>{}",
        escaped(title),
        plot.svg()
    );
    if curves.len() > 1
        || curves
            .first()
            .is_some_and(|(name, _)| heading(name) != *title)
    {
        out.push_str("<ul class=\"key\">");
        for ((name, _), dot) in curves
            .iter()
            .zip(["gated", "faulty", "not_mcp", "working", "down"])
        {
            let _ = write!(
                out,
                "<li><span class=\"dot {dot}\"></span>{}</li>",
                escaped(name)
            );
        }
        out.push_str("</ul>");
    }
    out.push_str("</figure>\n");
}

fn heading(name: &str) -> String {
    name.replace('_', " ")
}

fn curve(
    tone: Tone,
    stretches: &[Vec<&Line>],
    of: &dyn Fn(&Line) -> (u64, u64),
    intervals: bool,
) -> Curve {
    let point = |line: &&Line| {
        let (count, all) = of(line);
        let interval = stats::wilson(count, all)?;
        Some(Point {
            at: line.started_at?.as_second(),
            share: stats::fraction(count, all) * 100.0,
            interval: intervals.then_some((interval.low * 100.0, interval.high * 100.0)),
        })
    };
    Curve {
        tone,
        stretches: stretches
            .iter()
            .map(|stretch| stretch.iter().filter_map(point).collect())
            .filter(|it: &Vec<Point>| !it.is_empty())
            .collect(),
    }
}

/// A curve for each of the most frequent keys of a column.
fn keyed(stretches: &[Vec<&Line>], of: Column) -> Vec<(String, Curve)> {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for line in stretches.iter().flatten() {
        for (key, count) in read_counts(of(line)) {
            *all.entry(key).or_default() += count;
        }
    }
    let mut keys: Vec<(&str, u64)> = all.into_iter().collect();
    keys.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then(a.cmp(b)));
    keys.iter()
        .zip(TONES)
        .map(|((key, _), tone)| {
            let count = |line: &Line| {
                let found = read_counts(of(line)).find(|(it, _)| it == key);
                (found.map_or(0, |(_, count)| count), line.measured())
            };
            ((*key).to_owned(), curve(tone, stretches, &count, false))
        })
        .collect()
}

fn endpoints(out: &mut String, endpoints: &Endpoints) {
    let always = |track: &Track| {
        let (available, measured) = track.availability(SPANS[2]);
        available == measured
    };
    let mut listed: Vec<(&String, &Track)> = endpoints
        .tracks
        .iter()
        .filter(|(_, track)| !always(track))
        .collect();
    let rank = |track: &Track| {
        let (available, measured) = track.availability(SPANS[2]);
        (stats::fraction(available, measured) * 1e6).round()
    };
    listed.sort_by(|(a_address, a), (b_address, b)| {
        let flapping = b.is_flapping().cmp(&a.is_flapping());
        flapping
            .then(rank(a).total_cmp(&rank(b)))
            .then(a_address.cmp(b_address))
    });
    let flapping = listed
        .iter()
        .filter(|(_, track)| track.is_flapping())
        .count();
    let _ = writeln!(
        out,
        "<h3>Availability</h3>\n<p class=\"basis\">{} endpoints in the last {} runs. Available whenever measured: {}. \
         Flapping: {flapping}; they come first.</p>",
        grouped(endpoints.tracks.len() as u64),
        endpoints.runs().min(SPANS[2]),
        grouped((endpoints.tracks.len() - listed.len()) as u64),
    );
    if listed.is_empty() {
        return;
    }
    out.push_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">endpoint</th>");
    for span in SPANS {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"right\">last {span} runs</th>"
        );
    }
    out.push_str("<th scope=\"col\" class=\"right\">changes</th><th scope=\"col\">now</th></tr></thead><tbody>\n");
    for (address, track) in listed.iter().take(ENDPOINTS) {
        let _ = write!(
            out,
            "<tr><td><bdi>{}</bdi><br><span class=\"basis\"><bdi>{}</bdi></span></td>",
            escaped(&visible(address)),
            escaped(&visible(&track.name))
        );
        for span in SPANS {
            let (available, measured) = track.availability(span);
            let said = if measured == 0 {
                "not measured".to_owned()
            } else {
                format!(
                    "{} <span class=\"basis\">{available} of {measured}</span>",
                    percent(stats::fraction(available, measured))
                )
            };
            let _ = write!(out, "<td class=\"right\">{said}</td>");
        }
        let now = track
            .fared
            .last()
            .copied()
            .flatten()
            .map_or("unmeasured", |it| it.verdict.name());
        let flaps = if track.is_flapping() { " (flaps)" } else { "" };
        let _ = writeln!(
            out,
            "<td class=\"right\">{}{flaps}</td><td><span class=\"dot {now}\"></span>{now}</td></tr>",
            track.changes(SPANS[2])
        );
    }
    out.push_str("</tbody></table></div>\n");
    if listed.len() > ENDPOINTS {
        let _ = writeln!(
            out,
            "<p class=\"basis\">And {} more; <code>results.csv</code> of each run has them.</p>",
            grouped((listed.len() - ENDPOINTS) as u64)
        );
    }
}

fn runs(out: &mut String, shown: &Shown) {
    out.push_str(
        "<h3>Runs</h3>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">for</th><th scope=\"col\">status</th>\
         <th scope=\"col\">start</th><th scope=\"col\" class=\"right\">working</th><th scope=\"col\" \
         class=\"right\">measured</th><th scope=\"col\" class=\"right\">not measured</th><th scope=\"col\" \
         class=\"right\">requests</th><th scope=\"col\" class=\"right\">took</th><th scope=\"col\">changed</th>\
         </tr></thead><tbody>\n",
    );
    for line in shown.lines.iter().rev().take(RUNS) {
        run(out, line, shown.pages.contains(&line.run));
    }
    out.push_str("</tbody></table></div>\n");
    if shown.lines.len() > RUNS {
        out.push_str("<p class=\"basis\">Earlier ones are in <code>history.csv</code>.</p>\n");
    }
}

fn run(out: &mut String, line: &Line, has_page: bool) {
    let at = line
        .scheduled_at
        .or(line.started_at)
        .map(minute)
        .unwrap_or_default();
    let at = if has_page {
        format!("<a href=\"{}/report.html\">{at}</a>", escaped(&line.run))
    } else {
        at
    };
    let until = match (line.starts, line.scheduled_until) {
        (starts, Some(until)) if starts > 1 => format!(" to {} ({starts} starts)", minute(until)),
        _ => String::new(),
    };
    let status = line.status.map_or("", |it| it.name());
    let reason = if line.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", escaped(&line.reason))
    };
    let start = match line.start {
        Some(start) if line.late_s > 0 => {
            format!("{}, {} late", heading(start.name()), time(line.late_s))
        }
        Some(start) => heading(start.name()),
        None => String::new(),
    };
    let resumed = if line.resumed > 0 {
        format!(", taken up {} times", line.resumed)
    } else {
        String::new()
    };
    let _ = write!(
        out,
        "<tr class=\"{status}\"><td>{at}{until}</td><td>{status}{reason}</td><td>{start}{resumed}</td>"
    );
    match line
        .share_of(Verdict::Working)
        .filter(|_| line.is_measured())
    {
        Some(share) => {
            let _ = write!(
                out,
                "<td class=\"right\">{} <span class=\"basis\">{} to {}</span></td><td class=\"right\">{}</td>",
                percent(share.fraction),
                percent(share.low),
                percent(share.high),
                grouped(share.of)
            );
        }
        None => out.push_str("<td></td><td></td>"),
    }
    if line.run.is_empty() {
        out.push_str("<td></td><td></td><td></td>");
    } else {
        let _ = write!(
            out,
            "<td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td>",
            grouped(line.unmeasured),
            grouped(line.requests),
            time(line.duration_s)
        );
    }
    let _ = writeln!(
        out,
        "<td>{}</td></tr>",
        escaped(&line.breaks.replace(';', ", "))
    );
}

fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn day(second: i64) -> String {
    Timestamp::from_second(second)
        .map_or_else(|_| String::new(), |it| it.strftime("%Y-%m-%d").to_string())
}

fn time(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

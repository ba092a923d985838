//! What a scan would do, as `--dry-run` prints it, in sections. What it is, is told by `forecast`; how a section
//! is laid out, by `forms`.

mod forms;

use anyhow::{Result, bail};
use serde_json::json;

use crate::forecast::{Floor, Outlook, Tempo, Variants};
use crate::inquiry::Profile;
use crate::report::Format;
use crate::tally::grouped;

use super::lists::ListRead;

/// Template variables that get a line each where people read.
const VARIABLES: usize = 12;

/// Lines of figures under a heading.
struct Section {
    /// What a program calls it.
    name: &'static str,
    title: String,
    /// What its lines are about.
    of: &'static str,
    /// What a program calls each figure of a line, and its heading.
    columns: &'static [(&'static str, &'static str)],
    lines: Vec<Line>,
    notes: Vec<String>,
}

/// A line of figures.
struct Line {
    /// What a program calls it; a word of a list, where it comes from one.
    key: String,
    /// What it says to a person, where that is more than the key.
    says: String,
    figures: Vec<Figure>,
    examples: Vec<String>,
}

/// One of the things that hold a scan back, in seconds.
type Bound = fn(&Floor) -> f64;

/// A figure of a line.
enum Figure {
    Count(u64),
    Seconds(f64),
    Word(String),
}

impl Line {
    fn counting(key: impl Into<String>, says: impl Into<String>, count: u64) -> Self {
        Self::new(key, says, vec![Figure::Count(count)])
    }

    fn new(key: impl Into<String>, says: impl Into<String>, figures: Vec<Figure>) -> Self {
        Self {
            key: key.into(),
            says: says.into(),
            figures,
            examples: Vec::new(),
        }
    }
}

/// The outlook in a format.
///
/// # Errors
/// When it is not told in that format.
pub(super) fn shown(
    format: Format,
    width: usize,
    lists: &[ListRead],
    outlook: &Outlook,
    tempo: &Tempo,
) -> Result<String> {
    let sections = || sections(lists, outlook, tempo);
    Ok(match format {
        Format::Text => forms::text(&sections(), width),
        Format::Csv => forms::csv(&sections()),
        Format::Markdown => forms::markdown(&sections()),
        Format::Json => json(lists, outlook)?,
        Format::Html => {
            bail!("--dry-run has no page for a browser; use --format text, csv, md or json")
        }
    })
}

fn sections(lists: &[ListRead], outlook: &Outlook, tempo: &Tempo) -> Vec<Section> {
    let counts = |name, title: &str, of, lines| Section {
        name,
        title: title.to_owned(),
        of,
        columns: &[("rows", "rows")],
        lines,
        notes: Vec::new(),
    };
    let declared = |counts: &mut dyn Iterator<Item = (&str, u64)>| {
        counts
            .map(|(name, rows)| Line::counting(name, "", rows))
            .collect()
    };
    vec![
        lists_read(lists),
        in_all(outlook),
        unprobeable(outlook),
        counts(
            "left_out",
            "Left out of this scan",
            "reason",
            outlook
                .left_out
                .iter()
                .map(|(why, rows)| {
                    Line::counting(why.name(), about(why.name(), why.about()), *rows)
                })
                .collect(),
        ),
        variables(outlook),
        counts(
            "most_listed",
            "Endpoints that most rows name",
            "endpoint",
            declared(
                &mut outlook
                    .most_listed
                    .iter()
                    .map(|(url, rows)| (url.as_str(), *rows)),
            ),
        ),
        variants(outlook),
        counts(
            "transports",
            "Declared transport",
            "transport",
            declared(&mut outlook.transports.iter().map(|(name, rows)| (*name, *rows))),
        ),
        counts(
            "auth",
            "Declared credentials",
            "credentials",
            declared(
                &mut outlook
                    .auth
                    .iter()
                    .map(|(name, rows)| (name.as_str(), *rows)),
            ),
        ),
        requests(outlook),
        lanes(outlook),
        hosts(outlook),
        time(outlook, tempo),
    ]
}

fn lists_read(lists: &[ListRead]) -> Section {
    let line = |ListRead { file, contents }: &ListRead| {
        let figures = [
            file.rows,
            contents.servers,
            contents.servers_without_remotes,
            contents.older_versions,
            contents.latest_unknown,
            contents.bad_rows,
            contents.rows_without_address,
            u64::from(file.partial),
        ];
        let format = Figure::Word(file.format.clone());
        let figures = figures.into_iter().map(Figure::Count);
        Line::new(
            &file.path,
            ending(&file.path),
            std::iter::once(format).chain(figures).collect(),
        )
    };
    let partial = lists.iter().filter(|it| it.file.partial).map(|it| {
        format!(
            "{} is not whole: its registry has further pages.",
            it.file.path
        )
    });
    Section {
        name: "lists",
        title: "Lists".to_owned(),
        of: "list",
        columns: &[
            ("format", "format"),
            ("rows", "rows"),
            ("servers", "servers"),
            ("servers_without_remotes", "no remote"),
            ("older_versions", "older"),
            ("latest_unknown", "no latest"),
            ("bad_rows", "unread"),
            ("rows_without_address", "no address"),
            ("partial", "not whole"),
        ],
        lines: lists.iter().map(line).collect(),
        notes: partial.collect(),
    }
}

fn in_all(outlook: &Outlook) -> Section {
    let line = |key: &str, says: &str, count| Line::counting(key, says, count);
    let usual = [
        line("rows", "rows", outlook.rows),
        line(
            "rows_probed",
            "rows that name an endpoint to be asked",
            outlook.rows_probed,
        ),
        line("endpoints", "endpoints, each asked once", outlook.endpoints),
        line("hosts", "hosts", outlook.hosts),
        line("sites", "sites, each a lane of its own", outlook.sites),
        line(
            "duplicates",
            "rows beyond the first of an endpoint",
            outlook.duplicates,
        ),
    ];
    let rare = [
        line(
            "repeated",
            "endpoints that several rows name",
            outlook.repeated,
        ),
        line(
            "templates_filled",
            "rows that are templates, filled from their defaults",
            outlook.templates_filled,
        ),
        line(
            "deprecated",
            "rows that their registry has as deprecated",
            outlook.deprecated,
        ),
    ];
    // What is usually none is told where there is some.
    let rare = rare.into_iter().filter(|it| !it.is_nothing());
    let lines = usual.into_iter().chain(rare).collect();
    Section {
        name: "counts",
        title: "In all".to_owned(),
        of: "what",
        columns: &[("count", "number")],
        lines,
        notes: Vec::new(),
    }
}

fn unprobeable(outlook: &Outlook) -> Section {
    let rows: u64 = outlook.unprobeable.values().map(|it| it.rows).sum();
    Section {
        name: "unprobeable",
        title: format!("Unprobeable: {} rows", grouped(rows)),
        of: "reason",
        columns: &[("rows", "rows")],
        lines: outlook
            .unprobeable
            .iter()
            .map(|(why, reason)| Line {
                examples: reason.examples.clone(),
                ..Line::counting(why.name(), about(why.name(), why.about()), reason.rows)
            })
            .collect(),
        notes: Vec::new(),
    }
}

fn variables(outlook: &Outlook) -> Section {
    let more = outlook.variables.len().saturating_sub(VARIABLES);
    Section {
        name: "variables",
        title: "Template variables without a default".to_owned(),
        of: "variable",
        columns: &[("rows", "rows")],
        lines: outlook
            .variables
            .iter()
            .take(VARIABLES)
            .map(|(name, rows)| Line::counting(name, "", *rows))
            .collect(),
        notes: (more > 0)
            .then(|| format!("And {more} more; --format json has them all."))
            .into_iter()
            .collect(),
    }
}

fn variants(outlook: &Outlook) -> Section {
    let line = |key: &str, says: &str, variants: &Variants| Line {
        examples: variants.examples.clone(),
        ..Line::counting(key, says, variants.endpoints)
    };
    let lines = vec![
        line("slash", "a slash at the end", &outlook.slash_variants),
        line("www", "www.", &outlook.www_variants),
    ];
    Section {
        name: "variants",
        title: "Endpoints that differ from another by no more than this; not merged".to_owned(),
        of: "difference",
        columns: &[("endpoints", "endpoints")],
        lines: lines.into_iter().filter(|it| !it.is_nothing()).collect(),
        notes: Vec::new(),
    }
}

fn requests(outlook: &Outlook) -> Section {
    let assumed = &outlook.assumed;
    let once = outlook
        .requests_expected
        .saturating_sub(outlook.requests_confirming + outlook.requests_robots);
    let budget = match assumed.profile {
        Profile::Census => String::new(),
        Profile::Compliance => format!(" within --budget {}", assumed.budget),
    };
    let lines = vec![
        Line::counting(
            "least",
            "sent whatever is answered, where every name resolves",
            outlook.requests_least,
        ),
        Line::counting("expected", "expected; of these", outlook.requests_expected),
        Line::counting("asking", "  to ask, fall back, and close sessions", once),
        Line::counting(
            "confirming",
            format!("  to confirm, with --confirm {}", assumed.confirm),
            outlook.requests_confirming,
        ),
        Line::counting("robots", "  to read robots.txt", outlook.requests_robots),
    ];
    Section {
        name: "requests",
        title: "Requests".to_owned(),
        of: "what",
        columns: &[("count", "number")],
        lines,
        notes: vec![format!(
            "Expected where {}: for 100 of them {} requests under --opening {} and --profile {}{budget}, {} where \
             HTTP+SSE is declared, and {} to confirm doubtful answers.",
            assumed.source,
            assumed.requests_per_100,
            assumed.opening,
            assumed.profile,
            assumed.requests_per_100_sse,
            assumed.confirming_per_100,
        )],
    }
}

fn lanes(outlook: &Outlook) -> Section {
    Section {
        name: "largest_lanes",
        title: format!(
            "Lanes: {}; the largest, as expected",
            grouped(outlook.sites)
        ),
        of: "site",
        columns: &[
            ("endpoints", "endpoints"),
            ("requests", "requests"),
            ("seconds", "time"),
        ],
        lines: outlook
            .largest_lanes
            .iter()
            .map(|lane| {
                let figures = vec![
                    Figure::Count(lane.endpoints),
                    Figure::Count(lane.requests),
                    Figure::Seconds(lane.seconds),
                ];
                Line::new(&lane.site, "", figures)
            })
            .collect(),
        notes: Vec::new(),
    }
}

fn hosts(outlook: &Outlook) -> Section {
    Section {
        name: "largest_hosts",
        title: "Contacted most".to_owned(),
        of: "host",
        columns: &[("endpoints", "endpoints")],
        lines: outlook
            .largest_hosts
            .iter()
            .map(|(host, endpoints)| Line::counting(host, "", *endpoints))
            .collect(),
        notes: Vec::new(),
    }
}

fn time(outlook: &Outlook, tempo: &Tempo) -> Section {
    let (least, expected) = (&outlook.floor, &outlook.expected);
    let line = |key: &str, says: String, of: Bound| {
        let figures = vec![Figure::Seconds(of(least)), Figure::Seconds(of(expected))];
        Line::new(key, says, figures)
    };
    let mut lines = vec![line(
        "largest_lane",
        format!("the largest lane, {} ms apart", tempo.gap.as_millis()),
        |it| it.largest_lane,
    )];
    let caps: [(&str, &str, u32, Bound); 3] = [
        (
            "largest_operator",
            "the largest platform of several sites",
            tempo.per_operator,
            |it| it.largest_operator,
        ),
        (
            "largest_address",
            "the address that is listed most",
            tempo.per_address,
            |it| it.largest_address,
        ),
        ("all_requests", "all requests", tempo.rate, |it| {
            it.all_requests
        }),
    ];
    for (key, who, rate, of) in caps {
        // What holds nothing back is left out, and a rate of nought is no limit.
        if of(expected) > 0.0 {
            lines.push(line(key, format!("{who}, {rate} a second"), of));
        }
    }
    Section {
        name: "time",
        title: format!(
            "It takes at least {}, and {} where answers are as expected",
            forms::time(least.seconds),
            forms::time(expected.seconds)
        ),
        of: "bound",
        columns: &[("least_s", "at least"), ("expected_s", "expected")],
        lines,
        notes: vec![
            "Names are not looked up: what the hosts of one address share, and which of them lie in an excluded range, \
             shows in the scan."
                .to_owned(),
        ],
    }
}

impl Line {
    fn is_nothing(&self) -> bool {
        self.figures.iter().all(|it| matches!(it, Figure::Count(0)))
    }
}

/// The end of a path, which tells more of it than its start.
fn ending(path: &str) -> String {
    const LONGEST: usize = 42;
    let length = path.chars().count();
    if length <= LONGEST {
        return path.to_owned();
    }
    let end: String = path.chars().skip(length - LONGEST + 3).collect();
    format!("...{end}")
}

/// A reason with what it means.
fn about(name: &str, about: &str) -> String {
    format!("{name}: {about}")
}

/// For a program.
fn json(lists: &[ListRead], outlook: &Outlook) -> Result<String> {
    let lists: Vec<_> = lists
        .iter()
        .map(|ListRead { file, contents }| {
            json!({
                "path": file.path,
                "format": file.format,
                "sha256": file.sha256,
                "rows": file.rows,
                "partial": file.partial,
                "servers": contents.servers,
                "servers_without_remotes": contents.servers_without_remotes,
                "older_versions": contents.older_versions,
                "latest_unknown": contents.latest_unknown,
                "bad_rows": contents.bad_rows,
                "rows_without_address": contents.rows_without_address,
            })
        })
        .collect();
    let mut value = serde_json::to_value(outlook)?;
    value["lists"] = json!(lists);
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

//! What a scan would do, as `--dry-run` prints it. What it is, is told by `forecast`.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::json;

use crate::forecast::{Outlook, Tempo, Variants};
use crate::tally::grouped;
use crate::unseen;

use super::lists::ListRead;

/// Template variables that get a line each.
const VARIABLES: usize = 12;

/// For a person.
pub(super) fn text(lists: &[ListRead], outlook: &Outlook, tempo: Tempo) -> String {
    let mut out = String::new();
    for list in lists {
        read(&mut out, list);
    }
    rows(&mut out, outlook);
    for (name, variants) in [
        ("a slash at the end", &outlook.slash_variants),
        ("`www.`", &outlook.www_variants),
    ] {
        variant(&mut out, name, variants);
    }
    counts(&mut out, "Declared transport (rows)", &outlook.transports);
    counts(&mut out, "Declared credentials (rows)", &outlook.auth);
    if outlook.deprecated > 0 {
        let _ = writeln!(out, "Deprecated (rows): {}", grouped(outlook.deprecated));
    }
    requests(&mut out, outlook, tempo);
    out
}

fn read(out: &mut String, list: &ListRead) {
    let (file, contents) = (&list.file, &list.contents);
    let mut parts = vec![format!("{} rows", grouped(file.rows))];
    for (count, of) in [
        (contents.servers, "servers"),
        (contents.servers_without_remotes, "servers without remotes"),
        (contents.older_versions, "older versions left out"),
        (contents.bad_rows, "rows that cannot be read"),
        (
            contents.rows_without_address,
            "table rows without an address",
        ),
    ] {
        if count > 0 {
            parts.push(format!("{} {of}", grouped(count)));
        }
    }
    let _ = writeln!(out, "{} ({}): {}", file.path, file.format, parts.join(", "));
    if file.partial {
        out.push_str("  This list is not whole: its registry has further pages.\n");
    }
}

fn rows(out: &mut String, outlook: &Outlook) {
    out.push('\n');
    let _ = writeln!(
        out,
        "{} rows: {} name {} endpoints on {} hosts of {} sites",
        grouped(outlook.rows),
        grouped(outlook.rows_probed),
        grouped(outlook.endpoints),
        grouped(outlook.hosts),
        grouped(outlook.sites)
    );
    for (why, rows) in &outlook.left_out {
        let _ = writeln!(out, "Left out: {} rows, {why}", grouped(*rows));
    }
    let unprobeable: u64 = outlook.unprobeable.values().map(|it| it.rows).sum();
    let _ = writeln!(out, "Unprobeable: {} rows", grouped(unprobeable));
    for (why, reason) in &outlook.unprobeable {
        let _ = writeln!(
            out,
            "  {:<16} {:>9}  {}",
            why.name(),
            grouped(reason.rows),
            why.about()
        );
        for example in &reason.examples {
            let _ = writeln!(out, "    {}", shown(example));
        }
    }
    if !outlook.variables.is_empty() {
        out.push_str("Template variables without a default (rows)\n");
        for (name, rows) in outlook.variables.iter().take(VARIABLES) {
            let _ = writeln!(out, "  {:>9}  {}", grouped(*rows), shown(name));
        }
        if let Some(more @ 1..) = outlook.variables.len().checked_sub(VARIABLES) {
            let _ = writeln!(out, "  and {more} more");
        }
    }
    if outlook.templates_filled > 0 {
        let _ = writeln!(
            out,
            "Templates filled from their defaults: {} rows",
            grouped(outlook.templates_filled)
        );
    }
    let _ = writeln!(
        out,
        "Duplicates: {} rows beyond the first of {} endpoints; each endpoint is asked once",
        grouped(outlook.duplicates),
        grouped(outlook.repeated)
    );
    for (url, rows) in &outlook.most_listed {
        let _ = writeln!(out, "  {:>9}  {}", grouped(*rows), shown(url));
    }
}

fn variant(out: &mut String, name: &str, variants: &Variants) {
    if variants.endpoints == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "Variants: {} endpoints differ from another by {name} alone; not merged",
        grouped(variants.endpoints)
    );
    for example in &variants.examples {
        let _ = writeln!(out, "    {}", shown(example));
    }
}

fn counts<K: AsRef<str>>(
    out: &mut String,
    title: &str,
    counts: &std::collections::BTreeMap<K, u64>,
) {
    let said: Vec<String> = counts
        .iter()
        .map(|(name, rows)| format!("{} {}", shown(name.as_ref()), grouped(*rows)))
        .collect();
    let _ = writeln!(out, "{title}: {}", said.join(", "));
}

fn requests(out: &mut String, outlook: &Outlook, tempo: Tempo) {
    out.push('\n');
    let _ = writeln!(
        out,
        "Requests: at least {}, some {} expected with confirmations, fallbacks and closed sessions",
        grouped(outlook.requests_least),
        grouped(outlook.requests_expected)
    );
    let _ = writeln!(
        out,
        "Lanes: {}, one a site; the largest, with their endpoints, requests and least time",
        grouped(outlook.sites)
    );
    for lane in &outlook.largest_lanes {
        let _ = writeln!(
            out,
            "  {:<40} {:>9} {:>9} {:>10}",
            shown(&lane.site),
            grouped(lane.endpoints),
            grouped(lane.requests),
            time(lane.seconds)
        );
    }
    out.push_str("Contacted most: hosts, with their endpoints\n");
    for (host, endpoints) in &outlook.largest_hosts {
        let _ = writeln!(out, "  {:<40} {:>9}", shown(host), grouped(*endpoints));
    }
    let rate = if tempo.rate == 0 {
        "no limit to the rate".to_owned()
    } else {
        format!(
            "all requests at {} a second {}",
            tempo.rate,
            time(outlook.floor.all_requests)
        )
    };
    let _ = writeln!(
        out,
        "It takes at least {}: the largest lane at a gap of {} ms {}, {rate}",
        time(outlook.floor.seconds),
        tempo.gap.as_millis(),
        time(outlook.floor.largest_lane),
    );
}

/// A word from a list, inert on a terminal.
fn shown(text: &str) -> String {
    const LONGEST: usize = 160;
    text.chars()
        .take(LONGEST)
        .filter(|it| !unseen::hides(*it))
        .map(|it| if unseen::acts(it) { ' ' } else { it })
        .collect()
}

/// A time as people write it.
fn time(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time is not negative, and a cast saturates"
    )]
    let whole = seconds.ceil() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s:02}s"),
        (h, m, s) => format!("{h}h{m:02}m{s:02}s"),
    }
}

/// For a program.
pub(super) fn json(lists: &[ListRead], outlook: &Outlook) -> Result<String> {
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
            })
        })
        .collect();
    let mut value = serde_json::to_value(outlook)?;
    value["lists"] = json!(lists);
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

//! The figures by name, and the table they end up in.

use anyhow::{Result, bail};

use crate::bench::{Bench, Figure, Plan};
use crate::expense::{files, linear, memory, names, plain, report, tls};
use crate::pacing::{dead_names, gaps, latency, registry, waiting};
use crate::peers::peers;
use crate::reading::{dump, million};
use crate::typed::{say, tell};

type Measure = fn(&Bench) -> Result<Vec<Figure>>;

/// Every figure.
pub(crate) const ALL: [(&str, Measure); 15] = [
    ("plain", plain),
    ("tls", tls),
    ("memory", memory),
    ("files", files),
    ("latency", latency),
    ("registry", registry),
    ("dead-names", dead_names),
    ("gaps", gaps),
    ("waiting", waiting),
    ("report", report),
    ("linear", linear),
    ("names", names),
    ("peers", peers),
    ("million", million),
    ("dump", dump),
];

/// Those that take about a minute.
pub(crate) const QUICK: [(&str, Measure); 4] = [
    ("plain", plain),
    ("tls", tls),
    ("files", files),
    ("report", report),
];

/// Measures, and prints the table.
pub(crate) fn run(plan: &Plan, figures: &[(&str, Measure)]) -> Result<()> {
    let bench = Bench::new(plan)?;
    for name in &plan.figures {
        if !figures.iter().any(|it| it.0 == name) {
            let known: Vec<&str> = figures.iter().map(|it| it.0).collect();
            bail!("no figure is called {name}; use {}", known.join(", "));
        }
    }
    say("| figure | wanted | measured | command |\n|---|---|---|---|")?;
    for (name, measure) in figures {
        if !plan.figures.is_empty() && !plan.figures.iter().any(|it| it == name) {
            continue;
        }
        tell(&format!("{name} ..."));
        match measure(&bench) {
            Ok(figures) => {
                for Figure {
                    what,
                    wanted,
                    measured,
                } in figures
                {
                    say(&format!(
                        "| {what} | {wanted} | {measured} | `harness table {name}` |"
                    ))?;
                }
            }
            Err(error) => say(&format!(
                "| {name} | | failed: {error:#} | `harness table {name}` |"
            ))?,
        }
    }
    Ok(())
}

//! Many tasks that wait for one pace, and do nothing with their turn: what waiting itself costs, beside one that sleeps.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_census::road::{Pace, Road};
use tokio::task::JoinSet;
use tokio::time::interval;

/// How they wait.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Waiting {
    /// How many
    #[arg(long, default_value_t = 2000)]
    tasks: usize,
    /// Turns a second
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// All on one lane; else each on its own, and the rate is that of the run
    #[arg(long)]
    one_lane: bool,
    /// One task that sleeps as often, and nothing else
    #[arg(long, conflicts_with = "one_lane")]
    asleep: bool,
}

/// Lets them wait, and says how many turns came before an earlier one's.
pub(crate) fn run(waiting: &Waiting) -> Result<usize> {
    let rate = NonZeroU32::new(waiting.rate).context("a rate of at least one")?;
    // On one thread the order of asking is the order of starting.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if waiting.asleep {
        runtime.block_on(async {
            let mut clock = interval(Duration::from_secs(1) / rate.get());
            for _ in 0..waiting.tasks {
                clock.tick().await;
            }
        });
        return Ok(0);
    }
    let pace = Pace {
        width: waiting.tasks,
        depth: waiting.tasks,
        gap: if waiting.one_lane {
            Duration::from_secs(1) / rate.get()
        } else {
            Duration::ZERO
        },
        rate: (!waiting.one_lane).then_some(rate),
        per_address: None,
    };
    let road = Road::new(&pace);
    let turns = Arc::new(Mutex::new(Vec::with_capacity(waiting.tasks)));
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..waiting.tasks {
            let site = if waiting.one_lane { 0 } else { task }.to_string();
            let (road, turns) = (Arc::clone(&road), Arc::clone(&turns));
            let lane = road.lane(&site, &site);
            tasks.spawn(async move {
                let _place = road.turn(&lane, None).await;
                turns
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(task);
            });
        }
        tasks.join_all().await;
    });
    let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(turns.len() == waiting.tasks, "a task had no turn");
    Ok(turns.windows(2).filter(|pair| pair[0] > pair[1]).count())
}

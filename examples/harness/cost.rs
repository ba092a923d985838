//! What a process costs: CPU time, wall time and peak memory, counted by the kernel. Each is run under a
//! process of our own that has no other child, so that what the kernel adds up for children is this one's.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// What a process cost.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// From start to end, seconds.
    pub(crate) wall: f64,
    /// In user mode, seconds.
    pub(crate) user: f64,
    /// In the kernel, seconds.
    pub(crate) system: f64,
    /// The most memory it ever had, MiB.
    pub(crate) peak: f64,
    /// What it wrote to stdout.
    #[serde(default)]
    pub(crate) said: String,
}

impl Cost {
    /// CPU seconds.
    pub(crate) fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

/// How a process is run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// The core it runs on.
    pub(crate) core: Option<usize>,
    /// The file descriptors it may have.
    pub(crate) files: Option<u64>,
}

/// Keeps this process, and what it starts, on one core. A machine with fewer cores is left as it is.
pub(crate) fn keep_to_core(core: usize) {
    let mut cores = CpuSet::new();
    if cores.set(core).is_ok() {
        // Refused where the core does not exist: then nothing is pinned, and the ratios are rougher.
        let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    }
}

/// Runs a command in this process's name and writes what it cost.
pub(crate) fn account(bounds: Bounds, to: &PathBuf, command: &[OsString]) -> Result<()> {
    if let Some(core) = bounds.core {
        keep_to_core(core);
    }
    if let Some(files) = bounds.files {
        setrlimit(Resource::RLIMIT_NOFILE, files, files)
            .context("cannot lower the number of file descriptors")?;
    }
    let (program, rest) = command.split_first().context("there is nothing to run")?;
    let began = Instant::now();
    let status = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let wall = began.elapsed().as_secs_f64();
    ensure!(status.success(), "{} failed: {status}", program.display());
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read what it cost")?;
    let seconds = |it: nix::sys::time::TimeVal| it.num_microseconds() as f64 / 1e6;
    let cost = Cost {
        wall,
        user: seconds(usage.user_time()),
        system: seconds(usage.system_time()),
        peak: usage.max_rss() as f64 / 1024.0,
        said: String::new(),
    };
    fs::write(to, serde_json::to_vec(&cost)?)
        .with_context(|| format!("cannot write {}", to.display()))
}

/// What a command costs.
pub(crate) fn of(bounds: Bounds, command: &[OsString]) -> Result<Cost> {
    let note = tempfile::NamedTempFile::new()?;
    let mut account = Command::new(std::env::current_exe()?);
    account.arg("account").arg("--to").arg(note.path());
    if let Some(core) = bounds.core {
        account.args(["--core", &core.to_string()]);
    }
    if let Some(files) = bounds.files {
        account.args(["--files", &files.to_string()]);
    }
    let output = account
        .arg("--")
        .args(command)
        .stderr(Stdio::piped())
        .output()
        .context("cannot run the accountant")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut cost: Cost =
        serde_json::from_slice(&fs::read(note.path())?).context("the accountant wrote nothing")?;
    cost.said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(cost)
}

/// The median of some numbers; of none, nothing that could be compared.
pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    if all.is_empty() {
        return f64::NAN;
    }
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    if all.len() % 2 == 1 {
        all[middle]
    } else {
        f64::midpoint(all[middle - 1], all[middle])
    }
}

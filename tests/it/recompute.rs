//! Every figure of a report, recomputed from its rows by a script of another language that shares no code with the
//! program. `MCP_CENSUS_PYTHON=required` makes a missing interpreter a failure.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::census::Ground;
use crate::merge::run;
use mcp_census::sampling::{Sampling, Unit};
use mcp_census::scan::{self, Stop};
use mcp_census::world::World;
use mcp_census::world::mix::Mix;

/// Holds a run's summary against its rows, where there is an interpreter.
#[track_caller]
pub(crate) fn holds(run: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    let Ok(output) = Command::new("python3").arg(script).arg(run).output() else {
        assert!(
            std::env::var_os("MCP_CENSUS_PYTHON").is_none_or(|it| it != "required"),
            "there is no python3: install it"
        );
        // Past the harness, which keeps what a test prints that passes.
        let _ = writeln!(
            std::io::stderr(),
            "there is no python3: the figures were not recomputed"
        );
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{failed}");
}

fn report(run: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("report")
        .arg(run)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_figure_of_the_demo_is_what_its_rows_come_to() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let demo = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(["demo", "--out"])
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(demo.unwrap().success());
    holds(&out);
    // The script sees a figure that is wrong.
    let summary = out.join("summary.csv");
    let text = std::fs::read_to_string(&summary).unwrap();
    let (before, after) = text.split_once("verdicts,working,").unwrap();
    let wrong = format!("{before}verdicts,working,1{after}");
    std::fs::write(&summary, wrong).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    if let Ok(output) = Command::new("python3").arg(script).arg(&out).output() {
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_sample_of_sites_is_told_with_what_it_says_of_the_whole_list() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::demo(&Mix::embedded()).await.unwrap();
        let mut run = run(&world, &out, None);
        run.manifest.seed = 7;
        run.manifest.sample = Some(Sampling {
            size: 120,
            by: Unit::Site,
        });
        assert!(
            scan::run(run, Stop::default(), false)
                .await
                .unwrap()
                .complete
        );
    });
    let said = report(&out).replace('\n', " ");
    assert!(
        said.contains("A sample: 120 sites, drawn by seed 7."),
        "{said}"
    );
    assert!(said.contains("Of the whole list an estimated "), "{said}");
    holds(&out);
    let table = |name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
            .args(["report", "--format", "csv", "--table", name])
            .arg(&out)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let estimates = table("estimates");
    let working: Vec<f64> = estimates
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .filter_map(|it| it.parse().ok())
        .collect();
    // 616 of 1,093 in truth; the seed is fixed.
    let [count, share, low, high, of] = working[..] else {
        panic!("{estimates}");
    };
    assert!(low < 0.5636 && 0.5636 < high, "{estimates}");
    assert!(
        (count / of - share).abs() < 0.001 && of > 900.0,
        "{estimates}"
    );
}

#[test]
fn rows_that_work_are_asked_again_and_the_report_says_how_far_they_agree() {
    let ground = Ground::new();
    // A site that has refused us once is not asked again, and the world's names are one site.
    let mix = Mix::embedded();
    let patient: Vec<String> = (mix.rows().unwrap().into_iter())
        .filter(|it| it.group.expect.category == "rate_limited")
        .map(|it| it.name)
        .collect();
    let list = ground.path("list.csv");
    let kept: Vec<String> = std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .filter(|line| !patient.iter().any(|it| line.starts_with(&format!("{it},"))))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&list, kept.concat()).unwrap();
    let further = ["--max-per-site", "200", "--seed", "11", "--control", "25"];
    assert!(
        ground
            .scan("run", "0", &further)
            .status()
            .unwrap()
            .success()
    );
    let out = ground.path("run");
    let before = ground.world.requests().len();
    let said = report(&out);
    assert_eq!(
        ground.world.requests().len(),
        before,
        "a report sends nothing"
    );
    let control = said.split_once("The control arm").expect(&said).1;
    assert!(control.contains("shares of 25 rows"), "{control}");
    assert!(
        control.contains("verdict           the same              25  100.0 %"),
        "{control}"
    );
    assert!(control.contains("not measured again     0"), "{control}");
    holds(&out);
    // The same seed draws the same.
    let again = ground.scan("again", "0", &further).status().unwrap();
    assert!(again.success());
    let drawn = |name: &str| {
        let path = ground.path(name).join("control/targets.ndjson");
        std::fs::read_to_string(path).unwrap()
    };
    assert_eq!(drawn("run"), drawn("again"));
    assert_eq!(drawn("run").lines().count(), 25);
}

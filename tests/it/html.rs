//! `report.html` in a browser, where one is installed: it is sorted, filtered and unfolded, and nothing that a
//! stranger's server said runs. `MCP_CENSUS_BROWSER=required` makes a missing browser a failure.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mcp_census::exchange::{Answer, Body, BodyEnd, Exchange, Leg, Reply, Timing};
use mcp_census::inquiry;
use mcp_census::manifest::Start;
use mcp_census::mcp::{ASKED_VERSION, INITIALIZE_ID, Identity};
use mcp_census::outcome::{Detail, Unmeasured, Verdict};
use mcp_census::periodic::history::{Line, Status};
use mcp_census::periodic::page::Shown;
use mcp_census::periodic::series::{Endpoints, Fared};
use mcp_census::report::Page;
use mcp_census::roll::{Freezer, Listed};
use mcp_census::row::Row;
use mcp_census::tally::{RunFacts, Tally};
use mcp_census::target::Target;

/// Everything a page might act on.
const HOSTILE: &str = "</script><script>document.title='run'</script><img src=https://evil.example/x \
     onerror=\"document.title='run'\">&amp;\"'`${document.title='run'}`\u{202e}evil\u{2066}\u{1}\u{feff}-->]]>=1+1";

fn answered(endpoint: u32, url: &str, status: u16, body: Vec<u8>) -> Exchange {
    Exchange {
        endpoint,
        attempt: 0,
        leg: Leg::Initialize,
        started_at: "2026-11-30T12:00:00Z".parse().unwrap(),
        request: Identity { contact: None }.initialize(&url.parse().unwrap(), ASKED_VERSION),
        reply: Reply::Answer(Answer {
            version: "HTTP/1.1".into(),
            status,
            headers: vec![
                ("content-type".into(), "application/json".into()),
                ("x-said".into(), HOSTILE.into()),
            ],
            body: Body(body),
            end: BodyEnd::Complete,
        }),
        timing: Timing {
            total_ms: Some(40.0 + f64::from(endpoint)),
            ..Timing::default()
        },
        connection: mcp_census::exchange::Connection::default(),
    }
}

/// A page of rows, each of its own site, whose bodies are as given. Every third is gone.
fn page(rows: u32, body: fn(u32) -> Vec<u8>) -> String {
    let mut freezer = Freezer::default();
    let mut page = Page::of(1);
    let mut tally = Tally::default();
    for number in 0..rows {
        let url = format!("https://s{number:05}.example{number}.test/mcp");
        let entry = freezer.freeze(Listed {
            name: format!("row {number:05} {HOSTILE}"),
            url: url.clone(),
            ..Listed::default()
        });
        let status = if number % 3 == 2 { 404 } else { 200 };
        let said = if status == 404 {
            Vec::new()
        } else {
            body(number)
        };
        let exchanges = [answered(number, &url, status, said)];
        let target = Target {
            endpoint: number,
            url: url.parse().unwrap(),
            declared: None,
        };
        let settled = inquiry::settled(&target, ASKED_VERSION, &exchanges);
        let site = format!("example{number}.test");
        let otherwise = Detail::Unmeasured(Unmeasured::Interrupted);
        let row = Row::new(&entry, Some(site), settled.as_ref(), &exchanges, otherwise);
        tally.add(&row);
        page.add(&row, &exchanges);
    }
    let summary = tally.summary(&RunFacts {
        vantage: Some(HOSTILE.into()),
        lists: vec![HOSTILE.into()],
        complete: true,
        ..RunFacts::default()
    });
    page.finish(&summary, tally.measured_by_site())
}

fn greeting(number: u32) -> Vec<u8> {
    let result = serde_json::json!({
        "jsonrpc": "2.0", "id": INITIALIZE_ID,
        "result": {
            "protocolVersion": if number.is_multiple_of(2) { "2025-11-25" } else { "2025-06-18" },
            "capabilities": {},
            "serverInfo": { "name": HOSTILE, "version": "1" },
            "instructions": HOSTILE,
        },
    });
    result.to_string().into_bytes()
}

/// Bytes that do not compress, as text: the worst that a body can be.
fn noise(number: u32) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = u64::from(number) + 1;
    let mut body = Vec::new();
    while body.len() < 4000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        body.push(LETTERS[(state >> 58) as usize]);
    }
    body
}

/// The browser that is installed, if there is one.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|it| it.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("MCP_CENSUS_BROWSER").is_none_or(|it| it != "required"),
            "no browser is installed: install chromium"
        );
        // Past the harness, which keeps what a test prints that passes.
        let _ = writeln!(
            std::io::stderr(),
            "no browser is installed: report.html was not tried in one"
        );
    }
    found
}

/// Notes what goes wrong, from before the page's own script runs.
const WATCH: &str = r#"
window.wrong = [];
addEventListener("error", (event) => wrong.push("error: " + event.message));
addEventListener("unhandledrejection", (event) => wrong.push("rejection: " + event.reason));
addEventListener("securitypolicyviolation", (event) => wrong.push("policy: " + event.violatedDirective + " " + event.blockedURI));
function leave(seen) {
  const bytes = new TextEncoder().encode(JSON.stringify(seen));
  const out = document.createElement("output");
  out.id = "seen";
  out.textContent = btoa(Array.from(bytes, (it) => String.fromCharCode(it)).join(""));
  document.body.append(out);
}
"#;

/// Does what a reader does, and leaves what it saw in the page.
const READER: &str = r##"
(async () => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const until = async (what) => { for (let tries = 0; tries < 400 && !what(); tries++) await pause(10); };
  const by = (id) => document.getElementById(id);
  const rows = () => [...by("results").tBodies[0].rows].filter((it) => !it.classList.contains("of"));
  const cells = (at) => rows().map((it) => it.cells[at].textContent);
  const seen = { title: document.title, start: performance.now() };
  const choose = async (id, value) => {
    by(id).value = value;
    by(id).dispatchEvent(new Event("input", { bubbles: true }));
    await pause(200);
  };
  try {
    await until(() => document.documentElement.dataset.ready);
    seen.ready = performance.now();
    seen.shown = by("shown").textContent;
    seen.first = cells(0)[0];
    const ms = document.querySelector("th.c-total_ms button");
    ms.click(); ms.click();
    seen.slowest = cells(5)[0];
    seen.sorted = document.querySelector("th.c-total_ms").getAttribute("aria-sort");
    await choose("by-outcome", "not_found");
    seen.outcomes = [...new Set(cells(2))];
    seen.filtered = by("shown").textContent;
    await choose("by-outcome", "");
    await choose("by-finding", "negotiated_down");
    seen.versions = [...new Set(cells(4))];
    await choose("by-finding", "");
    await choose("by-site", "example3.test");
    seen.of_site = cells(0).length;
    await choose("by-site", "");
    await choose("search", "s00001.example1.test");
    seen.searched = cells(0).length;
    const unfold = rows()[0].querySelector("button.unfold");
    unfold.focus();
    seen.focused = document.activeElement === unfold;
    unfold.click();
    await until(() => document.querySelector("td.story button.copy"));
    const story = document.querySelector("td.story");
    seen.expanded = unfold.getAttribute("aria-expanded");
    seen.story = story.textContent;
    seen.elements = [...new Set([...story.querySelectorAll("*")].map((it) => it.localName))].sort();
    seen.curl = [...story.querySelectorAll("pre")].pop().textContent;
    unfold.click();
    seen.folded = document.querySelectorAll("td.story").length;
    by("filters").reset();
    await pause(200);
    seen.again = by("shown").textContent;
    by("more").click();
    seen.more = rows().length;
    location.hash = "#row=5";
    await until(() => document.querySelector("td.story button.copy"));
    seen.linked = cells(0).length;
    seen.images = document.images.length;
    seen.charts = [...document.querySelectorAll("svg")].filter((it) =>
      it.getAttribute("role") === "img" && it.getAttribute("aria-label") && it.querySelector("title")).length;
    seen.wide = document.documentElement.scrollWidth - innerWidth;
    seen.asked = performance.getEntriesByType("resource").map((it) => it.name);
    seen.end = document.title;
  } catch (error) {
    wrong.push("the reader failed: " + error.stack);
  }
  seen.wrong = wrong;
  leave(seen);
})();
"##;

/// Looks at a page that has no script, and leaves what it saw.
pub(crate) const GLANCE: &str = r#"
setTimeout(() => leave({
  wrong,
  asked: performance.getEntriesByType("resource").map((it) => it.name),
  images: document.images.length,
  wide: document.documentElement.scrollWidth - innerWidth,
}), 100);
"#;

/// Looks at the page of the sweeps, likewise.
const ONLOOKER: &str = r#"
setTimeout(() => leave({
  title: document.title,
  wrong,
  asked: performance.getEntriesByType("resource").map((it) => it.name),
  images: document.images.length,
  wide: document.documentElement.scrollWidth - innerWidth,
  charts: [...document.querySelectorAll("svg")].filter((it) =>
    it.getAttribute("role") === "img" && it.getAttribute("aria-label") && it.querySelector("title")).length,
  rules: document.querySelectorAll("svg [stroke='var(--quiet)']").length,
  text: document.body.innerText,
}), 100);
"#;

/// A copy of a page with a reader in it, let in beside the page's own script, if it has one, by a nonce.
pub(crate) fn watched(page: &str, reader: &str) -> String {
    let allowed = if page.contains("script-src ") {
        page.replacen("script-src ", "script-src 'nonce-reader' ", 1)
    } else {
        page.replacen(
            "default-src 'none';",
            "default-src 'none'; script-src 'nonce-reader';",
            1,
        )
    };
    let watched = allowed.replacen(
        "<style>",
        &format!("<script nonce=\"reader\">{WATCH}</script>\n<style>"),
        1,
    );
    let end = watched.rfind("</body>").unwrap();
    format!(
        "{}<script nonce=\"reader\">{reader}</script>\n{}",
        &watched[..end],
        &watched[end..]
    )
}

/// Opens a page that is watched and gives what its reader saw. The browser can reach no host by name.
pub(crate) fn read(browser: &Path, page: &str, width: u32) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, page).unwrap();
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--virtual-time-budget=60000",
            "--dump-dom",
        ])
        .arg(format!("--window-size={width},900"))
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let (send, receive) = mpsc::channel();
    let mut stdout = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut dom = String::new();
        let _ = std::io::Read::read_to_string(&mut stdout, &mut dom);
        let _ = send.send(dom);
    });
    let dom = receive.recv_timeout(Duration::from_mins(2));
    let _ = child.kill();
    let _ = child.wait();
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let dom = dom.unwrap_or_else(|_| panic!("the browser did not come back: {log}"));
    let console: Vec<&str> = log.lines().filter(|it| it.contains(":CONSOLE")).collect();
    assert!(console.is_empty(), "the console is silent: {console:?}");
    let (_, seen) = dom
        .split_once("<output id=\"seen\">")
        .unwrap_or_else(|| panic!("the reader did not come to an end: {log}"));
    let seen = seen.split_once("</output>").unwrap().0;
    serde_json::from_slice(&STANDARD.decode(seen).unwrap()).unwrap()
}

#[test]
fn a_reader_sorts_filters_and_unfolds_and_nothing_a_server_said_runs() {
    let page = page(300, greeting);
    // What a stranger said is text in what is embedded too: it cannot end it.
    assert_eq!(
        page.matches("<script").count(),
        page.matches("</script>").count()
    );
    assert!(!page.contains("<img") && !page.contains("<script>document"));
    let Some(browser) = browser() else { return };
    for width in [1280, 500] {
        let seen = read(&browser, &watched(&page, READER), width);
        assert_eq!(seen["wrong"], serde_json::json!([]), "{seen:#}");
        assert_eq!(seen["asked"], serde_json::json!([]), "the page asks nobody");
        assert_eq!(seen["title"], seen["end"], "nothing ran");
        assert_eq!(seen["images"], 0);
        assert_eq!(seen["shown"], "300 rows.");
        assert_eq!(
            (&seen["slowest"], &seen["sorted"]),
            (&"339".into(), &"descending".into())
        );
        assert_eq!(seen["outcomes"], serde_json::json!(["not_found"]));
        assert_eq!(seen["filtered"], "100 of 300 rows.");
        assert_eq!(seen["versions"], serde_json::json!(["2025-06-18"]));
        assert_eq!(
            (&seen["of_site"], &seen["searched"]),
            (&1.into(), &1.into())
        );
        assert_eq!(
            (&seen["focused"], &seen["expanded"]),
            (&true.into(), &"true".into())
        );
        let story = seen["story"].as_str().unwrap();
        for shown in [
            "A valid InitializeResult.",
            "Speaks MCP to anyone.",
            "negotiated_down:2025-06-18",
            "HTTP/1.1 200",
            "</script><script>document.title='run'</script><img src=https://evil.example/x",
            "⟨U+202E⟩evil⟨U+2066⟩⟨U+0001⟩⟨U+FEFF⟩",
        ] {
            assert!(story.contains(shown), "{shown}: {story}");
        }
        assert!(!story.contains('\u{202e}'));
        let elements = seen["elements"].to_string();
        assert!(
            !elements.contains("script") && !elements.contains("img"),
            "{elements}"
        );
        assert!(
            seen["curl"]
                .as_str()
                .unwrap()
                .starts_with("curl -i -X POST 'https://s00001.example1.test/mcp'")
        );
        assert_eq!(seen["folded"], 0);
        assert_eq!(
            (&seen["again"], &seen["more"]),
            (&"300 rows.".into(), &200.into())
        );
        assert_eq!(seen["linked"], 1, "a link to a row shows that row");
        assert!(seen["charts"].as_u64().unwrap() >= 5, "{}", seen["charts"]);
        assert!(
            seen["wide"].as_i64().unwrap() <= 0,
            "nothing is cut off at {width} px"
        );
    }
}

/// A sweep of 120 runs: of another list from the 60th on, with other rules from the 90th on, missed and failed now and
/// then, and with servers that come and go.
fn series() -> Shown {
    let mut lines = Vec::new();
    let mut endpoints = Endpoints::default();
    for run in 0..120_i64 {
        let at = Timestamp::from_second(1_767_225_600 + run * 86_400).unwrap();
        let status = match run % 17 {
            5 => Status::Missed,
            11 => Status::Failed,
            _ => Status::Complete,
        };
        let is_run = status == Status::Complete;
        let wave = (run * 7 % 23).unsigned_abs();
        lines.push(Line {
            run: if is_run {
                format!("{run}-all")
            } else {
                String::new()
            },
            sweep: "all".into(),
            scheduled_at: Some(at),
            started_at: (status != Status::Missed).then_some(at),
            status: Some(status),
            reason: if is_run { String::new() } else { "down".into() },
            start: is_run.then_some(Start::OnTime),
            starts: 1,
            population: (run / 60).to_string(),
            instrument: (run / 90).to_string(),
            breaks: match run {
                60 => "population".into(),
                91 => "rules_version".into(),
                _ => String::new(),
            },
            working: if is_run { 550 + wave } else { 0 },
            gated: if is_run { 240 - wave } else { 0 },
            down: if is_run { 90 } else { 0 },
            not_mcp: if is_run { 80 + wave / 2 } else { 0 },
            faulty: if is_run { 6 } else { 0 },
            unmeasured: 3,
            requests: 2000,
            duration_s: 65 * 60,
            versions: format!("2025-06-18={} 2025-11-25={}", 500 - 2 * run, 50 + 2 * run),
            auth: "bearer=200 no_challenge=40".into(),
            errors: "-32601=3 -32602=1".into(),
            ..Line::default()
        });
        if is_run {
            let fare = |name: &str, works: bool| {
                let verdict = if works {
                    Verdict::Working
                } else {
                    Verdict::Down
                };
                let fared = Fared {
                    verdict,
                    confirmed: true,
                };
                (
                    format!("https://{name}.example/mcp"),
                    format!("{name} {HOSTILE}"),
                    fared,
                )
            };
            endpoints.add(&[
                fare("steady", true),
                fare("flaps", run % 3 > 0),
                fare("left", run < 100),
            ]);
        }
    }
    Shown {
        name: "all".into(),
        pages: [lines[119].run.clone()].into(),
        lines,
        endpoints,
        next_start: Timestamp::from_second(1_777_680_000).ok(),
    }
}

#[test]
fn the_page_of_the_sweeps_draws_their_series_and_asks_nobody() {
    let page = mcp_census::periodic::page::index(&[series()]);
    assert!(!page.contains("<script") && !page.contains("<img"));
    // Where it is wanted, it stays to be looked at.
    if let Some(path) = std::env::var_os("MCP_CENSUS_KEEP_PAGE") {
        fs::write(path, &page).unwrap();
    }
    let Some(browser) = browser() else { return };
    for width in [1280, 500] {
        let seen = read(&browser, &watched(&page, ONLOOKER), width);
        assert_eq!(seen["wrong"], serde_json::json!([]), "{seen:#}");
        assert_eq!(seen["asked"], serde_json::json!([]), "the page asks nobody");
        assert_eq!(seen["title"], "MCP census: periodic sweeps", "nothing ran");
        assert_eq!((&seen["images"], &seen["charts"]), (&0.into(), &8.into()));
        assert!(
            seen["rules"].as_u64().unwrap() >= 8 * 2,
            "two breaks in each"
        );
        assert!(
            seen["wide"].as_i64().unwrap() <= 0,
            "nothing is cut off at {width} px"
        );
        let text = seen["text"].as_str().unwrap();
        for told in [
            "2026-03-02 (population)",
            "2026-04-02 (rules_version)",
            "(flaps)",
            "</script><script>",
            "⟨U+202E⟩evil",
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
    }
}

#[test]
fn a_page_stays_small_however_much_servers_say() {
    let size = page(1100, noise).len();
    assert!(size < 2_000_000, "{size} bytes");
}

#[test]
#[ignore = "takes half a minute in a build that is not optimised"]
fn a_page_of_25_000_rows_is_there_in_two_seconds() {
    let Some(browser) = browser() else { return };
    for body in [greeting, noise] {
        let page = page(25_000, body);
        let began = Instant::now();
        read(&browser, &watched(&page, READER), 1280);
        // The browser's own start and everything that the reader does are in it.
        let took = began.elapsed();
        let _ = writeln!(std::io::stderr(), "{} bytes, {took:?}", page.len());
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

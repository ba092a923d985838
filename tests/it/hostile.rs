//! Servers that put into every field they control what acts on a reader: formulas, markup, script, control and
//! reordering characters, table syntax. They are really scanned, and every output is looked at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_census::world::{World, case};
use serde_json::{Value, json};

use crate::html::{browser, read, watched};

/// What acts: in a spreadsheet, in a browser, on a terminal, in Markdown. Each begins with what makes a formula of it.
const ACTING: [&str; 5] = [
    "=HYPERLINK(\"https://evil.example/x\";\"y\")|cmd\u{202e}evil\u{2066}",
    "+</script><script>document.title='run'</script><img src=https://evil.example/x onerror=\"document.title='run'\">",
    "-\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\nX-Set: 1\u{0}\u{200b}\u{feff}\u{2028}",
    "@|a|b|\n|---|---|\n`x` **b** ![x](https://evil.example/x) [y](javascript:alert(1)) <b>&amp;",
    "\t=1+1\u{e0041}\u{61c}",
];

/// The same for a header's value, which no library lets have control characters.
fn in_header(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).collect()
}

/// A response of the case format.
fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Value {
    json!({"status": status, "headers": headers, "body": body})
}

/// A JSON-RPC response with this member.
fn rpc(member: &str, value: Value) -> String {
    let mut message = json!({"jsonrpc": "2.0", "id": "@@ID@@"});
    message[member] = value;
    message.to_string().replace("\"@@ID@@\"", "@@ID@@")
}

/// An `InitializeResult` with something in one of its members.
fn greeting(member: &str, said: &str) -> String {
    let mut result = json!({
        "protocolVersion": "@@PV@@", "capabilities": {}, "serverInfo": {"name": "n", "version": "1"},
    });
    match member {
        "protocolVersion" | "instructions" => result[member] = said.into(),
        _ => result["serverInfo"][member] = said.into(),
    }
    rpc("result", result)
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Servers that say something in what they answer in JSON.
fn in_json(acting: &str) -> Vec<(&'static str, Value)> {
    let said = |member: &str| answer(200, &[JSON], &greeting(member, acting));
    let error = |code: i64| {
        rpc(
            "error",
            json!({"code": code, "message": acting, "data": acting}),
        )
    };
    let tool = json!({
        "name": acting, "title": acting, "description": acting, "inputSchema": {"type": acting},
        "annotations": {"title": acting},
    });
    let tools = rpc(
        "result",
        json!({"tools": [tool.clone(), tool], "nextCursor": acting}),
    );
    let mut lists_tools = said("name");
    lists_tools["then"] = json!([{
        "match": {"body_contains": "tools/list"}, "response": answer(200, &[JSON], &tools),
    }]);
    let payment = json!({"x402Version": acting, "accepts": [{"scheme": acting}]}).to_string();
    vec![
        ("name", said("name")),
        ("title", said("title")),
        ("version", said("version")),
        ("instructions", said("instructions")),
        ("protocol-version", said("protocolVersion")),
        ("tools", lists_tools),
        ("error", answer(200, &[JSON], &error(-32603))),
        ("error-400", answer(400, &[JSON], &error(-32000))),
        ("error-401", answer(401, &[JSON], &error(-32001))),
        ("payment", answer(402, &[], &payment)),
        (
            "json",
            answer(200, &[JSON], &json!({acting: acting}).to_string()),
        ),
    ]
}

/// Servers that say something in a header, or in a body of another kind.
fn elsewhere(acting: &str) -> Vec<(&'static str, Value)> {
    let header = in_header(acting);
    let header = header.as_str();
    let challenge =
        format!("Bearer realm=\"{header}\", resource_metadata=\"{header}\", x={header}");
    let [here, there] = [format!("/{header}"), format!("@@BASE@@/x?{header}")];
    let page = format!("<!doctype html><title>{acting}</title>");
    let greeted = &greeting("name", acting);
    let stream = format!("event: {header}\nid: {header}\ndata: {greeted}\n\n");
    let raw = format!(
        "HTTP/1.1 200 {acting}\r\nContent-Type: {acting}\r\nX: {acting}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let headers = [
        ("X-Said", header),
        ("Server", header),
        ("Content-Encoding", header),
        JSON,
    ];
    let events = ("Content-Type", "text/event-stream");
    let mut endpoint = answer(405, &[], acting);
    endpoint["then"] = json!([{
        "match": {"method": "GET"},
        "response": {"status": 200, "headers": [events], "close": "keepopen",
            "chunks": [{"text": format!("event: endpoint\ndata: {header}\n\n")}]},
    }]);
    let mut reason = answer(500, &[], acting);
    reason["reason"] = header.into();
    let challenge = [("WWW-Authenticate", challenge.as_str())];
    let scheme = [("WWW-Authenticate", header)];
    vec![
        ("challenge", answer(401, &challenge, acting)),
        ("scheme", answer(401, &scheme, "")),
        ("forbidden", answer(403, &scheme, acting)),
        (
            "content-type",
            answer(200, &[("Content-Type", header)], greeted),
        ),
        ("headers", answer(200, &headers, acting)),
        (
            "session",
            answer(200, &[("Mcp-Session-Id", header), JSON], greeted),
        ),
        ("redirect-302", answer(302, &[("Location", &here)], acting)),
        ("redirect-308", answer(308, &[("Location", &there)], acting)),
        (
            "redirect-away",
            answer(301, &[("Location", header)], acting),
        ),
        (
            "retry-after",
            answer(429, &[("Retry-After", header)], acting),
        ),
        ("page", answer(200, &[("Content-Type", "text/html")], &page)),
        (
            "text",
            answer(200, &[("Content-Type", "text/plain")], acting),
        ),
        ("not-found", answer(404, &[], acting)),
        ("reason", reason),
        ("stream", answer(200, &[events], &stream)),
        ("endpoint", endpoint),
        ("raw", json!({"raw_b64": STANDARD.encode(raw)})),
    ]
}

/// A server a field.
fn servers(acting: &str) -> Vec<(&'static str, Value)> {
    [in_json(acting), elsewhere(acting)].concat()
}

fn cases() -> String {
    let mut cases = Vec::new();
    for (number, acting) in ACTING.iter().enumerate() {
        for (field, response) in servers(acting) {
            cases.push(json!({
                "id": format!("{field}-{number}"), "response": response, "expect": {"category": "success"},
            }));
        }
    }
    Value::Array(cases).to_string()
}

fn census(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(arguments)
        .args(paths)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Whether a character acts on a terminal, or hides or reorders others.
fn acts(it: char) -> bool {
    (it.is_control() && it != '\n')
        || matches!(it, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[track_caller]
fn inert(what: &str, text: &str) {
    for line in text.split('\n') {
        assert!(!line.contains(acts), "{what}: {line:?}");
    }
}

/// No cell is a formula, and none has a character that acts.
#[track_caller]
fn inert_csv(what: &str, text: &str) {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
        .into_records();
    for record in reader.map(Result::unwrap) {
        for cell in &record {
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(
                !is_formula || cell.parse::<f64>().is_ok(),
                "{what}: {cell:?}"
            );
            inert(what, cell);
        }
    }
}

/// Every table has as many cells in each row as in its head, and nothing in it is markup.
#[track_caller]
fn inert_markdown(what: &str, text: &str) {
    inert(what, text);
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = 0;
    for line in text.lines() {
        if line.starts_with('|') {
            if head == 0 {
                head = cells(line);
            }
            assert_eq!(cells(line), head, "{what}: {line}");
        } else {
            head = 0;
        }
    }
    for acting in ["<script", "<img", "<b>", "](", "![", "https://evil"] {
        assert!(!text.contains(acting), "{what}: {acting}");
    }
}

/// Scans the world, and gives the run's directory and what was printed.
fn scanned(world: &World, folder: &Path) -> (PathBuf, Output) {
    let list = folder.join("list.csv");
    let rows = world
        .targets()
        .iter()
        .map(|it| format!("{},\"{}\",{}\n", it.name, it.url, it.transport));
    let text: Vec<String> = std::iter::once("name,url,transport\n".to_owned())
        .chain(rows)
        .collect();
    fs::write(&list, text.concat()).unwrap();
    let run = folder.join("run");
    let dns = world.dns().to_string();
    let paths =
        ["run/checks.xml", "run/checks.sarif"].map(|it| folder.join(it).display().to_string());
    let output = census(
        &[
            "scan",
            "--allow-net",
            "127.0.0.0/8",
            "--dns-server",
            &dns,
            "--contact",
            "mailto:you@example.test",
            "--gap",
            "0",
            "--depth",
            "64",
            "--per-address",
            "0",
            "--rate",
            "0",
            "--timeout",
            "2s",
            "--confirm",
            "0",
            "--profile",
            "compliance",
            "--junit",
            &paths[0],
            "--sarif",
            &paths[1],
            "--out",
        ],
        &[&run, &list],
    );
    (run, output)
}

/// Unfolds every row, a page at a time, and leaves what it saw.
const READER: &str = r##"
(async () => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const until = async (what) => { for (let tries = 0; tries < 400 && !what(); tries++) await pause(10); };
  const seen = { title: document.title, rows: 0, elements: [] };
  try {
    await until(() => document.documentElement.dataset.ready);
    while (!document.getElementById("more").hidden) document.getElementById("more").click();
    for (const button of document.querySelectorAll("#results button.unfold")) button.click();
    seen.rows = document.querySelectorAll("#results button.unfold").length;
    await until(() => document.querySelectorAll("td.story h3:last-of-type").length === seen.rows);
    await pause(500);
    document.querySelectorAll("details").forEach((it) => { it.open = true; });
    seen.elements = [...new Set([...document.querySelectorAll("main *")].map((it) => it.localName))].sort();
    seen.acting = /[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u001b\u009b]/.test(document.body.textContent);
    seen.told = document.body.textContent.includes("onerror=");
    seen.images = document.images.length;
    seen.asked = performance.getEntriesByType("resource").map((it) => it.name);
    seen.end = document.title;
  } catch (error) {
    wrong.push("the reader failed: " + error.stack);
  }
  seen.wrong = wrong;
  leave(seen);
})();
"##;

#[test]
fn whatever_servers_say_acts_on_no_reader_of_any_output() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime
        .block_on(World::gauntlet(case::read(&cases()).unwrap()))
        .unwrap();
    assert_eq!(world.skipped(), &[] as &[String]);
    let (run, output) = scanned(&world, folder.path());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert!(run.join("report.html").exists(), "{}", text(&output.stderr));
    inert("scan, stdout", &text(&output.stdout));
    inert("scan, stderr", &text(&output.stderr));

    // It did reach the rows: every field that has a column holds what was said, inert.
    let rows: Vec<BTreeMap<String, String>> = csv::Reader::from_path(run.join("results.csv"))
        .unwrap()
        .deserialize()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.len(), ACTING.len() * servers("").len());
    for column in [
        "server_name",
        "server_version",
        "rpc_message",
        "content_type",
        "final_url",
    ] {
        let said =
            |it: &str| it.contains("evil.example") || it.contains("owned") || it.contains("script");
        assert!(rows.iter().any(|row| said(&row[column])), "{column}");
    }

    let mut looked_at = 0;
    for entry in fs::read_dir(&run).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let content = || fs::read_to_string(entry.path()).unwrap();
        match name.rsplit_once('.').map(|(_, kind)| kind) {
            Some("csv") => inert_csv(&name, &content()),
            Some("md") => inert_markdown(&name, &content()),
            Some("json" | "xml" | "sarif") => inert(&name, &content()),
            _ => continue,
        }
        looked_at += 1;
    }
    assert_eq!(
        looked_at, 12,
        "six of CSV, one of Markdown, three of JSON, the checks in two further forms"
    );

    for format in ["text", "csv", "md", "json", "html"] {
        let output = census(&["report", "--format", format], &[&run]);
        let said = text(&output.stdout);
        match format {
            "csv" => inert_csv("report", &said),
            "md" => inert_markdown("report", &said),
            _ => inert(format, &said),
        }
    }
    for offered in world.targets().iter().step_by(7) {
        let dns = world.dns().to_string();
        let output = census(
            &[
                "check",
                "--allow-net",
                "127.0.0.0/8",
                "--dns-server",
                &dns,
                "--timeout",
                "2s",
                "--confirm",
                "0",
                "--gap",
                "0",
                &offered.url,
            ],
            &[],
        );
        inert(&offered.name, &text(&output.stdout));
        inert(&offered.name, &text(&output.stderr));
    }
    told_inert(&run, folder.path());

    let page = fs::read_to_string(run.join("report.html")).unwrap();
    let Some(browser) = browser() else { return };
    let seen = read(&browser, &watched(&page, READER), 1280);
    assert_eq!(seen["wrong"], json!([]), "{seen:#}");
    assert_eq!(seen["asked"], json!([]), "the page asks nobody");
    assert_eq!(seen["title"], seen["end"], "nothing ran");
    assert_eq!(
        (&seen["images"], &seen["acting"]),
        (&0.into(), &false.into())
    );
    assert_eq!(
        (&seen["rows"], &seen["told"]),
        (&rows.len().into(), &true.into())
    );
    let elements = seen["elements"].to_string();
    assert!(
        !elements.contains("\"script\"") && !elements.contains("\"img\""),
        "{elements}"
    );
}

/// What changes between two runs is as inert, in each of its formats.
fn told_inert(run: &Path, folder: &Path) {
    let later = folder.join("later");
    fs::create_dir(&later).unwrap();
    fs::copy(run.join("manifest.json"), later.join("manifest.json")).unwrap();
    let mut reader = csv::Reader::from_path(run.join("results.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let mut writer = csv::Writer::from_path(later.join("results.csv")).unwrap();
    writer.write_record(&header).unwrap();
    for record in reader.records().map(Result::unwrap) {
        let cells = header.iter().zip(&record).map(|(name, cell)| match name {
            "server_name" | "protocol_version" | "auth_scheme" => "",
            _ => cell,
        });
        writer.write_record(cells).unwrap();
    }
    writer.flush().unwrap();
    let page = |format: &str| {
        let output = census(&["diff", "--format", format], &[run, &later]);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(page("json").contains("owned"), "what was said is in it");
    inert("diff", &page("text"));
    inert("diff", &page("json"));
    inert_csv("diff", &page("csv"));
    inert_markdown("diff", &page("md"));
    let html = page("html");
    inert("diff", &html);
    assert!(!html.contains("<script") && !html.contains("<img"));
    let Some(browser) = browser() else { return };
    let seen = read(&browser, &watched(&html, crate::html::GLANCE), 1280);
    assert_eq!(seen["wrong"], json!([]), "{seen:#}");
    assert_eq!((&seen["asked"], &seen["images"]), (&json!([]), &0.into()));
    assert!(seen["wide"].as_i64().unwrap() <= 0, "nothing is cut off");
}

//! One small list per format, with the traps that real ones hold.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read};

use super::*;

fn source(format: Option<Format>) -> Source<'static> {
    Source {
        name: "a-list",
        number: 7,
        format,
    }
}

fn read(bytes: &[u8], format: Option<Format>) -> (Vec<Item>, Result<Contents, ListError>) {
    let mut items = Vec::new();
    let contents = source(format).read(bytes, &mut |item| items.push(item));
    (items, contents)
}

/// A row as `line name|url`, and then whatever else it has.
fn shown(item: &Item) -> String {
    match item {
        Item::Bad(BadRow { line, why }) => format!("{line} bad: {why}"),
        Item::Listing(it) => {
            assert_eq!(it.source, 7);
            let mut text = format!("{} {}|{}", it.line, it.name, it.url);
            let mut add = |what: &str, value: Option<String>| {
                if let Some(value) = value {
                    let _ = write!(text, " {what}{value}");
                }
            };
            add("filled=", it.filled.clone());
            add("", it.transport.map(|it| it.to_string()));
            add("auth=", it.declared_auth.map(|it| it.to_string()));
            add("", it.status.map(|it| it.to_string()));
            add("extra=", (!it.extra.is_empty()).then(|| it.extra.join(",")));
            for (name, value) in &it.headers {
                add("header=", Some(format!("{name}:{value}")));
            }
            text
        }
    }
}

/// A list, its format as it tells itself, and its rows.
#[track_caller]
fn check(list: &str, format: Format, want: &[&str]) -> Contents {
    let (items, contents) = read(list.as_bytes(), None);
    let contents = contents.unwrap();
    let got: Vec<String> = items.iter().map(shown).collect();
    assert_eq!(got, want, "{list}");
    assert_eq!(contents.format, format, "{list}");
    assert_eq!(contents.listings + contents.bad_rows, got.len() as u64);
    contents
}

#[track_caller]
fn refuses(list: &[u8], format: Option<Format>, want: &str) {
    let error = read(list, format).1.unwrap_err();
    assert_eq!(error.to_string(), want);
}

#[test]
fn a_table_is_read_by_the_names_in_its_header() {
    let contents = check(
        "\u{feff}Category,Name,URL,Type,\n\
         ai,acme,https://mcp.acme.test/mcp,streamable_http,\n\
         \n\
         \"a, \"\"b\"\"\nc\",two,https://two.test/sse,SSE\n\
         ,,,,\n\
         x,short\n\
         x,empty,\n\
         x,long,https://long.test/,stdio,more,and more\n",
        Format::Csv,
        &[
            "2 acme|https://mcp.acme.test/mcp streamable-http extra=ai,",
            "4 two|https://two.test/sse sse extra=a, \"b\"\nc,",
            "7 bad: line 7: has 2 cells, and the address would be in cell 3; add the missing cells",
            "8 empty| extra=x,",
            "9 long|https://long.test/ extra=x,more",
        ],
    );
    assert_eq!(contents.extra_columns, ["Category", "column_5"]);
}

#[test]
fn a_table_may_be_separated_by_what_a_spreadsheet_takes() {
    let rows = ["2 acme|https://a.test/mcp?x=1,2 sse"];
    for table in [
        "server;endpoint;transport\nacme;https://a.test/mcp?x=1,2;sse\n",
        "title\tserver_url\ttransport\nacme\thttps://a.test/mcp?x=1,2\tsse\n",
        "title,remote_url,transport\r\nacme,\"https://a.test/mcp?x=1,2\",http+sse\r\n",
        "# from a colleague\rname,url,type",
    ] {
        let rows = if table.contains('#') { &[] } else { &rows[..] };
        check(table, Format::Csv, rows);
    }
    check(
        "sep=;\nname;Server URL\nacme;https://a.test/mcp\n",
        Format::Csv,
        &["3 acme|https://a.test/mcp"],
    );
    check(
        "#,Server URL,Name\n1,https://a.test/mcp,acme\n",
        Format::Csv,
        &["2 acme|https://a.test/mcp extra=1"],
    );
}

#[test]
fn a_table_of_addresses_alone_keeps_their_commas() {
    check(
        "url\nhttps://a.test/?tools=a,b\n\"https://b.test/?tools=a,b\"\n",
        Format::Csv,
        &[
            "2 |https://a.test/?tools=a,b",
            "3 |https://b.test/?tools=a,b",
        ],
    );
    check(
        "name,url\na,https://a.test/?tools=a,b\nb,https://b.test/,\n",
        Format::Csv,
        &["2 a|https://a.test/?tools=a,b", "3 b|https://b.test/"],
    );
}

#[test]
fn a_table_without_a_header_is_told_by_its_first_row() {
    let contents = check(
        "acme,https://a.test/mcp,streamable-http,ai\ntwo,https://two.test/mcp,sse,db\n",
        Format::Csv,
        &[
            "1 acme|https://a.test/mcp streamable-http extra=ai",
            "2 two|https://two.test/mcp sse extra=db",
        ],
    );
    assert_eq!(contents.extra_columns, ["column_4"]);
    check(
        "https://a.test/mcp,acme\n",
        Format::Csv,
        &["1 acme|https://a.test/mcp"],
    );
    // One address with a comma in it, and not two cells.
    check(
        "https://a.test/?tools=a,b\n",
        Format::Text,
        &["1 |https://a.test/?tools=a,b"],
    );
}

#[test]
fn one_forgotten_quote_costs_one_row() {
    check(
        "name,url\na,https://a.test/\n\"b,https://b.test/\nc,https://c.test/\nd,https://d.test/",
        Format::Csv,
        &[
            "2 a|https://a.test/",
            "3 bad: line 3: a quote is opened here and never closed; close it, or double it if it is meant as a quote",
            "4 c|https://c.test/",
            "5 d|https://d.test/",
        ],
    );
    let huge = format!(
        "name,url\n\"a,https://a.test/\n{}",
        "b,https://b.test/\n".repeat(100_000)
    );
    let (items, contents) = read(huge.as_bytes(), None);
    assert_eq!((items.len(), contents.unwrap().bad_rows), (100_001, 1));
}

#[test]
fn a_row_in_another_encoding_is_a_row() {
    let (items, _) = read(b"name,url\ncaf\xe9,https://a.test/\n", None);
    assert_eq!(shown(&items[0]), "2 caf\u{fffd}|https://a.test/");
    let utf16: Vec<u8> = "\u{feff}name\turl\r\ncafé\thttps://a.test/\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let (items, _) = read(&utf16, None);
    assert_eq!(shown(&items[0]), "2 café|https://a.test/");
}

#[test]
fn a_table_must_say_where_its_addresses_are() {
    refuses(
        b"# mine\nname,link\nacme,https://a.test/mcp\n",
        Some(Format::Csv),
        "a-list, line 2: no column holds the address; the columns are name, link; call one of them url, endpoint, remote_url, server_url",
    );
    refuses(
        b"name;link\nacme;https://a.test/mcp\n",
        None,
        "a-list, line 1: no column holds the address; the columns are name, link; call one of them url, endpoint, remote_url, server_url",
    );
}

#[test]
fn a_header_that_cannot_be_read_is_no_header() {
    refuses(
        b"name,\"url\nacme,https://a.test/mcp\n",
        Some(Format::Csv),
        "a-list, line 1: a quote is opened here and never closed; close it, or double it if it is meant as a quote; mend the file, or name its format with --list-format",
    );
}

#[test]
fn every_line_of_text_is_a_row() {
    check(
        "# the list\n\
         https://a.test/mcp\n\
         \n  # more\n\
         acme corp\thttps://b.test/mcp#part  # a comment\n\
         https://c.test/mcp\tcee\n\
         not an address\n {baseUrl}/mcp \n",
        Format::Text,
        &[
            "2 |https://a.test/mcp",
            "5 acme corp|https://b.test/mcp#part",
            "6 cee|https://c.test/mcp",
            "7 |not an address",
            "8 | {baseUrl}/mcp ",
        ],
    );
    check(
        "{host}/mcp\nhttps://a.test/",
        Format::Text,
        &["1 |{host}/mcp", "2 |https://a.test/"],
    );
    check("", Format::Text, &[]);
    check("\n# nothing\n", Format::Text, &[]);
}

#[test]
fn a_line_longer_than_any_row_is_a_bad_row() {
    let long = "x".repeat((1 << 20) + 1);
    for (list, format) in [
        (
            format!("https://a.test/\n{long}\nhttps://b.test/\n"),
            Format::Text,
        ),
        (
            format!("url,x\nhttps://a.test/,1\n{long}\nhttps://b.test/,1\n"),
            Format::Csv,
        ),
        (
            format!("[\"https://a.test/\", \"{long}\", \"https://b.test/\"]"),
            Format::Json,
        ),
        (
            format!(
                "{{\"url\":\"https://a.test/\"}}\n{{\"url\":\"{long}\"}}\n{{\"url\":\"https://b.test/\"}}\n"
            ),
            Format::Ndjson,
        ),
    ] {
        let (items, contents) = read(list.as_bytes(), None);
        let contents = contents.unwrap();
        assert_eq!(contents.format, format);
        assert_eq!((contents.listings, contents.bad_rows), (2, 1), "{format}");
        let Item::Bad(bad) = &items[1] else {
            panic!("{format}");
        };
        assert!(bad.why.contains("longer than 1024 KiB"), "{}", bad.why);
    }
}

#[test]
fn every_line_of_ndjson_is_a_row_or_a_page() {
    check(
        r#"{"name":"a","url":"https://a.test/mcp","type":"http"}
{"server":{"name":"b","remotes":[{"type":"sse","url":"https://b.test/sse"}]},"_meta":{}}

{"name":"c","url":"https://c.te
"https://d.test/"
{"servers":[{"name":"e","url":"https://e.test/"},{"name":"f","url":null}]}
{"nothing":"here"}
[]
"#,
        Format::Ndjson,
        &[
            "1 a|https://a.test/mcp streamable-http",
            "2 b|https://b.test/sse sse auth=none",
            "4 bad: line 4: gives no address and no server, but text that is no JSON; give it a \"url\" or take it out",
            "5 |https://d.test/",
            "6 e|https://e.test/",
            "6 f|",
            "7 bad: line 7: gives no address and no server, but an object with nothing; give it a \"url\" or take it out",
        ],
    );
}

#[test]
fn a_page_of_the_registry_gives_a_row_for_every_remote() {
    let contents = check(
        r#"{"servers":[
          {"server":{"$schema":"","name":"com.a/a","version":"1.2.0","repository":{},"remotes":[
             {"type":"streamable-http","url":"https://a.test/mcp","headers":[
               {"name":"X-Client","value":"registry"},{"name":"Authorization","isRequired":true,"isSecret":true}]},
             {"type":"sse","url":"https://a.test/sse","headers":[{"name":"X-Trace"}]}]},
           "_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","isLatest":true}}},
          {"server":{"name":"com.a/a","version":"1.1.0","remotes":[{"type":"sse","url":"https://old.test/"}]},
           "_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","isLatest":false}}},
          {"server":{"name":"com.b/packaged","version":"1.0.0","packages":[{}]},
           "_meta":{"io.modelcontextprotocol.registry/official":{"status":"deprecated","isLatest":true}}},
          {"server":{"name":"com.c/spam","version":"1.0.0","remotes":[{"type":"sse","url":"https://spam.test/"}]},
           "_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted","isLatest":true}}},
          {"server":{"name":"com.d/no-meta","version":"1.0.0","remotes":[{"url":"https://d.test/"},{"type":"sse"}]}}
        ],"metadata":{"count":5,"nextCursor":"com.d/no-meta:1.0.0"}}"#,
        Format::Registry,
        &[
            "1 com.a/a|https://a.test/mcp streamable-http auth=required active",
            "1 com.a/a|https://a.test/sse sse auth=optional active",
            "4 com.c/spam|https://spam.test/ sse auth=none deleted",
            "5 com.d/no-meta|https://d.test/ auth=none",
            "5 bad: entry 5: a remote has no \"url\"; give it one or take it out (remote 2 of \"com.d/no-meta\")",
        ],
    );
    assert_eq!(
        (
            contents.servers,
            contents.servers_without_remotes,
            contents.older_versions,
            contents.latest_unknown,
            contents.next_cursor.as_deref(),
        ),
        (4, 1, 1, 1, Some("com.d/no-meta:1.0.0"))
    );
}

#[test]
fn a_dump_of_any_age_is_read() {
    // The seed file of May 2025.
    let contents = check(
        r#"[{"id":"1","name":"io.a/a","repository":{"url":"https://git.test/a"},
             "version_detail":{"version":"0.0.1","release_date":"2025-05-16T18:56:49Z","is_latest":true},
             "remotes":[{"transport_type":"sse","url":"https://a.test/sse"},{"transport_type":"","url":"http://localhost:1/x"}]},
            {"id":"2","name":"io.a/a","version_detail":{"version":"0.0.0","is_latest":false},
             "remotes":[{"transport_type":"sse","url":"https://old.test/sse"}]},
            {"id":"3","name":"io.b/b","version_detail":{"version":"0.0.1","is_latest":true},"packages":[{}]}]"#,
        Format::Registry,
        &[
            "1 io.a/a|https://a.test/sse sse auth=none",
            "1 io.a/a|http://localhost:1/x auth=none",
        ],
    );
    assert_eq!((contents.servers, contents.older_versions), (2, 1));
    // July to September 2025: snake case, `_meta` beside the flat server.
    check(
        r#"{"servers":[{"name":"io.a/a","status":"deprecated","version":"1.0.2","remotes":[
             {"type":"streamable-http","url":"https://a.test/mcp","headers":[{"name":"K","is_required":true,"is_secret":true}]}],
             "_meta":{"io.modelcontextprotocol.registry/official":{"id":"x","published_at":"2025-09-10T00:00:00Z","is_latest":true}}},
            {"server":{"name":"io.b/b","remotes":[{"type":"streamable","url":"https://b.test/mcp"}]},
             "x-io.modelcontextprotocol.registry":{"is_latest":true}}],
            "metadata":{"next_cursor":"","count":2}}"#,
        Format::Registry,
        &[
            "1 io.a/a|https://a.test/mcp streamable-http auth=required deprecated",
            "2 io.b/b|https://b.test/mcp streamable-http auth=none",
        ],
    );
    // Pages saved one after the other, and the last of them ends the list.
    let page = |name: &str, cursor: &str| {
        format!(
            r#"{{"servers":[{{"name":"{name}","version":"1","remotes":[{{"url":"https://{name}.test/"}}]}}],"metadata":{{"nextCursor":{cursor}}}}}"#
        )
    };
    let pages = format!("{}\n\n{}", page("a", "\"a:1\""), page("b", "null"));
    let rows = [
        "1 a|https://a.test/ auth=none",
        "2 b|https://b.test/ auth=none",
    ];
    assert_eq!(
        check(&pages.replace("\n\n", ""), Format::Registry, &rows).next_cursor,
        None
    );
    assert_eq!(
        check(
            &pages,
            Format::Ndjson,
            &[
                "1 a|https://a.test/ auth=none",
                "3 b|https://b.test/ auth=none"
            ]
        )
        .next_cursor,
        None
    );
    let array = format!("[{},{}]", page("a", "\"a:1\""), page("b", "null"));
    check(&array, Format::Registry, &rows);
}

#[test]
fn of_versions_that_are_not_marked_the_latest_is_kept() {
    let server = |name: &str, version: &str, published: &str| {
        format!(
            r#"{{"server":{{"name":"{name}","version":"{version}","remotes":[{{"url":"https://{name}.test/{version}"}}]}},
                "_meta":{{"publishedAt":"{published}"}}}}"#
        )
    };
    let list = [
        server("a", "1.9.0", ""),
        server("a", "1.10.0", ""),
        server("a", "1.10.0-rc.1", ""),
        server("b", "main", "2026-01-02T00:00:00Z"),
        server("b", "dev", "2026-01-01T00:00:00Z"),
        server("c", "1.0.0", ""),
        // Not versions of one server, but two of one name.
        server("d", "", ""),
        server("d", "", ""),
    ]
    .join(",");
    let contents = check(
        &format!("{{\"servers\":[{list}]}}"),
        Format::Registry,
        &[
            "2 a|https://a.test/1.10.0 auth=none",
            "4 b|https://b.test/main auth=none",
            "6 c|https://c.test/1.0.0 auth=none",
            "7 d|https://d.test/ auth=none",
            "8 d|https://d.test/ auth=none",
        ],
    );
    assert_eq!((contents.older_versions, contents.latest_unknown), (3, 8));
}

#[test]
fn placeholders_are_filled_from_the_defaults_when_all_can_be() {
    check(
        r#"{"name":"a","remotes":[
            {"url":"https://{region}.a.test:{port}/mcp","variables":{"region":{"default":"eu"},"port":{"default":8443}}},
            {"url":"https://{region}.a.test/{tenant}/mcp","variables":{"region":{"default":"eu"},"tenant":{"isRequired":true}}},
            {"url":"https://a.test/mcp","variables":{"region":{"default":"eu"}}}]}"#,
        Format::ServerJson,
        &[
            "1 a|https://{region}.a.test:{port}/mcp filled=https://eu.a.test:8443/mcp auth=none",
            "1 a|https://{region}.a.test/{tenant}/mcp auth=none",
            "1 a|https://a.test/mcp auth=none",
        ],
    );
    check(
        r#"{"type":"mcp-server","name":"Acme","remotes":[{"type":"streamable-http","url":"https://a.test/mcp","auth":{"type":"oauth2"}}]}"#,
        Format::ServerJson,
        &["1 Acme|https://a.test/mcp streamable-http auth=required"],
    );
}

#[test]
fn a_fifth_of_garbage_is_a_fifth_of_bad_rows() {
    let entries: Vec<String> = (0..50)
        .map(|at| match at % 10 {
            3 => "{}".to_owned(),
            7 => "{\"name\" \"broken\"}".to_owned(),
            _ => format!(r#"{{"name":"s{at}","version":"1.0.0","remotes":[{{"url":"https://s{at}.test/"}}]}}"#),
        })
        .collect();
    let (items, contents) = read(
        format!("{{\"servers\":[{}]}}", entries.join(",\n")).as_bytes(),
        None,
    );
    let contents = contents.unwrap();
    assert_eq!(
        (items.len(), contents.listings, contents.bad_rows),
        (50, 40, 10)
    );
    assert_eq!(
        shown(&items[3]),
        "4 bad: entry 4: gives no address and no server, but an empty object; give it a \"url\" or take it out"
    );
}

#[test]
fn entries_that_are_mostly_empty_are_another_shape() {
    refuses(
        br#"{"servers":[{"name":"Acme","url":"https://dir.test/acme","external_url":null,"source_code_url":"https://git.test/a"}],"total_count":1,"next":null}"#,
        None,
        "a-list, entry 1: 1 of 1 entries give no server; found an object with name, url, external_url, source_code_url; expected servers with \"name\" and \"remotes\", or objects with a \"url\"",
    );
    refuses(
        br#"{"pageInfo":{},"servers":[{"id":"x","name":"acme","attributes":[]},{"name":"b","url":"https://b.test/"},{}]}"#,
        None,
        "a-list, entry 1: 2 of 3 entries give no server; found an object with id, name, attributes; expected servers with \"name\" and \"remotes\", or objects with a \"url\"",
    );
}

#[test]
fn json_lists_of_addresses_and_of_objects_are_read() {
    check(
        r#"["https://a.test/mcp", {"title":"b","endpoint":"https://b.test/","transport":"sse"}, {"name":"c","url":17}]"#,
        Format::Json,
        &[
            "1 |https://a.test/mcp",
            "2 b|https://b.test/ sse",
            "3 bad: entry 3: its address is no string; put it in quotes",
        ],
    );
    check(
        r#"{"generated":"today","endpoints":[{"name":"a","url":"https://a.test/mcp"}],"more":{"servers":[1]}}"#,
        Format::Json,
        &["1 a|https://a.test/mcp"],
    );
    check(
        r#"{"name":"a","url":"https://a.test/mcp"}"#,
        Format::Json,
        &["1 a|https://a.test/mcp"],
    );
    check("[]", Format::Json, &[]);
    check("{\"servers\":[]}", Format::Registry, &[]);
    assert_eq!(read(b"[]", Some(Format::Registry)).1.unwrap().listings, 0);
}

#[test]
fn clients_keep_their_servers_under_many_keys() {
    let one = ["1 acme|https://a.test/mcp"];
    for config in [
        r#"{"mcpServers":{"acme":{"url":"https://a.test/mcp"}}}"#,
        r#"{"mcpServers":{"acme":{"serverUrl":"https://a.test/mcp"}}}"#,
        r#"{"mcpServers":[{"name":"acme","url":"https://a.test/mcp"}]}"#,
        r#"{"acme":{"url":"https://a.test/mcp"}}"#,
        r#"{"inputs":[{"id":"k"}],"servers":{"acme":{"url":"https://a.test/mcp"}}}"#,
        r#"{"mcp":{"inputs":[],"servers":{"acme":{"url":"https://a.test/mcp"}}}}"#,
        r#"{"theme":"dark","context_servers":{"acme":{"url":"https://a.test/mcp"}}}"#,
        r#"{"mcp":{"acme":{"type":"remote","url":"https://a.test/mcp","enabled":true}}}"#,
        r#"{"projects":{"/home/me":{"mcpServers":{"acme":{"url":"https://a.test/mcp"}}},"/tmp":{"mcpServers":{}}}}"#,
    ] {
        check(config, Format::ClientConfig, &one);
    }
    let contents = check(
        r#"{
          // what the team uses
          "mcpServers": {
            "zulu": {"type": "http", "url": "https://z.test/mcp", "headers": {"Authorization": "Bearer ${T:-}"},},
            "gemini": {"httpUrl": "https://g.test/mcp"},
            /* a bridge */
            "bridge": {"command": "npx", "args": ["-y", "mcp-remote@latest", "https://b.test/sse", "--transport", "sse-only", "--header", "X-Key:${K}"]},
            "zed": {"command": {"path": "npx", "args": ["mcp-remote", "https://c.test/mcp"]}},
            "one line": {"command": "npx mcp-remote https://e.test/sse"},
            "opencode": {"type": "local", "command": ["npx", "mcp-remote", "https://d.test/mcp"]},
            "local": {"command": "uvx", "args": ["mcp-server-git", "--repo", "https://git.test/"]},
            "odd": {"disabled": true},
            "odder": 3,
          },
        }"#,
        Format::ClientConfig,
        &[
            "1 zulu|https://z.test/mcp streamable-http header=Authorization:Bearer ${T:-}",
            "2 gemini|https://g.test/mcp streamable-http",
            "3 bridge|https://b.test/sse sse header=X-Key:${K}",
            "4 zed|https://c.test/mcp",
            "5 one line|https://e.test/sse",
            "6 opencode|https://d.test/mcp",
            "8 bad: entry 8: gives no address and no server, but an object with disabled; give it a \"url\" or take it out",
            "9 bad: entry 9: gives no address and no server, but a number; give it a \"url\" or take it out",
        ],
    );
    assert_eq!((contents.servers, contents.servers_without_remotes), (7, 1));
    check("{\"mcpServers\":{}}", Format::ClientConfig, &[]);
}

#[test]
fn what_a_client_sends_is_not_shown() {
    let config = r#"{"mcpServers":{"acme":{"url":"https://a.test/?key=s3cret","headers":{"X-Key":"s3cret"}}}}"#;
    let (items, _) = read(config.as_bytes(), None);
    let text = format!("{items:?}");
    assert!(text.contains("X-Key") && !text.contains("s3cret"), "{text}");
}

#[test]
fn the_configuration_of_codex_is_read() {
    let contents = check(
        "model = \"x\" # https://not.test/\n\
         [mcp_servers.zulu]\n\
         url = \"https://z.test/mcp\"\n\
         http_headers = { Authorization = \"Bearer k\" }\n\
         bearer_token_env_var = \"T\"\n\
         [mcp_servers.\"a b\"]\ncommand = \"npx\"\nargs = [\n  '-y', 'mcp-remote',\n  'https://b.test/mcp',\n]\n\
         [mcp_servers.local]\ncommand = \"uvx\"\nargs = [\"x\"]\n",
        Format::Codex,
        &[
            "2 zulu|https://z.test/mcp header=Authorization:Bearer k",
            "6 a b|https://b.test/mcp",
        ],
    );
    assert_eq!(contents.servers_without_remotes, 1);
    refuses(
        b"[mcp_servers.a]\nurl = https://a.test/\n",
        None,
        "a-list, line 2: string values must be quoted, expected literal string; mend the file, or name its format with --list-format",
    );
}

#[test]
fn both_registries_of_toolhive_are_read() {
    let contents = check(
        r#"{"version":"1.0.0","servers":{"git":{"image":"x"}},"remote_servers":{"acme":{"transport":"sse","url":"https://a.test/mcp",
            "status":"Active","headers":[{"name":"Authorization","required":true,"secret":true}]},
            "open":{"transport":"streamable-http","url":"https://b.test/mcp","oauth_config":{"issuer":"https://auth.test"}}}}"#,
        Format::ToolHive,
        &[
            "2 acme|https://a.test/mcp sse auth=required active",
            "3 open|https://b.test/mcp streamable-http auth=required",
        ],
    );
    assert_eq!(contents.servers_without_remotes, 1);
    check(
        r#"{"version":"1.0.0","meta":{},"data":{"servers":[{"name":"com.a/a","version":"1.0.0","remotes":[{"type":"sse","url":"https://a.test/mcp"}]}],"groups":[]}}"#,
        Format::ToolHive,
        &["1 com.a/a|https://a.test/mcp sse auth=none"],
    );
}

#[test]
fn the_yaml_of_docker_is_read() {
    check(
        "# one server\nname: acme\ntype: remote\nremote: {transport_type: streamable-http, url: \"https://a.test/mcp\", headers: {Authorization: \"Bearer ${K}\"}}\n\
         config: {secrets: [{name: acme.key, env: K, example: \"<KEY>\"}]}\n",
        Format::Docker,
        &[
            "4 acme|https://a.test/mcp streamable-http auth=required header=Authorization:Bearer ${K}",
        ],
    );
    let contents = check(
        "name: acme\ntype: remote\nabout:\n  title: Acme\n  description: |\n    remote:\n      url: https://not.test/\n\
         remote:\n  transport_type: sse\n  url: 'https://a.test/sse' # theirs\noauth:\n- provider: acme\n  name: x\n\
         ---\nname: local\ntype: server\nimage: mcp/local\n",
        Format::Docker,
        &["10 acme|https://a.test/sse sse auth=required"],
    );
    assert_eq!((contents.servers, contents.servers_without_remotes), (2, 1));
    check(
        "version: 2\nname: docker-mcp\nregistry:\n  zulu:\n    type: remote\n    remote:\n      url: https://z.test/mcp\n\
         \x20 git:\n    type: server\n  acme:\n    type: remote\n    remote:\n      url: https://a.test/mcp\n      transport_type: sse\n",
        Format::Docker,
        &[
            "7 zulu|https://z.test/mcp auth=none",
            "13 acme|https://a.test/mcp sse auth=none",
        ],
    );
}

#[test]
fn the_tables_of_a_page_are_read() {
    let contents = check(
        "# Remote servers\n\nSee [the site](https://site.test/) | `https://prose.test/`.\n\n\
         | Name | Category | URL | Authentication | Maintainer |\n|------|:--:|---|---|---|\n\
         | Airtable | Database | `https://a.test/mcp` | OAuth2.1 | [Acme](https://maintainer.test) |\n\
         | [**Bee**](https://bee.test) | x \\| y | [https://b.test/sse](https://b.test/sse) | Open | [B](https://m.test) |\n\
         | Cee | x | soon | Open | |\n\n\
         | Word | Meaning |\n|---|---|\n| MCP | a protocol |\n| Link | <https://l.test/x> |\n",
        Format::Markdown,
        &[
            "7 Airtable|https://a.test/mcp",
            "8 Bee|https://b.test/sse",
            "9 bad: line 9: this row of the table has no address; put one in backticks, or take the row out",
            "14 Link|https://l.test/x",
        ],
    );
    assert_eq!(contents.rows_without_address, 1);
}

#[test]
fn a_page_may_show_how_clients_are_configured() {
    check(
        "# Servers\n```toml\n[mcp_servers.x]\nurl = \"https://x.test/\"\n```\n| Name | Endpoint |\n|---|---|\n| a | `https://a.test/` |\n",
        Format::Markdown,
        &["8 a|https://a.test/"],
    );
}

#[test]
fn what_is_no_list_is_named() {
    let shape = |found: &str| {
        format!("a-list, line 1: found {found}; expected a list; save it as CSV, JSON or text")
    };
    refuses(
        b"PK\x03\x04\x14\0",
        None,
        &shape("a ZIP archive, as spreadsheets are"),
    );
    refuses(b"%PDF-1.7\n", None, &shape("a PDF document"));
    refuses(
        b"\n<!DOCTYPE html><title>502</title>",
        None,
        &shape("a web page"),
    );
    refuses(b"SQLite format 3\0", None, &shape("bytes that are no text"));
    refuses(
        br#"{"error":"rate limited","retry":3}"#,
        None,
        "a-list, line 1: found an object with error, retry; expected servers with \"name\" and \"remotes\", or objects with a \"url\", or the \"mcpServers\" of a client's configuration",
    );
    refuses(
        b"{\"servers\":[\n{\"name\":\"a\",\"url\":\"https://a.test/\"},\n{\"name\":",
        None,
        "a-list, line 3: the JSON ends too early: a part of it is missing; mend the file, or name its format with --list-format",
    );
    refuses(
        b"{\n\"servers\":[]}\nand so on",
        None,
        "a-list, line 3: something that is no JSON object or array stands here; mend the file, or name its format with --list-format",
    );
    refuses(
        br#"{"mcpServers":{}}"#,
        Some(Format::Registry),
        "a-list, line 1: found the format client-config; expected registry, as it was said to be; leave --list-format out",
    );
}

#[test]
fn the_known_servers_can_all_be_asked() {
    let (items, contents) = read(include_bytes!("../../data/known-servers.csv"), None);
    assert_eq!(contents.unwrap().extra_columns, ["vendor", "source"]);
    let mut names = BTreeSet::new();
    let mut urls = BTreeSet::new();
    for item in &items {
        let Item::Listing(listing) = item else {
            panic!("{item:?}");
        };
        let address = target::address(&listing.url).unwrap();
        assert_eq!(address.url.scheme(), "https", "{listing:?}");
        assert!(address.findings.is_empty(), "{listing:?}");
        assert!(listing.transport.is_some(), "{listing:?}");
        assert!(
            listing.extra.iter().all(|cell| !cell.is_empty()),
            "{listing:?}"
        );
        assert!(names.insert(&listing.name), "{listing:?}");
        assert!(urls.insert(address.url), "{listing:?}");
    }
    assert!(items.len() >= 40);
}

/// A registry's dump that is made as it is read.
struct Dump<'a> {
    entry: u64,
    entries: u64,
    left: Vec<u8>,
    made: &'a Cell<u64>,
}

impl Read for Dump<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() && self.entry < self.entries {
            let at = self.entry;
            let text = format!(
                "{}{{\"server\":{{\"name\":\"s{at}\",\"description\":\"{}\",\"version\":\"1.0.0\",\
                 \"remotes\":[{{\"type\":\"sse\",\"url\":\"https://s{at}.test/\"}}]}}}}{}",
                if at == 0 { "{\"servers\":[" } else { "," },
                "x".repeat(1000),
                if at + 1 == self.entries {
                    "],\"metadata\":{}}"
                } else {
                    ""
                },
            );
            self.left = text.into_bytes();
            self.entry += 1;
            self.made.set(self.entry);
        }
        let part = self.left.len().min(buffer.len());
        buffer[..part].copy_from_slice(&self.left[..part]);
        self.left.drain(..part);
        Ok(part)
    }
}

#[test]
fn a_dump_is_given_row_by_row_while_it_is_read() {
    let made = Cell::new(0);
    let dump = Dump {
        entry: 0,
        entries: 2000,
        left: Vec::new(),
        made: &made,
    };
    let mut rows = 0;
    let contents = source(None)
        .read(BufReader::new(dump), &mut |_| {
            rows += 1;
            // What has been taken in and not given is the head, a buffer, and the version in hand.
            assert!(made.get() - rows < 80, "{} of {}", rows, made.get());
        })
        .unwrap();
    assert_eq!((rows, contents.format), (2000, Format::Registry));
}

proptest::proptest! {
    #[test]
    fn any_bytes_come_to_an_end(bytes: Vec<u8>) {
        for format in std::iter::once(None).chain(Format::ALL.iter().copied().map(Some)) {
            let _ = read(&bytes, format);
        }
    }

    #[test]
    fn any_text_comes_to_an_end(text in r#"([\[\]{}",:|#/\n -]|url|name|servers|https://a.test/|remote:){0,40}"#) {
        for format in std::iter::once(None).chain(Format::ALL.iter().copied().map(Some)) {
            let _ = read(text.as_bytes(), format);
        }
    }

    #[test]
    fn a_line_of_text_in_is_a_row_out(lines in proptest::collection::vec("[a-z:/.,;{}?=]{1,30}", 1..20)) {
        let (items, _) = read(lines.join("\n").as_bytes(), Some(Format::Text));
        proptest::prop_assert_eq!(items.len(), lines.len());
    }
}

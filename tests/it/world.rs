//! The loopback world, spoken to with raw sockets: what is scripted is what is on the wire.
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use mcp_census::coding::decode;
use mcp_census::world::mix::Mix;
use mcp_census::world::{World, case};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":41,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;

/// A gauntlet of one case.
async fn world(response: &str) -> World {
    let cases = format!(
        r#"[{{"id": "one", "response": {response}, "expect": {{"category": "success"}}}}]"#
    );
    World::gauntlet(case::read(&cases).unwrap()).await.unwrap()
}

/// A demo of one server.
async fn demo(group: &str) -> World {
    let mix = format!(
        r#"{{"names": {{"publishers": ["com.example"], "first": ["quiet"], "second": ["notes"]}},
            "groups": [{{"name": "x", "count": 1, {group}, "expect": {{"category": "success"}}}}]}}"#
    );
    World::demo(&Mix::read(&mix).unwrap()).await.unwrap()
}

fn url(world: &World) -> Url {
    Url::parse(&world.targets()[0].url).unwrap()
}

async fn connect(url: &Url) -> TcpStream {
    TcpStream::connect(("127.0.0.1", url.port().unwrap()))
        .await
        .unwrap()
}

fn request(method: &str, path: &str, host: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Everything up to the end, and how that came.
async fn rest(from: &mut (impl AsyncRead + Unpin)) -> (Vec<u8>, Option<io::ErrorKind>) {
    let mut bytes = Vec::new();
    let end = from.read_to_end(&mut bytes).await;
    (bytes, end.err().map(|error| error.kind()))
}

async fn ask(url: &Url, request: &str) -> (Vec<u8>, Option<io::ErrorKind>) {
    let mut stream = connect(url).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(&mut stream).await
}

/// What `initialize` gets, from the first byte to the last, and how the connection ended.
async fn answer(response: &str) -> (Vec<u8>, Option<io::ErrorKind>) {
    let world = world(response).await;
    let url = url(&world);
    let request = request("POST", url.path(), url.host_str().unwrap(), "", INITIALIZE);
    ask(&url, &request).await
}

#[track_caller]
fn is(answer: &(Vec<u8>, Option<io::ErrorKind>), bytes: &str, end: Option<io::ErrorKind>) {
    let text = String::from_utf8_lossy(&answer.0);
    assert_eq!((text.as_ref(), answer.1), (bytes, end));
}

async fn read_until(from: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        text.push(char::from(from.read_u8().await.unwrap()));
    }
    text
}

#[tokio::test]
async fn a_response_arrives_byte_for_byte_with_its_tokens_filled() {
    let answered = answer(
        r#"{"status": 299, "reason": "Fine", "headers": [["X-Version", "@@PV@@"], ["X-Word", "é€"]],
            "body_b64_prefix": "77u/", "body": "{\"id\":@@ID@@}@@PAD:3@@@@UNKNOWN@@"}"#,
    )
    .await;
    let mut wanted = b"HTTP/1.1 299 Fine\r\nX-Version: 2025-06-18\r\nX-Word: \xe9?\r\n\
        Content-Length: 26\r\nConnection: close\r\n\r\n"
        .to_vec();
    wanted.extend_from_slice("\u{feff}{\"id\":41}xxx@@UNKNOWN@@".as_bytes());
    assert_eq!(answered, (wanted, None));
}

#[tokio::test]
async fn raw_bytes_are_sent_as_they_are_or_filled() {
    // "SSH-2.0-x\r\n" and "HTTP/1.0 200 OK\r\nContent-Length: @@CL@@\r\n\r\n@@ID@@"
    let banner = answer(r#"{"raw_b64": "U1NILTIuMC14DQo="}"#).await;
    is(&banner, "SSH-2.0-x\r\n", None);
    let old = answer(
        r#"{"raw_b64": "SFRUUC8xLjAgMjAwIE9LDQpDb250ZW50LUxlbmd0aDogQEBDTEBADQoNCkBASURAQA==", "subst": true}"#,
    )
    .await;
    is(&old, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n41", None);
}

#[tokio::test]
async fn a_connection_ends_as_the_script_says() {
    let reset = Some(io::ErrorKind::ConnectionReset);
    is(
        &answer(r#"{"raw_b64": "", "close": "reset"}"#).await,
        "",
        reset,
    );
    is(
        &answer(r#"{"raw_b64": "", "close": "clean"}"#).await,
        "",
        None,
    );
    let short = r#"{"status": 200, "body": "abc", "length_delta": 40, "close": "premature"}"#;
    is(
        &answer(short).await,
        "HTTP/1.1 200 X\r\nContent-Length: 43\r\nConnection: close\r\n\r\nabc",
        None,
    );
    let chunked = "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    for (response, body) in [
        (
            r#""chunks": [{"text": "ab"}, {"b64": "Yw==", "delay_ms": 1}]"#,
            "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        (
            r#""chunks": [{"text": "ab"}], "close": "premature""#,
            "2\r\nab\r\n",
        ),
        (
            r#""body": "abc", "dribble": {"bytes": 2, "delay_ms": 1}"#,
            "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        (
            r#""body": "abc", "framing": "chunked_no_terminator""#,
            "3\r\nabc\r\n",
        ),
    ] {
        let answered = answer(&format!(r#"{{"status": 200, {response}}}"#)).await;
        is(&answered, &format!("{chunked}{body}"), None);
    }
}

#[tokio::test]
async fn a_connection_that_is_kept_open_ends_when_the_client_leaves() {
    let world = world(r#"{"status": 200, "chunks": [{"text": "."}, {"text": "x", "repeat": "forever"}], "close": "keepopen"}"#).await;
    let url = url(&world);
    let mut stream = connect(&url).await;
    let asked = request("POST", "/mcp", "one", "", INITIALIZE);
    stream.write_all(asked.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, "1\r\n.\r\n1\r\nx\r\n1\r\nx\r\n").await;
    assert!(head.contains("chunked"), "{head}");
}

#[tokio::test]
async fn a_chunk_waits_for_the_request_that_it_answers() {
    let world = world(
        r#"{"status": 405, "then": [
            {"match": {"method": "GET"}, "response": {"status": 200, "close": "keepopen", "chunks": [
                {"text": "endpoint @@BASE@@;"}, {"text": "id @@ID@@;", "after_request": "/messages"}]}},
            {"match": {"path": "/messages"}, "response": {"status": 202, "body": "Accepted"}}]}"#,
    )
    .await;
    let url = url(&world);
    // The second time round, an earlier answer is not taken for a new one.
    for id in ["41", "42"] {
        let mut stream = connect(&url).await;
        let open = request("GET", "/mcp", "one", "", "");
        stream.write_all(open.as_bytes()).await.unwrap();
        let opened = read_until(&mut stream, ";").await;
        let base = url.origin().ascii_serialization();
        assert!(opened.ends_with(&format!("endpoint {base};")), "{opened}");
        let body = INITIALIZE.replace("41", id);
        let posted = ask(&url, &request("POST", "/messages", "one", "", &body)).await;
        assert!(posted.0.starts_with(b"HTTP/1.1 202 "));
        let answered = read_until(&mut stream, ";").await;
        assert!(answered.ends_with(&format!("id {id};")), "{answered}");
    }
}

#[tokio::test]
async fn a_second_address_answers_for_the_same_server() {
    let world = world(
        r#"{"status": 307, "headers": [["Location", "@@OTHER_BASE@@/x"]],
            "then": [{"match": {"host": "other"}, "response": {"status": 200, "body": "other"}}]}"#,
    )
    .await;
    let url = url(&world);
    let post = |path: &str| request("POST", path, "one.gauntlet.test", "", INITIALIZE);
    let (head, _) = ask(&url, &post("/mcp")).await;
    let head = String::from_utf8(head).unwrap();
    let (_, after) = head.split_once("Location: ").unwrap();
    let location = Url::parse(after.lines().next().unwrap()).unwrap();
    assert_ne!(location.port(), url.port());
    let (body, _) = ask(&location, &post("/x")).await;
    assert!(body.ends_with(b"\r\n\r\nother"));
}

#[tokio::test]
async fn a_coded_body_is_labelled_and_can_be_decoded() {
    for (coding, label, flaw) in [
        ("gzip", "gzip", false),
        ("br", "br", false),
        ("gzip-sync-flush", "gzip", true),
    ] {
        let response =
            format!(r#"{{"status": 200, "body": "@@PAD:5000@@", "encode": "{coding}"}}"#);
        let (bytes, _) = answer(&response).await;
        let head = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        let (head, body) = bytes.split_at(head);
        let head = String::from_utf8_lossy(head);
        assert!(
            head.contains(&format!("\r\nContent-Encoding: {label}\r\n")),
            "{head}"
        );
        let decoded = decode(label, body, true);
        assert_eq!(
            (decoded.bytes.len(), decoded.flaw.is_some()),
            (5000, flaw),
            "{coding}"
        );
    }
    let (bytes, _) = answer(r#"{"status": 200, "body": "ab", "encode": "utf-16le-bom"}"#).await;
    assert!(bytes.ends_with(b"\r\n\r\n\xff\xfea\0b\0"));
    let (bytes, _) =
        answer(r#"{"status": 200, "body": "ab", "encode": "zstd", "omit_encoding_header": true}"#)
            .await;
    assert!(bytes.ends_with(b"\r\n\r\n\x28\xb5\x2f\xfdab"));
    assert!(!String::from_utf8_lossy(&bytes).contains("Content-Encoding"));
}

/// A client that trusts the world's authority and nobody else.
fn client(world: &World, alpn: &[&[u8]]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(world.ca_pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn secure(world: &World, alpn: &[&[u8]]) -> io::Result<TlsStream<TcpStream>> {
    let url = url(world);
    let name = ServerName::try_from(url.host_str().unwrap().to_owned()).unwrap();
    client(world, alpn).connect(name, connect(&url).await).await
}

#[tokio::test]
async fn a_bad_certificate_is_refused_for_what_is_bad_about_it() {
    for (word, bad) in [
        ("expired", "expired"),
        ("not_yet_valid", "not yet"),
        ("wrong_host", "name"),
        ("self_signed", "issuer"),
        ("missing_intermediate", "issuer"),
    ] {
        let world = world(&format!(r#"{{"transport": {{"tls": "{word}"}}}}"#)).await;
        let error = secure(&world, &[]).await.unwrap_err();
        let found = match error.get_ref().and_then(|it| it.downcast_ref::<Error>()) {
            Some(Error::InvalidCertificate(CertificateError::ExpiredContext { .. })) => "expired",
            Some(Error::InvalidCertificate(CertificateError::NotValidYetContext { .. })) => {
                "not yet"
            }
            Some(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                ..
            })) => "name",
            Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => "issuer",
            _ => "something else",
        };
        assert_eq!(found, bad, "{word}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_says_so() {
    let world = world(r#"{"transport": {"tls": "client_cert_required"}}"#).await;
    // In TLS 1.3 the client is done before the server has looked at its certificate.
    let mut stream = secure(&world, &[]).await.unwrap();
    let error = stream.read_u8().await.unwrap_err();
    let wanted = Error::AlertReceived(AlertDescription::CertificateRequired);
    assert_eq!(
        error.get_ref().and_then(|it| it.downcast_ref::<Error>()),
        Some(&wanted),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_handshake_can_fail_in_plain_sight() {
    let reset = Some(io::ErrorKind::ConnectionReset);
    for (word, bytes, end) in [
        ("tls1.0", &b"\x15\x03\x01\x00\x02\x02\x46"[..], None),
        (
            "alert:handshake_failure",
            b"\x15\x03\x03\x00\x02\x02\x28",
            None,
        ),
        (
            "alert:unrecognized_name",
            b"\x15\x03\x03\x00\x02\x02\x70",
            None,
        ),
        (
            "not_tls",
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            None,
        ),
        ("reset", b"", reset),
    ] {
        let world = world(&format!(r#"{{"transport": {{"tls": "{word}"}}}}"#)).await;
        let answered = ask(&url(&world), "a ClientHello").await;
        assert_eq!(answered, (bytes.to_vec(), end), "{word}");
    }
    let world = world(r#"{"transport": {"tls": "stall"}}"#).await;
    let silence = timeout(Duration::from_millis(50), secure(&world, &[])).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test]
async fn an_http2_stream_is_reset_and_a_connection_sent_away() {
    for (word, by_stream) in [("rst_stream", true), ("goaway", false)] {
        let world = world(&format!(
            r#"{{"transport": {{"h2": "{word}:INTERNAL_ERROR"}}}}"#
        ))
        .await;
        let stream = secure(&world, &[b"h2", b"http/1.1"]).await.unwrap();
        let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let get = hyper::Request::get(url(&world).as_str()).body(()).unwrap();
        let (response, _) = send.send_request(get, true).unwrap();
        let error = response.await.unwrap_err();
        assert_eq!(
            error.reason(),
            Some(h2::Reason::INTERNAL_ERROR),
            "{word}: {error:?}"
        );
        assert_eq!(
            (error.is_reset(), error.is_go_away()),
            (by_stream, !by_stream),
            "{word}"
        );
    }
}

#[tokio::test]
async fn a_connection_is_refused_or_falls_into_a_hole() {
    let refused = world(r#"{"transport": {"connect": "refused"}}"#).await;
    let port = url(&refused).port().unwrap();
    let error = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);

    let hole = world(r#"{"transport": {"connect": "blackhole"}}"#).await;
    if hole.skipped().is_empty() {
        let port = url(&hole).port().unwrap();
        let silence = timeout(
            Duration::from_millis(50),
            TcpStream::connect(("127.0.0.1", port)),
        );
        assert!(silence.await.is_err());
    }
}

async fn resolve(world: &World, name: &str, kind: RecordType) -> (ResponseCode, Vec<String>) {
    let mut query = Message::query();
    query.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket
        .send_to(&query.to_vec().unwrap(), world.dns())
        .await
        .unwrap();
    let mut datagram = [0; 512];
    let length = socket.recv(&mut datagram).await.unwrap();
    let answer = Message::from_vec(&datagram[..length]).unwrap();
    assert_eq!(answer.metadata.id, query.metadata.id);
    let data = answer.answers.iter().map(|it| it.data.to_string());
    (answer.metadata.response_code, data.collect())
}

#[tokio::test]
async fn a_name_resolves_as_its_case_says() {
    for (word, code, v4, v6) in [
        ("nxdomain", ResponseCode::NXDomain, "", ""),
        ("servfail", ResponseCode::ServFail, "", ""),
        ("nodata", ResponseCode::NoError, "", ""),
        (
            "answer:[blackhole6],[ok4]",
            ResponseCode::NoError,
            "127.0.0.1",
            "::1",
        ),
        (
            "answer:169.254.169.254",
            ResponseCode::NoError,
            "169.254.169.254",
            "",
        ),
        (
            "answer:::ffff:10.0.0.1",
            ResponseCode::NoError,
            "",
            "::ffff:10.0.0.1",
        ),
    ] {
        let world = world(&format!(r#"{{"transport": {{"dns": "{word}"}}}}"#)).await;
        let strict = word.starts_with("answer:") && !word.ends_with("[ok4]");
        assert_eq!(world.strict_targets().len(), usize::from(strict), "{word}");
        assert_eq!(world.targets().len(), usize::from(!strict), "{word}");
        for (kind, address) in [(RecordType::A, v4), (RecordType::AAAA, v6)] {
            let addresses = Vec::from_iter((!address.is_empty()).then(|| address.to_owned()));
            let answered = resolve(&world, "one.gauntlet.test.", kind).await;
            assert_eq!(answered, (code, addresses), "{word} {kind}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_played_here_is_skipped_and_named() {
    for response in [
        r#"{"url": "http://mcp.example.test/mcp"}"#,
        r#"{"transport": {"dns": "answer:203.0.113.5,10.0.0.8"}}"#,
        r#"{"transport": {"tls": "a new trouble"}}"#,
        r#"{"transport": {"connect": "a new trouble"}}"#,
    ] {
        let world = world(response).await;
        assert_eq!(
            (world.targets(), world.strict_targets()),
            (&[][..], &[][..])
        );
        assert!(
            world.skipped()[0].starts_with("one: "),
            "{:?}",
            world.skipped()
        );
    }
}

#[tokio::test]
async fn every_case_of_the_corpus_is_offered_or_skipped() {
    let corpus = case::corpus();
    let cases = corpus.len();
    let world = World::gauntlet(corpus).await.unwrap();
    let counts = [
        world.targets().len(),
        world.strict_targets().len(),
        world.skipped().len(),
    ];
    assert_eq!(counts.iter().sum::<usize>(), cases);
    assert_eq!(counts, [199, 13, 6], "{:?}", world.skipped());
}

#[tokio::test]
async fn the_demo_offers_1_100_rows_under_as_many_names() {
    let world = World::demo(&Mix::embedded()).await.unwrap();
    assert_eq!(world.targets().len(), 1100);
    assert_eq!(
        (world.strict_targets().len(), world.skipped().len()),
        (0, 0)
    );
    assert!(world.targets().is_sorted_by(|a, b| a.name < b.name));
    let declared = world.targets().iter();
    assert_eq!(declared.filter(|it| it.transport == "sse").count(), 24);
}

const SESSION: &str = r#""response": {"status": 200, "headers": [["Mcp-Session-Id", "@@SESSION@@"]], "body": "@@LABEL@@",
    "then": [{"match": {"method": "DELETE"}, "response": {"status": 200}}]}"#;

#[tokio::test]
async fn a_session_is_open_until_it_is_deleted() {
    let world = demo(SESSION).await;
    let url = url(&world);
    let host = url.host_str().unwrap();
    for open in 1..=2 {
        let mut stream = secure(&world, &[]).await.unwrap();
        let asked = request("POST", "/mcp", host, "", INITIALIZE);
        stream.write_all(asked.as_bytes()).await.unwrap();
        let (bytes, end) = rest(&mut stream).await;
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            end.is_none() && text.ends_with("\r\n\r\nquiet-notes"),
            "{text}"
        );
        assert_eq!(world.open_sessions(), open);
    }
    for (session, open) in [
        ("session-00000000", 1),
        ("another", 1),
        ("session-00000001", 0),
    ] {
        let mut stream = secure(&world, &[]).await.unwrap();
        let header = format!("mcp-session-id: {session}\r\n");
        let asked = request("DELETE", "/mcp", host, &header, "");
        stream.write_all(asked.as_bytes()).await.unwrap();
        rest(&mut stream).await;
        assert_eq!(world.open_sessions(), open, "{session}");
    }
    let seen = world.requests();
    let methods: Vec<&str> = seen.iter().map(|it| it.method.as_str()).collect();
    assert_eq!(methods, ["POST", "POST", "DELETE", "DELETE", "DELETE"]);
    assert_eq!(
        [&seen[0].name, &seen[0].path, &seen[0].rpc],
        ["com.example/quiet-notes", "/mcp", "initialize"]
    );
    assert!(seen.is_sorted_by_key(|it| it.at));
    assert!(
        seen[2]
            .headers
            .contains(&("mcp-session-id".to_owned(), "session-00000000".to_owned()))
    );
}

#[tokio::test]
async fn a_listed_template_keeps_its_placeholder_and_gets_its_host() {
    let world = demo(r#""response": {"url": "https://{tenant}.@@HOSTNAME@@/mcp"}"#).await;
    assert_eq!(
        world.targets()[0].url,
        "https://{tenant}.quiet-notes.demo.test/mcp"
    );
}

#[tokio::test]
async fn nothing_listens_once_a_world_is_dropped() {
    let world = world(r#"{"status": 200}"#).await;
    let port = url(&world).port().unwrap();
    let mut kept = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    drop(world);
    let end = timeout(Duration::from_secs(5), kept.read_u8()).await;
    assert!(end.unwrap().is_err());
    let again = TcpStream::connect(("127.0.0.1", port)).await;
    assert!(again.is_err());
}

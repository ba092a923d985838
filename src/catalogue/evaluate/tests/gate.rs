//! One rule of a gate broken, and where the way in is looked for.

use super::*;

#[test]
fn breaking_one_rule_of_a_gate_turns_the_checks_that_name_it() {
    let challenge = |value: &'static str| Break::Header("www-authenticate", value);
    let at = |how: &Break, want: &[&str]| breaks(gated, Leg::Initialize, how, want);
    at(
        &Break::NoHeader("www-authenticate"),
        &["auth.www-authenticate"],
    );
    at(&challenge("Bearer scope=\"x\""), &[]);
    at(
        &challenge(
            "Bearer resource_metadata=\"https://a.example/.well-known/oauth-protected-resource/mcp\"",
        ),
        &["auth.scope-param"],
    );
    at(
        &challenge("Bearer scope=\"x\", error=\"invalid_token\""),
        &["auth.no-error-without-creds"],
    );
    at(&Break::Status(403), &["auth.refusal-is-401"]);
    at(
        &challenge("Bearer scope=\"x\", resource_metadata=\"http://10.0.0.7/x\""),
        &["prm.fetch"],
    );
    let document = |how: &Break, want: &[&str]| breaks(gated, Leg::ResourceMetadata, how, want);
    document(&Break::Status(404), &["prm.fetch"]);
    document(&Break::Header("content-type", "text/html"), &["prm.fetch"]);
    document(
        &Break::Set("/resource", json!("https://a.example/")),
        &["prm.resource-match"],
    );
    document(&Break::Drop("/resource"), &["prm.resource-match"]);
    document(
        &Break::Set("/authorization_servers", json!([])),
        &["prm.authorization-servers"],
    );
    document(
        &Break::Set("/authorization_servers", json!(["http://10.0.0.7/"])),
        &["as.metadata"],
    );
    let issuer = |how: &Break, want: &[&str]| breaks(gated, Leg::IssuerMetadata, how, want);
    issuer(&Break::Status(404), &["as.metadata"]);
    issuer(
        &Break::Set("/issuer", json!("https://auth.example/t/")),
        &["as.issuer-match"],
    );
    issuer(
        &Break::Drop("/code_challenge_methods_supported"),
        &["as.pkce"],
    );
    issuer(
        &Break::Set("/code_challenge_methods_supported", json!(["plain"])),
        &["as.pkce"],
    );
    issuer(
        &Break::Set("/token_endpoint", json!("http://auth.example/t")),
        &["as.https"],
    );
    issuer(
        &Break::Drop("/client_id_metadata_document_supported"),
        &["as.cimd"],
    );
}

#[test]
fn a_gate_over_http_is_told() {
    let mut target = target();
    target.url = Url::parse("http://a.example/mcp").unwrap();
    let terms = terms(Profile::Census, BUDGET);
    let ask = inquiry::next(&target, &[], &terms);
    let Next::Ask(ask) = ask else { panic!() };
    let exchange = Exchange {
        reply: gated(&ask).reply(),
        ..exchange_of(&ask)
    };
    assert_eq!(broken(&[exchange]), BTreeSet::from(["tls.https"]));
}

#[test]
fn a_gate_is_held_to_the_revision_that_was_asked_for() {
    let asking = |version: &str| Terms {
        version: version.into(),
        ..terms(Profile::Compliance, BUDGET)
    };
    let offline = |ask: &Ask| match ask.leg {
        Leg::Initialize => {
            Says::bare(401).with("www-authenticate", "Bearer scope=\"offline_access\"")
        }
        _ => gated(ask),
    };
    assert_eq!(
        broken(&inquire(&asking("2026-07-28"), offline)),
        BTreeSet::from(["auth.no-offline-access", "as.iss-param"])
    );
    assert_eq!(
        broken(&inquire(&asking("2025-11-25"), offline)),
        BTreeSet::new()
    );
    assert_eq!(
        broken(&inquire(&asking("2025-06-18"), offline)),
        BTreeSet::from(["auth.resource-metadata-param"])
    );
    let good = |ask: &Ask| {
        let mut said = gated(ask);
        if let (Leg::IssuerMetadata, Some(message)) = (ask.leg, &mut said.message) {
            message["authorization_response_iss_parameter_supported"] = json!(true);
        }
        said
    };
    let good = statuses(&inquire(&asking("2026-07-28"), good));
    assert_eq!(good["as.iss-param"], "pass");
    assert_eq!(good["auth.no-offline-access"], "pass");
}

#[test]
fn the_way_in_is_looked_for_in_order_and_named() {
    const INSERTED: &str = "a.example/.well-known/oauth-protected-resource/mcp";
    const ROOT: &str = "a.example/.well-known/oauth-protected-resource";
    const SERVER: &str = "auth.example/.well-known/oauth-authorization-server/t";
    let looked = |challenge: Option<&str>, found: Option<&str>, issuer: bool| {
        let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
            Leg::ResourceMetadata if Some(ask.request.url.as_str()) != found => Says::bare(404),
            Leg::IssuerMetadata if !issuer => Says::bare(404),
            Leg::Initialize => {
                let said = Says::bare(401);
                match challenge {
                    Some(it) => said.with("www-authenticate", it),
                    None => said,
                }
            }
            _ => gated(ask),
        });
        let urls: Vec<String> = exchanges
            .iter()
            .skip(1)
            .map(|it| it.request.url.replace("https://", ""))
            .collect();
        (
            discovered(&exchanges).map_or("", Discovery::name),
            urls.join(" "),
        )
    };
    let named = "Basic realm=\"x\", Bearer resource_metadata=\"https://a.example/prm\"";
    assert_eq!(
        looked(Some(named), Some("https://a.example/prm"), true),
        ("oauth_full", format!("a.example/prm {SERVER}"))
    );
    assert_eq!(
        looked(Some(named), None, true),
        (
            "oauth_header_broken_prm",
            format!("a.example/prm {INSERTED} {ROOT}")
        )
    );
    assert_eq!(
        looked(Some("Bearer"), Some(METADATA), true),
        ("oauth_prm_wellknown_only", format!("{INSERTED} {SERVER}"))
    );
    assert_eq!(
        looked(Some("Bearer"), Some(METADATA), false),
        (
            "oauth_no_as_metadata",
            format!(
                "{INSERTED} {SERVER} auth.example/.well-known/openid-configuration/t auth.example/t/.well-known/openid-configuration"
            )
        )
    );
    assert_eq!(
        looked(Some("Basic realm=\"x\""), None, true).0,
        "www_auth_other"
    );
    assert_eq!(
        looked(None, None, true),
        ("bare_401", format!("{INSERTED} {ROOT}"))
    );
}

#[test]
fn what_a_stranger_points_to_is_not_asked_unless_it_is_public_and_https() {
    for metadata in [
        "http://b.example/x",
        "https://127.0.0.1/x",
        "https://10.1.2.3/x",
        "https://localhost/x",
        "https://u:p@b.example/x",
        "ftp://b.example/x",
    ] {
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
            Leg::Initialize => Says::bare(401).with("www-authenticate", &challenge),
            _ => Says::bare(404),
        });
        assert!(
            exchanges
                .iter()
                .all(|it| it.request.url.starts_with("https://a.example/")),
            "{metadata}"
        );
        assert_eq!(statuses(&exchanges)["prm.fetch"], "fail", "{metadata}");
    }
}

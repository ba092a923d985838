//! Which checks apply, what is asked for them, and how far the budget goes.

use super::*;

#[test]
fn a_check_is_applied_to_the_revision_that_was_negotiated() {
    let terms = terms(Profile::Compliance, BUDGET);
    let with = |version: &'static str, path: &'static str, value: Value| {
        let exchanges = inquire(&terms, |ask| {
            let mut said = older(version)(ask);
            if ask.leg == Leg::Initialize {
                Break::Set(path, value.clone()).apply(&mut said);
            }
            said
        });
        broken(&exchanges).into_iter().collect::<Vec<_>>()
    };
    let title = "/result/serverInfo/title";
    assert_eq!(with("2025-03-26", title, json!(1)), [""; 0]);
    assert_eq!(with("2025-06-18", title, json!(1)), ["init.optional-types"]);
    let completions = "/result/capabilities/completions";
    assert_eq!(with("2024-11-05", completions, json!(1)), [""; 0]);
    assert_eq!(
        with("2025-03-26", completions, json!(1)),
        ["init.capability-types"]
    );
    let tasks = "/result/capabilities/tasks";
    assert_eq!(with("2025-06-18", tasks, json!(1)), [""; 0]);
    assert_eq!(
        with("2025-11-25", tasks, json!(1)),
        ["init.capability-types"]
    );
    let none = statuses(&inquire(&terms, older("2024-11-05")));
    for check in [
        "init.content-type",
        "sess.ascii",
        "enc.utf8",
        "notif.202",
        "get.sse-or-405",
    ] {
        assert_eq!(none[check], "not_applicable:revision", "{check}");
    }
}

#[test]
fn what_was_not_seen_is_told_apart_from_what_does_not_apply() {
    let census = terms(Profile::Census, BUDGET);
    let asked = statuses(&inquire(&census, plain));
    assert_eq!(asked["ping.empty-result"], "not_observed:not_asked");
    assert_eq!(asked["disc.implemented"], "not_observed:not_asked");
    assert_eq!(asked["sse.priming"], "not_applicable:framing");
    assert_eq!(asked["delete.ok-or-405"], "pass");
    let behind = statuses(&inquire(&census, gated));
    assert_eq!(behind["env.jsonrpc"], "not_observed:gated");
    assert_eq!(behind["prm.fetch"], "not_observed:not_asked");
    let tight = statuses(&inquire(&terms(Profile::Compliance, 4), plain));
    assert_eq!(tight["notif.202"], "pass");
    assert_eq!(tight["ping.empty-result"], "not_observed:budget");
    let silent = |_: &Ask| Says {
        fault: Some(Fault::Deadline(Stage::FirstByte)),
        ..Says::bare(200)
    };
    let late = statuses(&inquire(&census, silent));
    assert!(
        late.values()
            .all(|it| it == "not_observed:timed_out" || it == "not_applicable:revision"),
        "{late:?}"
    );
    let page = |_: &Ask| Says {
        raw: Some(b"<!doctype html><title>x</title>".to_vec()),
        ..Says::bare(200)
    };
    let page = inquire(&census, page);
    assert_eq!(
        broken(&page),
        BTreeSet::new(),
        "a web page is no server to be held to this"
    );
}

#[test]
fn a_server_that_is_asked_to_discover_first_is_held_to_the_same() {
    let first = Terms {
        opening: inquiry::Opening::Discover,
        ..terms(Profile::Compliance, BUDGET)
    };
    let found = inquire(&first, modern);
    assert_eq!(
        legs(&found),
        "discover tools_list prompts_list resources_list tools_list_again"
    );
    assert_eq!(broken(&found), BTreeSet::new());
    // It may have a handshake too: nobody asked for one.
    for check in ["modern-only.status", "disc.no-session", "get.405-modern"] {
        assert_eq!(statuses(&found)[check], "not_observed:not_asked", "{check}");
    }
    let fallen_back = inquire(&first, plain);
    assert_eq!(
        legs(&fallen_back),
        "discover initialize initialized tools_list ping listen close"
    );
    assert_eq!(broken(&fallen_back), BTreeSet::new());
    assert_eq!(
        broken(&inquire(&first, gated)),
        BTreeSet::from(["as.iss-param"]),
        "2026-07-28 was asked for"
    );
}

#[test]
fn the_budget_holds_and_the_session_is_closed_last() {
    for budget in 0..12 {
        let exchanges = inquire(&terms(Profile::Compliance, budget), dual);
        assert!(exchanges.len() <= budget.max(2), "{}", legs(&exchanges));
        assert_eq!(exchanges.last().unwrap().leg, Leg::Close);
    }
    let whole = inquire(&terms(Profile::Compliance, 20), dual);
    assert_eq!(
        legs(&whole),
        "initialize initialized tools_list ping listen discover tools_list prompts_list resources_list tools_list_again \
         close"
    );
    for check in ["list.cache-fields", "caps.match", "tools.deterministic"] {
        assert_eq!(statuses(&whole)[check], "pass", "{check}");
    }
}

#[test]
fn pages_are_followed_as_far_as_the_budget_goes_and_in_no_circle() {
    // A page has the next one's number for its cursor; the fourth leads back.
    let paged = |ask: &Ask| {
        let mut said = plain(ask);
        if ask.leg == Leg::Tools {
            let body: Value = serde_json::from_str(&ask.request.body).unwrap();
            let here: u32 = body["params"]["cursor"]
                .as_str()
                .map_or(0, |it| it.parse().unwrap());
            let tool = json!({"name": format!("t{here}"), "inputSchema": {"type": "object"}});
            let next = if here < 3 { here + 1 } else { 1 };
            said.message = Some(result(
                id_of(ask),
                json!({"tools": [tool], "nextCursor": next.to_string()}),
            ));
        }
        said
    };
    let few = inquire(&terms(Profile::Compliance, 9), paged);
    assert_eq!(
        legs(&few),
        "initialize initialized tools_list ping listen discover tools_list tools_list close"
    );
    let detail = |exchanges: &[Exchange]| {
        let told = evaluate(&target(), exchanges);
        let found = told
            .iter()
            .find(|it| it.check == CheckId::ToolsListWorks)
            .unwrap();
        (found.status, found.detail.clone())
    };
    assert_eq!(
        detail(&few),
        (Status::Pass, "3 tools, and more pages".to_owned())
    );
    let all = inquire(&terms(Profile::Compliance, 30), paged);
    assert_eq!(all.iter().filter(|it| it.leg == Leg::Tools).count(), 4);
    let ids: BTreeSet<i64> = all
        .iter()
        .filter_map(|it| crate::catalogue::heard::id_of(&it.request))
        .collect();
    let asked = all.iter().filter(|it| it.request.body.contains("\"id\""));
    assert_eq!(ids.len(), asked.count(), "no id is used twice in a session");
}

#[test]
fn what_is_wrong_on_purpose_is_asked_of_ones_own_servers_alone() {
    let asking = |host: &str, budget: usize| Terms {
        own: Some(crate::catalogue::Own {
            nets: Vec::new(),
            hosts: vec![host.into()],
        }),
        ..terms(Profile::Compliance, budget)
    };
    let odd = |exchanges: &[Exchange]| {
        let odd = exchanges.iter().filter(|it| it.leg == Leg::Intrusive);
        odd.count()
    };
    let mine = inquire(&asking("a.example", 40), plain);
    assert_eq!(odd(&mine), 8, "{}", legs(&mine));
    assert!(legs(&mine).ends_with("close intrusive"), "{}", legs(&mine));
    assert_eq!(odd(&inquire(&asking("b.example", 40), plain)), 0);
    assert_eq!(odd(&inquire(&terms(Profile::Compliance, 40), plain)), 0);
    // A redirect to somebody else's server takes nothing odd along.
    let moved = inquire(&asking("a.example", 40), |ask| {
        if ask.request.url == HERE {
            Says::bare(307).with("location", "https://b.example/mcp")
        } else {
            plain(ask)
        }
    });
    assert!(moved.len() > 4, "{}", legs(&moved));
    assert_eq!(odd(&moved), 0, "{}", legs(&moved));
    // The budget holds for them too, and what it left out is told as such.
    let few = inquire(&asking("a.example", 10), plain);
    assert_eq!((few.len(), odd(&few)), (10, 3), "{}", legs(&few));
    assert_eq!(statuses(&few)["neg.terminated-404"], "not_observed:budget");
}

#[test]
fn a_server_that_has_enough_is_left_alone() {
    let busy = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
        Leg::Tools => Says::bare(429),
        _ => plain(ask),
    });
    assert_eq!(legs(&busy), "initialize initialized tools_list close");
    let silent = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
        Leg::Initialized => Says {
            fault: Some(Fault::Deadline(Stage::FirstByte)),
            ..Says::bare(200)
        },
        _ => plain(ask),
    });
    assert_eq!(legs(&silent), "initialize initialized close");
    assert!(plan::next(&busy, &terms(Profile::Compliance, 99), 99).is_none());
}

#[test]
fn the_session_of_the_handshake_is_the_one_that_counts() {
    let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| {
        let minted = "7d0d6f2e-0000-4000-8000-0f4a3f6f6f02";
        let closes_minted = ask.request.headers.iter().any(|(_, value)| value == minted);
        match ask.leg {
            Leg::Discover => plain(ask).with("mcp-session-id", minted),
            Leg::Close if closes_minted => Says::bare(404),
            _ => plain(ask),
        }
    });
    assert!(legs(&exchanges).ends_with("discover close close"));
    assert_eq!(statuses(&exchanges)["delete.ok-or-405"], "pass");
}

#[test]
fn the_older_transport_is_held_to_its_own_rule_whatever_is_negotiated_over_it() {
    let exchanges = inquire(&terms(Profile::Census, BUDGET), |ask| {
        let mut said = older_transport(ask);
        if let Some(message) = &mut said.message {
            message["result"]["protocolVersion"] = json!("2025-11-25");
        }
        said
    });
    let told = statuses(&exchanges);
    assert_eq!(told["sse24.endpoint-first"], "pass");
    assert_eq!(told["notif.202"], "not_observed:not_asked");
}

#[test]
fn a_document_cannot_send_the_delete_elsewhere() {
    let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| {
        gated(ask).with(
            "mcp-session-id",
            if ask.leg.is_document() { "evil" } else { "" },
        )
    });
    assert!(exchanges.iter().all(|it| it.leg != Leg::Close));
}

/// How many checks are told of where a leg was answered with this, and how many there are to tell of.
fn told_and_known(status: u16, body: &str, leg: Leg, media: &str) -> (usize, usize) {
    let exchange = |leg: Leg| Exchange {
        reply: Says {
            raw: Some(body.as_bytes().to_vec()),
            ..Says::bare(status).with("content-type", media)
        }
        .reply(),
        ..exchange_of(&Ask {
            attempt: 0,
            leg,
            wait_ms: 0,
            half_time: false,
            version: String::new(),
            request: Identity { contact: None }.discover(&Url::parse(HERE).unwrap(), "2026-07-28"),
        })
    };
    let exchanges = [exchange(Leg::Initialize), exchange(leg)];
    let told = evaluate(&target(), &exchanges).len();
    let _ = plan::next(&exchanges, &terms(Profile::Compliance, BUDGET), BUDGET);
    let is_own = leg == Leg::Intrusive;
    let known = rules().filter(|it| is_own || !it.is_intrusive()).count();
    (told, known)
}

#[test]
fn an_answer_that_is_no_jsonrpc_to_what_was_wrong_on_purpose_is_told_of() {
    let body = r#"{"jsonrpc":"2A0","id":7300,"result":{}}"#;
    let (told, known) = told_and_known(100, body, Leg::Intrusive, "application/json");
    assert_eq!(told, known);
}

proptest::proptest! {
    #[test]
    fn any_answers_are_told_of(
        status in 100u16..600,
        body in "(\\{\"jsonrpc\":\"2.0\",\"id\":73[0-9]{2},\"result\":\\{(\"tools\":\\[[0-9]?\\])?\\}\\}|[ -~]{0,40})",
        leg in 0usize..Leg::ALL.len(),
        media in "(application/json|text/event-stream|)",
    ) {
        let (told, known) = told_and_known(status, &body, Leg::ALL[leg], &media);
        proptest::prop_assert_eq!(told, known);
    }
}

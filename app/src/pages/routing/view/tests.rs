use switchyard_api::{
    BreakerState, CredentialState, ModelLatency, QuotaUse, RouteInfo, RouteTarget, TargetState, Targets, Timestamp,
};

fn place(name: &str) -> RouteTarget {
    RouteTarget {
        name: name.to_owned(),
        is_route: false,
        weight: None,
        model: None,
    }
}

fn target(name: &str) -> TargetState {
    TargetState {
        target: name.to_owned(),
        provider: name.to_owned(),
        simulated: false,
        state: "ready".to_owned(),
        reason: None,
        until: None,
        models: vec![],
        breaker: Some(BreakerState {
            state: "closed".to_owned(),
            failures: 2,
            failure_threshold: 5,
            until: None,
        }),
        parked_until: None,
        in_flight: 3,
        max_concurrency: Some(10),
        queued: 0,
        queue_size: Some(20),
        latency: vec![ModelLatency {
            model: "gpt-4o".to_owned(),
            p50_ms: 311.6,
            samples: 40,
        }],
        success_rate: Some(0.985),
        quota: vec![QuotaUse {
            limit: "rpm".to_owned(),
            most: 60,
            used: 40,
        }],
        credentials: vec![
            CredentialState {
                id: "main".to_owned(),
                weight: 1.0,
                state: "ready".to_owned(),
                reason: None,
                until: None,
            },
            CredentialState {
                id: "spare".to_owned(),
                weight: 0.5,
                state: "benched".to_owned(),
                reason: Some("refused with 401".to_owned()),
                until: Some(Timestamp(1_796_008_507_912)),
            },
        ],
        calls: 1_204,
        share: Some(0.6),
    }
}

/// Two targets, a default route over both and a named one.
pub fn targets() -> Targets {
    let cheap = RouteInfo {
        name: "cheap".to_owned(),
        strategy: "conditional".to_owned(),
        family: "named".to_owned(),
        model: Some("gpt-4o-mini".to_owned()),
        targets: vec![
            RouteTarget {
                weight: Some(2.5),
                model: Some("gpt-4o-mini".to_owned()),
                ..place("openai")
            },
            RouteTarget {
                is_route: true,
                ..place("default")
            },
        ],
        details: vec!["Calls with tools go to openai".to_owned()],
    };
    let default = RouteInfo {
        name: "default".to_owned(),
        strategy: "fallback".to_owned(),
        family: "pool".to_owned(),
        model: None,
        targets: vec![place("openai"), place("anthropic")],
        details: vec![],
    };
    Targets {
        as_of: Timestamp(1_796_008_447_912),
        window_s: 300,
        routes: vec![default, cheap],
        data: vec![target("openai"), target("anthropic")],
    }
}

#[cfg(feature = "ssr")]
mod rendered {
    use super::*;
    use crate::{
        api::ExplainCall,
        pages::routing::{result, view::live},
        testing::html,
    };
    use switchyard_api::{ApiError, ErrorBody, Explained, Verdict, WouldFail};

    #[track_caller]
    fn has(html: &str, parts: &[&str]) {
        for part in parts {
            assert!(html.contains(part), "{part} is not in {html}");
        }
        assert!(!html.contains("style="), "{html}");
    }

    #[test]
    fn every_number_of_a_target_has_its_unit_and_what_it_is_a_part_of() {
        has(
            &html(live(Ok((targets(), None)))),
            &[
                "<p>All 2 targets are ready.</p>",
                "calls of the last 5 min · as of 03:14:07 UTC",
                "<th scope=\"row\">openai<small>any model</small></th>",
                "<span class=\"state ok\">ready</span>",
                "<div>2 of 5 failures</div>",
                "<div>3 of 10</div><div>0 of 20 queued</div>",
                "<div>gpt-4o 312 ms (40 calls)</div>",
                "<div>98.5 %</div>",
                "<div>1,204</div><div>60.0 % of all</div>",
                "40 of 60 requests a minute",
                "<div>1 of 2 ready</div><div>spare benched: refused with 401, until 03:15:07 UTC, in 1 min</div>",
            ],
        );
    }

    #[test]
    fn what_is_out_says_why_and_until_when_in_both_places() {
        let mut out = targets();
        let until = Some(Timestamp(out.as_of.0 + 24_000));
        let openai = &mut out.data[0];
        openai.state = "open".to_owned();
        openai.reason = Some("5 failures in a row".to_owned());
        openai.until = until;
        openai.breaker = Some(BreakerState {
            state: "open".to_owned(),
            failures: 5,
            failure_threshold: 5,
            until,
        });
        openai.success_rate = None;
        has(
            &html(live(Ok((out, Some(ApiError::new(504, "timeout", "It was late.")))))),
            &[
                "These are the last figures that came; the refresh failed.",
                "<span class=\"state bad\">breaker open</span>",
                "<div>5 failures in a row</div><div>until 03:14:31 UTC, in 24 s</div>",
                "<td class=\"\"><div>open</div></td>",
                "<div>–</div>",
                "<span class=\"state bad\">openai</span> <span class=\"dim\">breaker open</span>",
            ],
        );
    }

    #[test]
    fn routes_say_their_family_their_places_and_their_rules() {
        has(
            &html(live(Ok((targets(), None)))),
            &[
                "<h3>cheap <span class=\"tag\">conditional</span></h3>",
                "A failure may move on to any of its targets.",
                "A failure stays inside what a rule names. Called as route/cheap, it means gpt-4o-mini.",
                "weight 2.5, asked for gpt-4o-mini",
                ">route default</span>",
                "<li>Calls with tools go to openai</li>",
            ],
        );
    }

    #[test]
    fn a_gateway_without_targets_says_so() {
        let none = Targets {
            data: vec![],
            ..targets()
        };
        has(
            &html(live(Ok((none, None)))),
            &["No target is configured", "No targets yet"],
        );
        let late = ApiError::new(504, "timeout", "It was late.");
        has(
            &html(live(Err(late))),
            &["The state of the targets did not load. ", "<h1>Routing</h1>"],
        );
    }

    fn verdict(target: &str, state: &str, reason: &str) -> Verdict {
        Verdict {
            target: target.to_owned(),
            state: state.to_owned(),
            reason: reason.to_owned(),
            until: None,
        }
    }

    fn dry_run(order: &[&str], error: Option<WouldFail>) -> String {
        let explained = Explained {
            model: "gpt-4o".to_owned(),
            route: "cheap".to_owned(),
            route_by: "key".to_owned(),
            strategy: "fallback".to_owned(),
            variant: Some("b".to_owned()),
            order: order.iter().map(|target| (*target).to_owned()).collect(),
            upstream_models: order.iter().map(|target| format!("{target}-4o")).collect(),
            verdicts: vec![
                Verdict {
                    until: Some(Timestamp(1_796_008_471_912)),
                    ..verdict("groq", "excluded", "parked by a 429")
                },
                verdict("anthropic", "not_needed", ""),
                verdict("openai", "chosen", ""),
            ],
            error,
        };
        let call = ExplainCall {
            model: "smart".to_owned(),
            ..ExplainCall::default()
        };
        html(result::view(&call, Ok(Some((Timestamp(1_796_008_447_912), explained)))))
    }

    #[test]
    fn a_dry_run_draws_the_order_and_says_why_the_others_are_not_in_it() {
        let html = dry_run(&["openai", "anthropic"], None);
        has(
            &html,
            &[
                "openai would be called; behind it stands anthropic.",
                "as of 03:14:07 UTC",
                "<dd>cheap, set on the key</dd>",
                "<dt>Variant</dt><dd>b</dd>",
                "<dd>gpt-4o, asked for as smart</dd>",
                "<span class=\"tag\">1</span>",
                "called first, asked for openai-4o",
                "called if those before it fail, asked for anthropic-4o",
                "left out: parked by a 429, until 03:14:31 UTC",
            ],
        );
        let at = |text: &str| html.find(text).unwrap();
        assert!(at("called first") < at("called if") && at("called if") < at("left out"));
        assert!(!html.contains("class=\"scale\""), "nothing was timed: {html}");
    }

    #[test]
    fn a_call_that_would_fail_says_what_the_caller_would_be_told() {
        let error = ErrorBody {
            message: "no target for model <gpt-4o>".to_owned(),
            kind: "api_error".to_owned(),
            code: "no_target".to_owned(),
            param: Some("model".to_owned()),
        };
        has(
            &dry_run(&[], Some(WouldFail { status: 503, error })),
            &[
                "No target would be called.",
                "<code>503 no_target</code>",
                "no target for model &lt;gpt-4o&gt; (field model)",
                "left out: parked by a 429",
            ],
        );
    }
}

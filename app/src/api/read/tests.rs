use super::*;
use crate::pages::{request::view::tests::detail, routing::view::tests::targets};
use serde::Serialize;
use std::fmt::Debug;

/// What serde writes is what is read.
#[track_caller]
fn holds<T: Read + Serialize + PartialEq + Debug>(written: &T) {
    let text = serde_json::to_string(written).unwrap();
    assert_eq!(read::<T>(&text).as_ref(), Ok(written), "{text}");
}

fn summary(sampled: u64) -> Summary {
    Summary {
        requests: 7,
        failed: 1,
        prompt_tokens: 640,
        completion_tokens: 288,
        first_token_p50_ms: Some(312.5),
        overhead_p99_ms: None,
        sampled,
    }
}

fn dashboard() -> Dashboard {
    Dashboard {
        providers: ProviderCounts { total: 3, available: 2 },
        keys: KeyCounts {
            total: 5,
            active: 4,
            expired: 1,
            total_usage: 9_007_199_254_740_993,
        },
        request_logs: LogCounts {
            enabled: true,
            total: 41,
        },
        traffic: Traffic {
            range: Range::Days7,
            as_of: Timestamp(1_796_008_447_912),
            bucket_minutes: 180,
            points: vec![TrafficPoint {
                start: Timestamp(0),
                answered: 6,
                failed: 1,
                prompt_tokens: 640,
                completion_tokens: 288,
            }],
            now: summary(7),
            before: summary(0),
        },
        finding: "All \"is\" well.\n".to_owned(),
    }
}

fn key(state: KeyState, scopes: Vec<Scope>) -> Key {
    Key {
        id: "k1".to_owned(),
        name: "web-app".to_owned(),
        key: "sy_7Qd4…f0aP".to_owned(),
        scopes,
        created_at: Timestamp(1),
        expires_at: Some(Timestamp(2)),
        revoked_at: None,
        last_used_at: None,
        active: true,
        state,
        usage_count: 3,
        project: Some("storefront".to_owned()),
        route: None,
    }
}

fn me() -> Me {
    Me {
        subject: "first key".to_owned(),
        credential_id: "k1".to_owned(),
        scopes: vec![Scope::Admin],
        expires_at: None,
        gateway: Gateway {
            version: "0.1.0".to_owned(),
            environment: Some("production".to_owned()),
            simulated: true,
            store: StoreState {
                backend: "SQLite".to_owned(),
                degraded: None,
                queued: 1,
                spooled: 2,
                shed: 3,
            },
        },
    }
}

#[test]
fn what_the_server_writes_is_read_as_it_was() {
    holds(&detail());
    holds(&LogPage {
        data: vec![detail().row],
        summary: LogSummary {
            total_entries: 1,
            capped: false,
        },
        next: Some(40),
    });
    holds(&dashboard());
    holds(
        &[
            key(KeyState::Live, vec![Scope::Invoke, Scope::ReadOnly]),
            key(KeyState::Expired, vec![]),
            key(KeyState::Revoked, vec![Scope::Admin]),
        ]
        .to_vec(),
    );
    holds(&me());
    holds(&targets());
    holds(&ModelList {
        object: "list".to_owned(),
        data: vec![Model {
            id: "smart".to_owned(),
            object: "model".to_owned(),
            created: -1,
            owned_by: "openai".to_owned(),
        }],
    });
    for range in Range::ALL {
        holds(&range);
    }
}

#[test]
fn a_dry_run_is_read_with_its_error_beside_the_status() {
    let error = ErrorBody {
        message: "no target is left".to_owned(),
        kind: "api_error".to_owned(),
        code: "no_target".to_owned(),
        param: None,
    };
    holds(&Explained {
        model: "smart".to_owned(),
        route: "default".to_owned(),
        route_by: "default".to_owned(),
        strategy: "fallback".to_owned(),
        variant: Some("b".to_owned()),
        order: vec!["openai".to_owned()],
        upstream_models: vec!["gpt-4o".to_owned()],
        verdicts: detail().verdicts,
        error: Some(WouldFail { status: 503, error }),
    });
}

#[test]
fn a_refusal_is_read_in_each_dialects_shape() {
    let told = |body: &str| {
        let fault = refusal(429, body);
        format!("{} {} {}", fault.status, fault.code, fault.message)
    };
    for (body, want) in [
        (
            r#"{"error":{"message":"too fast","type":"rate_limit_error","code":"rate_limit_exceeded","param":null}}"#,
            "429 rate_limit_exceeded too fast",
        ),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"too fast"}}"#,
            "429 rate_limit_error too fast",
        ),
        (
            r#"{"error":{"code":429,"message":"too fast","status":"RESOURCE_EXHAUSTED"}}"#,
            "429 RESOURCE_EXHAUSTED too fast",
        ),
        (r#"{"error":"too fast"}"#, "429 unknown too fast"),
        ("<html>", "429 unknown The gateway answered 429 and did not say why."),
        ("7", "429 unknown The gateway answered 429 and did not say why."),
    ] {
        assert_eq!(told(body), want);
    }
}

#[test]
fn answers_travel_with_their_moment_or_their_fault() {
    holds::<Result<(Timestamp, Vec<Key>), ApiError>>(&Ok((Timestamp(5), vec![])));
    holds::<Result<Option<Key>, ApiError>>(&Ok(None));
    holds::<Result<Vec<String>, ApiError>>(&Err(ApiError::new(504, "timeout", "late")));
}

#[test]
fn what_cannot_be_read_names_the_field() {
    let fault = |text: &str| read::<LogPage>(text).unwrap_err().message;
    let nested = r#"{"data": [{"id": "41"}], "summary": {"total_entries": 1, "capped": false}}"#;
    assert!(fault(nested).contains("(id)"), "{}", fault(nested));
    assert!(fault(r#"{"data": []}"#).contains("(total_entries)"));
    assert!(fault("<html>").contains("(not JSON)"));
    assert!(
        read::<Vec<String>>("7")
            .unwrap_err()
            .message
            .contains("(the whole of it)")
    );
}

//! What is written once for many requests, and when keys were used: whoever reads must not be able to tell.

use crate::support::{Place, T0, attempt, note, record, verdict};
use sqlx::{Connection, Executor, Row};
use std::time::Duration;
use switchyard_core::usage::Usage;
use switchyard_engine::{
    ports::Records,
    record::{AttemptRecord, Fate, Outcome, RequestRecord, VerdictState, Verdicts},
};
use switchyard_store::{KeyFilter, LogFilter, OutcomeFilter, Page, Store, Writer};

/// The `n`th of requests that take turns in seven courses, with numbers of its own.
fn in_turn(n: i64) -> RequestRecord {
    let own = n.unsigned_abs();
    let times = |attempt: AttemptRecord, nth: u64| AttemptRecord {
        started_us: own + nth,
        latency_us: own * 1000 + nth,
        first_token_us: own.is_multiple_of(2).then_some(own * 10),
        ..attempt
    };
    let plain = RequestRecord {
        usage: Usage {
            cached: own.is_multiple_of(3).then_some(own),
            cache_write: own.is_multiple_of(4).then_some(own + 1),
            audio_prompt: own.is_multiple_of(5).then_some(own + 2),
            audio_completion: own.is_multiple_of(7).then_some(own + 3),
            ..record(n).usage
        },
        duration_us: own * 1000,
        first_token_us: own.is_multiple_of(2).then_some(own * 100),
        overhead_us: own,
        key_id: (n % 4 != 0).then(|| format!("key-{}", n % 4).into()),
        attempts: vec![times(attempt("openai-1", "success"), 0)],
        ..record(n)
    };
    match n % 7 {
        0 => plain,
        1 => RequestRecord { stream: true, ..plain },
        // Nothing of it is known.
        2 => RequestRecord {
            upstream_model: None,
            provider: None,
            target: None,
            route: "".into(),
            status: 429,
            outcome: Outcome::Rejected,
            error_code: Some("rate_limited".to_owned()),
            error_message: Some("too many requests".to_owned()),
            usage: Usage::default(),
            attempts: Vec::new(),
            verdicts: Verdicts::from_iter([verdict("openai-1", VerdictState::Excluded, "parked \"for\" a while")]),
            ..plain
        },
        // It failed once, then it went on elsewhere.
        3 => RequestRecord {
            target: Some("backup".into()),
            variant: Some("B".to_owned()),
            simulated: true,
            usage: Usage {
                estimated: true,
                ..plain.usage
            },
            attempts: vec![
                AttemptRecord {
                    status: None,
                    error: Some("refused".to_owned()),
                    ..times(attempt("openai-1", "connect"), 0)
                },
                times(attempt("backup", "success"), 1),
            ],
            verdicts: Verdicts::from_iter([
                verdict("openai-1", VerdictState::Failed, "connection refused"),
                verdict("backup", VerdictState::Chosen, "next in order"),
            ]),
            ..plain
        },
        // As the first, but translated.
        4 => RequestRecord {
            notes: vec![
                note(Fate::Dropped, "logit_bias", "no such parameter there"),
                note(Fate::Kept, "temperature", ""),
            ],
            ..plain
        },
        // And with other notes.
        5 => RequestRecord {
            notes: vec![note(Fate::Dropped, "logit_bias", "\"so\"")],
            ..plain
        },
        // All but a verdict is as in the first.
        _ => RequestRecord {
            verdicts: Verdicts::from_iter([verdict("openai-1", VerdictState::Chosen, "the only one")]),
            ..plain
        },
    }
}

async fn assert_all_there(store: &Store, wanted: &[RequestRecord]) {
    for wanted in wanted {
        let found = store.log(&wanted.request_id).await.unwrap().unwrap();
        assert_eq!(found.record, *wanted);
        assert_eq!(found.attempts_count as usize, wanted.attempts.len());
    }
    let listed = store
        .logs(&LogFilter::default(), &Page::first(10_000))
        .await
        .unwrap()
        .rows;
    assert_eq!(listed.len(), wanted.len());
    for (listed, wanted) in listed.iter().rev().zip(wanted) {
        let wanted = RequestRecord {
            attempts: Vec::new(),
            verdicts: Verdicts::default(),
            notes: Vec::new(),
            ..wanted.clone()
        };
        assert_eq!(listed.record, wanted, "lists are without attempts, verdicts and notes");
    }
}

async fn count(place: &Place, what: &'static str) -> i64 {
    let mut stranger = place.stranger().await;
    let counted = sqlx::query(what).fetch_one(&mut stranger).await.unwrap().get(0);
    stranger.close().await.unwrap();
    counted
}

const COURSES: &str = "select count(*) from courses";
const SHORT_ROWS: &str = "select count(*) from requests where course is not null";
const ATTEMPTS: &str = "select count(*) from attempts";

#[tokio::test]
async fn requests_that_share_a_course_come_back_as_they_went_in() {
    let place = Place::new();
    let wanted: Vec<_> = (0..40).map(in_turn).collect();
    let store = place.with(wanted.clone()).await;
    assert_all_there(&store, &wanted).await;
    assert_eq!(count(&place, COURSES).await, 7);
    // The first of each course stands alone, with its attempts beside it: one, one, none, two, one, one, one.
    assert_eq!(count(&place, SHORT_ROWS).await, 33);
    assert_eq!(count(&place, ATTEMPTS).await, 7);
}

#[tokio::test]
async fn a_course_is_found_again_after_a_restart() {
    let place = Place::new();
    let wanted: Vec<_> = (0..60).map(in_turn).collect();
    for part in wanted.chunks(20) {
        place.with(part.to_vec()).await.close().await;
    }
    assert_all_there(&place.open().await, &wanted).await;
    assert_eq!(count(&place, COURSES).await, 7);
    assert_eq!(count(&place, SHORT_ROWS).await, 39);
}

#[tokio::test]
async fn what_is_like_no_other_makes_no_course() {
    let place = Place::new();
    let wanted: Vec<_> = (0..30)
        .map(|n| match n % 4 {
            0 => RequestRecord {
                error_message: Some(format!("no such model: {n}")),
                ..record(n)
            },
            1 => RequestRecord {
                attempts: vec![AttemptRecord {
                    error: Some(format!("connection {n} was closed")),
                    ..attempt("openai-1", "cut")
                }],
                ..record(n)
            },
            2 => RequestRecord {
                notes: vec![note(Fate::Dropped, &format!("messages[{n}].name"), "no names there")],
                ..record(n)
            },
            _ => RequestRecord {
                verdicts: Verdicts::from_iter([verdict("openai-1", VerdictState::Chosen, &format!("in place {n}"))]),
                ..record(n)
            },
        })
        .collect();
    let store = place.with(wanted.clone()).await;
    assert_all_there(&store, &wanted).await;
    assert_eq!(count(&place, COURSES).await, 0);
}

/// A course that went with its transaction is not named by rows that come later.
#[tokio::test]
async fn a_transaction_that_is_taken_back_leaves_no_course_behind() {
    let place = Place::new();
    let store = place.open().await;
    let refuse = "create trigger refuse before insert on traffic_minutes begin select raise(abort, 'not now'); end";
    place.stranger().await.execute(refuse).await.unwrap();
    let writer = Writer::start(store.clone(), place.config());
    let wanted: Vec<_> = (0..40).map(in_turn).collect();
    wanted.iter().take(20).for_each(|record| writer.push(record.clone()));
    writer.flushed().await;
    assert_eq!(writer.stats().spooled, 20);
    assert_eq!(count(&place, COURSES).await, 0);

    place.stranger().await.execute("drop trigger refuse").await.unwrap();
    // By itself it tries again after a while; drained is when the spool is empty.
    tokio::time::timeout(Duration::from_secs(20), writer.drained())
        .await
        .unwrap();
    wanted.iter().skip(20).for_each(|record| writer.push(record.clone()));
    writer.drained().await;
    assert_all_there(&store, &wanted).await;
    assert_eq!(count(&place, COURSES).await, 7);
}

/// A key's requests, page by page, are those that a search through everything finds.
#[tokio::test]
async fn a_keys_requests_are_listed_whole_and_in_order() {
    let place = Place::new();
    // Some in the same instant, some long after; some that took long enough to be written in another minute.
    let at = |n: i64| T0 + n / 7 * 90 + n / 50 * 40_000;
    let records = (0..600_i64).map(|n| RequestRecord {
        arrived_at_ms: at(n),
        duration_us: if n % 31 == 0 { 70_000_000 } else { 1000 },
        ..in_turn(n * n % 211 + n)
    });
    let records: Vec<_> = records
        .zip(0..)
        .map(|(record, n)| RequestRecord {
            request_id: format!("{n:032x}").into(),
            ..record
        })
        .collect();
    let store = place.with(records.clone()).await;
    let everything = store
        .logs(&LogFilter::default(), &Page::first(1000))
        .await
        .unwrap()
        .rows;
    assert_eq!(everything.len(), records.len());

    let keys = [None, Some("key-1"), Some("key-2"), Some("key-3"), Some("nobody")];
    let spans = [
        (None, None),
        (Some(at(100)), None),
        (None, Some(at(300) + 1)),
        (Some(at(49)), Some(at(410))),
    ];
    for key in keys {
        for (since_ms, until_ms) in spans {
            for outcome in [
                None,
                Some(OutcomeFilter::Failed),
                Some(OutcomeFilter::Is(Outcome::Success)),
            ] {
                let filter = LogFilter {
                    key: Some(key.map_or(KeyFilter::None, |key| KeyFilter::Id(key.to_owned()))),
                    since_ms,
                    until_ms,
                    outcome,
                    ..LogFilter::default()
                };
                let is_wanted = |record: &RequestRecord| {
                    record.key_id.as_deref() == key
                        && since_ms.is_none_or(|since| record.arrived_at_ms >= since)
                        && until_ms.is_none_or(|until| record.arrived_at_ms < until)
                        && match outcome {
                            None => true,
                            Some(OutcomeFilter::Failed) => record.outcome != Outcome::Success,
                            Some(OutcomeFilter::Is(outcome)) => record.outcome == outcome,
                        }
                };
                let wanted: Vec<_> = everything
                    .iter()
                    .filter(|row| is_wanted(&row.record))
                    .map(|row| row.id)
                    .collect();
                assert_eq!(pages(&store, &filter).await, wanted, "{filter:?}");
                let skipped = store
                    .logs(
                        &filter,
                        &Page {
                            offset: 3,
                            ..Page::first(5)
                        },
                    )
                    .await
                    .unwrap()
                    .rows;
                let skipped: Vec<_> = skipped.iter().map(|row| row.id).collect();
                assert_eq!(
                    skipped,
                    wanted.iter().copied().skip(3).take(5).collect::<Vec<_>>(),
                    "{filter:?}"
                );
                assert_eq!(
                    store.count_logs(&filter, 1000).await.unwrap(),
                    (wanted.len() as u64, false)
                );
            }
        }
    }
}

async fn pages(store: &Store, filter: &LogFilter) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut page = Page::first(7);
    loop {
        let rows = store.logs(filter, &page).await.unwrap();
        ids.extend(rows.rows.iter().map(|row| row.id));
        page.before = rows.next_before;
        if page.before.is_none() {
            return ids;
        }
    }
}

use crate::support::{Place, T0, attempt, note, record, verdict};
use switchyard_core::usage::Usage;
use switchyard_engine::{
    ports::Records,
    record::{AttemptRecord, Fate, Outcome, RequestRecord, Verdict, VerdictState, Verdicts},
};
use switchyard_store::{LatencySample, LogFilter, MinuteRow, Page, StoredRequest, Writer};

/// Every column has a value of its own.
fn full() -> RequestRecord {
    RequestRecord {
        stream: true,
        route: "fast".into(),
        variant: Some("B: cheaper".to_owned()),
        status: 502,
        outcome: Outcome::Partial,
        error_code: Some("upstream_cut".to_owned()),
        error_message: Some("the upstream closed its connection; \"quoted\" 'text' ✂".to_owned()),
        usage: Usage {
            prompt: Some(1),
            completion: Some(2),
            total: Some(3),
            cached: Some(4),
            reasoning: Some(5),
            cache_write: Some(6),
            audio_prompt: Some(7),
            audio_completion: Some(8),
            estimated: true,
        },
        first_token_us: Some(6),
        simulated: true,
        attempts: vec![
            AttemptRecord {
                status: None,
                first_token_us: None,
                error: Some("refused".to_owned()),
                ..attempt("b", "connect")
            },
            attempt("a", "cut"),
        ],
        verdicts: Verdicts::from_iter([
            verdict("b", VerdictState::Failed, "connection refused"),
            verdict("a", VerdictState::Chosen, "next in order"),
            Verdict {
                until_ms: Some(T0),
                ..verdict("c", VerdictState::Excluded, "parked")
            },
            verdict("d", VerdictState::NotNeeded, "third in order"),
        ]),
        notes: vec![
            note(Fate::Approximated, "stop[4]", "only four are taken there; \"quoted\""),
            note(Fate::Kept, "top_p", ""),
        ],
        ..record(1)
    }
}

/// Every column that can be empty is.
fn sparse() -> RequestRecord {
    RequestRecord {
        upstream_model: None,
        provider: None,
        target: None,
        route: "".into(),
        usage: Usage::default(),
        key_id: None,
        key_name: None,
        attempts: Vec::new(),
        verdicts: Verdicts::default(),
        ..record(2)
    }
}

#[tokio::test]
async fn a_record_comes_back_as_it_went_in() {
    let place = Place::new();
    let store = place.with([full(), sparse()]).await;
    for wanted in [full(), sparse()] {
        let found = store.log(&wanted.request_id).await.unwrap().unwrap();
        assert_eq!(found.record, wanted);
        assert_eq!(found.attempts_count as usize, wanted.attempts.len());
        assert!(found.id < 1 << 53);
        assert_eq!(store.log(&found.id.to_string()).await.unwrap(), Some(found));
    }
    let listed = store
        .logs(&LogFilter::default(), &Page::first(1))
        .await
        .unwrap()
        .rows
        .remove(0);
    assert_eq!(listed.record, sparse());
    let wanted = RequestRecord {
        attempts: Vec::new(),
        verdicts: Verdicts::default(),
        notes: Vec::new(),
        ..full()
    };
    let page = Page {
        offset: 1,
        ..Page::first(1)
    };
    let listed = store.logs(&LogFilter::default(), &page).await.unwrap().rows.remove(0);
    assert_eq!(listed.record, wanted, "lists are without attempts and verdicts");
    assert_eq!(store.log("4711").await.unwrap(), None);
    assert_eq!(store.log("no such request").await.unwrap(), None);
}

#[tokio::test]
async fn counters_beyond_what_sql_holds_stop_at_the_limit() {
    let place = Place::new();
    let usage = Usage {
        prompt: Some(u64::MAX),
        ..Usage::default()
    };
    let store = place.with([RequestRecord { usage, ..record(1) }]).await;
    let found = store.log(&record(1).request_id).await.unwrap().unwrap();
    assert_eq!(found.record.usage.prompt, Some(i64::MAX as u64));
}

#[tokio::test]
async fn of_two_requests_with_one_id_the_newest_is_found() {
    let place = Place::new();
    let second = RequestRecord {
        request_id: record(1).request_id,
        ..record(2)
    };
    let store = place.with([record(1), second.clone()]).await;
    assert_eq!(store.log(&second.request_id).await.unwrap().unwrap().record, second);
    assert_eq!(store.total_requests().await.unwrap(), 2);
}

#[tokio::test]
async fn pages_are_stable_while_rows_are_inserted() {
    let place = Place::new();
    let store = place.open().await;
    let writer = Writer::start(store.clone(), place.config());
    let mut next = 0;
    let mut push = |count: i64| {
        (next..next + count).for_each(|n| writer.push(record(n)));
        next += count;
    };
    push(10);
    writer.drained().await;
    let mut seen = Vec::new();
    let mut page = Page::first(4);
    loop {
        let rows = store.logs(&LogFilter::default(), &page).await.unwrap();
        seen.extend(rows.rows.into_iter().map(|row| row.record.request_id));
        let Some(before) = rows.next_before else { break };
        page.before = Some(before);
        push(3);
        writer.drained().await;
    }
    let wanted: Vec<_> = (0..10).rev().map(|n| record(n).request_id).collect();
    assert_eq!(seen, wanted);

    let skipped = store
        .logs(
            &LogFilter::default(),
            &Page {
                offset: 15,
                ..Page::first(4)
            },
        )
        .await
        .unwrap();
    assert_eq!(skipped.rows.len(), 1, "16 rows, 15 skipped");
    assert_eq!(skipped.next_before, None);
}

#[tokio::test]
async fn ids_grow_even_when_the_clock_is_set_back_and_after_a_restart() {
    let place = Place::new();
    let later = RequestRecord {
        arrived_at_ms: T0 + 3_600_000,
        ..record(0)
    };
    place.with([later, record(1)]).await.close().await;
    let store = place.with([record(2)]).await;
    let rows = store.logs(&LogFilter::default(), &Page::first(9)).await.unwrap().rows;
    let order: Vec<_> = rows.iter().map(|row| row.record.request_id.clone()).collect();
    assert_eq!(
        order,
        [record(2).request_id, record(1).request_id, record(0).request_id]
    );
}

#[tokio::test]
async fn sums_agree_with_the_rows() {
    let place = Place::new();
    // Six minutes, every seventh request fails, every fifth reports no tokens.
    let records = (0..360).map(|n| RequestRecord {
        outcome: if n % 7 == 0 {
            Outcome::ALL[1 + usize::try_from(n).unwrap() % 4]
        } else {
            Outcome::Success
        },
        usage: if n % 5 == 0 { Usage::default() } else { record(n).usage },
        ..record(n)
    });
    let store = place.with(records).await;
    let first = T0 / 60_000;
    let minutes = store.traffic(first, first + 6).await.unwrap();
    assert_eq!(minutes.len(), 6);
    for (position, minute) in (0..).zip(&minutes) {
        let seconds = position * 60..(position + 1) * 60;
        let count = |by: i64| seconds.clone().filter(|n| n % by == 0).count() as u64;
        let reported = 60 - count(5);
        let wanted = MinuteRow {
            minute: first + position,
            requests: 60,
            failed: count(7),
            prompt_tokens: reported * 10,
            completion_tokens: reported * 5,
        };
        assert_eq!(*minute, wanted);
    }
    assert_eq!(store.traffic(first + 1, first + 2).await.unwrap(), minutes[1..2]);
    assert_eq!(store.total_requests().await.unwrap(), 360);
}

#[tokio::test]
async fn percentiles_are_those_of_the_newest() {
    let place = Place::new();
    let records = (1..=200).map(|n: i64| RequestRecord {
        overhead_us: n.unsigned_abs(),
        first_token_us: (n % 2 == 0).then_some(n.unsigned_abs() * 10),
        ..record(n)
    });
    let store = place.with(records).await;
    let sample = async |from: i64, to: i64, limit| {
        store
            .latency_sample(T0 + from * 1000, T0 + to * 1000, limit)
            .await
            .unwrap()
    };
    // 101..=200: the 99th of them is 199; the median of 102, 104, … 200 is the 25th, 150.
    let wanted = LatencySample {
        first_token_p50_us: Some(1500),
        overhead_p99_us: Some(199),
        sampled: 100,
    };
    assert_eq!(sample(0, 1000, 100).await, wanted);
    let wanted = LatencySample {
        first_token_p50_us: None,
        overhead_p99_us: Some(7),
        sampled: 1,
    };
    assert_eq!(sample(7, 8, 100).await, wanted);
    assert_eq!(sample(1000, 2000, 100).await, LatencySample::default());
}

#[tokio::test]
async fn a_long_request_is_found_by_its_arrival() {
    let place = Place::new();
    let long = RequestRecord {
        duration_us: 7_200_000_000,
        ..record(0)
    };
    // It ended, and was written, after all the others.
    let store = place.with((1..100).map(record).chain([long.clone()])).await;
    let filter = LogFilter {
        until_ms: Some(T0 + 1),
        ..LogFilter::default()
    };
    let rows = store.logs(&filter, &Page::first(5)).await.unwrap().rows;
    assert_eq!(
        rows.iter()
            .map(|row: &StoredRequest| &row.record.request_id)
            .collect::<Vec<_>>(),
        [&long.request_id]
    );
}

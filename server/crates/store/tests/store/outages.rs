//! The writer's promise, when the database does not play along.

use crate::support::{Place, T0, add_key, record};
use std::{
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};
use switchyard_core::scope::Scope;
use switchyard_engine::{ports::Records, record::RequestRecord};
use switchyard_store::{LogFilter, Page, Store, Writer, WriterConfig};

/// Far above the 100 ms that are promised, for machines that are busy; far below the 5 s that a lock is waited for.
const GENEROUS: Duration = Duration::from_secs(2);

/// Whether requests 0 to `count` are there, each exactly once, in rows and in sums.
async fn assert_exactly_once(store: &Store, count: i64) {
    let rows = store
        .logs(&LogFilter::default(), &Page::first(10_000))
        .await
        .unwrap()
        .rows;
    let mut ids: Vec<_> = rows
        .iter()
        .map(|row| i64::from_str_radix(&row.record.request_id, 16).unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..count).collect::<Vec<_>>());
    let minutes = store.traffic(T0 / 60_000, T0 / 60_000 + 10_000).await.unwrap();
    let sum = |of: fn(&switchyard_store::MinuteRow) -> u64| minutes.iter().map(of).sum::<u64>();
    let count = count.unsigned_abs();
    assert_eq!(
        (
            sum(|m| m.requests),
            sum(|m| m.prompt_tokens),
            sum(|m| m.completion_tokens)
        ),
        (count, count * 10, count * 5)
    );
    assert_eq!(store.key("key-1").await.unwrap().unwrap().usage_count, count);
}

#[tokio::test]
async fn a_locked_database_costs_nothing_but_time() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    let writer = Writer::start(store.clone(), place.config());
    (0..10).for_each(|n| writer.push(record(n)));
    writer.drained().await;
    assert_eq!(writer.stats().degraded, None);

    let lock = place.lock().await;
    for round in 1..=3 {
        let start = Instant::now();
        (round * 10..(round + 1) * 10).for_each(|n| writer.push(record(n)));
        writer.flushed().await;
        assert!(start.elapsed() < GENEROUS, "{:?}", start.elapsed());
        let stats = writer.stats();
        assert_eq!(
            (stats.queued, stats.spooled, stats.shed),
            (0, round.unsigned_abs() * 10, 0)
        );
        let sentence = stats.degraded.unwrap();
        assert!(
            sentence.contains("locked") || sentence.contains("in time"),
            "{sentence}"
        );
        assert!(
            sentence.contains(&format!("Waiting on disk: {}.", round * 10)),
            "{sentence}"
        );
    }
    for segment in place.segments() {
        assert_eq!(segment.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(store.total_requests().await.unwrap(), 10, "reading goes on");

    lock.release().await;
    writer.drained().await;
    let stats = writer.stats();
    assert_eq!((stats.written, stats.degraded), (40, None));
    assert_exactly_once(&store, 40).await;
    assert_eq!(place.segments(), Vec::<std::path::PathBuf>::new());

    // And it goes on as before.
    writer.push(record(40));
    writer.drained().await;
    assert_exactly_once(&store, 41).await;
}

#[tokio::test]
async fn a_transaction_that_ends_after_its_bound_is_not_counted_twice() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    // Hardly any transaction is that quick: each batch is spooled, committed late, and read back.
    let hurried = WriterConfig {
        batch: 16,
        linger: Duration::ZERO,
        flush_bound: Duration::from_micros(300),
        ..place.config()
    };
    let writer = Writer::start(store.clone(), hurried);
    for n in 0..400 {
        writer.push(record(n));
        if n % 10 == 0 {
            writer.flushed().await;
        }
    }
    writer.drained().await;
    assert_eq!(writer.stats().written, 400);
    assert_exactly_once(&store, 400).await;
}

#[tokio::test]
async fn what_a_run_leaves_on_the_spool_the_next_one_writes() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    let lock = place.lock().await;
    let writer = Writer::start(store.clone(), place.config());
    (0..1000).for_each(|n| writer.push(record(n)));
    assert!(writer.close().await);
    assert_eq!(writer.stats().spooled, 1000);
    lock.release().await;
    assert_eq!(store.total_requests().await.unwrap(), 0);

    let writer = Writer::start(store.clone(), place.config());
    writer.drained().await;
    assert_exactly_once(&store, 1000).await;
    assert_eq!(place.segments().len(), 0);
}

/// As it was written before routes, field by field.
const OLD_LINE: &str = r#"{"id":7238556057600001,"record":{"request_id":"00000000000000000000000000000000",
"arrived_at_ms":1767225600000,"surface":"chat","stream":false,"model":"gpt-4o","upstream_model":"gpt-4o-2024",
"provider":"openai","target":"openai-1","status":200,"outcome":"success","error_code":null,"error_message":null,
"usage":{"prompt":10,"completion":5,"total":15,"cached":null,"reasoning":null,"estimated":false},"duration_us":800000,
"first_token_us":null,"overhead_us":150,"key_id":"key-1","key_name":"first","simulated":false,
"attempts":[{"target":"openai-1","provider":"openai","model":"gpt-4o-2024","outcome":"success","status":200,
"started_us":120,"latency_us":700000,"first_token_us":90000,"error":null}],
"verdicts":[{"target":"openai-1","state":"chosen","reason":"first in order","until_ms":null}]}}"#;

#[tokio::test]
async fn what_an_older_build_left_on_the_spool_is_written() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    std::fs::create_dir_all(place.spool()).unwrap();
    let line = OLD_LINE.replace('\n', "") + "\n";
    std::fs::write(place.spool().join("0000000000.jsonl"), line).unwrap();

    let writer = Writer::start(store.clone(), place.config());
    writer.drained().await;
    let stats = writer.stats();
    assert_eq!((stats.written, stats.spooled, stats.shed), (1, 0, 0));
    assert_exactly_once(&store, 1).await;
    let found = store.log(&record(0).request_id).await.unwrap().unwrap();
    let wanted = RequestRecord {
        route: "".into(),
        variant: None,
        ..record(0)
    };
    assert_eq!(found.record, wanted);
    assert_eq!(place.segments().len(), 0);
}

#[tokio::test]
async fn a_line_that_was_cut_or_damaged_is_skipped_and_counted() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    let lock = place.lock().await;
    let writer = Writer::start(store.clone(), place.config());
    (0..20).for_each(|n| writer.push(record(n)));
    assert!(writer.close().await);
    lock.release().await;

    // The process died in the middle of the last line; somebody has been at another one. Both requests are lost.
    let segment = place.segments().pop().unwrap();
    let text = std::fs::read_to_string(&segment).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 20);
    lines.push("{\"id\": \"?\"}");
    let half = &lines[0][..lines[0].len() / 2];
    lines.push(half);
    std::fs::write(&segment, lines.join("\n")).unwrap();

    let writer = Writer::start(store.clone(), place.config());
    writer.drained().await;
    let stats = writer.stats();
    assert_eq!((stats.written, stats.spooled, stats.shed), (20, 0, 2));
    assert_exactly_once(&store, 20).await;
    assert_eq!(place.segments().len(), 0);
}

#[tokio::test]
async fn a_spool_that_was_written_already_adds_nothing() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    let lock = place.lock().await;
    let writer = Writer::start(store.clone(), place.config());
    (0..700).for_each(|n| writer.push(record(n)));
    assert!(writer.close().await);
    lock.release().await;
    let segment = place.segments().pop().unwrap();
    let copy = std::fs::read(&segment).unwrap();

    for written in [700, 0] {
        // The second time, as if the process had died before it could delete the file.
        std::fs::write(&segment, &copy).unwrap();
        let writer = Writer::start(store.clone(), place.config());
        writer.drained().await;
        assert_eq!(writer.stats().written, written);
        assert_exactly_once(&store, 700).await;
        assert!(writer.close().await);
    }
}

#[tokio::test]
async fn a_full_spool_loses_records_and_says_so() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "key-1", &[Scope::Invoke]).await;
    let writer = Writer::start(
        store.clone(),
        WriterConfig {
            spool_max_bytes: 8_000,
            ..place.config()
        },
    );
    writer.flushed().await;
    let lock = place.lock().await;
    for n in 0..50 {
        writer.push(record(n));
        writer.flushed().await;
    }
    let stats = writer.stats();
    assert_eq!(stats.spooled + stats.shed, 50);
    assert!(stats.spooled > 0 && stats.shed > 0, "{stats:?}");
    let sentence = stats.degraded.unwrap();
    assert!(sentence.contains(&format!("Lost so far: {}", stats.shed)), "{sentence}");

    lock.release().await;
    writer.drained().await;
    assert_exactly_once(&store, i64::try_from(stats.spooled).unwrap()).await;
}

#[tokio::test]
async fn a_spool_that_cannot_be_written_does_not_stop_the_writer() {
    let place = Place::new();
    let store = place.open().await;
    std::fs::write(place.spool(), "a file where the folder should be").unwrap();
    let writer = Writer::start(store.clone(), place.config());
    writer.flushed().await;
    let lock = place.lock().await;
    writer.push(record(0));
    writer.flushed().await;
    assert_eq!(writer.stats().shed, 1);
    lock.release().await;
    // Nothing waits on the spool: an empty batch finds out that the database is back.
    writer.drained().await;
    writer.push(record(1));
    writer.drained().await;
    assert_eq!(store.total_requests().await.unwrap(), 1);
}

use crate::support::{Place, attempt, record};
use switchyard_engine::{
    ports::Records,
    record::{AttemptRecord, RequestRecord},
};
use switchyard_store::{LogFilter, Page, Writer, WriterConfig, WriterStats};

#[tokio::test]
async fn batches_of_every_size_are_written_whole() {
    let place = Place::new();
    let store = place.open().await;
    // Larger than the largest statement.
    let writer = Writer::start(
        store.clone(),
        WriterConfig {
            batch: 1300,
            ..place.config()
        },
    );
    let mut pushed = 0;
    for size in [1, 2, 3, 511, 512, 513, 1300] {
        for n in pushed..pushed + size {
            let attempts = (0..n % 4)
                .map(|_| attempt("a", "success"))
                .collect::<Vec<AttemptRecord>>();
            writer.push(RequestRecord { attempts, ..record(n) });
        }
        pushed += size;
        writer.drained().await;
        assert_eq!(store.total_requests().await.unwrap(), pushed.unsigned_abs());
    }
    assert_eq!(
        writer.stats(),
        WriterStats {
            written: pushed.unsigned_abs(),
            ..WriterStats::default()
        }
    );
    let page = Page::first(u32::try_from(pushed).unwrap());
    let rows = store.logs(&LogFilter::default(), &page).await.unwrap().rows;
    assert_eq!(rows.len(), usize::try_from(pushed).unwrap());
    for (n, row) in (0..pushed).rev().zip(&rows) {
        assert_eq!(row.record.request_id, record(n).request_id);
        assert_eq!(i64::from(row.attempts_count), n % 4);
    }
    let last = store.log(&record(pushed - 1).request_id).await.unwrap().unwrap();
    assert_eq!(last.record.attempts.len(), usize::try_from((pushed - 1) % 4).unwrap());
}

#[test]
fn any_thread_may_push() {
    let place = Place::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (store, writer) = runtime.block_on(async {
        let store = place.open().await;
        (store.clone(), Writer::start(store, place.config()))
    });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let writer = writer.clone();
            scope.spawn(move || (0..500).for_each(|n| writer.push(record(thread * 500 + n))));
        }
    });
    runtime.block_on(async {
        writer.drained().await;
        assert_eq!(store.total_requests().await.unwrap(), 2000);
        assert_eq!(writer.stats().queued, 0);
    });
}

/// On one thread the writer's task cannot run between the pushes.
#[tokio::test(flavor = "current_thread")]
async fn what_the_queue_does_not_hold_is_counted() {
    let place = Place::new();
    let store = place.open().await;
    let writer = Writer::start(
        store.clone(),
        WriterConfig {
            queue: 4,
            ..place.config()
        },
    );
    (0..10).for_each(|n| writer.push(record(n)));
    assert_eq!(
        writer.stats(),
        WriterStats {
            queued: 4,
            shed: 6,
            ..WriterStats::default()
        }
    );
    writer.drained().await;
    assert_eq!(
        writer.stats(),
        WriterStats {
            written: 4,
            shed: 6,
            ..WriterStats::default()
        }
    );
    assert_eq!(store.total_requests().await.unwrap(), 4);
}

#[tokio::test]
async fn closing_writes_what_waits_and_takes_no_more() {
    let place = Place::new();
    let store = place.open().await;
    let writer = Writer::start(store.clone(), place.config());
    (0..2000).for_each(|n| writer.push(record(n)));
    assert!(writer.close().await);
    // A batch that was late may be in the database and on the spool.
    let stats = writer.stats();
    assert_eq!((stats.queued, stats.shed), (0, 0));
    assert!(stats.written + stats.spooled >= 2000, "{stats:?}");
    writer.push(record(2000));
    assert_eq!(writer.stats().shed, 1);
    assert!(writer.close().await, "closing twice does no harm");
    // What was late for the database is there after the next start.
    let writer = Writer::start(store.clone(), place.config());
    writer.drained().await;
    assert_eq!(store.total_requests().await.unwrap(), 2000);
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_waits() {
    let place = Place::new();
    let store = place.open().await;
    let writer = Writer::start(store.clone(), place.config());
    writer.push(record(1));
    drop(writer);
    // The task ends by itself; its row is awaited by asking for it.
    while store.total_requests().await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn two_writers_on_one_database_do_not_take_each_others_ids() {
    let place = Place::new();
    let (first, second) = (place.open().await, place.open().await);
    let writers = [
        Writer::start(first.clone(), place.config()),
        Writer::start(
            second,
            WriterConfig {
                spool_dir: place.spool().join("second"),
                ..place.config()
            },
        ),
    ];
    for writer in &writers {
        writer.flushed().await;
    }
    // Same instants, hence the same ids, for other requests.
    for n in 0..100 {
        writers[0].push(record(n));
        writers[1].push(RequestRecord {
            request_id: format!("{:032x}", n + 1000).into(),
            ..record(n)
        });
    }
    for writer in &writers {
        writer.drained().await;
    }
    assert_eq!(first.total_requests().await.unwrap(), 200);
    let rows = first
        .logs(&LogFilter::default(), &Page::first(1000))
        .await
        .unwrap()
        .rows;
    assert_eq!(rows.len(), 200);
}

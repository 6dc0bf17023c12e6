use crate::support::{Place, record};
use sqlx::{Connection, Executor, migrate::Migrator};
use switchyard_engine::record::{Outcome, RequestRecord};
use switchyard_store::{KeyFilter, LogFilter, OutcomeFilter, Page, Store, StoreError};

#[tokio::test]
async fn a_new_database_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let _store = place.with([record(1)]).await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let database = place.database();
    assert_eq!(mode(database.parent().unwrap()), 0o700);
    for suffix in ["", "-wal", "-shm"] {
        let file = std::path::PathBuf::from(format!("{}{suffix}", database.display()));
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn an_existing_database_is_opened_again_with_what_it_holds() {
    let place = Place::new();
    let store = place.with([record(1)]).await;
    store.close().await;
    let store = place.open().await;
    store.ping().await.unwrap();
    assert_eq!(store.backend(), "SQLite");
    assert_eq!(store.total_requests().await.unwrap(), 1);
}

#[tokio::test]
async fn two_processes_may_create_it_at_once() {
    let place = Place::new();
    let path = place.database();
    let (first, second) = tokio::join!(Store::open(&path), Store::open(&path));
    first.unwrap().ping().await.unwrap();
    second.unwrap().ping().await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_up_to_date_opens_while_another_process_writes() {
    let place = Place::new();
    place.open().await.close().await;
    let lock = place.lock().await;
    place.open().await.ping().await.unwrap();
    lock.release().await;
}

/// What a build before routes has left is all there after the migration, and new rows stand beside it.
#[tokio::test]
async fn an_older_database_is_brought_up_to_date_with_what_it_holds() {
    const HASH: [u8; 32] = [7; 32];
    let place = Place::new();
    std::fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    std::fs::write(place.database(), "").unwrap();
    let mut old = place.stranger().await;
    let all = sqlx::migrate!("../../../migrations/sqlite");
    let before_routes = all.iter().filter(|migration| migration.version < 3).cloned().collect();
    Migrator::with_migrations(before_routes).run(&mut old).await.unwrap();
    sqlx::query(
        "insert into keys (key_id, name, display, hash, scopes, created_at_ms, usage_count)
         values ('key-1', 'first', 'sy_…', ?, '[\"admin\"]', 1, 41)",
    )
    .bind(HASH.as_slice())
    .execute(&mut old)
    .await
    .unwrap();
    // The second is longer than a page.
    old.execute(
        r#"insert into requests (id, request_id, arrived_at_ms, surface, stream, model, status, outcome, usage_estimated,
                                 duration_us, overhead_us, key_id, simulated, attempts_count, verdicts)
           select value, printf('%032x', value), value, 'chat', 0, 'gpt-4o', 200, 'success', 0, 5, 6, 'key-1', 0, 1,
                  '[{"target":"a","state":"chosen","reason":"' || printf('%.*c', 1 + value * 4999, 'x') || '"}]'
           from (select 0 as value union all select 1)"#,
    )
    .await
    .unwrap();
    old.execute(
        "insert into attempts (request_row, number, target, provider, model, outcome, started_us, latency_us)
         values (1, 1, 'a', 'openai', 'gpt-4o', 'success', 1, 2)",
    )
    .await
    .unwrap();
    old.close().await.unwrap();

    let store = place.with([record(1)]).await;
    let key = store.key_by_hash(&HASH).await.unwrap().unwrap();
    assert_eq!((key.usage_count, key.project, key.route), (42, None, None));
    for (id, reason) in [("0", 1), ("1", 5000)] {
        let found = store.log(id).await.unwrap().unwrap().record;
        assert_eq!(found.verdicts.iter().next().unwrap().reason.len(), reason);
        assert_eq!((&*found.route, found.variant), ("", None));
    }
    assert_eq!(store.log("1").await.unwrap().unwrap().record.attempts.len(), 1);
    let rows = store.logs(&LogFilter::default(), &Page::first(9)).await.unwrap().rows;
    let routes: Vec<_> = rows.iter().map(|row| &*row.record.route).collect();
    assert_eq!(routes, ["default", "", ""]);
}

/// What a build before courses has left is listed with what has come since: by key, and with its attempts.
#[tokio::test]
async fn rows_from_before_courses_are_read_like_later_ones() {
    let place = Place::new();
    std::fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    std::fs::write(place.database(), "").unwrap();
    let mut old = place.stranger().await;
    let all = sqlx::migrate!("../../../migrations/sqlite");
    let before_courses = all.iter().filter(|migration| migration.version < 4).cloned().collect();
    Migrator::with_migrations(before_courses).run(&mut old).await.unwrap();
    // As that build wrote records 0 to 19; every fourth has no key, and every fifth failed.
    old.execute(
        r#"insert into requests (id, request_id, arrived_at_ms, surface, stream, model, upstream_model, provider, target,
                                 status, outcome, prompt_tokens, completion_tokens, total_tokens, usage_estimated,
                                 duration_us, overhead_us, key_id, key_name, simulated, attempts_count, verdicts, route)
           with recursive n (n) as (select 0 union all select n + 1 from n where n < 19)
           select (1767225600000 + n * 1000 + 800) << 12, printf('%032x', n), 1767225600000 + n * 1000, 'chat', 0, 'gpt-4o',
                  'gpt-4o-2024', 'openai', 'openai-1', 200, iif(n % 5 = 0, 'error', 'success'), 10, 5, 15, 0, 800000, 150,
                  iif(n % 4 = 0, null, 'key-1'), iif(n % 4 = 0, null, 'first'), 0, 1,
                  '[{"target":"openai-1","state":"chosen","reason":"first in order"}]', 'default'
           from n"#,
    )
    .await
    .unwrap();
    old.execute(
        "insert into attempts (request_row, number, target, provider, model, outcome, status, started_us, latency_us,
                               first_token_us)
         select id, 1, 'openai-1', 'openai', 'gpt-4o-2024', 'success', 200, 120, 700000, 90000 from requests",
    )
    .await
    .unwrap();
    old.execute(
        "insert into traffic_minutes select arrived_at_ms / 60000, count(*), sum(outcome <> 'success'),
                sum(prompt_tokens), sum(completion_tokens), max(id) from requests group by 1",
    )
    .await
    .unwrap();
    old.close().await.unwrap();

    let wanted: Vec<_> = (0..40)
        .map(|n| RequestRecord {
            outcome: if n % 5 == 0 { Outcome::Error } else { Outcome::Success },
            key_id: (n % 4 != 0).then(|| "key-1".into()),
            key_name: (n % 4 != 0).then(|| "first".into()),
            ..record(n)
        })
        .collect();
    let store = place.with(wanted[20..].to_vec()).await;
    for wanted in &wanted {
        assert_eq!(store.log(&wanted.request_id).await.unwrap().unwrap().record, *wanted);
    }
    let key = |key| LogFilter {
        key: Some(key),
        ..LogFilter::default()
    };
    let failed = LogFilter {
        outcome: Some(OutcomeFilter::Failed),
        ..key(KeyFilter::Id("key-1".to_owned()))
    };
    let all = |is_wanted: fn(i64) -> bool| (0..40).rev().filter(|n| is_wanted(*n)).collect::<Vec<i64>>();
    for (filter, wanted) in [
        (LogFilter::default(), all(|_| true)),
        (key(KeyFilter::Id("key-1".to_owned())), all(|n| n % 4 != 0)),
        (key(KeyFilter::None), all(|n| n % 4 == 0)),
        (failed, all(|n| n % 4 != 0 && n % 5 == 0)),
    ] {
        let rows = store.logs(&filter, &Page::first(100)).await.unwrap().rows;
        let found: Vec<_> = rows.iter().map(|row| row.record.request_id.clone()).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|n| record(n).request_id).collect();
        assert_eq!(found, wanted, "{filter:?}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    place.open().await.close().await;
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 values (4711, 'from the future', true, x'00', 0)";
    place.stranger().await.execute(newer).await.unwrap();

    let error = Store::open(&place.database()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::NewerSchema { found: 4711, known: 6 }),
        "{error:?}"
    );
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(
        text.contains("4711") && text.contains("up to 6") && text.contains("newer Switchyard"),
        "{text}"
    );
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let place = Place::new();
    place.open().await.close().await;
    place
        .stranger()
        .await
        .execute("update _sqlx_migrations set checksum = x'00' where version = 1")
        .await
        .unwrap();
    let error = Store::open(&place.database()).await.unwrap_err();
    assert!(matches!(error, StoreError::AlteredSchema { version: 1 }), "{error:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_so() {
    let place = Place::new();
    std::fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    std::fs::write(place.database(), "Dear diary, ".repeat(1000)).unwrap();
    let error = Store::open(&place.database()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
    assert_eq!(error.to_string(), "the file is damaged, or it is not a database");
}

#[tokio::test]
async fn a_folder_that_cannot_be_created_is_named() {
    let place = Place::new();
    let in_the_way = place.spool();
    std::fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    std::fs::write(&in_the_way, "").unwrap();
    let error = Store::open(&in_the_way.join("switchyard.db")).await.unwrap_err();
    assert!(matches!(error, StoreError::File { .. }), "{error:?}");
    assert!(error.to_string().contains("spool"), "{error}");
}

use crate::support::{Place, record};
use sqlx::{Connection, Executor, migrate::Migrator};
use switchyard_store::{LogFilter, Page, Store, StoreError};

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
        assert_eq!(found.verdicts[0].reason.len(), reason);
        assert_eq!((&*found.route, found.variant), ("", None));
    }
    assert_eq!(store.log("1").await.unwrap().unwrap().record.attempts.len(), 1);
    let rows = store.logs(&LogFilter::default(), &Page::first(9)).await.unwrap().rows;
    let routes: Vec<_> = rows.iter().map(|row| &*row.record.route).collect();
    assert_eq!(routes, ["default", "", ""]);
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
        matches!(error, StoreError::NewerSchema { found: 4711, known: 3 }),
        "{error:?}"
    );
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(
        text.contains("4711") && text.contains("up to 3") && text.contains("newer Switchyard"),
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

use crate::support::{Place, record};
use sqlx::Executor;
use switchyard_store::{Store, StoreError};

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

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    place.open().await.close().await;
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 values (4711, 'from the future', true, x'00', 0)";
    place.stranger().await.execute(newer).await.unwrap();

    let error = Store::open(&place.database()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::NewerSchema { found: 4711, known: 2 }),
        "{error:?}"
    );
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(
        text.contains("4711") && text.contains("up to 2") && text.contains("newer Switchyard"),
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

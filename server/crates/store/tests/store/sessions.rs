use crate::support::{Place, T0};
use switchyard_core::scope::Scopes;
use switchyard_store::{SessionRow, StoreError};

fn session(n: u8, credential: &str) -> SessionRow {
    SessionRow {
        id_hash: [n; 32],
        credential_id: credential.to_owned(),
        subject: "Ada".to_owned(),
        scopes: Scopes::ADMIN,
        data: r#"{"theme":"dark"}"#.to_owned(),
        created_at_ms: T0,
        last_seen_at_ms: T0,
        expires_at_ms: T0 + 1000,
    }
}

#[tokio::test]
async fn a_session_is_kept_touched_and_deleted() {
    let place = Place::new();
    let store = place.open().await;
    let mut kept = session(1, "a");
    store.insert_session(&kept).await.unwrap();
    assert_eq!(store.session(&[1; 32]).await.unwrap().as_ref(), Some(&kept));
    assert!(matches!(
        store.insert_session(&kept).await.unwrap_err(),
        StoreError::Conflict(_)
    ));

    store.touch_session(&[1; 32], T0 + 50).await.unwrap();
    store.touch_session(&[1; 32], T0 + 40).await.unwrap();
    kept.last_seen_at_ms = T0 + 50;
    assert_eq!(store.session(&[1; 32]).await.unwrap(), Some(kept));

    assert!(store.delete_session(&[1; 32]).await.unwrap());
    assert!(!store.delete_session(&[1; 32]).await.unwrap());
    assert_eq!(store.session(&[1; 32]).await.unwrap(), None);
}

#[tokio::test]
async fn sweeps_take_what_has_ended_or_idles_or_belongs_to_a_key() {
    let place = Place::new();
    let store = place.open().await;
    let ended = SessionRow {
        expires_at_ms: T0 + 500,
        last_seen_at_ms: T0 + 499,
        ..session(1, "a")
    };
    let idle = SessionRow {
        last_seen_at_ms: T0 + 400,
        ..session(2, "a")
    };
    let used = SessionRow {
        last_seen_at_ms: T0 + 401,
        ..session(3, "a")
    };
    let others = SessionRow {
        last_seen_at_ms: T0 + 499,
        ..session(4, "b")
    };
    for row in [&ended, &idle, &used, &others] {
        store.insert_session(row).await.unwrap();
    }
    assert_eq!(store.delete_expired_sessions(T0 + 500, 100).await.unwrap(), 2);
    assert!(store.session(&ended.id_hash).await.unwrap().is_none());
    assert!(store.session(&idle.id_hash).await.unwrap().is_none());
    assert_eq!(store.delete_sessions_of("a").await.unwrap(), 1);
    assert!(store.session(&used.id_hash).await.unwrap().is_none());
    assert!(store.session(&others.id_hash).await.unwrap().is_some());
}

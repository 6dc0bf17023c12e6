use crate::support::{Place, T0, add_key, record};
use switchyard_core::scope::{Scope, Scopes};
use switchyard_store::{KeyChange, KeyCounts, KeyOutcome, NewKeyRow, NoAdmin, StoreError};

const NOW: i64 = T0 + 60_000;

fn done(outcome: KeyOutcome) -> switchyard_store::KeyRow {
    match outcome {
        KeyOutcome::Done(key) => key,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_key_lives_from_creation_to_revocation() {
    let place = Place::new();
    let store = place.open().await;
    assert!(!store.has_any_key().await.unwrap());

    let created = add_key(&store, "a", &[Scope::Invoke]).await;
    assert!(store.has_any_key().await.unwrap());
    let mut hash = [0; 32];
    hash[0] = b'a';
    assert_eq!(store.key_by_hash(&hash).await.unwrap().as_ref(), Some(&created));
    assert_eq!(store.key_by_hash(&[9; 32]).await.unwrap(), None);
    assert_eq!(store.key("a").await.unwrap().as_ref(), Some(&created));

    let change = KeyChange {
        name: Some("new".to_owned()),
        expires_at_ms: Some(Some(NOW + 5)),
        ..KeyChange::default()
    };
    let changed = done(store.update_key("a", change, NOW, NoAdmin::Refuse).await.unwrap());
    assert_eq!(
        (changed.name.as_str(), changed.expires_at_ms, changed.scopes),
        ("new", Some(NOW + 5), Scopes::INVOKE)
    );
    assert!(changed.is_live(NOW + 4) && !changed.is_live(NOW + 5));

    let change = KeyChange {
        expires_at_ms: Some(None),
        ..KeyChange::default()
    };
    let changed = done(store.update_key("a", change, NOW, NoAdmin::Refuse).await.unwrap());
    assert_eq!((changed.name.as_str(), changed.expires_at_ms), ("new", None));

    let revoked = done(store.revoke_key("a", NOW, NoAdmin::Refuse).await.unwrap());
    assert_eq!(revoked.revoked_at_ms, Some(NOW));
    let again = done(store.revoke_key("a", NOW + 99, NoAdmin::Refuse).await.unwrap());
    assert_eq!(again.revoked_at_ms, Some(NOW), "the first revocation stands");
    assert_eq!(store.key("a").await.unwrap(), Some(again));
}

#[tokio::test]
async fn a_key_has_a_project_and_a_route_until_they_are_taken_away() {
    let place = Place::new();
    let store = place.open().await;
    let text = |text: &str| Some(text.to_owned());
    let key = NewKeyRow {
        id: "a".to_owned(),
        name: String::new(),
        display: String::new(),
        hash: [7; 32],
        scopes: Scopes::INVOKE,
        created_at_ms: T0,
        expires_at_ms: None,
        project: text("shop"),
        route: text("fast"),
    };
    let created = store.insert_key(key).await.unwrap();
    assert_eq!((&created.project, &created.route), (&text("shop"), &text("fast")));
    let change = |project: Option<Option<String>>, route: Option<Option<String>>| KeyChange {
        project,
        route,
        ..KeyChange::default()
    };
    for (wanted, project, route) in [
        (KeyChange::default(), text("shop"), text("fast")),
        (change(Some(text("lab")), None), text("lab"), text("fast")),
        (change(None, Some(text("slow"))), text("lab"), text("slow")),
        (change(Some(None), None), None, text("slow")),
        (change(None, Some(None)), None, None),
        (
            change(Some(text("shop")), Some(text("fast"))),
            text("shop"),
            text("fast"),
        ),
    ] {
        let changed = done(store.update_key("a", wanted, NOW, NoAdmin::Refuse).await.unwrap());
        assert_eq!((&changed.project, &changed.route), (&project, &route));
        // Whoever asks gets the same, however they ask.
        assert_eq!(store.key("a").await.unwrap().as_ref(), Some(&changed));
        assert_eq!(store.key_by_hash(&[7; 32]).await.unwrap().as_ref(), Some(&changed));
        assert_eq!(store.keys().await.unwrap(), [changed]);
    }
    let revoked = done(store.revoke_key("a", NOW, NoAdmin::Refuse).await.unwrap());
    assert_eq!((revoked.project, revoked.route), (text("shop"), text("fast")));
}

#[tokio::test]
async fn what_is_not_there_cannot_be_changed() {
    let place = Place::new();
    let store = place.open().await;
    assert_eq!(
        store.revoke_key("a", NOW, NoAdmin::Refuse).await.unwrap(),
        KeyOutcome::NotFound
    );
    let outcome = store
        .update_key("a", KeyChange::default(), NOW, NoAdmin::Refuse)
        .await
        .unwrap();
    assert_eq!(outcome, KeyOutcome::NotFound);
}

#[tokio::test]
async fn a_second_key_with_the_same_hash_is_a_conflict() {
    let place = Place::new();
    let store = place.open().await;
    let key = |id: &str| NewKeyRow {
        id: id.to_owned(),
        name: String::new(),
        display: String::new(),
        hash: [7; 32],
        scopes: Scopes::INVOKE,
        created_at_ms: T0,
        expires_at_ms: None,
        project: None,
        route: None,
    };
    store.insert_key(key("a")).await.unwrap();
    let error = store.insert_key(key("b")).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict(_)), "{error:?}");
    assert!(!error.to_string().contains("keys"), "no SQL in `{error}`");
    // Of many, none is added then.
    let fresh = NewKeyRow {
        hash: [8; 32],
        ..key("c")
    };
    let error = store.insert_keys([fresh.clone(), key("d")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict(_)), "{error:?}");
    assert_eq!(store.keys().await.unwrap().len(), 1);
    store.insert_keys([fresh]).await.unwrap();
    assert_eq!(store.key_by_hash(&[8; 32]).await.unwrap().unwrap().id, "c");
}

#[tokio::test]
async fn keys_are_listed_newest_first_and_in_one_order() {
    let place = Place::new();
    let store = place.open().await;
    for id in ["b", "c", "a"] {
        add_key(&store, id, &[Scope::Invoke]).await;
    }
    let key = NewKeyRow {
        id: "0".to_owned(),
        name: String::new(),
        display: String::new(),
        hash: [7; 32],
        scopes: Scopes::INVOKE,
        created_at_ms: T0 + 1,
        expires_at_ms: None,
        project: None,
        route: None,
    };
    store.insert_key(key).await.unwrap();
    let ids: Vec<_> = store.keys().await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["0", "c", "b", "a"]);
}

#[tokio::test]
async fn the_last_admin_cannot_be_taken_away() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "admin", &[Scope::Admin]).await;
    add_key(&store, "other", &[Scope::Invoke, Scope::ReadOnly]).await;

    let demotion = KeyChange {
        scopes: Some(Scopes::INVOKE),
        ..KeyChange::default()
    };
    let expiry = KeyChange {
        expires_at_ms: Some(Some(NOW)),
        ..KeyChange::default()
    };
    let before = store.key("admin").await.unwrap();
    for change in [demotion.clone(), expiry] {
        let outcome = store.update_key("admin", change, NOW, NoAdmin::Refuse).await.unwrap();
        assert_eq!(outcome, KeyOutcome::LastAdmin);
    }
    assert_eq!(
        store.revoke_key("admin", NOW, NoAdmin::Refuse).await.unwrap(),
        KeyOutcome::LastAdmin
    );
    assert_eq!(
        store.key("admin").await.unwrap(),
        before,
        "a refused change leaves nothing behind"
    );

    // A new name, a later end, or another key's revocation take no admin away.
    let change = KeyChange {
        name: Some("x".to_owned()),
        expires_at_ms: Some(Some(NOW + 1)),
        ..KeyChange::default()
    };
    done(store.update_key("admin", change, NOW, NoAdmin::Refuse).await.unwrap());
    done(store.revoke_key("other", NOW, NoAdmin::Refuse).await.unwrap());

    // With a second admin, or a master key besides, it may go.
    add_key(&store, "second", &[Scope::Admin]).await;
    done(store.update_key("admin", demotion, NOW, NoAdmin::Refuse).await.unwrap());
    assert_eq!(
        store.revoke_key("second", NOW, NoAdmin::Refuse).await.unwrap(),
        KeyOutcome::LastAdmin
    );
    done(store.revoke_key("second", NOW, NoAdmin::Allow).await.unwrap());
}

#[tokio::test]
async fn two_admins_who_revoke_each_other_at_once_do_not_both_succeed() {
    let place = Place::new();
    let store = place.open().await;
    add_key(&store, "a", &[Scope::Admin]).await;
    add_key(&store, "b", &[Scope::Admin]).await;
    let (a, b) = tokio::join!(
        store.revoke_key("a", NOW, NoAdmin::Refuse),
        store.revoke_key("b", NOW, NoAdmin::Refuse)
    );
    let refused = [a.unwrap(), b.unwrap()]
        .into_iter()
        .filter(|outcome| *outcome == KeyOutcome::LastAdmin)
        .count();
    assert_eq!(refused, 1);
}

#[tokio::test]
async fn counts_tell_live_expired_and_used() {
    let place = Place::new();
    let store = place.open().await;
    assert_eq!(store.key_counts(NOW).await.unwrap(), KeyCounts::default());
    for id in ["key-1", "key-2", "expired", "revoked"] {
        add_key(&store, id, &[Scope::Invoke]).await;
    }
    let change = KeyChange {
        expires_at_ms: Some(Some(NOW)),
        ..KeyChange::default()
    };
    store
        .update_key("expired", change.clone(), NOW, NoAdmin::Refuse)
        .await
        .unwrap();
    store.update_key("revoked", change, NOW, NoAdmin::Refuse).await.unwrap();
    store.revoke_key("revoked", NOW, NoAdmin::Refuse).await.unwrap();

    let other = |n| switchyard_engine::record::RequestRecord {
        key_id: Some("key-2".into()),
        ..record(n)
    };
    let store = place.with([record(3), record(1), other(2)]).await;
    let counts = KeyCounts {
        total: 4,
        active: 2,
        expired: 1,
        total_usage: 3,
    };
    assert_eq!(store.key_counts(NOW).await.unwrap(), counts);
    let first = store.key("key-1").await.unwrap().unwrap();
    assert_eq!(
        (first.usage_count, first.last_used_at_ms),
        (2, Some(record(3).arrived_at_ms))
    );
}

use crate::support::{Place, T0};
use switchyard_store::{Conversation, LongestConversation, ResponseRow, Store, Whose};

const LONGEST: LongestConversation = LongestConversation { turns: 5, bytes: 1000 };
const MONTH_MS: i64 = 30 * 24 * 60 * 60 * 1000;
const ANN: Whose<'static> = Whose::Of("ann");

fn turn(id: &str, previous: Option<&str>) -> ResponseRow {
    ResponseRow {
        id: id.to_owned(),
        owner: "ann".to_owned(),
        target: Some(format!("target of {id}")),
        is_native: false,
        model: "gpt-4o".to_owned(),
        created_at_ms: T0,
        previous: previous.map(str::to_owned),
        input: format!(r#"["said before {id}"]"#),
        output: format!(r#"["{id}"]"#),
        response: format!(r#"{{"id":"{id}","output":[]}}"#),
        expires_at_ms: T0 + MONTH_MS,
    }
}

async fn keep(store: &Store, row: ResponseRow) {
    assert!(store.keep_response(&row).await.unwrap());
}

async fn conversation(store: &Store, id: &str, whose: Whose<'_>) -> Conversation {
    store.conversation(id, whose, T0, LONGEST).await.unwrap()
}

/// Ids of its turns, and what is missing before them.
async fn ids(store: &Store, id: &str, whose: Whose<'_>) -> (Vec<String>, Option<String>) {
    match conversation(store, id, whose).await {
        Conversation::Found { turns, missing, .. } => (turns.into_iter().map(|turn| turn.id).collect(), missing),
        other => panic!("{other:?}"),
    }
}

fn words(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test]
async fn an_answer_comes_back_as_it_went_in() {
    let place = Place::new();
    let store = place.open().await;
    let row = ResponseRow {
        is_native: true,
        ..turn("a", Some("before"))
    };
    keep(&store, row.clone()).await;
    assert_eq!(store.response("a", ANN, T0).await.unwrap(), Some(row.clone()));
    assert_eq!(store.response("a", Whose::Anybodys, T0).await.unwrap(), Some(row));
    assert_eq!(store.response("b", ANN, T0).await.unwrap(), None);
}

#[tokio::test]
async fn a_conversation_is_put_together_from_its_first_turn_on() {
    let place = Place::new();
    let store = place.open().await;
    keep(&store, turn("a", None)).await;
    keep(&store, turn("b", Some("a"))).await;
    // Two go on from the same.
    keep(&store, turn("c", Some("b"))).await;
    keep(
        &store,
        ResponseRow {
            is_native: true,
            ..turn("d", Some("b"))
        },
    )
    .await;
    assert_eq!(ids(&store, "a", ANN).await, (words(&["a"]), None));
    assert_eq!(ids(&store, "c", ANN).await, (words(&["a", "b", "c"]), None));
    let Conversation::Found {
        turns,
        target,
        is_native,
        ..
    } = conversation(&store, "d", ANN).await
    else {
        panic!("it is there");
    };
    assert_eq!((target.as_deref(), is_native), (Some("target of d"), true));
    assert_eq!(turns[0].input, r#"["said before a"]"#);
    assert_eq!(turns[2].output, r#"["d"]"#);
}

#[tokio::test]
async fn what_is_anothers_is_not_there() {
    let place = Place::new();
    let store = place.open().await;
    keep(&store, turn("a", None)).await;
    let bob = Whose::Of("bob");
    assert_eq!(store.response("a", bob, T0).await.unwrap(), None);
    assert!(!store.delete_response("a", bob, T0).await.unwrap());
    assert_eq!(conversation(&store, "a", bob).await, Conversation::NotThere);
    assert_eq!(conversation(&store, "b", bob).await, Conversation::Unknown);

    // Nor does it come in by a turn of one's own, or by an id that is taken.
    let of_bob = |row: ResponseRow| ResponseRow {
        owner: "bob".to_owned(),
        ..row
    };
    keep(&store, of_bob(turn("b", Some("a")))).await;
    assert_eq!(ids(&store, "b", bob).await, (words(&["b"]), Some("a".to_owned())));
    assert_eq!(ids(&store, "b", Whose::Anybodys).await, (words(&["a", "b"]), None));
    assert!(!store.keep_response(&of_bob(turn("a", None))).await.unwrap());
    assert_eq!(store.response("a", ANN, T0).await.unwrap(), Some(turn("a", None)));
}

#[tokio::test]
async fn what_is_deleted_is_gone_and_not_unknown() {
    let place = Place::new();
    let store = place.open().await;
    keep(&store, turn("a", None)).await;
    keep(&store, turn("b", Some("a"))).await;
    assert!(store.delete_response("a", ANN, T0).await.unwrap());
    assert!(!store.delete_response("a", ANN, T0).await.unwrap());
    assert_eq!(store.response("a", ANN, T0).await.unwrap(), None);
    assert_eq!(conversation(&store, "a", ANN).await, Conversation::NotThere);
    assert_eq!(ids(&store, "b", ANN).await, (words(&["b"]), Some("a".to_owned())));
}

#[tokio::test]
async fn a_conversation_ends_at_its_bounds() {
    let place = Place::new();
    let store = place.open().await;
    keep(&store, turn("1", None)).await;
    for n in 2..=6 {
        keep(&store, turn(&n.to_string(), Some(&(n - 1).to_string()))).await;
    }
    assert_eq!(ids(&store, "5", ANN).await.0.len(), 5);
    assert_eq!(conversation(&store, "6", ANN).await, Conversation::TooLong);

    let long = |id, previous, length| ResponseRow {
        input: format!("[{}]", " ".repeat(length)),
        output: "[]".to_owned(),
        ..turn(id, previous)
    };
    keep(&store, long("fits", None, 996)).await;
    keep(&store, long("more", Some("fits"), 0)).await;
    keep(&store, long("too much", None, 997)).await;
    assert_eq!(ids(&store, "fits", ANN).await.0.len(), 1);
    assert_eq!(conversation(&store, "more", ANN).await, Conversation::TooLong);
    assert_eq!(conversation(&store, "too much", ANN).await, Conversation::TooLong);

    // An upstream that repeats itself does not keep the database busy for ever.
    keep(&store, turn("circle", Some("circle"))).await;
    assert_eq!(conversation(&store, "circle", ANN).await, Conversation::TooLong);
}

#[tokio::test]
async fn what_has_expired_is_not_there_and_is_swept() {
    let place = Place::new();
    let store = place.open().await;
    for n in 0..1201 {
        keep(&store, turn(&format!("old {n}"), None)).await;
    }
    let later = ResponseRow {
        expires_at_ms: T0 + MONTH_MS + 1,
        ..turn("later", None)
    };
    keep(&store, later).await;
    let now = T0 + MONTH_MS;
    assert_eq!(store.response("old 1", ANN, now).await.unwrap(), None);
    assert_eq!(
        store.conversation("old 1", ANN, now, LONGEST).await.unwrap(),
        Conversation::NotThere
    );
    assert_eq!(store.delete_expired_responses(now).await.unwrap(), 1201);
    assert_eq!(store.delete_expired_responses(now).await.unwrap(), 0);
    assert!(store.response("later", ANN, now).await.unwrap().is_some());
}

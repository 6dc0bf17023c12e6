use crate::support::{Place, T0, record};
use switchyard_engine::record::{Outcome, RequestRecord};
use switchyard_store::{KeyFilter, LogFilter, OutcomeFilter, Page, Stage, Store};

/// Requests 0 to 6, each different in something.
fn records() -> Vec<RequestRecord> {
    let failed = |n, outcome, code: &str, message: &str| RequestRecord {
        outcome,
        error_code: Some(code.to_owned()),
        error_message: Some(message.to_owned()),
        ..record(n)
    };
    vec![
        record(0),
        RequestRecord {
            model: "Claude-Opus".to_owned(),
            provider: Some("anthropic".into()),
            surface: "messages".into(),
            ..record(1)
        },
        RequestRecord {
            target: Some("backup".into()),
            route: "fast".into(),
            key_id: Some("key-2".into()),
            ..record(2)
        },
        RequestRecord {
            key_id: None,
            route: "".into(),
            ..failed(3, Outcome::Rejected, "model_not_found", "no such model: 100%_sure")
        },
        failed(4, Outcome::Error, "upstream_error", r"a \ and 100 percent"),
        RequestRecord {
            key_id: Some("key-2".into()),
            ..failed(5, Outcome::Partial, "cut", "Connection closed")
        },
        failed(6, Outcome::ClientCancelled, "cancelled", "%"),
    ]
}

/// The same again and again, under other request ids. From the second round on they have courses.
fn rounds(count: i64) -> Vec<RequestRecord> {
    let round = |round: i64| {
        records().into_iter().zip(0..).map(move |(record, n)| RequestRecord {
            request_id: format!("{:032x}", n + round * ROUND).into(),
            ..record
        })
    };
    (0..count).flat_map(round).collect()
}

/// Request ids of a round begin that far after those of the last.
const ROUND: i64 = 100;

fn with(edit: impl FnOnce(&mut LogFilter)) -> LogFilter {
    let mut filter = LogFilter::default();
    edit(&mut filter);
    filter
}

async fn found(store: &Store, filter: &LogFilter) -> Vec<i64> {
    let rows = store.logs(filter, &Page::first(100)).await.unwrap().rows;
    let (counted, capped) = store.count_logs(filter, 1000).await.unwrap();
    assert_eq!((counted, capped), (rows.len() as u64, false), "{filter:?}");
    rows.iter()
        .map(|row| i64::from_str_radix(&row.record.request_id, 16).unwrap())
        .collect()
}

#[tokio::test]
async fn each_filter_finds_its_rows() {
    let text = |text: &str| Some(text.to_owned());
    let key = |id: &str| Some(KeyFilter::Id(id.to_owned()));
    let is = |outcome| Some(OutcomeFilter::Is(outcome));
    let failed = Some(OutcomeFilter::Failed);
    let cases: Vec<(&str, LogFilter, &[i64])> = vec![
        ("everything", with(|_| ()), &[6, 5, 4, 3, 2, 1, 0]),
        ("model", with(|f| f.model = text("Claude-Opus")), &[1]),
        ("model, not a part of it", with(|f| f.model = text("Claude")), &[]),
        ("surface", with(|f| f.surface = text("messages")), &[1]),
        ("surface, not a part of it", with(|f| f.surface = text("message")), &[]),
        ("provider", with(|f| f.provider = text("anthropic")), &[1]),
        ("target", with(|f| f.target = text("backup")), &[2]),
        ("route", with(|f| f.route = text("fast")), &[2]),
        ("default route", with(|f| f.route = text("default")), &[6, 5, 4, 1, 0]),
        ("route, not a part of it", with(|f| f.route = text("fas")), &[]),
        (
            "failures of a route",
            with(|f| (f.route, f.outcome) = (text("default"), failed)),
            &[6, 5, 4],
        ),
        ("key", with(|f| f.key = key("key-2")), &[5, 2]),
        ("no key", with(|f| f.key = Some(KeyFilter::None)), &[3]),
        ("success", with(|f| f.outcome = is(Outcome::Success)), &[2, 1, 0]),
        ("rejected", with(|f| f.outcome = is(Outcome::Rejected)), &[3]),
        ("cancelled", with(|f| f.outcome = is(Outcome::ClientCancelled)), &[6]),
        ("failed", with(|f| f.outcome = failed), &[6, 5, 4, 3]),
        ("answered", with(|f| f.stage = Some(Stage::AfterRequest)), &[2, 1, 0]),
        ("on error", with(|f| f.stage = Some(Stage::OnError)), &[6, 5, 4, 3]),
        (
            "stage against outcome",
            with(|f| (f.stage, f.outcome) = (Some(Stage::OnError), is(Outcome::Success))),
            &[],
        ),
        (
            "failures of a key",
            with(|f| (f.key, f.outcome) = (key("key-2"), failed)),
            &[5],
        ),
        ("since", with(|f| f.since_ms = Some(T0 + 5000)), &[6, 5]),
        ("until", with(|f| f.until_ms = Some(T0 + 2000)), &[1, 0]),
        (
            "between",
            with(|f| (f.since_ms, f.until_ms) = (Some(T0 + 1), Some(T0 + 2001))),
            &[2, 1],
        ),
        ("before all", with(|f| f.until_ms = Some(T0 - 3_600_000)), &[]),
        (
            "request id",
            with(|f| f.q = Some(record(4).request_id.to_string())),
            &[4],
        ),
        (
            "request id of a failure",
            with(|f| (f.q, f.outcome) = (Some(record(4).request_id.to_string()), failed)),
            &[4],
        ),
        (
            "request id of another key",
            with(|f| (f.q, f.key) = (Some(record(4).request_id.to_string()), key("key-2"))),
            &[],
        ),
        ("unknown request id", with(|f| f.q = Some("f".repeat(32))), &[]),
        ("part of a model, in either case", with(|f| f.q = text("claude")), &[1]),
        ("part of a code", with(|f| f.q = text("NOT_found")), &[3]),
        ("part of a message", with(|f| f.q = text("connection")), &[5]),
        ("a percent sign is itself", with(|f| f.q = text("%")), &[6, 3]),
        ("so is an underscore", with(|f| f.q = text("100%_s")), &[3]),
        ("and a backslash", with(|f| f.q = text(r"\")), &[4]),
        ("and a quote", with(|f| f.q = text("' or 1=1 --")), &[]),
    ];
    for count in [1, 3] {
        let place = Place::new();
        let store = place.with(rounds(count)).await;
        for (name, filter, wanted) in &cases {
            let names_request = filter.q.as_ref().is_some_and(|q| q.len() == 32);
            let rounds = if names_request { 1 } else { count };
            let wanted: Vec<_> = (0..rounds)
                .rev()
                .flat_map(|round| wanted.iter().map(move |n| n + round * ROUND))
                .collect();
            assert_eq!(found(&store, filter).await, wanted, "{name}, {count} rounds");
        }
    }
}

#[tokio::test]
async fn filters_narrow_together() {
    let place = Place::new();
    let store = place.with(records()).await;
    let filter = LogFilter {
        surface: Some("chat".to_owned()),
        model: Some("gpt-4o".to_owned()),
        provider: Some("openai".to_owned()),
        target: Some("openai-1".to_owned()),
        route: Some("default".to_owned()),
        key: Some(KeyFilter::Id("key-1".to_owned())),
        outcome: Some(OutcomeFilter::Is(Outcome::Error)),
        stage: Some(Stage::OnError),
        since_ms: Some(T0),
        until_ms: Some(T0 + 60_000),
        q: Some("upstream".to_owned()),
    };
    assert_eq!(found(&store, &filter).await, [4]);
}

#[tokio::test]
async fn a_count_stops_at_its_cap_and_says_so() {
    let place = Place::new();
    let store = place.with(records()).await;
    let failed = LogFilter {
        outcome: Some(OutcomeFilter::Failed),
        ..LogFilter::default()
    };
    assert_eq!(store.count_logs(&failed, 3).await.unwrap(), (3, true));
    assert_eq!(store.count_logs(&failed, 4).await.unwrap(), (4, false));
    assert_eq!(
        store.count_logs(&LogFilter::default(), 3).await.unwrap(),
        (7, false),
        "the whole log is not counted"
    );
}

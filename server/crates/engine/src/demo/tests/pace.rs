//! Time is paused here: it moves on only when everything waits for it, so that arrivals are exact.

use super::*;
use std::time::Duration;
use tokio::time::Instant;

/// When each frame of a stream arrives, in milliseconds from the request.
async fn arrivals(model: &str) -> Vec<u128> {
    let body = ask_with(
        "Tell me about yards",
        json!({"model": model, "stream": true, "max_tokens": 41}),
    );
    let start = Instant::now();
    let mut response = send(&DemoTransport::new(Pace::Human), "POST", CHAT, body.to_string())
        .await
        .unwrap();
    let mut arrivals = Vec::new();
    while response.body_mut().next().await.is_some() {
        arrivals.push(start.elapsed().as_millis());
    }
    arrivals
}

#[tokio::test(start_paused = true)]
async fn tokens_come_at_a_human_pace() {
    let times = arrivals("demo").await;
    // A role, 41 tokens, the finish, [DONE].
    assert_eq!(times.len(), 44);
    assert_eq!(times[..2], [0, 250], "the role at once, then the first token");
    let gaps: Vec<_> = times[1..42].windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 15 to 35, and up to one more for the timer's millisecond.
    assert!(gaps.iter().all(|gap| (14..=36).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap != gaps[0]), "the pace varies");
    let per_second = 40_000 / (times[41] - times[1]);
    assert!((36..=44).contains(&per_second), "{per_second} tokens a second");
    assert_eq!(times[43], times[41], "nothing is waited for after the last token");
    assert_eq!(times, arrivals("demo").await, "the same question has the same tempo");
}

#[tokio::test(start_paused = true)]
async fn the_slow_model_takes_five_seconds_to_begin() {
    let times = arrivals("demo-slow").await;
    assert_eq!(times[..2], [0, 5_000]);
    assert!(times[41] - times[1] > 8_000);
}

#[tokio::test(start_paused = true)]
async fn a_unary_answer_comes_when_its_stream_would_have_ended() {
    let streamed = arrivals("demo").await;
    let body = ask_with("Tell me about yards", json!({"max_tokens": 41}));
    let start = Instant::now();
    send(&DemoTransport::new(Pace::Human), "POST", CHAT, body.to_string())
        .await
        .unwrap();
    assert_eq!(start.elapsed().as_millis(), streamed[43]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_finds_what_has_come_meanwhile() {
    let body = ask_with("Tell me about yards", json!({"stream": true, "max_tokens": 41}));
    let mut response = send(&DemoTransport::new(Pace::Human), "POST", CHAT, body.to_string())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let start = Instant::now();
    while response.body_mut().next().await.is_some() {}
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_body_leaves_nothing_behind() {
    let body = ask_with("Tell me about yards", json!({"stream": true}));
    let mut response = send(&DemoTransport::new(Pace::Human), "POST", CHAT, body.to_string())
        .await
        .unwrap();
    response.body_mut().next().await.unwrap().unwrap();
    drop(response);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_pace_nothing_is_waited_for() {
    let start = Instant::now();
    let read = stream(ask_with("Write a long essay", json!({"model": "demo-slow"}))).await;
    assert!(read.done);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

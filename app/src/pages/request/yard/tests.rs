use super::*;
use crate::pages::request::view::tests::detail;
use switchyard_api::Timestamp;

fn attempt(target: &str, outcome: &str, started_ms: f64, latency_ms: f64, ttft_ms: Option<f64>) -> Attempt {
    Attempt {
        number: 1,
        target: target.to_owned(),
        provider: target.to_owned(),
        model: "gpt-4o".to_owned(),
        outcome: outcome.to_owned(),
        status: None,
        started_ms,
        latency_ms,
        ttft_ms,
        error: None,
    }
}

fn verdict(target: &str, state: &str, reason: &str) -> Verdict {
    Verdict {
        target: target.to_owned(),
        state: state.to_owned(),
        reason: reason.to_owned(),
        until: None,
    }
}

fn lay(duration_ms: f64, attempts: Vec<Attempt>, verdicts: Vec<Verdict>) -> Yard {
    let mut detail = LogDetail {
        attempts,
        verdicts,
        ..detail()
    };
    detail.row.duration_ms = duration_ms;
    yard(&detail)
}

fn pieces(track: &Track) -> Vec<(Piece, f64, f64)> {
    track.runs.iter().map(|run| (run.piece, run.x, run.width)).collect()
}

#[test]
fn a_failover_is_drawn_in_time() {
    let yard = lay(
        4_000.0,
        vec![
            attempt("azure", "timeout", 0.0, 2_000.0, None),
            attempt("openai", "success", 2_000.0, 2_000.0, Some(500.0)),
        ],
        vec![
            verdict("azure", "failed", "timed out"),
            verdict("openai", "chosen", ""),
            verdict("groq", "not_needed", ""),
        ],
    );
    assert_eq!(pieces(&yard.tracks[0]), [(Piece::Failed, 0.0, 500.0)]);
    assert_eq!(
        pieces(&yard.tracks[1]),
        [
            (Piece::Wait, 500.0, 125.0),
            (Piece::Flow, 625.0, 375.0),
            (Piece::First, 625.0, 0.0)
        ]
    );
    let turns: Vec<_> = yard.tracks.iter().map(|track| track.turn).collect();
    assert_eq!(turns, [Some(1), Some(2), None]);
    assert_eq!(pieces(&yard.tracks[2]), []);
    let why: Vec<_> = yard.tracks.iter().map(|track| track.why.as_str()).collect();
    assert_eq!(
        why,
        ["timed out", "first token after 500 ms, then 1.50 s", "not needed"]
    );
    assert_eq!(yard.ticks, ["0", "1.00 s", "2.00 s", "3.00 s", "4.00 s"]);
}

#[test]
fn an_instant_refusal_at_the_very_end_is_still_seen() {
    let yard = lay(
        100.0,
        vec![attempt("a", "connect", 100.0, 0.0, None)],
        vec![verdict("a", "failed", "refused")],
    );
    assert_eq!(pieces(&yard.tracks[0]), [(Piece::Failed, 996.0, 4.0)]);
}

#[test]
fn a_cut_stream_flows_up_to_its_stop() {
    let yard = lay(
        100.0,
        vec![attempt("a", "cut", 0.0, 100.0, Some(20.0))],
        vec![verdict("a", "failed", "cut")],
    );
    assert_eq!(
        pieces(&yard.tracks[0]),
        [
            (Piece::Wait, 0.0, 200.0),
            (Piece::Flow, 200.0, 800.0),
            (Piece::First, 200.0, 0.0),
            (Piece::Failed, 996.0, 4.0)
        ]
    );
}

#[test]
fn a_cut_answer_is_no_whole_one() {
    let of = |outcome: &str| {
        let yard = lay(
            100.0,
            vec![attempt("a", outcome, 0.0, 100.0, Some(20.0))],
            vec![verdict("a", "chosen", "answered")],
        );
        (yard.tracks[0].fate, yard.tracks[0].why.clone())
    };
    assert_eq!(
        of("cut"),
        (
            Fate::Cut,
            "first token after 20 ms, cut off after another 80 ms".to_owned()
        )
    );
    assert!(
        of("client_cancelled")
            .1
            .contains("cancelled by the client after another")
    );
}

#[test]
fn tracks_stand_in_the_order_of_their_turns_whatever_the_record_has() {
    let yard = lay(
        100.0,
        vec![
            attempt("c", "timeout", 0.0, 50.0, None),
            attempt("a", "success", 50.0, 50.0, None),
        ],
        vec![
            verdict("d", "excluded", "parked"),
            verdict("a", "chosen", ""),
            verdict("b", "not_needed", ""),
            verdict("c", "failed", "timed out"),
        ],
    );
    let order: Vec<_> = yard.tracks.iter().map(|track| track.target.as_str()).collect();
    assert_eq!(order, ["c", "a", "b", "d"]);
}

#[test]
fn retries_share_a_track_and_the_reason_counts_them() {
    let again = vec![
        attempt("a", "rate_limit", 0.0, 10.0, None),
        attempt("a", "success", 50.0, 50.0, None),
    ];
    let yard = lay(100.0, again, vec![verdict("a", "chosen", "")]);
    assert_eq!(
        pieces(&yard.tracks[0]),
        [(Piece::Failed, 0.0, 100.0), (Piece::Flow, 500.0, 500.0)]
    );
    assert_eq!(yard.tracks[0].why, "2 attempts; answered in 50 ms");
}

#[test]
fn what_was_left_out_says_why_and_until_when() {
    let parked = Verdict {
        until: Some(Timestamp(1_796_008_480_000)),
        ..verdict("groq", "excluded", "parked by a 429")
    };
    let yard = lay(0.0, vec![], vec![parked]);
    assert_eq!(yard.tracks[0].why, "left out: parked by a 429, until 03:14:40 UTC");
}

#[test]
fn an_attempt_without_a_verdict_is_not_lost() {
    let yard = lay(10.0, vec![attempt("ghost", "success", 0.0, 10.0, None)], vec![]);
    assert_eq!(
        (yard.tracks[0].target.as_str(), yard.tracks[0].fate),
        ("ghost", Fate::Chosen)
    );
}

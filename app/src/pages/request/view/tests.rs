use super::*;
use switchyard_api::{Note, Timestamp, Verdict};

/// A request that was answered without trouble.
pub fn row() -> LogRow {
    LogRow {
        id: 41,
        trace_id: "5f1c0b7e4c5d4a9f8e21d0c79ab09a20".to_owned(),
        stage: "after_request".to_owned(),
        created_at: Timestamp(1_796_008_447_912),
        surface: "chat".to_owned(),
        stream: true,
        model: "smart".to_owned(),
        upstream_model: Some("gpt-4o-2024-08-06".to_owned()),
        provider: Some("openai".to_owned()),
        target: Some("openai".to_owned()),
        route: "default".to_owned(),
        variant: None,
        status: 200,
        outcome: "success".to_owned(),
        error_code: None,
        error_message: None,
        prompt_tokens: Some(640),
        completion_tokens: Some(288),
        total_tokens: Some(928),
        cached_tokens: Some(512),
        reasoning_tokens: None,
        cache_write_tokens: None,
        audio_prompt_tokens: None,
        audio_completion_tokens: None,
        usage_estimated: false,
        cost_usd: Some(0.004_416),
        duration_ms: 3_900.0,
        ttft_ms: Some(2_410.0),
        overhead_ms: 0.2,
        attempts_count: 1,
        api_key_id: Some("k1".to_owned()),
        api_key_name: Some("web-app".to_owned()),
        simulated: false,
    }
}

pub fn note(fate: &str, field: &str, why: &str) -> Note {
    Note {
        fate: fate.to_owned(),
        field: field.to_owned(),
        why: why.to_owned(),
    }
}

/// The same, with what happened.
pub fn detail() -> LogDetail {
    let verdict = Verdict {
        target: "openai".to_owned(),
        state: "chosen".to_owned(),
        reason: String::new(),
        until: None,
    };
    LogDetail {
        row: row(),
        attempts: Vec::new(),
        verdicts: vec![verdict],
        notes: vec![note("dropped", "seed", "no such parameter there")],
    }
}

#[test]
fn the_title_says_how_it_ended() {
    let of = |outcome: &str, attempts_count| {
        title(&LogRow {
            outcome: outcome.to_owned(),
            attempts_count,
            ..row()
        })
    };
    assert_eq!(of("success", 1), "smart, answered by openai");
    assert_eq!(of("error", 3), "smart, failed after 3 attempts");
    assert_eq!(of("rejected", 0), "smart, refused by the gateway");
}

#[cfg(feature = "ssr")]
mod rendered {
    use super::*;
    use crate::testing::html;

    #[test]
    fn text_from_upstream_is_escaped_and_its_end_folded_away() {
        let message = format!("<script>alert(1)</script>{}", "x".repeat(500));
        let failed = LogRow {
            outcome: "error".to_owned(),
            status: 502,
            error_message: Some(message),
            ..row()
        };
        let html = html(error(&failed));
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
        assert!(html.contains("Show all of it"), "{html}");
    }

    #[test]
    fn nothing_on_the_page_needs_a_style_attribute() {
        let attempt = Attempt {
            number: 1,
            target: "openai".to_owned(),
            provider: "openai".to_owned(),
            model: "gpt-4o".to_owned(),
            outcome: "success".to_owned(),
            status: Some(200),
            started_ms: 0.0,
            latency_ms: 3_900.0,
            ttft_ms: Some(2_410.0),
            error: None,
        };
        let detail = LogDetail {
            attempts: vec![attempt],
            ..detail()
        };
        let html = html(view! { <RequestView detail=detail/> });
        assert!(!html.contains("style="), "{html}");
        assert!(html.contains("first token after 2.41 s, then 1.49 s"), "{html}");
    }

    #[test]
    fn route_and_variant_are_named_where_there_are_any() {
        let of = |row: LogRow| html(view! { <RequestView detail=LogDetail { row, ..detail() }/> });
        let named = of(LogRow {
            route: "cheap".to_owned(),
            variant: Some("b".to_owned()),
            ..row()
        });
        assert!(named.contains("<dt>Route</dt><dd>cheap</dd>"), "{named}");
        assert!(
            named.contains("<dt>Variant</dt><dd>b</dd>") && named.contains("· route cheap"),
            "{named}"
        );
        assert!(
            named.contains("/routing?model=smart&amp;stream=on&amp;route=cheap"),
            "{named}"
        );
        let refused = of(LogRow {
            route: String::new(),
            ..row()
        });
        assert!(
            refused.contains("<dt>Route</dt><dd>–</dd>") && !refused.contains("Variant"),
            "{refused}"
        );
    }

    #[test]
    fn usage_is_told_as_far_as_it_is_known_and_the_surface_by_its_name() {
        let html = html(facts(&LogRow {
            surface: "generate_content".to_owned(),
            cache_write_tokens: Some(2_048),
            audio_prompt_tokens: Some(7),
            ..row()
        }));
        for known in [
            "<dd>generateContent (Gemini), streamed</dd>",
            "<dt>Read from cache</dt><dd>512</dd>",
            "<dt>Written to cache</dt><dd>2,048</dd>",
            "<dt>Audio tokens in</dt><dd>7</dd>",
        ] {
            assert!(html.contains(known), "{html}");
        }
        assert!(
            !html.contains("Reasoning") && !html.contains("Audio tokens out"),
            "{html}"
        );
    }

    #[test]
    fn the_playground_opens_in_the_callers_dialect() {
        let link = |surface: &str| {
            let row = LogRow {
                surface: surface.to_owned(),
                ..row()
            };
            html(view! { <RequestView detail=LogDetail { row, ..detail() }/> })
        };
        assert!(link("messages").contains("/playground?model=smart&amp;dialect=messages\""));
        assert!(link("chat").contains("/playground?model=smart\""));
        assert!(link("embeddings").contains("/playground?model=smart\""));
    }

    #[test]
    fn an_unknown_price_is_not_zero() {
        let html = html(tiles(&LogRow {
            cost_usd: None,
            ..row()
        }));
        assert!(
            html.contains("<dt>Cost</dt><dd class=\"value\">–") && html.contains("no price"),
            "{html}"
        );
    }
}

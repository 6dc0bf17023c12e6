//! Where a call came in, as people call it. The log has a word for each surface; one that is newer than this page stands as
//! it is.

/// The log's words, the most used first.
pub const ALL: [&str; 9] = [
    "chat",
    "responses",
    "messages",
    "generate_content",
    "completions",
    "embeddings",
    "count_tokens",
    "gemini_count_tokens",
    "pass_through",
];

/// For a table's cell.
pub fn name(surface: &str) -> &str {
    match surface {
        "count_tokens" => "count_tokens (Anthropic)",
        "generate_content" => "generateContent",
        "gemini_count_tokens" => "countTokens (Gemini)",
        other => other,
    }
}

/// With whose it is.
pub fn title(surface: &str) -> &str {
    match surface {
        "chat" => "Chat completions (OpenAI)",
        "completions" => "Completions (OpenAI)",
        "embeddings" => "Embeddings (OpenAI)",
        "responses" => "Responses (OpenAI)",
        "messages" => "Messages (Anthropic)",
        "generate_content" => "generateContent (Gemini)",
        "pass_through" => "Passed on as it was",
        other => name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_surface_has_a_name_and_a_new_one_its_own() {
        for (surface, short, long) in [
            ("chat", "chat", "Chat completions (OpenAI)"),
            ("gemini_count_tokens", "countTokens (Gemini)", "countTokens (Gemini)"),
            ("generate_content", "generateContent", "generateContent (Gemini)"),
            ("rerank", "rerank", "rerank"),
        ] {
            assert_eq!((name(surface), title(surface)), (short, long));
        }
    }
}

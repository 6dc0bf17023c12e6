//! A file that was written for the reference gateway.

use super::{check, parse};
use crate::config::{Concurrency, Retry};
use expect_test::expect;
use std::time::Duration;

const REFERENCE: &str = include_str!("../../../testdata/reference.yaml");

#[test]
fn the_published_example_works_unchanged() {
    check(
        REFERENCE,
        expect![[r#"
            default: fallback openai*1 anthropic*1 xai gemini mistral groq together cohere deepseek perplexity fireworks ai21 replicate bedrock azure-openai azure-foundry vertex-ai hugging-face ollama ollama-cloud cerebras cloudflare databricks deepinfra moonshot novita nvidia-nim openrouter qwen sambanova
            inert: line 22: targets[2].virtual_key: provider "xai" is accepted and does nothing in this version
            inert: line 26: targets[4].virtual_key: provider "mistral" is accepted and does nothing in this version
            inert: line 27: targets[5].virtual_key: provider "groq" is accepted and does nothing in this version
            inert: line 28: targets[6].virtual_key: provider "together" is accepted and does nothing in this version
            inert: line 30: targets[8].virtual_key: provider "deepseek" is accepted and does nothing in this version
            inert: line 31: targets[9].virtual_key: provider "perplexity" is accepted and does nothing in this version
            inert: line 32: targets[10].virtual_key: provider "fireworks" is accepted and does nothing in this version
            inert: line 33: targets[11].virtual_key: provider "ai21" is accepted and does nothing in this version
            inert: line 34: targets[12].virtual_key: provider "replicate" is accepted and does nothing in this version
            inert: line 36: targets[14].virtual_key: provider "azure-openai" is accepted and does nothing in this version
            inert: line 37: targets[15].virtual_key: provider "azure-foundry" is accepted and does nothing in this version
            inert: line 39: targets[17].virtual_key: provider "hugging-face" is accepted and does nothing in this version
            inert: line 40: targets[18].virtual_key: provider "ollama" is accepted and does nothing in this version
            inert: line 41: targets[19].virtual_key: provider "ollama-cloud" is accepted and does nothing in this version
            inert: line 42: targets[20].virtual_key: provider "cerebras" is accepted and does nothing in this version
            inert: line 43: targets[21].virtual_key: provider "cloudflare" is accepted and does nothing in this version
            inert: line 44: targets[22].virtual_key: provider "databricks" is accepted and does nothing in this version
            inert: line 45: targets[23].virtual_key: provider "deepinfra" is accepted and does nothing in this version
            inert: line 46: targets[24].virtual_key: provider "moonshot" is accepted and does nothing in this version
            inert: line 47: targets[25].virtual_key: provider "novita" is accepted and does nothing in this version
            inert: line 48: targets[26].virtual_key: provider "nvidia-nim" is accepted and does nothing in this version
            inert: line 49: targets[27].virtual_key: provider "openrouter" is accepted and does nothing in this version
            inert: line 50: targets[28].virtual_key: provider "qwen" is accepted and does nothing in this version
            inert: line 51: targets[29].virtual_key: provider "sambanova" is accepted and does nothing in this version
            inert: line 58: plugins[0]: plugin "word-filter" is accepted and does nothing in this version
            inert: line 65: plugins[1]: plugin "max-token" is accepted and does nothing in this version
            inert: line 87: plugins[4]: plugin "request-logger" is accepted and does nothing in this version
            inert: line 94: plugins[5]: plugin "request-logger" is accepted and does nothing in this version
            inert: line 101: plugins[6]: plugin "request-logger" is accepted and does nothing in this version
            inert: line 138: mcp_servers[0]: MCP server "filesystem" is accepted and does nothing in this version
            inert: line 142: mcp_servers[1]: MCP server "database" is accepted and does nothing in this version
            inert: line 152: mcp_servers[2]: MCP server "web-search" is accepted and does nothing in this version
            inert: line 158: mcp_servers[3]: MCP server "brave-search" is accepted and does nothing in this version
            inert: line 166: mcp_servers[4]: MCP server "sqlite-db" is accepted and does nothing in this version
            inert: line 178: observability.tracing: tracing is accepted and does nothing in this version
        "#]],
    );
    let config = parse(REFERENCE);
    assert!(config.notices.iter().all(|notice| notice.inert));
    let retry = Retry {
        attempts: 3,
        on_status_codes: vec![429, 502, 503],
        initial_backoff: Duration::from_millis(100),
    };
    assert_eq!(config.routes[0].places[0].asking.retry, retry);
    assert_eq!(
        config.targets[0].concurrency,
        Some(Concurrency { most: 32, queue: 500 })
    );
    let breaker = config.targets[1].breaker.as_ref().unwrap();
    assert_eq!(breaker.policy, crate::breaker::Policy::default());
    assert_eq!(config.targets[3].models, ["gemini-2.5-flash"]);
    assert_eq!(config.aliases["smart"], "claude-sonnet-4-6");
}

/// What the example shows in passing, one mode at a time.
#[test]
fn its_other_modes_work_unchanged() {
    let with = |strategy: &str| REFERENCE.replacen("strategy:\n  mode: fallback\n", strategy, 1);
    for strategy in [
        "strategy:\n  mode: conditional\n  conditions:\n    - key: model\n      value: gpt-4o\n      target_key: openai\n    - key: model\n      value: claude-sonnet-4-6\n      target_key: anthropic\n",
        "strategy:\n  mode: content-based\n  content_conditions:\n    - type: prompt_regex\n      value: \"(?i)\\\\b(code|function|class|implement)\\\\b\"\n      target_key: deepseek\n    - type: prompt_contains\n      value: \"translate\"\n      target_key: gemini\n    - type: prompt_not_contains\n      value: \"confidential\"\n      target_key: openai\n",
        "strategy:\n  mode: ab-test\n  ab_variants:\n    - target_key: openai\n      weight: 70\n      label: control\n    - target_key: anthropic\n      weight: 30\n      label: challenger\n",
        "strategy:\n  mode: cost-optimized\n  unpriced_strategy: fallback\n",
        "strategy:\n  mode: least-latency\n",
    ] {
        let document = with(strategy);
        assert_ne!(document, REFERENCE);
        assert!(parse(&document).notices.iter().all(|notice| notice.inert), "{strategy}");
    }
    // Weights stand at two targets of thirty: the others get nothing, which is said.
    let balanced = parse(&with("strategy:\n  mode: loadbalance\n"));
    assert_eq!(balanced.notices.iter().filter(|notice| !notice.inert).count(), 28);
    let alone = parse(&with("strategy: {}\n"));
    assert_eq!(alone.notices.iter().filter(|notice| !notice.inert).count(), 1);
}

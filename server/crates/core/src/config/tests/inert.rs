//! Blocks that are checked and do nothing yet.

use super::check;
use expect_test::expect;

#[test]
fn plugins_have_a_name_and_a_stage() {
    check(
        "\
targets: [demo]
plugins:
  - {stage: before_request}
  - {name: off, stage: sometime}
  - {name: idle}
  - {name: word-filter, enabled: true}
  - {name: word-filter, stage: before_request, enabled: yes please}
  - {name: p, id: '', stage: on_error, config: [1]}
  - {name: p, stage: on_error, when: now}
  - word-filter
",
        expect![[r#"
            line 3: plugins[0].name: is required
            line 4: plugins[1].stage: "sometime" is no stage; use before_request, after_request or on_error
            line 6: plugins[3].stage: is required; use before_request, after_request or on_error
            line 7: plugins[4].enabled: must be true or false, not a text
            line 8: plugins[5].id: must not be empty; leave it out to go by the plugin's name
            line 8: plugins[5].config: must be a block of keys, not a list
            line 9: plugins[6].when: is not a key of this block; known here: name, id, type, enabled, stage, config
            line 10: plugins[7]: must be a block of keys, not a text
        "#]],
    );
    check(
        "targets: [demo]\nplugins:\n  - {name: word-filter, type: guardrail, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: off, stage: on_error}\n",
        expect![[r#"
            default: single demo
            inert: line 3: plugins[0]: plugin "word-filter" is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn one_plugin_has_one_config_at_all_its_stages() {
    // The same, in whatever order its keys are written.
    check(
        "targets: [demo]\nplugins:\n  - {name: p, stage: before_request, enabled: true, config: {a: 1, b: [x, 2]}}\n  - {name: p, stage: after_request, enabled: true, config: {b: [x, 2], a: 1}}\n",
        expect![[r#"
            default: single demo
            inert: line 3: plugins[0]: plugin "p" is accepted and does nothing in this version
            inert: line 4: plugins[1]: plugin "p" is accepted and does nothing in this version
        "#]],
    );
    check(
        "targets: [demo]\nplugins:\n  - {name: p, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: p, stage: after_request, enabled: true, config: {a: 2}}\n  - {name: p, stage: on_error, enabled: true}\n",
        expect![[r#"
            line 4: plugins[1].config: has another config than "p" in plugins[0]; make them the same, or give each an `id` of its own
            line 5: plugins[2].config: has another config than "p" in plugins[0]; make them the same, or give each an `id` of its own
        "#]],
    );
    // What is off disagrees with nobody, and another `id` is another instance.
    check(
        "targets: [demo]\nplugins:\n  - {name: p, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: p, stage: after_request, config: {a: 2}}\n  - {name: p, id: other, stage: after_request, enabled: true, config: {a: 3}}\n",
        expect![[r#"
            default: single demo
            inert: line 3: plugins[0]: plugin "p" is accepted and does nothing in this version
            inert: line 5: plugins[2]: plugin "p" is accepted and does nothing in this version
        "#]],
    );
    // Two instances may share their stages.
    check(
        "targets: [demo]\nplugins:\n  - {name: p, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: p, stage: before_request, enabled: true, config: {a: 2}}\n  - {name: p, stage: after_request, enabled: true, config: {a: 2}}\n",
        expect![[r#"
            default: single demo
            inert: line 3: plugins[0]: plugin "p" is accepted and does nothing in this version
            inert: line 4: plugins[1]: plugin "p" is accepted and does nothing in this version
            inert: line 5: plugins[2]: plugin "p" is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn a_plugin_stands_at_a_stage_once() {
    check(
        "targets: [demo]\nplugins:\n  - {name: p, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: p, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: q, id: x, stage: on_error, enabled: true}\n  - {name: q, id: x, stage: on_error, enabled: true}\n  - {name: q, id: y, stage: on_error, enabled: true}\n",
        expect![[r#"
            line 4: plugins[1]: "p" stands at this stage with this config already; keep one of them
            line 6: plugins[3]: "q" stands at this stage with this config already; keep one of them
        "#]],
    );
    check(
        "targets: [demo]\nplugins:\n  - {name: p, id: x, stage: before_request}\n  - name: q\n    id: x\n    stage: before_request\n",
        expect![[r#"
            line 5: plugins[1].id: "x" is the id of plugin "p"; give each its own
        "#]],
    );
}

#[test]
fn tool_servers_have_a_name_and_one_way_to_reach_them() {
    check(
        "\
targets: [demo]
mcp_servers:
  - {name: both, url: 'http://x', command: y}
  - {name: neither}
  - {url: 'http://x'}
  - {name: same, url: 'http://x'}
  - url: 'http://y'
    name: same
  - {name: odd, url: 'ftp://x'}
  - {name: blank, command: ' '}
  - {name: lists, command: x, args: y, allowed_tools: [[z]], env: [a], headers: {b: [c]}}
  - {name: numbers, command: x, max_call_depth: -1, timeout_seconds: x, required: maybe}
  - {name: key, command: x, cwd: /}
",
        expect![[r#"
            line 3: mcp_servers[0]: needs either `url` or `command`, and not both
            line 4: mcp_servers[1]: needs either `url` or `command`, and not both
            line 5: mcp_servers[2].name: is required
            line 8: mcp_servers[4].name: "same" is used already; give each server its own name
            line 9: mcp_servers[5].url: must be an http:// or https:// address
            line 10: mcp_servers[6].command: must not be empty
            line 11: mcp_servers[7].args: must be a list, not a text
            line 11: mcp_servers[7].allowed_tools[0]: must be a text, not a list
            line 11: mcp_servers[7].env: must be a block of keys, not a list
            line 11: mcp_servers[7].headers.b: must be a text, not a list
            line 12: mcp_servers[8].max_call_depth: must be from 0 to 1000, not -1
            line 12: mcp_servers[8].timeout_seconds: must be a whole number, not a text
            line 12: mcp_servers[8].required: must be true or false, not a text
            line 13: mcp_servers[9].cwd: is not a key of this block; known here: name, url, command, args, allowed_tools, env, headers, max_call_depth, timeout_seconds, required
        "#]],
    );
    check(
        "targets: [demo]\nmcp_servers:\n  - {name: a, url: '${URL}', headers: {A: b}, allowed_tools: [t], max_call_depth: 5, timeout_seconds: 30, required: true}\n  - {name: b, command: npx, args: [-y, 1], env: {K: '${K}'}}\n",
        expect![[r#"
            default: single demo
            inert: line 3: mcp_servers[0]: MCP server "a" is accepted and does nothing in this version
            inert: line 4: mcp_servers[1]: MCP server "b" is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn batches_and_responses_name_a_target() {
    check(
        "targets: [demo]\nbatch_target: openai\nresponses_target: dmo\n",
        expect![[r#"
            line 2: batch_target: "openai" names no target; declared targets: demo
            line 3: responses_target: "dmo" names no target; declared targets: demo
        "#]],
    );
    check(
        "targets: [demo]\nbatch_target: demo\nresponses_target: demo\n",
        expect![[r#"
            default: single demo
            inert: line 2: batch_target: batch_target is accepted and does nothing in this version
            inert: line 3: responses_target: responses_target is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn unsupported_parameters_have_a_policy() {
    check(
        "targets: [demo]\ncompatibility:\n  on_unsupported_param: ignore\n  else: x\n",
        expect![[r#"
            line 3: compatibility.on_unsupported_param: "ignore" is no policy; use warn, drop or reject
            line 4: compatibility.else: is not a key of this block; known here: on_unsupported_param
        "#]],
    );
    check(
        "targets: [demo]\ncompatibility: {on_unsupported_param: drop}\n",
        expect![[r#"
            default: single demo
        "#]],
    );
    check(
        "targets: [demo]\ncompatibility: warn\n",
        expect![[r#"
        line 2: compatibility: must be a block of keys, not a text
    "#]],
    );
}

#[test]
fn tracing_and_exporters_are_checked() {
    check(
        "\
targets: [demo]
observability:
  tracing:
    enabled: maybe
    endpoint: 'ftp://x'
    protocol: http
    service_name: [x]
    sample_ratio: 1.5
    privacy_level: some
    shutdown_grace: 10
    headers: [a]
    attempt_spans: 1
    propagate_passthrough: 1
    color: red
  exporters:
    - {name: a, enabled: 1, config: [x], url: y}
    - a
",
        expect![[r#"
            line 4: observability.tracing.enabled: must be true or false, not a text
            line 5: observability.tracing.endpoint: must be an http:// or https:// address
            line 6: observability.tracing.protocol: "http" is none of grpc, http/protobuf
            line 7: observability.tracing.service_name: must be a text, not a list
            line 8: observability.tracing.sample_ratio: must be from 0 to 1
            line 9: observability.tracing.privacy_level: "some" is none of none, metadata, full
            line 10: observability.tracing.shutdown_grace: must be a time with its unit, such as "30s", "1m30s" or "500ms"
            line 11: observability.tracing.headers: must be a block of keys, not a list
            line 12: observability.tracing.attempt_spans: must be true or false, not a number
            line 13: observability.tracing.propagate_passthrough: must be true or false, not a number
            line 14: observability.tracing.color: is not a key of this block; known here: enabled, service_name, endpoint, protocol, privacy_level, sample_ratio, shutdown_grace, headers, attempt_spans, propagate_passthrough
            line 16: observability.exporters[0].enabled: must be true or false, not a number
            line 16: observability.exporters[0].config: must be a block of keys, not a list
            line 16: observability.exporters[0].url: is not a key of this block; known here: name, enabled, config
            line 17: observability.exporters[1]: must be a block of keys, not a text
        "#]],
    );
    check(
        "targets: [demo]\nobservability: {tracing: {sample_ratio: -1, endpoint: 'a b:1'}}\n",
        expect![[r#"
            line 2: observability.tracing.endpoint: must be an http:// or https:// address
            line 2: observability.tracing.sample_ratio: must be at least 0, not -1
        "#]],
    );
    for endpoint in ["", "collector:4317", "http://collector:4318/v1/traces", "${OTLP}"] {
        check(
            &format!(
                "targets: [demo]\nobservability:\n  tracing: {{endpoint: '{endpoint}', protocol: http/protobuf, privacy_level: none, sample_ratio: 0}}\n"
            ),
            expect![[r#"
                default: single demo
                inert: line 3: observability.tracing: tracing is accepted and does nothing in this version
            "#]],
        );
    }
    check(
        "targets: [demo]\nobservability:\n  tracing: {enabled: false}\n  exporters:\n    - {name: a, config: {x: 1}}\n    - {name: b, enabled: false}\n",
        expect![[r#"
            default: single demo
            inert: line 5: observability.exporters[0]: exporter "a" is accepted and does nothing in this version
        "#]],
    );
}

//! Blocks of an existing file that this version checks and does not act on. Each one in use is reported.

use super::Notices;
use super::reader::{Block, Faults, as_text};
use super::targets::Target;
use super::tree::{Node, Value};
use crate::env::Template;

pub(super) fn read(root: &mut Block<'_>, targets: &[Target], faults: &mut Faults, notices: &mut Notices) {
    let mut plugins = Vec::new();
    for (node, path) in root.list("plugins", faults) {
        plugins.extend(read_plugin(node, path, faults, notices));
    }
    check_instances(&plugins, faults);
    let mut names: Vec<String> = Vec::new();
    for (node, path) in root.list("mcp_servers", faults) {
        if let Some(name) = read_mcp_server(node, &path, faults, notices) {
            if names.contains(&name.0) {
                let message = format!("\"{}\" is used already; give each server its own name", name.0);
                faults.add(&format!("{path}.name"), name.1, message);
            }
            names.push(name.0);
        }
    }
    for key in ["batch_target", "responses_target"] {
        let Some(node) = root.take(key) else { continue };
        let named = root.text(key, faults).unwrap_or_default();
        if targets.iter().any(|target| target.virtual_key == named) {
            notices.inert(key, node.line, key);
        } else {
            let declared: Vec<&str> = targets.iter().map(|target| target.virtual_key.as_str()).collect();
            faults.add(
                key,
                node.line,
                format!("\"{named}\" names no target; declared targets: {}", declared.join(", ")),
            );
        }
    }
    read_observability(root, faults, notices);
}

struct Plugin<'n> {
    path: String,
    line: u64,
    name: String,
    /// With its line.
    id: Option<(String, u64)>,
    stage: String,
    enabled: bool,
    config: Option<&'n Value>,
    config_line: u64,
}

fn read_plugin<'n>(node: &'n Node, path: String, faults: &mut Faults, notices: &mut Notices) -> Option<Plugin<'n>> {
    let mut block = Block::of(node, &path, faults)?;
    let name = block.text("name", faults).unwrap_or_default();
    if name.trim().is_empty() {
        faults.add(&block.path_of("name"), block.line_of("name"), "is required");
    }
    let id = block.text("id", faults).map(|id| (id, block.line_of("id")));
    if id.as_ref().is_some_and(|(id, _)| id.trim().is_empty()) {
        let message = "must not be empty; leave it out to go by the plugin's name";
        faults.add(&block.path_of("id"), block.line_of("id"), message);
    }
    block.text("type", faults);
    let enabled = block.boolean("enabled", faults).unwrap_or(false);
    let is_staged = block.take("stage").is_some();
    let stage = block.text("stage", faults).unwrap_or_default();
    if (is_staged || enabled) && !["before_request", "after_request", "on_error"].contains(&stage.as_str()) {
        let found = if is_staged {
            format!("\"{stage}\" is no stage")
        } else {
            "is required".to_owned()
        };
        let message = format!("{found}; use before_request, after_request or on_error");
        faults.add(&block.path_of("stage"), block.line_of("stage"), message);
    }
    let config = block.take("config");
    if let Some(config) = config {
        Block::of(config, &block.path_of("config"), faults);
    }
    let (line, config_line) = (block.line, block.line_of("config"));
    if enabled {
        notices.inert(&path, line, &format!("plugin \"{name}\""));
    }
    block.finish(faults);
    Some(Plugin {
        path,
        line,
        name,
        id,
        stage,
        enabled,
        config: config.map(|node| &node.value),
        config_line,
    })
}

/// Entries of one plugin at several stages are one instance, so they must agree. An `id` makes an instance of its own.
fn check_instances(plugins: &[Plugin<'_>], faults: &mut Faults) {
    let same_config = |a: &Plugin<'_>, b: &Plugin<'_>| match (a.config, b.config) {
        (Some(a), Some(b)) => a.says(b),
        (a, b) => a.is_none() && b.is_none(),
    };
    for (i, plugin) in plugins.iter().enumerate() {
        let before = plugins.iter().take(i);
        if let Some((id, line)) = &plugin.id {
            let has_id = |other: &&Plugin<'_>| other.id.as_ref().is_some_and(|(other, _)| other == id);
            if let Some(other) = before.clone().filter(has_id).find(|other| other.name != plugin.name) {
                let message = format!("\"{id}\" is the id of plugin \"{}\"; give each its own", other.name);
                faults.add(&format!("{}.id", plugin.path), *line, message);
            }
        }
        let id = |plugin: &Plugin<'_>| plugin.id.as_ref().map(|(id, _)| id.clone());
        let twin = |other: &&Plugin<'_>| {
            other.enabled && !other.name.is_empty() && other.name == plugin.name && id(other) == id(plugin)
        };
        if !plugin.enabled {
            continue;
        }
        let twice = |other: &Plugin<'_>| other.stage == plugin.stage && same_config(other, plugin);
        if before.clone().filter(twin).any(twice) {
            let message = format!(
                "\"{}\" stands at this stage with this config already; keep one of them",
                plugin.name
            );
            faults.add(&plugin.path, plugin.line, message);
            continue;
        }
        // Two instances may share a stage. Then each config is found at it.
        let stands = |config: &Plugin<'_>, at: &Plugin<'_>| {
            let mut all = plugins.iter().filter(twin);
            all.any(|other| other.stage == at.stage && same_config(other, config))
        };
        let differs = |other: &&Plugin<'_>| {
            other.stage != plugin.stage
                && !same_config(other, plugin)
                && !stands(other, plugin)
                && !stands(plugin, other)
        };
        if let Some(other) = before.filter(twin).find(differs) {
            let message = format!(
                "has another config than \"{}\" in {}; make them the same, or give each an `id` of its own",
                plugin.name, other.path
            );
            faults.add(&format!("{}.config", plugin.path), plugin.config_line, message);
        }
    }
}

/// Gives the name with its line.
fn read_mcp_server(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) -> Option<(String, u64)> {
    let mut block = Block::of(node, path, faults)?;
    let name = block.text("name", faults).unwrap_or_default();
    let name_line = block.line_of("name");
    if name.trim().is_empty() {
        faults.add(&block.path_of("name"), name_line, "is required");
    }
    let (has_url, has_command) = (block.take("url").is_some(), block.take("command").is_some());
    if has_url == has_command {
        faults.add(path, block.line, "needs either `url` or `command`, and not both");
    }
    if let Some(url) = block.text("url", faults) {
        check_address(&url, &block.path_of("url"), block.line_of("url"), faults);
    }
    if has_command
        && block
            .text("command", faults)
            .is_some_and(|command| command.trim().is_empty())
    {
        faults.add(&block.path_of("command"), block.line_of("command"), "must not be empty");
    }
    for key in ["args", "allowed_tools"] {
        for (node, path) in block.list(key, faults) {
            as_text(node, &path, faults);
        }
    }
    for key in ["env", "headers"] {
        block.text_map(key, faults);
    }
    block.integer("max_call_depth", 0, 1000, faults);
    block.integer("timeout_seconds", 0, 86_400, faults);
    block.boolean("required", faults);
    notices.inert(path, block.line, &format!("MCP server \"{name}\""));
    block.finish(faults);
    (!name.is_empty()).then_some((name, name_line))
}

/// A reference into the environment is checked when it is resolved.
fn check_address(url: &str, path: &str, line: u64, faults: &mut Faults) {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if Template::new(url).is_literal() && (!has_host || url.contains(char::is_whitespace)) {
        faults.add(path, line, "must be an http:// or https:// address");
    }
}

fn read_observability(root: &mut Block<'_>, faults: &mut Faults, notices: &mut Notices) {
    let Some(node) = root.take("observability") else { return };
    let Some(mut block) = Block::of(node, "observability", faults) else {
        return;
    };
    if let Some(tracing) = block.take("tracing") {
        read_tracing(tracing, faults, notices);
    }
    for (exporter, path) in block.list("exporters", faults) {
        let Some(mut entry) = Block::of(exporter, &path, faults) else {
            continue;
        };
        let name = entry.text("name", faults).unwrap_or_default();
        let enabled = entry.boolean("enabled", faults).unwrap_or(true);
        if let Some(config) = entry.take("config") {
            Block::of(config, &entry.path_of("config"), faults);
        }
        if enabled {
            notices.inert(&path, entry.line, &format!("exporter \"{name}\""));
        }
        entry.finish(faults);
    }
    block.finish(faults);
}

fn read_tracing(node: &Node, faults: &mut Faults, notices: &mut Notices) {
    let path = "observability.tracing";
    let Some(mut block) = Block::of(node, path, faults) else {
        return;
    };
    let enabled = block.boolean("enabled", faults).unwrap_or(true);
    block.text("service_name", faults);
    // An OTLP endpoint is an address, or a host with a port alone.
    if let Some(endpoint) = block.text("endpoint", faults).filter(|endpoint| !endpoint.is_empty()) {
        let url = match endpoint.contains("://") {
            true => endpoint,
            false => format!("http://{endpoint}"),
        };
        check_address(&url, &block.path_of("endpoint"), block.line_of("endpoint"), faults);
    }
    for (key, known) in [
        ("protocol", &["grpc", "http/protobuf"][..]),
        ("privacy_level", &["none", "metadata", "full"][..]),
    ] {
        if let Some(written) = block
            .text(key, faults)
            .filter(|written| !known.contains(&written.as_str()))
        {
            let message = format!("\"{written}\" is none of {}", known.join(", "));
            faults.add(&block.path_of(key), block.line_of(key), message);
        }
    }
    if let Some(ratio) = block.take("sample_ratio")
        && block
            .number("sample_ratio", 0.0, faults)
            .is_some_and(|value| value > 1.0)
    {
        faults.add("observability.tracing.sample_ratio", ratio.line, "must be from 0 to 1");
    }
    block.duration("shutdown_grace", faults);
    block.text_map("headers", faults);
    block.boolean("attempt_spans", faults);
    block.boolean("propagate_passthrough", faults);
    if enabled {
        notices.inert(path, block.line, "tracing");
    }
    block.finish(faults);
}

//! Blocks of an existing file that this version checks and does not act on. Each one in use is reported.

use super::reader::{Block, Faults};
use super::targets::Target;
use super::{Notices, tree::Node};

pub(super) fn read(root: &mut Block<'_>, targets: &[Target], faults: &mut Faults, notices: &mut Notices) {
    for (node, path) in root.list("plugins", faults) {
        read_plugin(node, &path, faults, notices);
    }
    let mut names: Vec<String> = Vec::new();
    for (node, path) in root.list("mcp_servers", faults) {
        if let Some(name) = read_mcp_server(node, &path, faults, notices) {
            if names.contains(&name) {
                faults.add(
                    &format!("{path}.name"),
                    node.line,
                    format!("\"{name}\" is used already; give each server its own name"),
                );
            }
            names.push(name);
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
    read_compatibility(root, faults, notices);
    read_observability(root, faults, notices);
}

fn read_plugin(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) {
    let Some(mut block) = Block::of(node, path, faults) else {
        return;
    };
    let name = block.text("name", faults);
    if name.as_deref().unwrap_or_default().is_empty() {
        faults.add(&block.path_of("name"), block.line, "is required");
    }
    for key in ["id", "type"] {
        block.text(key, faults);
    }
    if let Some(stage) = block.take("stage") {
        let written = block.text("stage", faults).unwrap_or_default();
        if !["before_request", "after_request", "on_error"].contains(&written.as_str()) {
            let message = format!("\"{written}\" is no stage; use before_request, after_request or on_error");
            faults.add(&block.path_of("stage"), stage.line, message);
        }
    }
    let enabled = block.boolean("enabled", faults).unwrap_or(false);
    if let Some(settings) = block.take("config") {
        Block::of(settings, &block.path_of("config"), faults);
    }
    if enabled {
        notices.inert(path, block.line, &format!("plugin \"{}\"", name.unwrap_or_default()));
    }
    block.finish(faults);
}

fn read_mcp_server(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) -> Option<String> {
    let mut block = Block::of(node, path, faults)?;
    let name = block.text("name", faults).unwrap_or_default();
    if name.is_empty() {
        faults.add(&block.path_of("name"), block.line, "is required");
    }
    let url = block.text("url", faults);
    let command = block.text("command", faults);
    if url.is_some() == command.is_some() {
        faults.add(path, block.line, "needs either `url` or `command`, and not both");
    }
    for key in ["args", "allowed_tools"] {
        block.list(key, faults);
    }
    for key in ["env", "headers"] {
        block.text_map(key, faults);
    }
    block.integer("max_call_depth", 1, 1000, faults);
    block.integer("timeout_seconds", 1, 86_400, faults);
    block.boolean("required", faults);
    notices.inert(path, block.line, &format!("MCP server \"{name}\""));
    block.finish(faults);
    Some(name)
}

fn read_compatibility(root: &mut Block<'_>, faults: &mut Faults, notices: &mut Notices) {
    let Some(node) = root.take("compatibility") else { return };
    let Some(mut block) = Block::of(node, "compatibility", faults) else {
        return;
    };
    if let Some(policy) = block.take("on_unsupported_param") {
        let written = block.text("on_unsupported_param", faults).unwrap_or_default();
        if ["warn", "drop", "reject"].contains(&written.as_str()) {
            notices.inert(
                "compatibility.on_unsupported_param",
                policy.line,
                "on_unsupported_param",
            );
        } else {
            let message = format!("\"{written}\" is no policy; use warn, drop or reject");
            faults.add("compatibility.on_unsupported_param", policy.line, message);
        }
    }
    block.finish(faults);
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
        entry.take("config");
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
    for key in ["endpoint", "protocol", "service_name", "privacy_level"] {
        block.text(key, faults);
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

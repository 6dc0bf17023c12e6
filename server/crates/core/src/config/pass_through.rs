//! `pass_through`: which requests that the gateway does not understand go to an upstream all the same.

use super::reader::{Block, Faults, as_text};
use super::tree::{Node, Value};

/// What is passed on of what is no surface of the gateway's own.
///
/// Such a request runs in the name of the gateway's account: a vendor's files, batches and vector stores are one heap for all
/// keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PassThrough {
    /// Every path below `/v1`.
    #[default]
    All,
    /// These paths and what is below them. None of them: nothing.
    Only(Vec<String>),
}

impl PassThrough {
    /// Whether a request to this path is passed on. Paths are compared as they are written: one in disguise is not on the list.
    #[must_use]
    pub fn allows(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(paths) => paths.iter().any(|allowed| {
                path.strip_prefix(allowed.as_str())
                    .is_some_and(|below| below.is_empty() || below.starts_with('/'))
            }),
        }
    }
}

pub(super) fn read(root: &mut Block<'_>, faults: &mut Faults) -> PassThrough {
    const NAME: &str = "pass_through";
    let Some(node) = root.take(NAME) else {
        return PassThrough::default();
    };
    let must = "must be all, off, or a list of paths such as /v1/fine_tuning";
    match &node.value {
        // Some write `off` so, and some parsers read it so.
        Value::Bool(true) => PassThrough::All,
        Value::Bool(false) => PassThrough::Only(Vec::new()),
        Value::Str(word) if word == "all" => PassThrough::All,
        Value::Str(word) if word == "off" => PassThrough::Only(Vec::new()),
        Value::Str(word) => {
            faults.add(NAME, node.line, format!("{must}, not \"{word}\""));
            PassThrough::default()
        }
        Value::Seq(items) => {
            if items.is_empty() {
                faults.add(NAME, node.line, "lists nothing; write off to pass nothing on");
            }
            let paths = items.iter().enumerate();
            PassThrough::Only(paths.filter_map(|(i, item)| path(item, i, faults)).collect())
        }
        other @ (Value::Null | Value::Int(_) | Value::Float(_) | Value::Map(_)) => {
            faults.add(NAME, node.line, format!("{must}, not {}", other.kind()));
            PassThrough::default()
        }
    }
}

fn path(node: &Node, index: usize, faults: &mut Faults) -> Option<String> {
    let at = format!("pass_through[{index}]");
    let written = as_text(node, &at, faults)?;
    let path = written.trim_end_matches('/');
    let is_path = path.strip_prefix("/v1/").is_some_and(|rest| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:".contains(c);
        rest.chars().all(is_plain) && rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
    });
    if !is_path {
        let message = format!(
            "\"{written}\" is no path below /v1, such as /v1/fine_tuning; what is below a path is listed with it, so \
             there are no wildcards"
        );
        faults.add(&at, node.line, message);
        return None;
    }
    Some(path.to_owned())
}

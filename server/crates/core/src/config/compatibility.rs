//! `compatibility`: what becomes of what an upstream does not know.

use super::reader::{Block, Faults};

/// What to do with a parameter that an upstream does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnsupported {
    /// Drop it, with a note and a line in the log.
    #[default]
    Warn,
    /// Drop it, with a note.
    Drop,
    /// Refuse the call there.
    Reject,
}

pub(super) fn read(root: &mut Block<'_>, faults: &mut Faults) -> OnUnsupported {
    let mut policy = OnUnsupported::default();
    let Some(node) = root.take("compatibility") else {
        return policy;
    };
    let Some(mut block) = Block::of(node, "compatibility", faults) else {
        return policy;
    };
    match block.text("on_unsupported_param", faults).as_deref() {
        None | Some("warn") => {}
        Some("drop") => policy = OnUnsupported::Drop,
        Some("reject") => policy = OnUnsupported::Reject,
        Some(other) => {
            let message = format!("\"{other}\" is no policy; use warn, drop or reject");
            let (path, line) = (
                block.path_of("on_unsupported_param"),
                block.line_of("on_unsupported_param"),
            );
            faults.add(&path, line, message);
        }
    }
    block.finish(faults);
    policy
}

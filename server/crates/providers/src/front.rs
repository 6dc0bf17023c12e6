//! Which front reads and writes for which surface.

use crate::Surface;
use crate::anthropic::Messages;
use crate::codec::Front;
use crate::gemini::Generate;
use crate::openai::{Chat, Completions, Responses};

/// The front of a surface for conversations. Embeddings have their own, see [`crate::openai::embeddings`]; what is said of them
/// here is never asked.
pub(crate) fn front(surface: Surface) -> &'static dyn Front {
    match surface {
        Surface::Chat | Surface::Embeddings => &Chat,
        Surface::Completions => &Completions,
        Surface::Responses => &Responses,
        Surface::Messages | Surface::CountTokens => &Messages,
        Surface::Generate | Surface::GeminiCountTokens => &Generate,
    }
}

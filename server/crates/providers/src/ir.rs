//! What is said, apart from how a vendor writes it.
//!
//! A caller's request in one dialect reaches a model behind another wire by way of these types, and the answer comes back by
//! way of them: *n* readers and *m* writers make every pair. Nothing here is on the way of a call whose dialect the upstream
//! speaks itself; such a call is relayed as bytes.
//!
//! - [`Prompt`] is a request, [`Answer`] a whole answer, [`Event`] one step of a streamed one.
//! - [`Embed`] and [`Vectors`] are the same for embeddings.
//!
//! The types are as wide as the widest of the wires: whatever two of them have in common has a place here. What only one of
//! them knows stays with the reader, which names it in [`Prompt::strangers`], so that its loss is told and never silent.

mod answer;
mod embed;
mod event;
mod prompt;
mod seal;

pub use answer::{Answer, Choice, Finish};
pub use embed::{Embed, EmbedInput, Encoding, Vectors};
pub use event::{Delta, Event};
pub use prompt::{
    Audio, Call, Citation, Custom, Document, Effort, Format, Image, Message, Part, Place, Prompt, Reasoning, ResultOf,
    Role, Sampling, Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
pub use seal::{Maker, Seal};

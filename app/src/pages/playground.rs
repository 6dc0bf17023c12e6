//! `/playground`: a conversation through the same pipeline as any application's.
//!
//! [`sse`] turns what arrives into events, [`chunk`] reads an event, [`ask`] writes a request; all three are pure.
//! [`talk`] is the conversation's state, `send` drives it in the browser, `view` and `turn` show it.

pub mod ask;
pub mod chunk;
pub mod page;
pub mod send;
pub mod sse;
#[cfg(target_arch = "wasm32")]
pub mod stream;
pub mod talk;
pub mod turn;
pub mod view;

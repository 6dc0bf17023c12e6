//! `/playground`: a conversation through the same pipeline as any application's.
//!
//! It speaks every [`dialect`] that the gateway is spoken to in. [`sse`] turns what arrives into events, [`chunk`] reads an
//! event, [`ask`] writes a request; all three are pure. [`talk`] is the conversation's state and [`wire`] what went over
//! the line, `send` drives them in the browser, `view`, `turn` and `wire_view` show them.

pub mod ask;
pub mod chunk;
pub mod dialect;
pub mod page;
pub mod send;
pub mod sse;
#[cfg(target_arch = "wasm32")]
pub mod stream;
pub mod talk;
pub mod turn;
pub mod view;
pub mod wire;
pub mod wire_view;

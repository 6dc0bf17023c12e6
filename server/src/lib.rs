//! An AI gateway in one binary.
//!
//! This crate is the outermost room: it speaks HTTP, reads the environment, and puts the others together. Decisions are
//! made in `switchyard-core`, requests run through `switchyard-engine`, and what is kept is kept by `switchyard-store`.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the command line: `serve`, `validate`, `admin recover` |
//! | [`boot`] | from the environment to a listening gateway, and back down |
//! | `data` | `/v1`: what applications call |
//! | `admin` | `/admin`: what operators and the dashboard call |
//! | `dashboard` | the pages, and the assets that make them live |
//! | `auth` | one chain for all three: who is it, and what may they do |
//! | `http` | layers, and the only place that turns errors into responses |
//! | `observe` | logs and metrics |

mod admin;
mod auth;
pub mod boot;
pub mod cli;
mod dashboard;
mod data;
mod http;
mod observe;
mod state;
mod upstream;

#[doc(hidden)]
pub use auth::measured;

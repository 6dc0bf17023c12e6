//! The parts that pages are made of. A component, a file, and its looks under the same name in `style/components.css`.

pub mod button;
pub mod chart;
pub mod dialog;
pub mod field;
pub mod format;
pub mod frame;
pub mod kept;
pub mod note;
pub mod panel;
pub mod plot;
pub mod poll;
pub mod rail;
pub mod ready;
pub mod scroll;
pub mod secret;
pub mod state;
pub mod surface;
pub mod table;
pub mod theme;
pub mod tile;
pub mod top;
pub mod typed;

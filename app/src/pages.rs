//! A page for each address. Where a page has data, `page` asks for it and `view` shows it.

pub mod keys;
pub mod not_found;
pub mod overview;
pub mod playground;
pub mod request;
pub mod requests;
pub mod routing;
pub mod signin;

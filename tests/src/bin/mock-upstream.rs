//! The mock upstream as a program, for the tests of client SDKs: `mock-upstream [--port PORT]`.
//!
//! Prints `listening on http://127.0.0.1:PORT` and serves until it is killed. How it is scripted over HTTP is told in
//! `switchyard_tests::mock::control`.

use std::{future::pending, io};
use switchyard_tests::mock::MockUpstream;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mock = MockUpstream::start_on(port(std::env::args().skip(1))?).await?;
    announce(&mock.origin());
    pending().await
}

fn port(mut arguments: impl Iterator<Item = String>) -> io::Result<u16> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "usage: mock-upstream [--port PORT]");
    match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (None, ..) => Ok(0),
        (Some("--port"), Some(port), None) => port.parse().map_err(|_| usage()),
        _ => Err(usage()),
    }
}

#[expect(clippy::print_stdout, reason = "how whoever started this learns the port")]
fn announce(origin: &str) {
    println!("listening on {origin}");
}

//! As much HTTP as it takes to prepare a gateway: one request, one connection, an answer that ends with it.

use anyhow::{Context as _, Result, bail};
use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a successful answer.
pub(super) fn request(method: &str, port: u16, path: &str, key: &str, body: &str) -> Result<String> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    // 1.0: neither chunks nor a connection that stays.
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes())?;
    socket.write_all(body.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        bail!("{method} {path}: status {status}: {body}");
    }
    Ok(body.to_owned())
}

//! Virtual keys by the million, written into a database before a gateway starts on it: asking for each would take longer
//! than what is measured.

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use switchyard_core::scope::{Scope, Scopes};
use switchyard_store::{NewKeyRow, Store};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The gateway's database; made if it is not there
    #[arg(long)]
    database: PathBuf,
    /// How many keys to add
    #[arg(long)]
    count: usize,
    /// Where to write the secrets of the first ones, one a line, as `load` reads them
    #[arg(long)]
    file: PathBuf,
    /// How many of them
    #[arg(long)]
    used: usize,
}

pub(crate) async fn add(options: &Options) -> anyhow::Result<()> {
    let store = Store::open(&options.database).await?;
    let mut secrets = String::new();
    for number in 0..options.used {
        writeln!(secrets, "{}", secret(number))?;
    }
    store.insert_keys((0..options.count).map(row)).await?;
    store.close().await;
    fs::write(&options.file, secrets).with_context(|| format!("cannot write {}", options.file.display()))
}

fn secret(number: usize) -> String {
    format!("sy_{number:043}")
}

fn row(number: usize) -> NewKeyRow {
    NewKeyRow {
        id: format!("bench-{number}"),
        name: format!("bench {number}"),
        display: "sy_0000…0000".to_owned(),
        hash: Sha256::digest(secret(number).as_bytes()).into(),
        scopes: [Scope::Invoke].into_iter().collect::<Scopes>(),
        created_at_ms: 0,
        expires_at_ms: None,
        project: None,
        route: None,
    }
}

//! Whether anything that goes into the dashboard's code has changed.
//!
//! Cargo knows this too, but not for the steps after it, and asking it takes seconds.

use crate::project::{Project, files};
use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use std::{fs, path::Path};

/// The sources, what they are built with, and the build itself. `style/` is not here: it is bundled every time.
const INPUTS: [&str; 9] = [
    ".cargo/config.toml",
    "Cargo.lock",
    "Cargo.toml",
    "app",
    "frontend",
    "server/crates/api",
    "xtask/npm/package-lock.json",
    "xtask/src/web",
    "xtask/src/web.rs",
];

pub(super) fn of_code(project: &Project) -> Result<String> {
    let mut hash = Sha256::new();
    for input in INPUTS {
        for file in files(&project.path(input))? {
            let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.strip_prefix(project.root()).unwrap_or(&file);
            add(&mut hash, name, &bytes);
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Names and lengths go in too, so that no two different sets of files look the same.
pub(super) fn add(hash: &mut Sha256, name: &Path, bytes: &[u8]) {
    let name = name.to_string_lossy();
    hash.update(name.len().to_le_bytes());
    hash.update(name.as_bytes());
    hash.update(bytes.len().to_le_bytes());
    hash.update(bytes);
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

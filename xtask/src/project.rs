//! Where things are.

use anyhow::{Context as _, Result};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The checkout that this binary was built from.
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    pub(crate) fn locate() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            root: manifest.parent().unwrap_or(manifest).to_owned(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The dashboard as the server embeds it.
    pub(crate) fn site(&self) -> PathBuf {
        self.path("target/site")
    }

    /// What these commands remember from one call to the next.
    pub(crate) fn state(&self) -> PathBuf {
        self.path("target/xtask")
    }
}

/// A file, or all files below a folder, always in the same order.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let nested = paths.iter().map(|path| files(path)).collect::<Result<Vec<_>>>()?;
    Ok(nested.concat())
}

//! `cargo xtask run`: build, then become the server.

use crate::{
    build::{self, Profile},
    project::Project,
};
use anyhow::{Context as _, Result};
use std::{ffi::OsString, os::unix::process::CommandExt as _, process::Command};

/// Replaces this process, so that signals and the exit code are the server's own. It runs where the user stands:
/// `./switchyard-data` is there.
pub(crate) fn run(project: &Project, args: &[OsString]) -> Result<()> {
    build::build(project, Profile::Release)?;
    let binary = Profile::Release.binary(project);
    println!("==> {}", binary.display());
    let error = Command::new(&binary).args(args).exec();
    Err(error).with_context(|| format!("cannot start {}", binary.display()))
}

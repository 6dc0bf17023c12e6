//! `cargo xtask build`: the dashboard first, because the binary embeds it.

use crate::{
    process,
    project::Project,
    train,
    web::{self, Mode},
};
use anyhow::{Context as _, Result};
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
    /// A release that has seen its load: see `train.rs`.
    Trained,
}

impl Profile {
    pub(crate) fn binary(self, project: &Project) -> PathBuf {
        let folder = match self {
            Self::Debug => "debug",
            Self::Release => "release",
            Self::Trained => "trained",
        };
        project.path("target").join(folder).join("switchyard")
    }
}

pub(crate) fn build(project: &Project, profile: Profile) -> Result<()> {
    println!("==> web");
    web::build(project, Mode::Shipped)?;
    println!("==> switchyard");
    match profile {
        Profile::Trained => train::build(project)?,
        _ => server(project, profile)?,
    }
    println!("    {}", profile.binary(project).display());
    Ok(())
}

pub(crate) fn server(project: &Project, profile: Profile) -> Result<()> {
    let mut cargo = process::cargo(project);
    cargo.args(["build", "--package", "switchyard"]);
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    process::run(&mut cargo).context("the server does not build")
}

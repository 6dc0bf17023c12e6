//! Debian packages, for what neither Cargo nor npm can install.

use crate::{process, project::Project};
use anyhow::{Context as _, Result, bail};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Installs packages, if this is a machine and a user that can.
pub(crate) fn apt_install(project: &Project, packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if !can_apt_install() {
        bail!("needed, as root: apt-get install {list}");
    }
    println!("    apt-get: installing {list}");
    // An old package list knows neither the newest names nor where today's files are. Without a network, the packages may
    // still be in the cache: let the second command decide.
    if let Err(error) = process::run_quietly(project, "apt-get-update", apt_get().arg("update")) {
        println!("    apt-get: {error:#}");
    }
    let mut install = apt_get();
    install
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages);
    process::run_quietly(project, "apt-get-install", &mut install)
}

pub(crate) fn can_apt_install() -> bool {
    find("apt-get").is_some() && process::output(Command::new("id").arg("-u")).as_deref() == Some("0")
}

/// A Chromium for the browser tests: the system's own, because a browser of Playwright's cannot be had everywhere.
pub(crate) fn chromium(project: &Project) -> Result<PathBuf> {
    let installed = || {
        ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find_map(find)
    };
    if let Some(path) = installed() {
        return Ok(path);
    }
    apt_install(project, &["chromium"]).context("the browser tests want a Chromium")?;
    installed().context("chromium was installed and is not on the PATH")
}

/// Where a program is.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| Path::is_file(candidate))
}

fn apt_get() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

//! The dashboard's files: WASM, its JavaScript, the style sheet, the icon.
//!
//! Two halves. `target/xtask/web/<mode>` holds what the compiler makes; it takes minutes, and is made again only when
//! something that goes into it has changed. `target/site` is put together from that and from `style/`; it takes no time
//! for a file that stayed the same.

mod bindgen;
mod css;
mod fingerprint;
mod site;
mod toolchain;

use crate::{process, project::Project};
use anyhow::{Context as _, Result};
use std::{fs, path::PathBuf};

/// What the build is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Small and compressed: what is embedded, and what the tests run.
    Shipped,
    /// Compiled fast, for `cargo xtask dev`.
    Quick,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Quick => "quick",
        }
    }

    /// Cargo's profile, and the folder in which it puts what it builds.
    const fn profile(self) -> (&'static str, &'static str) {
        match self {
            Self::Shipped => ("wasm-release", "wasm-release"),
            Self::Quick => ("dev", "debug"),
        }
    }
}

/// Makes `target/site` what the sources say.
pub(crate) fn build(project: &Project, mode: Mode) -> Result<()> {
    let folder = project.state().join("web").join(mode.name());
    let (pkg, mark) = (folder.join("pkg"), folder.join("fingerprint"));
    let fingerprint = fingerprint::of_code(project)?;
    if fs::read_to_string(&mark).is_ok_and(|built| built == fingerprint) {
        println!("    web: the code has not changed");
    } else {
        if mark.exists() {
            fs::remove_file(&mark)?;
        }
        let wasm = compile(project, mode)?;
        bindgen::generate(project, &wasm, &pkg, mode)?;
        fs::write(&mark, fingerprint).with_context(|| format!("cannot write {}", mark.display()))?;
    }
    let style = css::bundle(&project.path("style"))?;
    site::assemble(project, &pkg, style, mode)
}

fn compile(project: &Project, mode: Mode) -> Result<PathBuf> {
    let (profile, folder) = mode.profile();
    let mut cargo = toolchain::find_or_install(project)?.cargo_build(project);
    cargo.args(["--package", "switchyard-frontend", "--profile", profile]);
    process::run(&mut cargo).context("the dashboard's code does not build")?;
    Ok(toolchain::target_folder(project)
        .join(toolchain::TARGET)
        .join(folder)
        .join("switchyard_frontend.wasm"))
}

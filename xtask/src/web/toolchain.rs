//! Finding a compiler for WASM.
//!
//! Most people have rustup, and one command adds the target. Where rustup's server cannot be reached, Debian's own
//! packages bring a compiler and the source of the standard library, which is then built along.

use crate::{
    process,
    project::Project,
    setup::{self, find},
};
use anyhow::{Context as _, Result, bail};
use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Adding a target takes seconds, or hangs.
const RUSTUP_LIMIT: Duration = Duration::from_secs(60);

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/std";
const DEBIAN_LINKER: &str = "wasm-ld-22";
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];

#[derive(Clone, Copy)]
pub(super) enum Toolchain {
    /// The one that builds the rest, with the target added.
    Own,
    /// Debian's, and the standard library from source.
    Debian,
}

/// The compiler for the dashboard's code; installed, if it has to be.
pub(super) fn find_or_install(project: &Project) -> Result<Toolchain> {
    let remembered = project.state().join("wasm-toolchain");
    let debian_was_chosen = fs::read_to_string(&remembered).is_ok_and(|name| name == "debian");
    if debian_was_chosen && debian_is_there() {
        return Ok(Toolchain::Debian);
    }
    if own_has_target(project) || add_target(project) {
        return Ok(Toolchain::Own);
    }
    if !debian_is_there() {
        install_debian(project)?;
    }
    fs::create_dir_all(project.state())?;
    fs::write(&remembered, "debian").with_context(|| format!("cannot write {}", remembered.display()))?;
    Ok(Toolchain::Debian)
}

impl Toolchain {
    /// `cargo build` for the target, in a folder of its own: two compilers in one would throw out each other's work.
    pub(super) fn cargo_build(self, project: &Project) -> Command {
        let mut cargo = match self {
            Self::Own => process::cargo(project),
            Self::Debian => debian_cargo(project),
        };
        cargo
            .env("CARGO_TARGET_DIR", target_folder(project))
            .args(["build", "--target", TARGET]);
        if matches!(self, Self::Debian) {
            cargo.args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"]);
        }
        cargo
    }
}

pub(super) fn target_folder(project: &Project) -> PathBuf {
    project.path("target/wasm")
}

fn own_has_target(project: &Project) -> bool {
    let mut rustc = Command::new("rustc");
    rustc
        .current_dir(project.root())
        .args(["--print", "target-libdir", "--target", TARGET]);
    let folder = process::output(&mut rustc);
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
    entries.is_some_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| is_std(&entry.file_name()))))
}

fn is_std(file: &OsStr) -> bool {
    file.to_str().is_some_and(|name| name.starts_with("libstd-"))
}

fn add_target(project: &Project) -> bool {
    if find("rustup").is_none() {
        return false;
    }
    println!("    rustup: adding the target {TARGET}");
    let mut rustup = Command::new("rustup");
    rustup.current_dir(project.root()).args(["target", "add", TARGET]);
    match process::run_bounded(project, "rustup", &mut rustup, Some(RUSTUP_LIMIT)) {
        Ok(()) => own_has_target(project),
        Err(error) => {
            println!("    rustup: {error:#}; trying Debian's packages");
            false
        }
    }
}

fn debian_is_there() -> bool {
    [DEBIAN_CARGO, DEBIAN_SOURCE]
        .iter()
        .all(|path| Path::new(path).exists())
        && find(DEBIAN_LINKER).is_some()
}

fn install_debian(project: &Project) -> Result<()> {
    let installed = setup::apt_install(project, &DEBIAN_PACKAGES);
    if installed.is_ok() && debian_is_there() {
        return Ok(());
    }
    if let Err(error) = installed {
        println!("    {error:#}");
    }
    bail!(
        "no Rust compiler for {TARGET}. Either: rustup target add {TARGET}. Or, on Debian as root: \
         apt-get install --no-install-recommends {}",
        DEBIAN_PACKAGES.join(" ")
    )
}

/// Debian's cargo sees nothing of the toolchain that started us: neither its settings nor its libraries.
fn debian_cargo(project: &Project) -> Command {
    let mut cargo = Command::new(DEBIAN_CARGO);
    cargo.current_dir(project.root());
    for (name, _) in env::vars_os() {
        if belongs_to_a_toolchain(&name) {
            cargo.env_remove(name);
        }
    }
    cargo.env("PATH", "/usr/bin:/bin");
    // Building the standard library is not stable yet. The compiler is a released one; only this switch is meant.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER);
    cargo
}

fn belongs_to_a_toolchain(variable: &OsStr) -> bool {
    // How to reach the registry, and how to print, stay as the user has them.
    const KEPT: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
    ];
    let Some(name) = variable.to_str() else { return false };
    let cleared = [
        "CARGO",
        "RUSTUP",
        "RUSTC",
        "RUSTFLAGS",
        "RUSTDOC",
        "RUST_RECURSION_COUNT",
        "LD_LIBRARY_PATH",
    ];
    cleared.iter().any(|prefix| name.starts_with(prefix)) && !KEPT.iter().any(|prefix| name.starts_with(prefix))
}

//! Tells the binary which commit it is, and cargo when the dashboard has to be embedded again.

use std::{env, fs, path::Path, process::Command};

const SITE: &str = "../target/site";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SWITCHYARD_COMMIT");
    let release = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    // A debug binary reads the dashboard from disk, and is not worth compiling again after every commit.
    if release {
        watch_site();
        watch_head();
    }
    println!("cargo::rustc-env=SWITCHYARD_COMMIT={}", commit());
}

/// Cargo takes a path that does not exist for one that changes all the time: then an empty folder is better.
fn watch_site() {
    if Path::new(SITE).exists() || fs::create_dir_all(SITE).is_ok() {
        println!("cargo::rerun-if-changed={SITE}");
    }
}

/// The log of `HEAD` grows with every commit and every switch to another one.
fn watch_head() {
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// From the environment, where there is no repository to ask, as in an image's build.
fn commit() -> String {
    let given = env::var_os("SWITCHYARD_COMMIT").and_then(|commit| commit.into_string().ok());
    let commit = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    commit
        .filter(|commit| !commit.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

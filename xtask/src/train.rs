//! `cargo xtask build --trained`: a release binary that was compiled knowing what it does under load.
//!
//! A gateway's time goes into a few thousand instructions from a hundred places: reading a head, a body, a log line. Where
//! they lie in memory and which way their branches fall matters as much as how many there are, and the compiler can only
//! guess. So it is shown: a first binary counts as it runs (profile-guided optimisation), is put under the load of
//! `cargo xtask bench`, and what it counted goes into the compilation of the second. That takes two release builds and a
//! minute; `docs/performance.md` says what it is worth.
//!
//! What was never seen under the load is compiled for size. So the load is not only that of the benchmark: the other
//! dialects' doors and the administration are called too.

use crate::{
    bench::{self, CELLS, Programs, Server, Timing},
    build::Profile,
    process,
    project::Project,
};
use anyhow::{Context as _, Result, bail};
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Of each call that the benchmark does not make.
const TIMES: usize = 300;

/// Calls in the other dialects, whose answers are translated.
const CALLS: [(&str, &str); 7] = [
    (
        "/v1/messages",
        r#"{"model": "bench", "max_tokens": 64, "system": "Be brief.", "messages": [{"role": "user", "content": "Where?"}]}"#,
    ),
    (
        "/v1/messages",
        r#"{"model": "bench-chunks=20", "max_tokens": 64, "stream": true, "messages": [{"role": "user", "content": "Where?"}]}"#,
    ),
    (
        "/v1beta/models/bench:generateContent",
        r#"{"contents": [{"role": "user", "parts": [{"text": "Where?"}]}]}"#,
    ),
    (
        "/v1beta/models/bench-chunks=20:streamGenerateContent?alt=sse",
        r#"{"contents": [{"role": "user", "parts": [{"text": "Where?"}]}]}"#,
    ),
    (
        "/v1/responses",
        r#"{"model": "bench", "input": "Where?", "store": false}"#,
    ),
    (
        "/v1/responses",
        r#"{"model": "bench-chunks=20", "input": "Where?", "stream": true, "store": false}"#,
    ),
    (
        "/v1/chat/completions",
        r#"{"model": "bench", "messages": [{"role": "user", "content": "Where?"}], "tools": [{"type": "function", "function":
            {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}]}"#,
    ),
];

const PAGES: [&str; 6] = [
    "/",
    "/metrics",
    "/admin/keys",
    "/admin/logs",
    "/v1/models",
    "/v1/capabilities",
];

pub(crate) fn build(project: &Project) -> Result<()> {
    let profdata = profdata()?;
    let (counts, profile) = (
        project.path("target/trained/counts"),
        project.path("target/trained/profile"),
    );
    if counts.exists() {
        fs::remove_dir_all(&counts).with_context(|| format!("cannot remove {}", counts.display()))?;
    }
    println!("==> switchyard, that counts what it does");
    let counting = compile(project, "counting", &format!("-Cprofile-generate={}", counts.display()))?;
    bench::build_tools(project)?;
    println!("==> what it does under load");
    load(project, counting)?;
    let mut merge = Command::new(&profdata);
    merge.arg("merge").arg("-o").arg(&profile).arg(&counts);
    process::run(&mut merge).context("what was counted cannot be put together")?;
    println!("==> switchyard, as it was seen");
    let trained = compile(project, "trained", &format!("-Cprofile-use={}", profile.display()))?;
    let binary = Profile::Trained.binary(project);
    fs::copy(&trained, &binary).with_context(|| format!("cannot write {}", binary.display()))?;
    Ok(())
}

/// A release build with one more flag, in a folder of its own. Naming the target keeps the flag from build scripts and macros.
fn compile(project: &Project, folder: &str, flag: &str) -> Result<PathBuf> {
    let folder = project.path("target/trained").join(folder);
    let host = host()?;
    let mut cargo = process::cargo(project);
    cargo
        .env("CARGO_TARGET_DIR", &folder)
        .args(["build", "--release", "--package", "switchyard", "--target", &host])
        .arg("--config")
        .arg(format!("build.rustflags=[{flag:?}]"));
    process::run(&mut cargo).context("the server does not build")?;
    Ok(folder.join(host).join("release/switchyard"))
}

fn load(project: &Project, gateway: PathBuf) -> Result<()> {
    let programs = Programs::new(project, gateway);
    let timing = Timing::new(true, None, Some(3.0));
    for cell in &CELLS {
        println!("    {}", cell.name);
        cell.ask_gateway(&programs, &timing)?;
    }
    println!("    other dialects, and pages");
    let mock = programs.mock()?;
    let gateway = programs.gateway(&bench::config(&mock, "fallback", 2))?;
    for (path, body) in CALLS {
        repeat(&gateway, "POST", path, body)?;
    }
    for path in PAGES {
        repeat(&gateway, "GET", path, "")?;
    }
    // Its counts are written when it ends.
    drop(gateway);
    drop(mock);
    programs.tidy();
    Ok(())
}

fn repeat(gateway: &Server, method: &str, path: &str, body: &str) -> Result<()> {
    for _ in 0..TIMES {
        gateway.request(method, path, body)?;
    }
    Ok(())
}

fn host() -> Result<String> {
    let about = process::output(Command::new("rustc").arg("-vV")).context("rustc does not say what it is")?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say for what it compiles")
}

/// The compiler's own: what another version has written cannot be read.
fn profdata() -> Result<PathBuf> {
    let sysroot =
        process::output(Command::new("rustc").args(["--print", "sysroot"])).context("rustc has no sysroot")?;
    let tool = Path::new(&sysroot)
        .join("lib/rustlib")
        .join(host()?)
        .join("bin/llvm-profdata");
    if !tool.exists() {
        println!("    rustup: installing llvm-tools");
        let mut rustup = Command::new("rustup");
        let installed =
            process::run(rustup.args([OsStr::new("component"), OsStr::new("add"), OsStr::new("llvm-tools")]));
        if let Err(error) = installed {
            bail!("needed: rustup component add llvm-tools ({error:#})");
        }
    }
    Ok(tool)
}

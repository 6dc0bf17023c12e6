//! The guard against decay: instructions of hot functions, counted by callgrind, beside what they were.
//!
//! A clock is good to some percent on a quiet machine; a count of instructions is the same everywhere, as long as the
//! compiler is. Another compiler moves it a little in all cases: then the baselines are written anew, in a change of their own.

use super::{build_tools, figures::number, table::Table, tool};
use crate::{process, project::Project, setup};
use anyhow::{Context as _, Result, bail};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, process::Command};

/// Each lists its cases, and runs one of them.
const PROGRAMS: [&str; 2] = ["hot", "examples/key_check"];
const BASELINES: &str = "bench/baselines.txt";
/// Much more than the same binary differs from one run to the next.
const TOLERANCE: f64 = 0.03;

pub(super) fn check(project: &Project, write: bool, build: bool) -> Result<()> {
    if setup::find("valgrind").is_none() {
        setup::apt_install(project, &["valgrind"]).context("instructions are counted by valgrind")?;
    }
    if build {
        build_tools(project)?;
        build_key_check(project)?;
    }
    let compiler =
        process::output(Command::new("rustc").current_dir(project.root()).arg("--version")).unwrap_or_default();
    let mut counted = Vec::new();
    for program in PROGRAMS.map(|name| tool(project, name)) {
        let names = process::output(&mut Command::new(&program)).context("the hot functions cannot be listed")?;
        for name in names.lines() {
            let instructions = count(project, &program, name).with_context(|| format!("{name} cannot be counted"))?;
            println!("    {name}: {} instructions", number(instructions));
            counted.push((name.to_owned(), instructions));
        }
    }
    let path = project.path(BASELINES);
    if write {
        return write_baselines(&path, &compiler, &counted);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if !text.contains(&compiler) {
        println!("    {BASELINES} was written with another compiler than {compiler}");
    }
    compare(&read_baselines(&text), &counted)
}

/// It stands where the keys do: nobody outside the server's crate may look them up.
fn build_key_check(project: &Project) -> Result<()> {
    println!("==> key_check");
    let mut cargo = process::cargo(project);
    cargo.args([
        "build",
        "--release",
        "--package",
        "switchyard",
        "--example",
        "key_check",
    ]);
    process::run(&mut cargo).context("the key check does not build")
}

/// Instructions of one call.
fn count(project: &Project, program: &Path, case: &str) -> Result<f64> {
    fs::create_dir_all(project.state())?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--toggle-collect=*::collected*"])
        .arg(format!(
            "--callgrind-out-file={}",
            project.state().join("callgrind.out").display()
        ))
        .arg(program)
        .arg(case);
    let output = valgrind.output().context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{said}");
    }
    let collected = said
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse::<f64>().ok());
    let calls: f64 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .context("no number of calls")?;
    match collected {
        Some(collected) if collected > 0.0 => Ok(collected / calls),
        _ => bail!("nothing was collected: is `collected` inlined?"),
    }
}

fn write_baselines(path: &Path, compiler: &str, counted: &[(String, f64)]) -> Result<()> {
    let mut text = format!("# Instructions a call, by `cargo xtask bench --check --write` with {compiler}.\n");
    for (name, instructions) in counted {
        writeln!(text, "{name:<28}{instructions:>12.0}")?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("==> {}", path.display());
    Ok(())
}

fn read_baselines(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (name, number) = line.split_once(char::is_whitespace)?;
            Some((name.to_owned(), number.trim().parse().ok()?))
        })
        .collect()
}

fn compare(baselines: &BTreeMap<String, f64>, counted: &[(String, f64)]) -> Result<()> {
    let mut table = Table::new("", &["instructions a call", "were", "are", "change", ""]);
    let mut dearer = Vec::new();
    for (name, are) in counted {
        let were = baselines.get(name).copied().unwrap_or(f64::NAN);
        let change = are / were - 1.0;
        let verdict = match change {
            _ if were.is_nan() => "no baseline",
            change if change > TOLERANCE => "DEARER",
            change if change < -TOLERANCE => "cheaper: write it down",
            _ => "as before",
        };
        if were.is_nan() || change > TOLERANCE {
            dearer.push(name.as_str());
        }
        let change = if were.is_nan() {
            "–".to_owned()
        } else {
            format!("{:+.1} %", change * 100.0)
        };
        table.row(vec![
            name.clone(),
            number(were),
            number(*are),
            change,
            verdict.to_owned(),
        ]);
    }
    println!("\n{table}");
    if !dearer.is_empty() {
        bail!(
            "dearer than {BASELINES} says: {}. Make them cheaper, or say why in the change that runs \
             `cargo xtask bench --check --write`",
            dearer.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{compare, read_baselines};

    #[test]
    fn a_case_may_be_a_little_dearer_and_no_more() {
        let baselines = read_baselines("# comment\nparse      1000\norder 50\n");
        let counted = |parse: f64, order: f64| [("parse".to_owned(), parse), ("order".to_owned(), order)];
        assert!(compare(&baselines, &counted(1029.0, 20.0)).is_ok());
        let error = compare(&baselines, &counted(1031.0, 50.0)).unwrap_err().to_string();
        assert!(error.contains("says: parse."), "{error}");
        assert!(compare(&baselines, &[("new".to_owned(), 1.0)]).is_err());
    }
}

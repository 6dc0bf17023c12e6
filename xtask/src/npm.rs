//! npm packages: installed from the committed lockfile, again only when that has changed.

use crate::{process, project::Project};
use anyhow::{Context as _, Result, bail};
use std::{fs, path::Path, process::Command};

/// Makes `folder/node_modules` what `folder/package-lock.json` says.
pub(crate) fn install(project: &Project, folder: &str) -> Result<()> {
    let path = project.path(folder);
    let lock = path.join("package-lock.json");
    let lock = fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    // A copy of the lockfile inside the folder that it describes: gone when the folder is removed.
    let installed = path.join("node_modules/.installed-lock.json");
    if fs::read(&installed).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    if process::output(Command::new("npm").arg("--version")).is_none() {
        bail!("npm is needed: install Node.js 20 or newer");
    }
    println!("    npm: installing {}", packages(&path)?);
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&path);
    process::run_quietly(project, "npm", &mut npm)?;
    fs::write(&installed, lock).with_context(|| format!("cannot write {}", installed.display()))
}

/// The names in `devDependencies`, for the line that says what is installed.
fn packages(folder: &Path) -> Result<String> {
    let manifest = folder.join("package.json");
    let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let package: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", manifest.display()))?;
    let names = package["devDependencies"]
        .as_object()
        .into_iter()
        .flat_map(|packages| packages.keys().cloned());
    Ok(names.collect::<Vec<_>>().join(", "))
}

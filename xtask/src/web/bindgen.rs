//! From what the compiler made to what a browser loads: wasm-bindgen's glue, then wasm-opt.

use super::Mode;
use crate::{npm, process, project::Project};
use anyhow::{Context as _, Result};
use std::{fs, path::Path, process::Command};
use wasm_bindgen_cli_support::Bindgen;

const NPM_FOLDER: &str = "xtask/npm";

/// What rustc lets every WASM target use; wasm-opt refuses what it was not told of.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// Writes `app.js`, `app_bg.wasm` and what else they need into `pkg`.
pub(super) fn generate(project: &Project, wasm: &Path, pkg: &Path, mode: Mode) -> Result<()> {
    if pkg.exists() {
        fs::remove_dir_all(pkg).with_context(|| format!("cannot remove {}", pkg.display()))?;
    }
    let shipped = mode == Mode::Shipped;
    let mut bindgen = Bindgen::new();
    // The glue must know by itself where the module is, or `init()` would have nothing to load.
    bindgen
        .input_path(wasm)
        .out_name("app")
        .web(true)?
        .typescript(false)
        .omit_default_module_path(false);
    bindgen.remove_name_section(shipped).remove_producers_section(shipped);
    bindgen.generate(pkg).context("wasm-bindgen failed")?;
    if shipped {
        optimize(project, &pkg.join("app_bg.wasm"))?;
    }
    Ok(())
}

fn optimize(project: &Project, wasm: &Path) -> Result<()> {
    npm::install(project, NPM_FOLDER)?;
    let tool = project.path(NPM_FOLDER).join("node_modules/binaryen/bin/wasm-opt");
    let mut wasm_opt = Command::new("node");
    wasm_opt
        .arg(tool)
        // Flat code first, so that the second pass finds what the first could not: one part in a hundred.
        .args(["--flatten", "--rereloop", "-Oz", "-Oz"])
        .args(FEATURES)
        .arg(wasm)
        .arg("-o")
        .arg(wasm);
    process::run_quietly(project, "wasm-opt", &mut wasm_opt)
}

//! Who may know whom, and what stands where. `ARCHITECTURE.md` says it in words; this holds it.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> Value {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Names of what a package depends on in its product code.
fn dependencies(metadata: &Value, package: &str) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().unwrap();
    let found = packages
        .iter()
        .find(|p| p["name"] == package)
        .unwrap_or_else(|| panic!("no package {package}"));
    let product = found["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|d| d["kind"].is_null());
    product.map(|d| d["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rooms_know_only_whom_they_may() {
    let metadata = metadata();
    for (package, may_know) in [
        ("switchyard-api", &[][..]),
        ("switchyard-core", &[]),
        ("switchyard-providers", &["switchyard-core"]),
        ("switchyard-engine", &["switchyard-core", "switchyard-providers"]),
        ("switchyard-store", &["switchyard-core", "switchyard-engine"]),
        ("switchyard-app", &["switchyard-api"]),
        ("switchyard-frontend", &["switchyard-app"]),
    ] {
        let ours: BTreeSet<String> = dependencies(&metadata, package)
            .into_iter()
            .filter(|name| name.starts_with("switchyard"))
            .collect();
        let may_know: BTreeSet<String> = may_know.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(ours, may_know, "{package}");
    }
}

#[test]
fn rooms_are_free_of_what_is_not_theirs() {
    let metadata = metadata();
    for (package, never) in [
        (
            "switchyard-core",
            &["tokio", "axum", "sqlx", "reqwest", "hyper", "futures-util"][..],
        ),
        ("switchyard-providers", &["tokio", "axum", "sqlx", "reqwest", "hyper"]),
        ("switchyard-engine", &["axum", "sqlx", "reqwest"]),
        ("switchyard-store", &["axum", "reqwest"]),
        ("switchyard-api", &["tokio", "axum", "sqlx", "leptos"]),
        ("switchyard", &["sqlx", "reqwest"]),
    ] {
        let has = dependencies(&metadata, package);
        for name in never {
            assert!(!has.contains(*name), "{package} must not depend on {name}");
        }
    }
}

/// Every Rust file below a folder of the repository.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

#[test]
fn only_one_place_shapes_an_error_body() {
    for (path, text) in sources("server/src") {
        let home = path.ends_with("http/error.rs");
        assert!(
            home || !text.contains("ErrorEnvelope {"),
            "{} shapes an error",
            path.display()
        );
    }
}

#[test]
fn no_page_writes_a_style_attribute() {
    for (path, text) in sources("app/src") {
        for forbidden in [" style=\"", " style=format", "style:"] {
            assert!(
                !text.contains(forbidden),
                "{} has {forbidden}: the policy of the pages forbids it",
                path.display()
            );
        }
    }
}

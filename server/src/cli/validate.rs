//! `switchyard validate FILE`.

use super::{WRONG_CONFIG, say};
use std::path::Path;
use std::process::ExitCode;
use switchyard_core::config::Config;

/// Reads a configuration file; says every fault with its place.
pub(super) fn load(file: &Path) -> Result<Config, Vec<String>> {
    let shown = file.display();
    let known = file.extension().and_then(|extension| extension.to_str());
    if !known.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension)) {
        return Err(vec![format!(
            "{shown}: a configuration file must end in .yaml, .yml or .json"
        )]);
    }
    let text = std::fs::read_to_string(file).map_err(|error| vec![format!("{shown} cannot be read: {error}")])?;
    Config::parse(&text).map_err(|issues| issues.iter().map(|issue| format!("{shown}: {issue}")).collect())
}

pub(super) fn run(file: &Path) -> ExitCode {
    match load(file) {
        Ok(config) => {
            for notice in &config.notices {
                say(&format!("warning: {}: {notice}", file.display()));
            }
            let targets: Vec<&str> = config
                .targets
                .iter()
                .map(|target| target.virtual_key.as_str())
                .collect();
            say(&format!(
                "{} is valid: mode {}, targets {}",
                file.display(),
                config.strategy.mode.as_str(),
                targets.join(", ")
            ));
            ExitCode::SUCCESS
        }
        Err(faults) => {
            for fault in &faults {
                say(fault);
            }
            let count = if faults.len() == 1 {
                "1 fault".to_owned()
            } else {
                format!("{} faults", faults.len())
            };
            say(&format!("{count} in {}", file.display()));
            ExitCode::from(WRONG_CONFIG)
        }
    }
}

//! `switchyard validate FILE`.

use super::{WRONG_CONFIG, say};
use std::path::Path;
use std::process::ExitCode;
use switchyard_core::config::{Config, Place, Route, To};

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

/// `fallback over openai, route/fast`.
fn described(route: &Route, config: &Config) -> String {
    let name = |place: &Place| match place.to {
        To::Target(i) => config.targets.get(i).map(|target| target.virtual_key.clone()),
        To::Route(i) => config.routes.get(i).map(|route| format!("route/{}", route.name)),
    };
    let names: Vec<String> = route.places.iter().filter_map(name).collect();
    format!("{} over {}", route.strategy.mode.as_str(), names.join(", "))
}

pub(super) fn run(file: &Path) -> ExitCode {
    match load(file) {
        Ok(config) => {
            for notice in &config.notices {
                say(&format!("warning: {}: {notice}", file.display()));
            }
            for route in &config.routes {
                say(&format!("route {}: {}", route.name, described(route, &config)));
            }
            let targets: Vec<&str> = config
                .targets
                .iter()
                .map(|target| target.virtual_key.as_str())
                .collect();
            say(&format!("{} is valid: targets {}", file.display(), targets.join(", ")));
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

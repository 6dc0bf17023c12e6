//! What the environment says, read once, all faults at once.

use crate::auth::throttle::Limits;
use crate::http::client_ip::TrustedProxies;
use crate::http::cors::Origins;
use std::path::PathBuf;
use std::time::Duration;
use switchyard_core::env::Env;
use switchyard_core::secret::Secret;

const DEFAULT_PROXIES: &str = "127.0.0.0/8,::1/128";
const DEFAULT_DRAIN: Duration = Duration::from_secs(30);

/// The environment of this process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessEnv;

impl Env for ProcessEnv {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// | variable | default | |
/// |---|---|---|
/// | `HOST`, `PORT` | 127.0.0.1, 8080 | where to listen |
/// | `DATA_DIR` | `./switchyard-data` | database and spool |
/// | `DATABASE_URL` | a file in `DATA_DIR` | `sqlite:<path>` |
/// | `GATEWAY_CONFIG` | none | the configuration file |
/// | `GATEWAY_ENV` | none | `production` turns hard checks on |
/// | `LOG_LEVEL` | info | debug, info, warn, error |
/// | `MASTER_KEY` | none | a credential that may do everything |
/// | `CORS_ORIGINS` | none | origins, separated by commas |
/// | `TRUSTED_PROXIES` | loopback | networks, separated by commas |
/// | `RATE_LIMIT_RPS`, `RATE_LIMIT_BURST` | 20, 40 | per address; unset, only failed authentication counts |
/// | `ALLOW_UNAUTHENTICATED_PROXY` | false | opens `/v1` to everyone |
/// | `DRAIN_TIMEOUT` | 30 | seconds that open requests have at the end |
#[derive(Clone, Debug)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub data_dir: PathBuf,
    /// Set when the database is not the file in `data_dir`.
    pub database_path: Option<PathBuf>,
    pub config_path: Option<PathBuf>,
    pub environment: Option<String>,
    pub log_level: String,
    pub master_key: Option<Secret>,
    pub open_data_plane: bool,
    pub drain_timeout: Duration,
    /// Threads of the data plane.
    pub cores: usize,
    pub(crate) cors: Origins,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) limits: Limits,
}

/// Reads variables and collects what is wrong with them.
struct Reader<'a> {
    env: &'a dyn Env,
    faults: Vec<String>,
}

impl Reader<'_> {
    /// An empty variable counts as unset.
    fn text(&self, name: &str) -> Option<String> {
        self.env
            .get(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    fn number<N: std::str::FromStr>(&mut self, name: &str, what: &str) -> Option<N> {
        let text = self.text(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.faults.push(format!("{name} is \"{text}\"; it must be {what}"));
        }
        number
    }

    fn boolean(&mut self, name: &str) -> bool {
        match self.text(name).map(|text| text.to_ascii_lowercase()).as_deref() {
            None | Some("false" | "0" | "no") => false,
            Some("true" | "1" | "yes") => true,
            Some(other) => {
                self.faults
                    .push(format!("{name} is \"{other}\"; it must be true or false"));
                false
            }
        }
    }
}

impl Settings {
    /// # Errors
    /// Every variable that is wrong, with its remedy.
    pub fn read(env: &dyn Env) -> Result<Self, Vec<String>> {
        let mut reader = Reader {
            env,
            faults: Vec::new(),
        };
        let proxies = reader
            .text("TRUSTED_PROXIES")
            .unwrap_or_else(|| DEFAULT_PROXIES.to_owned());
        let trusted_proxies = TrustedProxies::parse(&proxies);
        let log_level = reader
            .text("LOG_LEVEL")
            .map_or("info".to_owned(), |level| level.to_ascii_lowercase());
        let (database_path, unknown_database) = match reader.text("DATABASE_URL") {
            None => (None, None),
            Some(url) => match url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
                Some(path) if !path.is_empty() && !path.contains('?') => (Some(PathBuf::from(path)), None),
                _ => (
                    None,
                    url.split_once(':')
                        .map(|(scheme, _)| scheme.to_owned())
                        .or(Some("no scheme".to_owned())),
                ),
            },
        };
        let settings = Self {
            host: reader.text("HOST").unwrap_or_else(|| "127.0.0.1".to_owned()),
            port: reader.number("PORT", "a port from 0 to 65535").unwrap_or(8080),
            data_dir: reader
                .text("DATA_DIR")
                .map_or_else(|| PathBuf::from("switchyard-data"), PathBuf::from),
            database_path,
            config_path: reader.text("GATEWAY_CONFIG").map(PathBuf::from),
            environment: reader.text("GATEWAY_ENV"),
            master_key: reader.text("MASTER_KEY").map(Secret::new),
            open_data_plane: reader.boolean("ALLOW_UNAUTHENTICATED_PROXY"),
            drain_timeout: reader
                .number("DRAIN_TIMEOUT", "a number of seconds")
                .map_or(DEFAULT_DRAIN, Duration::from_secs),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            cors: Origins::parse(&reader.text("CORS_ORIGINS").unwrap_or_default()),
            trusted_proxies: trusted_proxies.clone().unwrap_or_default(),
            limits: Limits {
                rps: reader.number("RATE_LIMIT_RPS", "a whole number of requests a second, 0 for none"),
                burst: reader.number("RATE_LIMIT_BURST", "a whole number of requests"),
            },
            log_level,
        };
        let mut faults = reader.faults;
        if let Err(entry) = trusted_proxies {
            faults.push(format!(
                "TRUSTED_PROXIES has \"{entry}\"; each entry must be a network such as 10.0.0.0/8 or an address"
            ));
        }
        if let Some(scheme) = unknown_database {
            faults.push(format!("DATABASE_URL begins with {scheme}; this version keeps its data in SQLite: sqlite:<path> without parameters, or leave it unset"));
        }
        if !["debug", "info", "warn", "error"].contains(&settings.log_level.as_str()) {
            faults.push(format!(
                "LOG_LEVEL is \"{}\"; it must be debug, info, warn or error",
                settings.log_level
            ));
        }
        if let Some(nearly) = settings
            .environment
            .as_deref()
            .filter(|name| is_nearly_production(name))
        {
            faults.push(format!(
                "GATEWAY_ENV is \"{nearly}\"; write \"production\" for its checks, or another word"
            ));
        }
        faults.extend(settings.unfit_for_production());
        if faults.is_empty() { Ok(settings) } else { Err(faults) }
    }

    #[must_use]
    pub fn is_production(&self) -> bool {
        self.environment.as_deref() == Some("production")
    }

    fn unfit_for_production(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.is_production() && self.open_data_plane {
            faults.push(
                "ALLOW_UNAUTHENTICATED_PROXY opens /v1 to everyone; GATEWAY_ENV=production refuses that".to_owned(),
            );
        }
        if self.is_production() && self.cors.any() {
            faults.push("CORS_ORIGINS has *; GATEWAY_ENV=production wants the origins by name".to_owned());
        }
        faults
    }

    /// The database's file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.database_path
            .clone()
            .unwrap_or_else(|| self.data_dir.join("switchyard.db"))
    }
}

/// A word that means production and would switch nothing on.
fn is_nearly_production(name: &str) -> bool {
    name != "production" && ["prod", "production", "prd"].contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::Settings;
    use std::collections::HashMap;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        let env: HashMap<String, String> = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Settings::read(&env)
    }

    #[test]
    fn nothing_set_is_a_gateway_on_loopback() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.host.as_str(), settings.port), ("127.0.0.1", 8080));
        assert_eq!(settings.database().to_str(), Some("switchyard-data/switchyard.db"));
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let faults = read(&[
            ("PORT", "http"),
            ("TRUSTED_PROXIES", "10.0.0.0/8,here"),
            ("DATABASE_URL", "mysql://x"),
            ("LOG_LEVEL", "loud"),
            ("GATEWAY_ENV", "production"),
            ("ALLOW_UNAUTHENTICATED_PROXY", "true"),
            ("CORS_ORIGINS", "*"),
        ]);
        let faults = faults.unwrap_err();
        let names: Vec<&str> = faults.iter().filter_map(|fault| fault.split(' ').next()).collect();
        assert_eq!(
            names,
            [
                "PORT",
                "TRUSTED_PROXIES",
                "DATABASE_URL",
                "LOG_LEVEL",
                "ALLOW_UNAUTHENTICATED_PROXY",
                "CORS_ORIGINS"
            ]
        );
    }
}

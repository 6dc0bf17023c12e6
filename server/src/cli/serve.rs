//! `switchyard serve`: start, wait for a signal, drain.

use super::{fail, say, validate, wrong};
use crate::boot::{self, Plan, ProcessEnv, Running, Settings, descriptors};
use crate::observe::logging;
use anyhow::Context;
use std::path::Path;
use std::process::ExitCode;
use switchyard_core::config::Config;
use switchyard_core::env::Env;
use switchyard_engine::demo::Pace;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Where the reference keeps its file. It is not read by itself; whoever has one there wants to know.
const OLD_PLACES: [&str; 3] = [
    "/etc/ferrogw/config.yaml",
    "/etc/ferrogw/config.yml",
    "/etc/ferrogw/config.json",
];

pub(super) fn run() -> ExitCode {
    let env = ProcessEnv;
    let settings = match Settings::read(&env) {
        Ok(settings) => settings,
        Err(faults) => return wrong(&faults),
    };
    let config = match settings.config_path.as_deref().map(validate::load).transpose() {
        Ok(config) => config,
        Err(faults) => return wrong(&faults),
    };
    if let Some(inert) = config
        .as_ref()
        .map(inert)
        .filter(|inert| settings.is_production() && !inert.is_empty())
    {
        say("switchyard: GATEWAY_ENV=production does not start with settings that do nothing in this version:");
        return wrong(&inert);
    }
    // Before there are threads.
    let room = descriptors::prepare();
    let _logging = logging::start(&settings.log_level);
    if let Err(error) = room {
        tracing::warn!(%error, "no room was made for open files: opening many may hold streams up for some milliseconds");
    }
    warn_about(&settings, config.as_ref());
    match serve(settings, config, &env) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn inert(config: &Config) -> Vec<String> {
    config
        .notices
        .iter()
        .filter(|notice| notice.inert)
        .map(ToString::to_string)
        .collect()
}

fn warn_about(settings: &Settings, config: Option<&Config>) {
    for notice in config.iter().flat_map(|config| &config.notices) {
        tracing::warn!(inert = notice.inert, "{notice}");
    }
    if settings.open_data_plane {
        tracing::warn!("ALLOW_UNAUTHENTICATED_PROXY is on: whoever reaches this address can spend");
    }
    if settings.config_path.is_none()
        && let Some(place) = OLD_PLACES.into_iter().find(|place| Path::new(place).exists())
    {
        tracing::warn!("{place} exists and was not read; set GATEWAY_CONFIG to use it");
    }
}

fn serve(settings: Settings, config: Option<Config>, env: &dyn Env) -> anyhow::Result<()> {
    // One crypto library for everything that speaks TLS. An error means that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let control = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.cores.clamp(2, 8))
        .thread_name("control")
        .enable_all()
        .build()
        .context("the runtime cannot start")?;
    control.block_on(async {
        let signals = Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        };
        let (path, production) = (settings.config_path.clone(), settings.is_production());
        let running = boot::start(Plan {
            settings,
            config,
            env,
            pace: Pace::Human,
        })
        .await?;
        greet(&running);
        let reload = || reload(&running, path.as_deref(), production, env);
        let (interrupt, terminate) = until_stopped(signals, reload).await;
        drain(running, interrupt, terminate).await;
        Ok(())
    })
}

/// The key is said once, and only here. It never goes through the log.
fn greet(running: &Running) {
    let address = format!("http://{}/", running.address);
    if let Some(key) = &running.first_key {
        say(&format!(
            "\nSwitchyard is at {address}\n\nIts first key, shown this once (scope admin):\n\n    {}\n\n\
             Sign in with it. If it is lost: switchyard admin recover\n",
            key.secret.expose()
        ));
    } else {
        say(&format!("Switchyard is at {address}"));
    }
    tracing::info!(address = %running.address, version = env!("CARGO_PKG_VERSION"), "listening");
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// Reads the configuration anew at each SIGHUP, and returns at the first signal to stop.
async fn until_stopped(signals: Signals, reload: impl Fn()) -> (Signal, Signal) {
    let Signals {
        mut interrupt,
        mut terminate,
        mut hangup,
    } = signals;
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => reload(),
        }
    }
    (interrupt, terminate)
}

/// A file that does not hold changes nothing.
fn reload(running: &Running, path: Option<&Path>, production: bool, env: &dyn Env) {
    let Some(path) = path else {
        tracing::warn!("SIGHUP: there is no configuration to read; GATEWAY_CONFIG is not set");
        return;
    };
    let config = match validate::load(path) {
        Ok(config) => config,
        Err(faults) => {
            for fault in faults {
                tracing::error!("configuration not taken over: {fault}");
            }
            return;
        }
    };
    for notice in &config.notices {
        tracing::warn!(inert = notice.inert, "{notice}");
    }
    if production && config.notices.iter().any(|notice| notice.inert) {
        tracing::error!("configuration not taken over: it has settings that do nothing in this version");
        return;
    }
    match running.reload(Some(&config), env) {
        Ok(()) => tracing::info!(path = %path.display(), "configuration taken over"),
        Err(error) => tracing::error!("configuration not taken over: {error:#}"),
    }
}

async fn drain(running: Running, mut interrupt: Signal, mut terminate: Signal) {
    tracing::info!(
        open = running.in_flight(),
        "stopping: open requests may finish; a second signal ends them"
    );
    tokio::select! {
        () = running.stop() => tracing::info!("stopped"),
        _ = interrupt.recv() => tracing::warn!("stopped at once"),
        _ = terminate.recv() => tracing::warn!("stopped at once"),
    }
}

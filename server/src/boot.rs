//! From the environment to a listening gateway, and back down.
//!
//! ```text
//! Settings          what the environment says, all faults at once
//! Config            the file, if there is one, all faults at once
//! Store, Writer     the database opens, migrates, and begins to take records
//! Engine            the snapshot comes to life
//! Cores             one runtime per core for connections, behind one acceptor
//! ```
//!
//! Two kinds of runtime. Each core of the data plane has a single-threaded one of its own, where its connections live from
//! accept to close. Everything else (pages, `/admin`, SQL, jobs) runs on one ordinary runtime, so that rendering a page
//! never delays a token. A bridge carries requests over that are not the data plane's.

mod cores;
pub(crate) mod descriptors;
mod first_key;
mod settings;

pub use settings::{ProcessEnv, Settings};

use crate::admin::{self, Services};
use crate::auth::throttle::Throttles;
use crate::auth::{Auth, Keys, Sessions};
use crate::http::client_ip::TrustedProxies;
use crate::http::fallback;
use crate::http::front::Front;
use crate::http::probes::{self, Readiness};
use crate::observe::metrics::Metrics;
use crate::state::{AppState, Components};
use crate::upstream::HttpTransport;
use crate::upstream::google::GoogleAccounts;
use crate::{dashboard, data};
use anyhow::Context;
use cores::Cores;
use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use switchyard_core::config::Config;
use switchyard_core::env::Env;
use switchyard_engine::demo::{DemoTransport, Pace};
use switchyard_engine::ports::{Records, SystemClock};
use switchyard_engine::record::RequestRecord;
use switchyard_engine::{Engine, Parts, Snapshot};
use switchyard_store::{Store, Writer, WriterConfig};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

pub use first_key::{FirstKey, recover};

const SWEEP_EVERY: Duration = Duration::from_secs(10 * 60);

/// A gateway that listens.
pub struct Running {
    pub address: SocketAddr,
    /// Set when this start created the first key.
    pub first_key: Option<FirstKey>,
    state: AppState,
    cores: Cores,
    transport: Arc<HttpTransport>,
    demo: Arc<DemoTransport>,
    google: GoogleAccounts,
    /// Held for as long as this gateway uses its folder.
    _alone: File,
    store: Store,
    records: Writer,
}

/// Tells the metrics, then the writer.
struct Recorder {
    metrics: Arc<Metrics>,
    writer: Writer,
}

impl Records for Recorder {
    fn push(&self, record: RequestRecord) {
        self.metrics.observe(&record);
        self.writer.push(record);
    }
}

/// What a start needs to be told.
pub struct Plan<'a> {
    pub settings: Settings,
    pub config: Option<Config>,
    /// Where providers find their credentials.
    pub env: &'a dyn Env,
    /// How fast the simulated provider speaks.
    pub pace: Pace,
}

/// Starts a gateway on the current runtime, which becomes the ordinary one.
///
/// # Errors
/// When the database cannot be opened, the configuration does not come to life, or the address is taken.
pub async fn start(plan: Plan<'_>) -> anyhow::Result<Running> {
    let Plan {
        settings,
        config,
        env,
        pace,
    } = plan;
    let control = Handle::current();
    let clock: Arc<SystemClock> = Arc::default();
    // Bound first: a second gateway started by mistake must not touch the first one's database.
    let listener = bind(&settings).await?;
    let address = listener.local_addr()?;
    let alone = lock(&settings.data_dir)?;
    let store = Store::open(&settings.database()).await?;
    let writer = Writer::start(store.clone(), WriterConfig::new(settings.data_dir.join("spool")));
    let first_key = first_key::create(&store, settings.master_key.is_some(), clock.as_ref()).await?;

    let metrics = Arc::new(Metrics::new());
    let transport = Arc::new(HttpTransport::new(env));
    let demo = Arc::new(DemoTransport::new(pace));
    let google = GoogleAccounts::new(clock.clone());
    let parts = Parts {
        env,
        transport: transport.clone(),
        demo: Arc::clone(&demo),
        google: &google,
    };
    let snapshot = Snapshot::build(config.as_ref(), &parts, None)?;
    let records = Arc::new(Recorder {
        metrics: Arc::clone(&metrics),
        writer: writer.clone(),
    });
    let engine = Arc::new(Engine::new(snapshot, records, clock.clone()));
    announce(&engine);
    let watched = Arc::clone(&engine);
    tokio::spawn(async move { watched.watch().await });

    let keys = Keys::new(store.clone(), control.clone(), clock.clone());
    let sessions = Sessions::new(store.clone(), control.clone(), clock.clone());
    let throttles = Throttles::new(settings.limits);
    let master = settings
        .master_key
        .as_ref()
        .map(switchyard_core::secret::Secret::expose);
    let auth = Auth::new(keys, sessions, throttles, master, settings.open_data_plane);
    let kept = data::Kept::new(store.clone(), control.clone(), clock.clone());
    let services = Services {
        store: store.clone(),
        records: writer.clone(),
        engine: Arc::clone(&engine),
        clock,
        auth: auth.clone(),
        environment: settings.environment.clone(),
    };
    tokio::spawn(sweep(auth.sessions.clone(), kept.clone()));
    let proxies: TrustedProxies = settings.trusted_proxies.clone();
    let cores = settings.cores;
    let state = AppState::new(Components {
        settings,
        engine,
        auth,
        services,
        kept,
        metrics,
        readiness: Readiness::default(),
        proxies,
    });
    let cores = Cores::start(cores, listener, &front(&state, control), &state)?;
    Ok(Running {
        address,
        first_key,
        state,
        cores,
        transport,
        demo,
        google,
        _alone: alone,
        store,
        records: writer,
    })
}

/// The data plane, with everything else behind the bridge.
fn front(state: &AppState, control: Handle) -> Front {
    let probes = probes::router()
        .method_not_allowed_fallback(fallback::wrong_method)
        .with_state(state.clone());
    let behind = probes.merge(admin::router(state)).merge(dashboard::router(state));
    let app = data::router(state).fallback_service(cores::bridge(control, behind));
    Front::new(state.clone(), app)
}

async fn bind(settings: &Settings) -> anyhow::Result<TcpListener> {
    let address = (settings.host.as_str(), settings.port);
    TcpListener::bind(address).await.map_err(|error| {
        anyhow::anyhow!(
            "cannot listen on {}:{}: {error}; stop what listens there, or set PORT or HOST",
            settings.host,
            settings.port
        )
    })
}

/// One gateway at a time uses a folder: two would give their records the same ids. The lock ends with the process, however
/// that ends.
fn lock(data_dir: &Path) -> anyhow::Result<File> {
    let shown = data_dir.display();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
        .with_context(|| format!("{shown} cannot be created"))?;
    let file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(data_dir.join("lock"));
    let file = file.with_context(|| format!("{shown} cannot be written"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "another gateway uses {shown}; stop it (one that drains still runs), or set DATA_DIR to another folder"
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("{shown} cannot be locked")),
    }
}

fn announce(engine: &Engine) {
    for target in engine.targets().targets {
        match &target.reason {
            Some(reason) if !target.is_callable() => {
                tracing::warn!(target.name = target.name, reason, "a target cannot be called");
            }
            _ if target.simulated => {
                tracing::info!(target.name = target.name, "answers of this target are simulated");
            }
            _ => tracing::info!(target.name = target.name, "target ready"),
        }
        for credential in &target.credentials {
            if let Some((reason, None)) = &credential.out {
                tracing::warn!(
                    target.name = target.name,
                    credential.id = credential.id,
                    reason,
                    "a credential is missing"
                );
            }
        }
    }
}

async fn sweep(sessions: Sessions, kept: data::Kept) {
    let mut every = tokio::time::interval(SWEEP_EVERY);
    loop {
        every.tick().await;
        sessions.sweep().await;
        kept.sweep().await;
    }
}

impl Running {
    /// Resolves when every record pushed so far is in the database or on the spool.
    pub async fn flushed(&self) {
        self.records.flushed().await;
    }

    /// Puts another configuration in force. Requests under way end on the one before; targets whose own block is the same
    /// keep what was learned of them.
    ///
    /// # Errors
    /// When it does not come to life; the one before stays in force.
    pub fn reload(&self, config: Option<&Config>, env: &dyn Env) -> anyhow::Result<()> {
        let parts = Parts {
            env,
            transport: self.transport.clone(),
            demo: Arc::clone(&self.demo),
            google: &self.google,
        };
        let engine = &self.state.engine;
        engine.swap(Snapshot::build(config, &parts, Some(&engine.snapshot()))?);
        announce(engine);
        Ok(())
    }

    /// Requests that have begun and not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state.engine.in_flight()
    }

    /// Takes no more connections, lets what runs come to its end within the bound, and writes what is left to write.
    pub async fn stop(self) {
        self.state.readiness.draining.store(true, Ordering::Relaxed);
        self.cores
            .drain(self.state.settings.drain_timeout, || self.state.engine.stop())
            .await;
        self.transport.close();
        if !self.records.close().await {
            tracing::warn!("some records were not written before the end; they are on the spool");
        }
        self.store.close().await;
    }
}

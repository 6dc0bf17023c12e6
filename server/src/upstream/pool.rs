//! Connections that wait for their next call.
//!
//! A socket belongs to the runtime that opened it: that runtime's events move it. So there is one pool per runtime, and a
//! connection goes back to the pool it came from, on whatever thread its body ends. A core is a runtime with one thread, so
//! its pool's lock is never contended; the ordinary runtime's threads share theirs.
//!
//! The last one in is the first one out, so that what is too many grows old and is closed. Whoever takes a connection finds
//! out whether it still is one; whoever waits too long is swept out by a task that lives as long as there is something to
//! sweep.

use super::fault;
use super::http1::Line;
use super::http2::{self, Shared};
use super::origin::Origin;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switchyard_engine::ports::TransportError;
use thread_local::ThreadLocal;
use tokio::runtime::{Handle, Id};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

pub(super) const IDLE: Duration = Duration::from_secs(60);
pub(super) const MOST_IDLE: usize = 200;
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// One pool per runtime, and on each thread the one that was asked for last.
#[derive(Default)]
pub(super) struct Pools {
    all: Mutex<HashMap<Id, Arc<Pool>>>,
    last: ThreadLocal<RefCell<Last>>,
}

type Last = Option<(Id, Arc<Pool>)>;

pub(super) struct Pool {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: HashMap<Origin, Place>,
    swept: bool,
    closed: bool,
}

/// What there is for one origin.
#[derive(Default)]
struct Place {
    /// The oldest first.
    idle: Vec<(Instant, Box<Line>)>,
    shared: Vec<Shared>,
    /// Known to speak HTTP/1.1 only.
    alone: bool,
    /// Taken by whoever opens a connection that others may share.
    opening: Arc<tokio::sync::Mutex<()>>,
}

pub(super) enum Found {
    Line(Box<Line>),
    Place(http2::Place),
}

impl Pools {
    /// The pool of the current runtime.
    pub(super) fn here(&self) -> Result<Arc<Pool>, TransportError> {
        let runtime = Handle::try_current().map_err(fault::connect)?;
        let id = runtime.id();
        let mut last = self.last.get_or_default().borrow_mut();
        if let Some((known, pool)) = &*last
            && *known == id
        {
            return Ok(Arc::clone(pool));
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = all.entry(id).or_insert_with(|| Arc::new(Pool::of(runtime)));
        *last = Some((id, Arc::clone(pool)));
        Ok(Arc::clone(pool))
    }

    /// Closes what waits, and keeps nothing that comes back. Calls under way end as they would have.
    pub(super) fn close(&self) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for pool in all.values() {
            let mut state = pool.state();
            state.closed = true;
            let places = std::mem::take(&mut state.places);
            drop(state);
            drop(places);
        }
    }
}

impl Pool {
    fn of(runtime: Handle) -> Self {
        Self {
            runtime,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what has waited too long, and says whether anything is left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut old = Vec::new();
        let mut state = self.state();
        for place in state.places.values_mut() {
            let young = place
                .idle
                .partition_point(|(since, _)| now.saturating_duration_since(*since) >= IDLE);
            old.extend(place.idle.drain(..young));
            place
                .shared
                .retain_mut(|shared| !shared.is_closed() && shared.idle_for(now) < IDLE);
        }
        let left = state
            .places
            .values()
            .any(|place| !place.idle.is_empty() || !place.shared.is_empty());
        state.swept = left;
        drop(state);
        left
    }

    /// Makes sure that somebody sweeps.
    fn sweep_later(self: &Arc<Self>, state: &mut State) {
        if std::mem::replace(&mut state.swept, true) {
            return;
        }
        let pool = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                if !pool.upgrade().is_some_and(|pool| pool.sweep()) {
                    return;
                }
            }
        });
    }
}

/// The connections to one origin on one runtime.
#[derive(Clone)]
pub(super) struct Home {
    pool: Arc<Pool>,
    pub(super) origin: Origin,
}

impl Home {
    pub(super) fn new(pool: Arc<Pool>, origin: Origin) -> Self {
        Self { pool, origin }
    }

    /// A connection that a call can use now.
    pub(super) fn take(&self) -> Option<Found> {
        if let Some(place) = self.enter() {
            return Some(Found::Place(place));
        }
        loop {
            let mut line = self.pop()?;
            if line.is_alive() {
                return Some(Found::Line(line));
            }
        }
    }

    fn pop(&self) -> Option<Box<Line>> {
        let mut state = self.pool.state();
        let place = state.places.get_mut(&self.origin)?;
        let (since, line) = place.idle.pop()?;
        if since.elapsed() < IDLE {
            return Some(line);
        }
        // Those below have waited longer still.
        let old = std::mem::take(&mut place.idle);
        drop(state);
        drop((line, old));
        None
    }

    /// A place on a connection that others use too.
    pub(super) fn enter(&self) -> Option<http2::Place> {
        if !self.origin.secure {
            return None;
        }
        let mut state = self.pool.state();
        let place = state.places.get_mut(&self.origin)?;
        place.shared.iter_mut().find_map(Shared::enter)
    }

    /// Where one connection may do for many, only one at a time is opened, and who has waited looks again.
    pub(super) async fn turn_to_open(&self) -> Option<OwnedMutexGuard<()>> {
        let opening = self.opening()?;
        let turn = opening.lock_owned().await;
        // Whoever was first may have found out that nothing can be shared.
        self.opening().map(|_| turn)
    }

    fn opening(&self) -> Option<Arc<tokio::sync::Mutex<()>>> {
        if !self.origin.secure {
            return None;
        }
        let mut state = self.pool.state();
        let place = state.places.entry(self.origin.clone()).or_default();
        (!place.alone).then(|| Arc::clone(&place.opening))
    }

    pub(super) fn speaks_http1(&self) {
        if self.origin.secure {
            let mut state = self.pool.state();
            state.places.entry(self.origin.clone()).or_default().alone = true;
        }
    }

    /// Offers a new connection to others, and takes the first place on it.
    pub(super) fn share(&self, mut shared: Shared) -> Option<http2::Place> {
        let first = shared.enter();
        let mut state = self.pool.state();
        if !state.closed {
            let place = state.places.entry(self.origin.clone()).or_default();
            place.alone = false;
            place.shared.retain(|shared| !shared.is_closed());
            place.shared.push(shared);
            self.pool.sweep_later(&mut state);
        }
        first
    }

    /// Takes back a connection whose call has ended.
    pub(super) fn put(&self, line: Box<Line>) {
        let mut state = self.pool.state();
        if state.closed {
            return;
        }
        let idle = match state.places.get_mut(&self.origin) {
            Some(place) => &mut place.idle,
            None => &mut state.places.entry(self.origin.clone()).or_default().idle,
        };
        if idle.len() < MOST_IDLE {
            idle.push((Instant::now(), line));
            self.pool.sweep_later(&mut state);
        }
    }
}

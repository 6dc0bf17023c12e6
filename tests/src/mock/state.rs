//! What one mock remembers: its scripts, its gates, and the requests that it saw.

use super::Reply;
use super::vendors::model_in;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Semaphore, watch};

/// Which requests a script is for. What is absent matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matcher {
    /// The body's `model`.
    pub model: Option<String>,
    /// The end of the path: `/embeddings`.
    pub path: Option<String>,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    /// Byte for byte.
    pub body: Bytes,
    /// The body, read as JSON; `null` when it is none.
    pub json: Value,
    /// The client went away before the answer was complete.
    pub cancelled: bool,
}

/// Holds replies back until a test lets them go on.
#[derive(Clone, Debug)]
pub struct Gate {
    permits: Arc<Semaphore>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    rules: Mutex<Vec<Rule>>,
    gates: Mutex<HashMap<String, Gate>>,
    requests: Mutex<Requests>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Requests {
    /// Goes up with each reset, so that an answer from before does not mark a request from after.
    epoch: usize,
    list: Vec<Recorded>,
}

/// The place of a request in the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestId {
    epoch: usize,
    index: usize,
}

#[derive(Debug)]
struct Rule {
    matcher: Matcher,
    script: VecDeque<Reply>,
    default: Option<Reply>,
}

/// A lock that a panicking test cannot spoil for the server.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Matcher ===

impl Matcher {
    #[must_use]
    pub fn model(name: &str) -> Self {
        Self {
            model: Some(name.to_owned()),
            path: None,
        }
    }

    #[must_use]
    pub fn path(suffix: &str) -> Self {
        Self {
            model: None,
            path: Some(suffix.to_owned()),
        }
    }

    fn matches(&self, request: &Recorded) -> bool {
        self.model.as_ref().is_none_or(|model| {
            // Some vendors' paths say it.
            model_in(&request.path).map_or_else(|| request.json["model"] == *model, |named| named == *model)
        }) && self.path.as_ref().is_none_or(|suffix| request.path.ends_with(suffix))
    }

    fn specificity(&self) -> usize {
        usize::from(self.model.is_some()) + usize::from(self.path.is_some())
    }
}

// === impl Recorded ===

impl Recorded {
    /// A header's value, when it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

// === impl Gate ===

impl Gate {
    fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    /// Lets `count` more pass.
    pub fn release(&self, count: usize) {
        self.permits.add_permits(count);
    }

    /// Lets everything pass from now on.
    pub fn open(&self) {
        self.permits.close();
    }

    pub(super) async fn pass(&self) {
        // An error is a closed semaphore, and that is an open gate.
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
    }
}

// === impl Shared ===

impl Shared {
    pub(super) fn script(&self, matcher: Matcher, replies: impl IntoIterator<Item = Reply>) {
        self.with_rule(matcher, |rule| rule.script.extend(replies));
    }

    pub(super) fn set_default(&self, matcher: Matcher, reply: Option<Reply>) {
        self.with_rule(matcher, |rule| rule.default = reply);
    }

    fn with_rule(&self, matcher: Matcher, change: impl FnOnce(&mut Rule)) {
        let mut rules = locked(&self.rules);
        if let Some(rule) = rules.iter_mut().find(|rule| rule.matcher == matcher) {
            return change(rule);
        }
        let mut rule = Rule {
            matcher,
            script: VecDeque::new(),
            default: None,
        };
        change(&mut rule);
        rules.push(rule);
        rules.sort_by_key(|rule| Reverse(rule.matcher.specificity()));
    }

    /// The reply to a request: the next of a script that matches, else a default that does, specific ones first.
    pub(super) fn next_reply(&self, request: &Recorded) -> Option<Reply> {
        let mut rules = locked(&self.rules);
        let scripted = rules
            .iter_mut()
            .filter(|rule| rule.matcher.matches(request))
            .find_map(|rule| rule.script.pop_front());
        scripted.or_else(|| {
            rules
                .iter()
                .filter(|rule| rule.matcher.matches(request))
                .find_map(|rule| rule.default.clone())
        })
    }

    pub(super) fn gate(&self, name: &str) -> Gate {
        locked(&self.gates)
            .entry(name.to_owned())
            .or_insert_with(Gate::new)
            .clone()
    }

    pub(super) fn reset(&self) {
        locked(&self.rules).clear();
        // Whoever still waits at a gate would wait for ever: nobody has its name any more.
        locked(&self.gates).drain().for_each(|(_, gate)| gate.open());
        let mut requests = locked(&self.requests);
        requests.epoch += 1;
        requests.list.clear();
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        locked(&self.requests).list.clone()
    }

    pub(super) fn record(&self, request: Recorded) -> RequestId {
        let mut requests = locked(&self.requests);
        requests.list.push(request);
        let id = RequestId {
            epoch: requests.epoch,
            index: requests.list.len() - 1,
        };
        drop(requests);
        self.changed.send_replace(());
        id
    }

    pub(super) fn mark_cancelled(&self, id: RequestId) {
        let mut requests = locked(&self.requests);
        if requests.epoch == id.epoch
            && let Some(request) = requests.list.get_mut(id.index)
        {
            request.cancelled = true;
        }
        drop(requests);
        self.changed.send_replace(());
    }

    /// Waits until `found` finds something in the requests.
    pub(super) async fn wait_for<T>(&self, found: impl Fn(&[Recorded]) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            let result = found(&locked(&self.requests).list);
            if let Some(result) = result {
                return result;
            }
            // The sender lives as long as `self`, so this cannot fail.
            let _ = changed.changed().await;
        }
    }
}

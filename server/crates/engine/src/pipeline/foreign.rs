//! Requests that the gateway does not understand, passed on as they are.
//!
//! A path below `/v1` that is no surface may still be one that an upstream has: fine-tuning, vector stores, whatever a vendor
//! adds next week. It goes to one target, named by `X-Provider` or by the body's `model`, with the gateway's credential in the
//! place of the caller's. The life around it is that of every call (breaker, slots, deadline, one record, verdicts), but for
//! what takes an understanding of the call: it is not ordered by a strategy, not retried, and nobody knows what it used.

use super::attempt::{broken, collect_some, come_back, next};
use super::{Engine, fail};
use crate::aside::aside;
use crate::ledger::{Ledger, Started, clean};
use crate::live::now;
use crate::plan::{Reason, may_ask};
use crate::ports::UpstreamBody;
use crate::request::{Attribution, Failure, Request};
use crate::snapshot::{Link, Snapshot, Target};
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, empty, unfold};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use serde::Deserialize;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use switchyard_core::config::OnUnsupported;
use switchyard_core::error::{Error, Kind};
use switchyard_core::redact::redact;
use switchyard_core::routing::{Leg, RouteId, Serves, TargetId, is_virtual};
use switchyard_core::usage::Usage;
use switchyard_providers::{Call, Origin, Surface, Terms};
use tokio::time::{Instant, timeout, timeout_at};

/// The word for it in logs, metrics and pages, where a call has its surface.
pub const PASSED_ON: &str = "pass_through";
const PROVIDER: HeaderName = HeaderName::from_static("x-provider");
/// A body that is longer is not looked into for a model's name.
const LONGEST_LOOK: usize = 1 << 20;
/// Silence after which an answer is given up.
const IDLE: Duration = Duration::from_secs(300);
/// Percent-decodings after which a path is not decoded any further.
const MOST_DECODINGS: usize = 8;

/// A request that is passed on.
pub struct Foreign {
    /// Its surface means nothing, unless it is `spoken`.
    pub request: Request,
    pub method: Method,
    /// Below `/v1`, with its slash and its query.
    pub path: String,
    /// The body is a call of the request's surface, only the path is another. It goes to nobody who does not have that surface
    /// himself, under the name that the model has there.
    pub spoken: bool,
}

/// What came back, whatever its status.
pub struct Passed {
    pub attribution: Attribution,
    pub overhead: Duration,
    pub waited: Duration,
    pub status: StatusCode,
    /// The upstream's, without those that are of its connection.
    pub headers: HeaderMap,
    /// Ends without an error that could be told: a client sees that it is cut.
    pub body: BoxStream<'static, Result<Bytes, Error>>,
}

impl Engine {
    /// Records a request that is not passed on.
    pub fn refuse_foreign(&self, request: &Request, error: Error) -> Failure {
        let (records, open) = (Arc::clone(&self.records), Arc::clone(&self.open));
        let mut ledger = Ledger::open(request, self.snapshot(), records, open);
        ledger.is_surface(PASSED_ON);
        fail(&mut ledger, error)
    }

    /// Passes a request on. Dropping the future, or the body it gave, cancels what runs upstream and closes the record.
    ///
    /// # Errors
    /// What the caller is to be told, with the target that was asked.
    pub async fn pass_on(&self, foreign: Foreign) -> Result<Passed, Failure> {
        let snapshot = self.snapshot();
        let Foreign {
            request,
            method,
            path,
            spoken,
        } = foreign;
        let (records, open) = (Arc::clone(&self.records), Arc::clone(&self.open));
        let mut ledger = Ledger::open(&request, Arc::clone(&snapshot), records, open);
        ledger.is_surface(PASSED_ON);
        let call = if spoken {
            let read = read_call(&request).await;
            Some(read.map_err(|error| fail(&mut ledger, error))?)
        } else {
            None
        };
        let found = check_path(&path).and_then(|()| find(&snapshot, &request, call.as_ref()));
        let (id, model) = found.map_err(|error| fail(&mut ledger, error))?;
        ledger.asked_for(&model);
        let leg = Leg {
            target: id,
            route: RouteId::DEFAULT,
            place: 0,
            model: model.into(),
        };
        let since = request.thread.as_ref().and_then(|thread| thread.since);
        let deadline = snapshot.deadline(since.unwrap_or_else(Instant::now));
        let is_head = method == Method::HEAD;
        let target = &snapshot.targets[id.0];
        ledger.would_ask(target, &leg);
        let answered = {
            let way = Way {
                method,
                path: &path,
                call: call.as_ref(),
                deadline,
                on_unsupported: snapshot.on_unsupported,
            };
            let asked = pin!(self.ask(&mut ledger, target, &leg, &request, way));
            asked.await
        };
        let (started, response) = match answered {
            Ok(answered) => answered,
            Err(error) => return Err(fail(&mut ledger, error)),
        };
        let (parts, body) = response.into_parts();
        ledger.attempt_status(parts.status.as_u16());
        let length = parts.headers.get(CONTENT_LENGTH).filter(|_| is_head).cloned();
        let mut passed = if parts.status.as_u16() < 400 {
            ledger.committed(&started, true);
            ledger.head_status(parts.status.as_u16());
            let (overhead, waited) = ledger.head_ready();
            let attribution = ledger.shared().attribution();
            let body = if is_head || has_no_body(parts.status) {
                // Nobody reads what is not there.
                ledger.close_answered(parts.status.as_u16(), Usage::default());
                empty().boxed()
            } else {
                flow(body, ledger, parts.status.as_u16())
            };
            Passed {
                attribution,
                overhead,
                waited,
                status: parts.status,
                headers: relayed(&parts.headers),
                body,
            }
        } else {
            let body = if is_head { empty().boxed() } else { body };
            self.refused(ledger, target, &started, parts, body).await?
        };
        if let Some(length) = length {
            // Of the body that GET would have.
            passed.headers.insert(CONTENT_LENGTH, length);
        }
        Ok(passed)
    }

    async fn ask(
        &self,
        ledger: &mut Ledger,
        target: &Target,
        leg: &Leg,
        request: &Request,
        way: Way<'_>,
    ) -> Result<(Started, http::Response<UpstreamBody>), Error> {
        let link: &Link = target
            .link
            .as_ref()
            .map_err(|reason| Error::new(Kind::NoTarget, format!("{} cannot be called: {reason}", target.name)))?;
        let entered = target.live.admit(0, way.deadline).await;
        let mut pass = entered.inspect_err(|error| {
            let reason = Reason {
                text: error.message.clone().into(),
                until_ms: None,
            };
            ledger.exclude(leg.target, reason);
        })?;
        let credential = target.live.usable(now()).first().copied().unwrap_or(0);
        pass.begin(credential, &leg.model);
        let access = link
            .accesses
            .get(credential)
            .ok_or_else(|| Error::new(Kind::Internal, "a credential is gone"))?;
        let encoded = match way.call {
            None => access
                .wire
                .pass_on(way.method, way.path, &request.headers, request.body.clone()),
            Some(call) => {
                let wall = Duration::from_millis(u64::try_from(self.clock.now_ms()).unwrap_or(0));
                let terms = Terms {
                    now: SystemTime::UNIX_EPOCH + wall,
                    on_unsupported: way.on_unsupported,
                };
                let encoded = access.wire.encode(call, &leg.model, &request.headers, &terms);
                Some(encoded.and_then(|encoded| elsewhere(encoded.request, call.surface, way.path)))
            }
        };
        let encoded = match encoded {
            Some(Ok(encoded)) => encoded,
            Some(Err(error)) => {
                pass.unsent();
                return Err(error);
            }
            None => {
                pass.unsent();
                let message = format!(
                    "{} speaks another wire ({}): only calls that the gateway translates can go there",
                    target.name,
                    access.wire.kind().as_str()
                );
                let error = Error::new(Kind::Unsupported, message);
                return Err(error.told_as(501, "invalid_request_error", "proxy_not_supported"));
            }
        };
        let started = ledger.begin_attempt(target, leg, Some(pass));
        let sent = link.transport.send(encoded);
        let answered = match way.deadline {
            None => sent.await.map_err(broken),
            Some(at) => timeout_at(at, sent).await.map_or_else(
                |_| {
                    let message = "the gateway's request_timeout passed before an answer was there";
                    Err(Error::new(Kind::Deadline, message))
                },
                |answered| answered.map_err(broken),
            ),
        };
        match answered {
            Ok(response) => Ok((started, response)),
            Err(error) => {
                let error = clean(error, target);
                ledger.attempt_failed(&started, &error);
                Err(error)
            }
        }
    }

    /// An answer that refuses goes to the caller as it came, without a credential of ours in it; but that the gateway's own was
    /// refused is no business of the caller's.
    async fn refused(
        &self,
        mut ledger: Box<Ledger>,
        target: &Target,
        started: &Started,
        parts: http::response::Parts,
        body: UpstreamBody,
    ) -> Result<Passed, Failure> {
        let said = timeout(Duration::from_secs(15), collect_some(body))
            .await
            .unwrap_or_default();
        let wall = Duration::from_millis(u64::try_from(self.clock.now_ms()).unwrap_or(0));
        let access = target.link.as_ref().ok().and_then(|link| link.accesses.first());
        let error = access.map_or_else(
            || Error::new(Kind::Unexpected, "the target is gone"),
            |access| {
                access
                    .wire
                    .failure(parts.status, &parts.headers, &said, SystemTime::UNIX_EPOCH + wall)
            },
        );
        let error = clean(error, target);
        ledger.attempt_failed(started, &error);
        if error.kind == Kind::Auth {
            let mut failure = fail(&mut ledger, error);
            failure.headers = come_back(&parts.headers);
            return Err(failure);
        }
        let (overhead, waited) = ledger.head_ready();
        ledger.close_relayed(parts.status.as_u16(), &error);
        let known: Vec<&str> = match &target.link {
            Ok(link) => link
                .secrets
                .iter()
                .map(switchyard_core::secret::Secret::expose)
                .collect(),
            Err(_) => Vec::new(),
        };
        let body = match String::from_utf8(said) {
            Ok(text) => Bytes::from(redact(&text, &known)),
            Err(error) => Bytes::from(error.into_bytes()),
        };
        Ok(Passed {
            attribution: ledger.shared().attribution(),
            overhead,
            waited,
            status: parts.status,
            headers: relayed(&parts.headers),
            body: futures_util::stream::once(async { Ok(body) }).boxed(),
        })
    }
}

/// How a request goes on.
struct Way<'a> {
    method: Method,
    path: &'a str,
    /// What it says, if that is understood.
    call: Option<&'a Call>,
    deadline: Option<Instant>,
    on_unsupported: OnUnsupported,
}

async fn read_call(request: &Request) -> Result<Call, Error> {
    let (surface, body) = (request.surface, request.body.clone());
    let origin = Origin {
        id: Arc::clone(&request.id),
        at: request.arrived_at_ms.div_euclid(1000),
    };
    aside(body.len(), move || Call::read(surface, body, None, origin)).await
}

/// A call of a surface, sent to another path below the same root.
fn elsewhere(mut request: http::Request<Bytes>, surface: Surface, path: &str) -> Result<http::Request<Bytes>, Error> {
    let at = request.uri();
    let root = at.path().strip_suffix(surface.path());
    let there = root.and_then(|root| {
        let mut parts = at.clone().into_parts();
        parts.path_and_query = Some(format!("{root}{path}").parse().ok()?);
        http::Uri::from_parts(parts).ok()
    });
    let none = || Error::new(Kind::Internal, "the provider's address does not end as its wire's do");
    *request.uri_mut() = there.ok_or_else(none)?;
    Ok(request)
}

/// A path that leaves the API's root, in however many disguises, is none.
fn check_path(path: &str) -> Result<(), Error> {
    let mut plain = path.split('?').next().unwrap_or_default().to_owned();
    for _ in 0..MOST_DECODINGS {
        let is_bad = plain.contains('\\')
            || plain.contains("//")
            || plain.chars().any(char::is_control)
            || plain.split('/').any(|segment| matches!(segment, "." | ".."));
        if is_bad {
            let message = "the path must stay below /v1: no `.` or `..` segments, backslashes or empty segments";
            return Err(Error::new(Kind::InvalidRequest, message).told_as(
                400,
                "invalid_request_error",
                "invalid_proxy_path",
            ));
        }
        let decoded = percent_encoding::percent_decode_str(&plain)
            .decode_utf8_lossy()
            .into_owned();
        if decoded == plain {
            return Ok(());
        }
        plain = decoded;
    }
    let message = "the path is percent-encoded too many times over";
    Err(Error::new(Kind::InvalidRequest, message).told_as(400, "invalid_request_error", "invalid_proxy_path"))
}

#[derive(Deserialize)]
struct Named {
    model: String,
}

/// Who is meant: the target or provider that `X-Provider` names, else whoever serves the body's model. A call that is understood
/// goes to nobody who does not have its surface himself.
fn find(snapshot: &Snapshot, request: &Request, call: Option<&Call>) -> Result<(TargetId, String), Error> {
    let allowed = may_ask(snapshot, &request.headers, &request.caller)?;
    let may = |i: usize| allowed.iter().all(|only| only.get(i) == Some(&true));
    let has_it = |target: &Target| {
        let speaks = |call: &Call| target.link.as_ref().is_ok_and(|link| link.speaks(call.surface));
        call.is_none_or(speaks)
    };
    let model = match call {
        Some(call) => Some(snapshot.resolve(&call.model).to_owned()),
        None => (request.body.len() <= LONGEST_LOOK)
            .then(|| serde_json::from_slice::<Named>(&request.body).ok())
            .flatten()
            .map(|named| snapshot.resolve(&named.model).to_owned()),
    };
    // Where the name decides who is asked, or is put into the call, it has to be a model's.
    let decides = call.is_some() || !request.headers.contains_key(&PROVIDER);
    if let Some(name) = model.as_deref().filter(|name| decides && is_virtual(name).is_some()) {
        let message = format!("{name} is a route, and this call goes to one target as it is; name a model");
        return Err(Error::new(Kind::InvalidRequest, message).with_param("model"));
    }
    let targets = || snapshot.targets.iter().enumerate();
    if let Some(value) = request.headers.get(&PROVIDER) {
        let name = value.to_str().unwrap_or_default().trim();
        let named: Vec<_> = targets()
            .filter(|(_, target)| *target.name == *name || *target.provider == *name)
            .collect();
        if named.is_empty() {
            let message = format!("X-Provider names no configured target: {name:?}");
            let error = Error::new(Kind::ModelNotFound, message).with_param("X-Provider");
            return Err(error.told_as(404, "invalid_request_error", "provider_not_found"));
        }
        let mut named = named.into_iter().filter(|(i, _)| may(*i)).peekable();
        if named.peek().is_none() {
            let message = format!("this key's calls may not go to {name}");
            return Err(Error::new(Kind::NotAllowed, message));
        }
        let (i, target) = named
            .find(|(_, target)| has_it(target))
            .ok_or_else(|| nobody_has_it(&format!("{name} has not")))?;
        let model = model.map_or_else(String::new, |model| match call {
            Some(_) => target.upstream_model(&model).to_owned(),
            None => model,
        });
        return Ok((TargetId(i), model));
    }
    let Some(model) = model else {
        let message = "nobody can tell who is meant: send `X-Provider: <target>`, or a JSON body with a `model`";
        return Err(Error::new(Kind::InvalidRequest, message).told_as(
            400,
            "invalid_request_error",
            "provider_not_resolved",
        ));
    };
    let model = model.as_str();
    let serving = |wanted: &'static [Serves]| {
        targets().filter(move |(i, target)| may(*i) && wanted.contains(&target.serves(model)))
    };
    let mut all = serving(&[Serves::Listed])
        .chain(serving(&[Serves::Anything, Serves::Open]))
        .peekable();
    if all.peek().is_none() {
        let message = format!("no target that this key may use serves model {model}");
        return Err(Error::new(Kind::ModelNotFound, message).with_param("model"));
    }
    let found = all.find(|(_, target)| has_it(target));
    found
        .map(|(i, target)| (TargetId(i), target.upstream_model(model).to_owned()))
        .ok_or_else(|| nobody_has_it(&format!("no target for model {model} has")))
}

fn nobody_has_it(why: &str) -> Error {
    let message = format!(
        "only a provider that has Responses itself can do this, and {why}: use a model of one that has \
         (`surfaces: [responses]`), or make the conversation shorter yourself, such as by asking for a summary of it"
    );
    let error = Error::new(Kind::Unsupported, message).with_param("model");
    error.told_as(501, "invalid_request_error", "responses_not_supported")
}

/// Answers with these end with their head.
fn has_no_body(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    )
}

/// The upstream's headers, without those of its connection, its cookies, and its own id for the request, which comes back
/// under a name of ours.
fn relayed(headers: &HeaderMap) -> HeaderMap {
    const OF_THE_CONNECTION: [&str; 15] = [
        "alt-svc",
        "connection",
        "content-length",
        "content-security-policy",
        "date",
        "keep-alive",
        "proxy-authenticate",
        "server",
        "set-cookie",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    ];
    let known = come_back(headers);
    let mut out = known.clone();
    for (name, value) in headers {
        let word = name.as_str();
        let is_ours = word.starts_with("access-control-") || word.starts_with("x-gateway-");
        if !is_ours && !OF_THE_CONNECTION.contains(&word) && !known.contains_key(name) {
            out.append(name.clone(), value.clone());
        }
    }
    out
}

/// The body on its way. Whatever ends it closes the record.
struct Flow {
    body: UpstreamBody,
    ledger: Box<Ledger>,
    status: u16,
    over: bool,
}

fn flow(body: UpstreamBody, ledger: Box<Ledger>, status: u16) -> BoxStream<'static, Result<Bytes, Error>> {
    let flow = Flow {
        body,
        ledger,
        status,
        over: false,
    };
    unfold(Box::new(flow), |mut flow| async move {
        if flow.over {
            return None;
        }
        match next(&mut flow.body, IDLE).await {
            Ok(Some(bytes)) => Some((Ok(bytes), flow)),
            Ok(None) => {
                flow.over = true;
                flow.ledger.close_answered(flow.status, Usage::default());
                None
            }
            Err(error) => {
                flow.over = true;
                flow.ledger.close_partial(&error, Usage::default());
                Some((Err(error), flow))
            }
        }
    })
    .boxed()
}

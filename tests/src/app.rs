//! The whole gateway in this process, on a port and a database of its own.
//!
//! It is started by the same code that the command uses, so what is tested is what ships: layers, auth, pipeline, writer.

// A test that cannot set itself up has nothing left to do but to panic.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a fixture says what it lacks by panicking"
)]

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Once;
use std::time::Duration;
use switchyard::boot::{self, Plan, Running, Settings};
use switchyard_core::config::Config;
use switchyard_engine::demo::Pace;
use tempfile::TempDir;

pub struct TestApp {
    running: Option<Running>,
    pub url: String,
    /// Of scope `admin`.
    pub key: String,
    pub client: reqwest::Client,
    dir: TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// # Panics
    /// When the body is no JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON: {error}: {}", self.text()))
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// `401 invalid_api_key`.
    #[must_use]
    pub fn refusal(&self) -> String {
        let code = self.json()["error"]["code"].as_str().unwrap_or("-").to_owned();
        format!("{} {code}", self.status.as_u16())
    }
}

impl TestApp {
    /// With a configuration; `${NAME}` and the gateway's own variables come from `env`.
    ///
    /// # Panics
    /// When the gateway does not start.
    pub async fn start(config: Option<&str>, env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for the database");
        Self::start_in(dir, config, env).await
    }

    /// A gateway with one target `up`, of OpenAI's kind, at `base_url`.
    pub async fn in_front_of(base_url: &str) -> Self {
        Self::start(Some(&one_provider(base_url)), &[]).await
    }

    /// On the database that another gateway has left.
    ///
    /// # Panics
    /// When the gateway does not start.
    pub async fn start_in(dir: TempDir, config: Option<&str>, env: &[(&str, &str)]) -> Self {
        static TLS: Once = Once::new();
        TLS.call_once(|| {
            // An error means that another test binary's code was faster.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let config = config.map(|text| Config::parse(text).unwrap_or_else(|issues| panic!("{issues:?}")));
        let mut env: HashMap<String, String> = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        env.insert("PORT".to_owned(), "0".to_owned());
        env.insert("DATA_DIR".to_owned(), dir.path().display().to_string());
        let mut settings = Settings::read(&env).expect("settings that hold");
        settings.cores = 1;
        let plan = Plan {
            settings,
            config,
            env: &env,
            pace: Pace::Instant,
        };
        let running = boot::start(plan).await.expect("a gateway that starts");
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        let url = format!("http://{}", running.address);
        let key = running
            .first_key
            .as_ref()
            .map(|key| key.secret.expose().to_owned())
            .unwrap_or_default();
        Self {
            running: Some(running),
            url,
            key,
            client,
            dir,
        }
    }

    /// Sends a request with the first key.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        self.send_as(&self.key, method, path, body).await
    }

    /// Sends a request with a key.
    pub async fn send_as(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(key);
        if let Some(body) = body {
            request = request.json(body);
        }
        read(request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    /// A chat call of model `m` with these fields besides.
    pub async fn chat(&self, more: Value) -> Answer {
        self.post("/v1/chat/completions", &chat_body(more)).await
    }

    /// A request that the test builds by itself.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Creates a key; gives its id and its secret.
    ///
    /// # Panics
    /// When the gateway does not create it.
    pub async fn create_key(&self, body: Value) -> (String, String) {
        let answer = self.post("/admin/keys", &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        let key = answer.json();
        let text = |field: &str| key[field].as_str().unwrap_or_default().to_owned();
        (text("id"), text("key"))
    }

    /// What the log says of an answer, once it is written.
    ///
    /// # Panics
    /// When it says nothing.
    pub async fn logged(&self, answer: &Answer) -> Value {
        self.logged_by_id(answer.header("x-request-id")).await
    }

    /// # Panics
    /// When the log does not know the request.
    pub async fn logged_by_id(&self, id: &str) -> Value {
        let running = self.running.as_ref().expect("a running gateway");
        // On a busy machine a record may come by way of the spool.
        for _ in 0..1_000 {
            running.flushed().await;
            let log = self.get(&format!("/admin/logs/{id}")).await;
            if log.status == StatusCode::OK {
                return log.json();
            }
            assert_eq!(log.status, StatusCode::NOT_FOUND, "{}", log.text());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the log does not know request {id}")
    }

    /// Waits until no request is under way.
    pub async fn idle(&self) {
        while self.running.as_ref().is_some_and(|running| running.in_flight() > 0) {
            tokio::task::yield_now().await;
        }
    }

    /// Stops the gateway as a signal does, unless it was taken; gives the database's folder.
    pub async fn stop(mut self) -> TempDir {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        self.dir
    }

    /// What another gateway in the same folder would be started with.
    #[must_use]
    pub fn environment(&self) -> HashMap<String, String> {
        let pairs = [
            ("PORT", "0".to_owned()),
            ("DATA_DIR", self.dir.path().display().to_string()),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// The gateway itself, to be stopped while requests run.
    ///
    /// # Panics
    /// When it was taken before.
    pub fn take(&mut self) -> Running {
        self.running.take().expect("a running gateway")
    }
}

/// # Panics
/// When there is no answer at all.
pub async fn read(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await.unwrap_or_default();
    Answer { status, headers, body }
}

/// A configuration with one provider and target `up`, which serves what it is asked for.
#[must_use]
pub fn one_provider(base_url: &str) -> String {
    format!(
        "providers: [{{id: up, kind: openai, base_url: '{base_url}', api_key: sk-upstream-secret-1234}}]\ntargets: [{{virtual_key: up}}]"
    )
}

/// Two providers, `first` and `second`, behind `fallback`; `more` goes into the first target.
#[must_use]
pub fn two_providers(first: &str, second: &str, more: &str) -> String {
    format!(
        "providers:\n  - {{id: first, kind: openai, base_url: '{first}', api_key: sk-first-secret-1234}}\n  \
         - {{id: second, kind: openai, base_url: '{second}', api_key: sk-second-secret-123}}\n\
         strategy: {{mode: fallback}}\ntargets:\n  - {{virtual_key: first{more}}}\n  - {{virtual_key: second}}\n"
    )
}

/// A chat call of model `m` with these fields besides.
///
/// # Panics
/// When `more` is no object.
#[must_use]
pub fn chat_body(more: Value) -> Value {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let (Value::Object(fields), Value::Object(more)) = (&mut body, more) else {
        panic!("fields of a chat call")
    };
    fields.extend(more);
    body
}

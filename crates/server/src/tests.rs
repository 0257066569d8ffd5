//! The whole server without sockets: requests go to the routes, the loop runs in its thread.

mod closed;

mod durable;

mod grids;

mod pages;
mod replicas;
mod roles;

mod routes;

mod topo;

mod wear;

mod whole;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::clock::Speed;
use crate::journal::chaos::Chaos;
use crate::plant::Parting;
use crate::secret::TOKEN_FILE;
use crate::up::{Door, Raised, UpError, UpOptions, raise};

/// The address that the tests' servers believe to listen at.
const HOST: &str = "127.0.0.1:7070";

/// A server, its directory and its token.
struct Stand {
    raised: Raised,
    router: Router,
    token: String,
    full: Arc<AtomicBool>,
}

impl Stand {
    /// A server in `dir`; plant time goes so fast that starts take milliseconds.
    fn up(dir: &Path) -> Self {
        Self::try_up(&options(dir)).unwrap()
    }

    fn try_up(options: &UpOptions) -> Result<Self, UpError> {
        let full = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&full);
        let address: SocketAddr = HOST.parse().unwrap();
        let door = Door { address, tls_url: None };
        let raised = raise(options, door, move |store| {
            Box::new(Chaos { store: Box::new(store), full: switch })
        })?;
        let token = std::fs::read_to_string(options.data.join(TOKEN_FILE)).unwrap();
        let router = crate::api::router(raised.house.clone());
        Ok(Self { raised, router, token: token.trim().to_owned(), full })
    }

    fn down(self) {
        self.part(Parting::End);
    }

    /// Ends as an upgrade does: the plant stays for the next one.
    fn leave(self) {
        self.part(Parting::Leave);
    }

    fn part(self, parting: Parting) {
        drop(self.router);
        self.raised.lower(parting).unwrap();
    }

    /// A request with nothing wrong with it, to be spoilt.
    fn request(&self, method: &str, path: &str) -> axum::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", HOST)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token))
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if method == "GET" { Body::empty() } else { Body::from(body.to_string()) };
        let (status, _, text) = self.send(self.request(method, path).body(body).unwrap()).await;
        let value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        (status.as_u16(), value)
    }

    async fn get(&self, path: &str) -> Value {
        let (status, value) = self.json("GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.json("POST", path, &body).await;
        assert!(status < 300, "{path}: {status} {value}");
        value
    }

    async fn submit(&self, name: &str, shape: &str) -> u64 {
        let form = json!({ "name": name, "shape": shape, "duration": "1000d" });
        self.post("/v1/jobs", form).await["id"].as_u64().unwrap()
    }

    /// Asks again until the answer is as wanted.
    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let value = self.get(path).await;
            if wanted(&value) {
                return value;
            }
            assert!(Instant::now() < deadline, "{path} still says {value}");
            tokio::task::yield_now().await;
        }
    }

    async fn until_running(&self, job: u64) -> Value {
        self.until(&format!("/v1/jobs/{job}"), |it| it["state"] == "running").await
    }
}

fn options(dir: &Path) -> UpOptions {
    UpOptions { speed: Speed::new(5_000.0).unwrap(), ..UpOptions::of(dir.join("data")) }
}

fn tempdir() -> TempDir {
    tempfile::tempdir().unwrap()
}

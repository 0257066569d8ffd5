//! How many requests came, by route and status.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::house::House;

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Requests {
    pub(crate) n: u64,
    pub(crate) sum_s: f64,
}

/// Method, route and status.
pub(crate) type Kind = (String, String, u16);

/// All requests so far.  Its keys are bounded: a path that no route matches counts as `other`.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<Kind, Requests>>);

impl Tally {
    /// A copy to read at leisure.
    pub(crate) fn read(&self) -> BTreeMap<Kind, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, kind: Kind, took: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = all.entry(kind).or_default();
        requests.n += 1;
        requests.sum_s += took.as_secs_f64();
    }
}

/// Counts a request with what became of it.
pub(crate) async fn count(State(house): State<House>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let known = ["GET", "HEAD", "POST", "PUT"].into_iter().find(|it| *it == request.method());
    let method = known.unwrap_or("other").to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or("other", |it| it.as_str());
    let route = route.to_owned();
    let response = next.run(request).await;
    house.tally().add((method, route, response.status().as_u16()), begun.elapsed());
    response
}

//! Streams that are open: so many in all, and so many of them one person's, so that nobody who only
//! looks takes the connections of those who act.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::watch;

use crate::api::error::ApiError;
use crate::limits;
use crate::users::Who;

/// How many streams everybody has open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares(Arc<Mutex<BTreeMap<Option<String>, Open>>>);

/// One person's streams.
#[derive(Debug, Default)]
struct Open {
    n: usize,
    /// Told once what they were let in with is worth nothing any longer.
    ends: watch::Sender<bool>,
}

/// One stream's place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    all: Shares,
    whose: Option<String>,
    ends: watch::Receiver<bool>,
}

impl Share {
    /// Comes back once its owner is to be shown nothing more.
    pub(crate) async fn ended(&mut self) {
        if self.ends.wait_for(|it| *it).await.is_err() {
            // Nobody is left who could end it.
            std::future::pending().await
        }
    }
}

impl Shares {
    /// A place for one more stream of `who`.
    ///
    /// # Errors
    /// 429 where they have as many as one person may, 503 where there are as many as may be.
    pub(crate) fn take(&self, who: &Who) -> Result<Share, ApiError> {
        let mut open = self.open();
        let hint = "a page and an `events --follow` are a stream each: close some";
        if limits::STREAMS_MAX <= open.values().map(|it| it.n).sum() {
            let text = format!("{} streams are open, and no more may be", limits::STREAMS_MAX);
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text).hint(hint));
        }
        let own = open.entry(who.name.clone()).or_default();
        if limits::STREAMS_EACH_MAX <= own.n {
            let (name, max) = (who.called(), limits::STREAMS_EACH_MAX);
            let text = format!("{name} has {max} streams open, and no more may be one person's");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, text).hint(hint));
        }
        own.n += 1;
        Ok(Share { all: self.clone(), whose: who.name.clone(), ends: own.ends.subscribe() })
    }

    /// Ends all streams of `name`, whose token is worth nothing any longer.
    pub(crate) fn end(&self, name: &str) {
        if let Some(open) = self.open().remove(&Some(name.to_owned())) {
            open.ends.send_replace(true);
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Option<String>, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut open = self.all.open();
        // Of one that was ended nothing is counted any more.
        if *self.ends.borrow() {
            return;
        }
        if let Some(own) = open.get_mut(&self.whose) {
            own.n -= 1;
            if own.n == 0 {
                open.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Role;

    #[test]
    fn one_person_leaves_streams_for_others_and_gets_back_what_is_closed() {
        let shares = Shares::default();
        let named = |name: &str| Who { name: Some(name.to_owned()), ..Who::KEEPER };
        let ada = Who { role: Role::Viewer, ..named("ada") };
        let take = |who: &Who, n: usize| -> Vec<Share> {
            (0..n).map(|_| shares.take(who).unwrap()).collect()
        };
        let mut hers = take(&ada, limits::STREAMS_EACH_MAX);
        let refused = shares.take(&ada).unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.body.error.starts_with("ada has"), "{}", refused.body.error);
        hers.pop();
        let _again = shares.take(&ada).unwrap();
        let _keepers = take(&Who::KEEPER, limits::STREAMS_EACH_MAX);
        let _bos = take(&named("bo"), limits::STREAMS_MAX - 2 * limits::STREAMS_EACH_MAX);
        let full = shares.take(&named("cy")).unwrap_err();
        assert_eq!(full.status, StatusCode::SERVICE_UNAVAILABLE);
        drop(hers);
        assert!(shares.take(&named("cy")).is_ok());
    }

    #[test]
    fn whose_token_is_worth_nothing_is_shown_nothing_more_and_may_come_back() {
        use futures_util::FutureExt as _;
        let shares = Shares::default();
        let named = |name: &str| Who { name: Some(name.to_owned()), ..Who::KEEPER };
        let (mut hers, mut his) =
            (shares.take(&named("ada")).unwrap(), shares.take(&named("bo")).unwrap());
        assert!(hers.ended().now_or_never().is_none());
        shares.end("ada");
        assert!(hers.ended().now_or_never().is_some());
        assert!(his.ended().now_or_never().is_none(), "it was another's");
        let mut again = shares.take(&named("ada")).unwrap();
        drop(hers);
        assert_eq!(shares.open()[&Some("ada".to_owned())].n, 1, "of the old ones none is counted");
        assert!(again.ended().now_or_never().is_none());
    }

    #[test]
    fn requests_have_connections_that_streams_cannot_take() {
        const { assert!(limits::STREAMS_MAX < limits::CONNECTIONS_MAX, "requests have the rest") };
    }
}

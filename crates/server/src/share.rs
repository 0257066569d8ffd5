//! Streams that are open: so many in all, and so many of them one person's, so that nobody who only
//! looks takes the connections of those who act.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;

use crate::api::error::ApiError;
use crate::limits;
use crate::users::Who;

/// How many streams everybody has open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares(Arc<Mutex<BTreeMap<Option<String>, usize>>>);

/// One stream's place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    all: Shares,
    whose: Option<String>,
}

impl Shares {
    /// A place for one more stream of `who`.
    ///
    /// # Errors
    /// 429 where they have as many as one person may, 503 where there are as many as may be.
    pub(crate) fn take(&self, who: &Who) -> Result<Share, ApiError> {
        let mut open = self.open();
        let hint = "a page and an `events --follow` are a stream each: close some";
        if limits::STREAMS_MAX <= open.values().sum() {
            let text = format!("{} streams are open, and no more may be", limits::STREAMS_MAX);
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text).hint(hint));
        }
        let n_own = open.entry(who.name.clone()).or_default();
        if limits::STREAMS_EACH_MAX <= *n_own {
            let (name, max) = (who.called(), limits::STREAMS_EACH_MAX);
            let text = format!("{name} has {max} streams open, and no more may be one person's");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, text).hint(hint));
        }
        *n_own += 1;
        Ok(Share { all: self.clone(), whose: who.name.clone() })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Option<String>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut open = self.all.open();
        if let Some(n_own) = open.get_mut(&self.whose) {
            *n_own -= 1;
            if *n_own == 0 {
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
        const { assert!(limits::STREAMS_MAX < limits::CONNECTIONS_MAX, "requests have the rest") };
    }
}

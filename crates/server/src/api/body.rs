//! Reading a request's body: JSON within a size and a time, or an error that says where.

use axum::body::{self, Body};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::{StatusCode, request::Parts};
use serde::de::DeserializeOwned;

use crate::api::error::ApiError;
use crate::limits;

/// A body of JSON; an empty one reads as `{}`.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let bytes = read(request.into_body()).await?;
        let text: &[u8] = if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Json).map_err(|error| {
            let status = match error.classify() {
                serde_json::error::Category::Data => StatusCode::UNPROCESSABLE_ENTITY,
                serde_json::error::Category::Syntax
                | serde_json::error::Category::Eof
                | serde_json::error::Category::Io => StatusCode::BAD_REQUEST,
            };
            ApiError::new(status, format!("the body does not read: {error}"))
                .hint("docs/api.md and /openapi.json say what each request holds")
        })
    }
}

/// The parameters after the `?`.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Params(params)),
            Err(error) => Err(ApiError::bad(format!("a parameter does not read: {error}"))),
        }
    }
}

async fn read(body: Body) -> Result<axum::body::Bytes, ApiError> {
    let bytes = body::to_bytes(body, limits::BODY_BYTES_MAX);
    match tokio::time::timeout(limits::BODY_WAIT_MAX, bytes).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"))
        }
    }
}

/// What a body beyond the limit is answered.
pub(crate) fn too_large() -> ApiError {
    let max = limits::BODY_BYTES_MAX;
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {max} bytes"))
}

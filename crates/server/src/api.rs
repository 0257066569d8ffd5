//! The HTTP API: every type that is sent is written down here and converted by hand.
//!
//! In reading order: what a client is told when it cannot be served (`error`), how a body is
//! read (`body`), who may come in (`guard`), then the routes by what they are about.

pub mod error;

pub(crate) mod body;

pub(crate) mod guard;

pub mod job;
pub(crate) mod listed;
pub mod order;

pub mod array;

pub(crate) mod explain;

pub mod hardware;

pub mod switch;

pub mod case;

pub mod plant;

pub mod watch;

pub(crate) mod metrics;

pub mod user;

pub mod audit;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware;
use axum::response::IntoResponse;
use tower_http::compression::CompressionLayer;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, Paths, SecurityRequirement};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::house::House;
use crate::page;
use crate::tally;

/// All routes, guarded and counted.
pub(crate) fn router(house: House) -> Router {
    let (routes, document) = routes().split_for_parts();
    let document: Arc<str> = render(document).into();
    let open = axum::routing::get(move || async move {
        ([(header::CONTENT_TYPE, "application/json")], document.to_string())
    });
    routes
        .route("/openapi.json", open)
        .merge(page::routes())
        .fallback(|headers: HeaderMap, uri: Uri| async move {
            if guard::wants_html(&headers) {
                return page::cannot(&ApiError::no_such("page", uri.path()));
            }
            ApiError::no_such("route", uri.path()).hint("see docs/api.md").into_response()
        })
        .method_not_allowed_fallback(|State(_): State<House>, method: Method| async move {
            let status = axum::http::StatusCode::METHOD_NOT_ALLOWED;
            ApiError::new(status, format!("the route does not take {method}"))
                .hint(
                    "the header Allow and /openapi.json say what it takes; a job is ended by \
                       POST /v1/jobs/ID/cancel",
                )
                .into_response()
        })
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(Arc::clone(house.guard()), guard::check))
        .layer(middleware::from_fn_with_state(house.clone(), tally::count))
        .with_state(house)
}

fn routes() -> OpenApiRouter<House> {
    OpenApiRouter::with_openapi(OpenApi::default())
        .routes(routes!(job::list, job::submit))
        .routes(routes!(job::show))
        .routes(routes!(job::explain))
        .routes(routes!(job::logs))
        .routes(routes!(order::order))
        .routes(routes!(order::order_many))
        .routes(routes!(hardware::pods))
        .routes(routes!(hardware::cubes))
        .routes(routes!(hardware::cube))
        .routes(routes!(hardware::machine))
        .routes(routes!(hardware::links))
        .routes(routes!(hardware::drains))
        .routes(routes!(hardware::drain))
        .routes(routes!(hardware::undrain))
        .routes(routes!(switch::list))
        .routes(routes!(switch::show))
        .routes(routes!(switch::move_port))
        .routes(routes!(case::list))
        .routes(routes!(case::show))
        .routes(routes!(case::order))
        .routes(routes!(case::maintenances, case::maintain))
        .routes(routes!(case::mark))
        .routes(routes!(case::moves))
        .routes(routes!(case::accept_moves))
        .routes(routes!(plant::show, plant::apply))
        .routes(routes!(plant::set_level))
        .routes(routes!(plant::faults, plant::tamper))
        .routes(routes!(watch::events))
        .routes(routes!(watch::recent))
        .routes(routes!(watch::check))
        .routes(routes!(watch::status))
        .routes(routes!(watch::shutdown))
        .routes(routes!(watch::backup))
        .routes(routes!(watch::new_key))
        .routes(routes!(metrics::metrics))
        .routes(routes!(user::list, user::add))
        .routes(routes!(user::order))
        .routes(routes!(audit::audit))
}

/// The document as it is served.
fn render(document: OpenApi) -> String {
    let mut components = document.components.unwrap_or_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    // A router's `{*path}` takes slashes; a document says `{path}`.
    let mut paths = Paths::new();
    paths.paths = (document.paths.paths.into_iter())
        .map(|(path, item)| (path.replace("{*", "{"), item))
        .collect();
    let info = InfoBuilder::new()
        .title("Selvedge")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A control plane for optically switched pods and clusters"))
        .build();
    let document = OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components))
        .security(Some([SecurityRequirement::new("token", [""; 0])]))
        .build();
    document.to_json().expect("the document's keys are text")
}

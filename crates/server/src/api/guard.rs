//! Who may come in: everything that is held against a request before a route sees it.
//!
//! In this order: `Host` (a page elsewhere whose name resolves to loopback is not us), `Origin`
//! (a page elsewhere that posts to us), the body's type and length, then the token or the
//! dashboard's cookie.  Only `/openapi.json` is for everyone.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::body;
use crate::api::error::ApiError;
use crate::limits;
use crate::page;
use crate::secret::Secrets;

/// What the guard knows.
#[derive(Debug)]
pub(crate) struct Guard {
    secrets: Secrets,
    address: SocketAddr,
    hosts: Vec<String>,
    cookie_name: String,
}

impl Guard {
    pub(crate) fn new(secrets: Secrets, address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string(), format!("localhost:{port}")];
        if address.ip().is_ipv4() {
            hosts.push(format!("127.0.0.1:{port}"));
        }
        if port == 80 {
            // Clients leave the port of plain HTTP out.
            let bare = hosts.iter().filter_map(|it| it.strip_suffix(":80").map(str::to_owned));
            hosts = bare.chain(hosts.iter().cloned()).collect();
        }
        // Cookies are shared by all ports of a host, so the name tells servers apart.
        Self { secrets, address, hosts, cookie_name: format!("selvedge_{port}") }
    }

    /// A link that opens the dashboard once.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn link(&self) -> std::io::Result<String> {
        Ok(format!("http://{}/?key={}", self.address, self.secrets.new_key()?))
    }

    fn check_host(&self, request: &Request) -> Result<(), ApiError> {
        let named = match request.uri().authority() {
            Some(authority) => Some(authority.as_str()),
            None => single(request.headers(), header::HOST)?,
        };
        let known =
            named.is_some_and(|it| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(it)));
        if known {
            return Ok(());
        }
        Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header does not name this server",
        )
        .hint(format!("use http://{}", self.address)))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|it| self.hosts.iter().any(|host| host == it))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match single(headers, header::ORIGIN)? {
            Some(origin) if !self.is_own_origin(origin) => {
                Err(ApiError::new(StatusCode::FORBIDDEN, "pages of another origin are not served"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_who(&self, request: &Request) -> Result<(), ApiError> {
        let headers = request.headers();
        if let Some(authorization) = single(headers, header::AUTHORIZATION)? {
            let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
            return if self.secrets.is_token(token) { Ok(()) } else { Err(wrong_token()) };
        }
        if !self.has_cookie(headers) {
            return Err(no_token());
        }
        // A browser says by itself whose page it was that sent a change.
        let from_page = headers.get(header::ORIGIN).is_some();
        if is_change(request.method()) && !from_page {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "a change by cookie needs an Origin"));
        }
        Ok(())
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs =
            cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie_name && self.secrets.is_cookie(value))
    }

    /// Trades a one-use key for the cookie, and the address with the key for one without.
    fn redeem(&self, request: &Request) -> Option<Response> {
        if request.method() != Method::GET || request.uri().path() != "/" {
            return None;
        }
        let query = request.uri().query()?;
        let key = query.split('&').find_map(|it| it.strip_prefix("key="))?;
        if !self.secrets.use_key(key) {
            // A link opened a second time in the same browser still leads to the dashboard.
            let home = self.has_cookie(request.headers());
            return Some(if home { redirect(None) } else { page::closed().into_response() });
        }
        let cookie = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie_name,
            self.secrets.cookie()
        );
        Some(redirect(HeaderValue::try_from(cookie).ok()))
    }
}

/// Holds every request against the rules above.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match admit(&guard, &request) {
        Ok(None) => {
            let mut response = next.run(request).await;
            seal(response.headers_mut());
            response
        }
        Ok(Some(response)) => response,
        Err(error) => {
            let mut response = error.into_response();
            seal(response.headers_mut());
            response
        }
    }
}

fn admit(guard: &Guard, request: &Request) -> Result<Option<Response>, ApiError> {
    guard.check_host(request)?;
    guard.check_origin(request.headers())?;
    if request.uri().path() == "/openapi.json" && request.method() == Method::GET {
        return Ok(None);
    }
    if let Some(response) = guard.redeem(request) {
        return Ok(Some(response));
    }
    if let Err(error) = guard.check_who(request) {
        let for_people = wants_html(request.headers()) && request.method() == Method::GET;
        return if for_people { Ok(Some(page::closed().into_response())) } else { Err(error) };
    }
    if takes_body(request.method()) {
        check_body(request.headers())?;
    }
    Ok(None)
}

fn check_body(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = single(headers, header::CONTENT_TYPE)?.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let what = match kind {
            "" => "the request does not say of what type its body is; a change is JSON".to_owned(),
            kind => format!("a change is JSON, and this body is {}", shortened(kind)),
        };
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what).hint(
            "send the header `Content-Type: application/json`, also with an empty body, as in \
             curl -H 'Content-Type: application/json' -d '{}' …; docs/api.md says what each route \
             takes",
        ));
    }
    let length = single(headers, header::CONTENT_LENGTH)?.and_then(|it| it.parse::<u64>().ok());
    if length.is_some_and(|it| limits::BODY_BYTES_MAX as u64 <= it.saturating_sub(1)) {
        return Err(body::too_large());
    }
    Ok(())
}

/// What somebody sent, short enough to be sent back.
fn shortened(text: &str) -> String {
    text.chars().take(limits::ECHO_MAX).collect()
}

/// The one value of a header; two are an attempt to be read in two ways.
fn single(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(&name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        (Ok(_) | Err(_), _) => Err(ApiError::bad(format!("the header {name} does not read"))),
    }
}

fn is_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

/// Methods that routes of ours change things by; they come with a body, and no page elsewhere can
/// send one as JSON without being asked for leave.
fn takes_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn wants_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .is_some_and(|it| it.to_str().is_ok_and(|it| it.contains("text/html")))
}

fn no_token() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "no token")
        .hint("send Authorization: Bearer TOKEN; it is in the file `token` of the data directory")
}

fn wrong_token() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "a wrong token")
        .hint("the token is in the file `token` of the server's data directory")
}

fn redirect(cookie: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    if let Some(cookie) = cookie {
        headers.insert(header::SET_COOKIE, cookie);
    }
    seal(headers);
    response
}

/// What every answer says to a browser: run nothing but ours, show us in no frame, keep nothing.
fn seal(headers: &mut HeaderMap) {
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                  img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

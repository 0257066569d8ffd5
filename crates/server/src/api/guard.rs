//! Who may come in: everything that is held against a request before a route sees it.
//!
//! In this order: `Host` (a page elsewhere whose name resolves to loopback is not us), `Origin`
//! (a page elsewhere that posts to us), the token or the dashboard's cookie and what its owner may
//! do, then the body's type and length.  Only `/openapi.json` and how pages look are for everyone.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::body;
use crate::api::error::ApiError;
use crate::limits;
use crate::page;
use crate::seat::Seat;
use crate::secret::Secrets;
use crate::users::{Role, Users, Who};

/// What the guard knows.
#[derive(Debug)]
pub(crate) struct Guard {
    secrets: Secrets,
    /// As a client writes it, without a slash behind it.
    url: String,
    /// What `Host` may say; with TLS anything.
    hosts: Option<Vec<String>>,
    cookie_name: String,
}

impl Guard {
    /// A guard of a server that listens at `address` without TLS.
    pub(crate) fn plain(secrets: Secrets, address: SocketAddr) -> Self {
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
        let url = format!("http://{address}");
        Self { secrets, url, hosts: Some(hosts), cookie_name: format!("selvedge_{port}") }
    }

    /// A guard of a server that is reached by TLS as `url`.
    ///
    /// A browser that was led here under another name has refused the certificate, so that the
    /// name in `Host` need not be held against anything.
    pub(crate) fn tls(secrets: Secrets, address: SocketAddr, url: String) -> Self {
        Self { secrets, url, hosts: None, cookie_name: format!("selvedge_{}", address.port()) }
    }

    /// The server's address as a client writes it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A link that opens the dashboard once, for `who`.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn link(&self, who: Who) -> std::io::Result<String> {
        Ok(format!("{}/?key={}", self.url, self.secrets.new_key(who)?))
    }

    /// People and programs with tokens of their own.
    pub(crate) fn users(&self) -> &Users {
        self.secrets.users()
    }

    fn check_host(&self, request: &Request) -> Result<(), ApiError> {
        let named = host_of(request)?;
        let Some(hosts) = &self.hosts else { return Ok(()) };
        if named.is_some_and(|it| hosts.iter().any(|host| host.eq_ignore_ascii_case(it))) {
            return Ok(());
        }
        Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header does not name this server",
        )
        .hint(format!("use {}", self.url)))
    }

    fn is_own_origin(&self, origin: &str, named: Option<&str>) -> bool {
        match &self.hosts {
            Some(hosts) => {
                let origin = origin.strip_prefix("http://");
                origin.is_some_and(|it| hosts.iter().any(|host| host == it))
            }
            None => {
                let origin = origin.strip_prefix("https://");
                origin.is_some_and(|it| named.is_some_and(|host| host.eq_ignore_ascii_case(it)))
            }
        }
    }

    fn check_origin(&self, request: &Request) -> Result<(), ApiError> {
        match single(request.headers(), header::ORIGIN)? {
            Some(origin) if !self.is_own_origin(origin, host_of(request)?) => {
                Err(ApiError::new(StatusCode::FORBIDDEN, "pages of another origin are not served"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_who(&self, request: &Request) -> Result<Who, ApiError> {
        let headers = request.headers();
        if let Some(authorization) = single(headers, header::AUTHORIZATION)? {
            let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
            return self.secrets.who_has_token(token).ok_or_else(wrong_token);
        }
        let who = self.who_has_cookie(headers).ok_or_else(no_token)?;
        // A browser says by itself whose page it was that sent a change.
        let from_page = headers.get(header::ORIGIN).is_some();
        if is_change(request.method()) && !from_page {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "a change by cookie needs an Origin"));
        }
        Ok(who)
    }

    fn who_has_cookie(&self, headers: &HeaderMap) -> Option<Who> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs =
            cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.find_map(|(name, value)| {
            if name == self.cookie_name { self.secrets.who_has_cookie(value) } else { None }
        })
    }

    /// Trades a one-use key for the cookie, and the address with the key for one without.
    fn redeem(&self, request: &Request) -> Option<Response> {
        if request.method() != Method::GET || request.uri().path() != "/" {
            return None;
        }
        let query = request.uri().query()?;
        let key = query.split('&').find_map(|it| it.strip_prefix("key="))?;
        let Some(cookie) = self.secrets.use_key(key).and_then(|it| self.secrets.cookie_of(&it))
        else {
            // A link opened a second time in the same browser still leads to the dashboard.
            let home = self.who_has_cookie(request.headers()).is_some();
            return Some(if home { redirect(None) } else { page::closed().into_response() });
        };
        let secure = if self.hosts.is_none() { "; Secure" } else { "" };
        let name = &self.cookie_name;
        let cookie = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}");
        Some(redirect(HeaderValue::try_from(cookie).ok()))
    }
}

/// What is the same on every server, and no secret: the interface, and how the page looks that says
/// that one is not let in.
const FOR_ANYBODY: [&str; 3] = ["/openapi.json", "/page.css", "/icon.svg"];

/// Holds every request against the rules above.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    match admit(&guard, &request) {
        Ok(Admitted::Somebody(who)) => {
            request.extensions_mut().insert(who);
            let mut response = next.run(request).await;
            seal(response.headers_mut());
            response
        }
        Ok(Admitted::Anybody) => {
            let mut response = next.run(request).await;
            seal(response.headers_mut());
            response
        }
        Ok(Admitted::Answered(response)) => response,
        Err(error) => {
            let mut response = error.into_response();
            seal(response.headers_mut());
            response
        }
    }
}

/// What becomes of a request that nothing is held against.
enum Admitted {
    /// It is for everyone.
    Anybody,
    /// It is theirs.
    Somebody(Who),
    /// It has its answer already.
    Answered(Response),
}

fn admit(guard: &Guard, request: &Request) -> Result<Admitted, ApiError> {
    guard.check_host(request)?;
    guard.check_origin(request)?;
    if FOR_ANYBODY.contains(&request.uri().path()) && request.method() == Method::GET {
        return Ok(Admitted::Anybody);
    }
    if let Some(response) = guard.redeem(request) {
        return Ok(Admitted::Answered(response));
    }
    let who = match guard.check_who(request) {
        Ok(who) => who,
        Err(error) => {
            let for_people = wants_html(request.headers()) && request.method() == Method::GET;
            let closed = || Admitted::Answered(page::closed().into_response());
            return if for_people { Ok(closed()) } else { Err(error) };
        }
    };
    // A test asks without a connection.
    if let Some(seat) = request.extensions().get::<Arc<Seat>>() {
        seat.is_of(&who)?;
    }
    check_role(&who, request)?;
    if takes_body(request.method()) {
        check_body(request.headers())?;
    }
    Ok(Admitted::Somebody(who))
}

fn check_role(who: &Who, request: &Request) -> Result<(), ApiError> {
    let route = request.extensions().get::<MatchedPath>().map_or("", |it| it.as_str());
    let needed = role_for(request.method(), route);
    if needed <= who.role {
        return Ok(());
    }
    let (name, role) = (who.name.as_deref().unwrap_or("whoever asks"), who.role);
    let text = format!(
        "{name} is {} {role}, who may {}; this takes {} {needed}",
        role.article(),
        role.may(),
        needed.article()
    );
    Err(ApiError::new(StatusCode::FORBIDDEN, text)
        .hint("an operator gives roles: `selvedge user list`"))
}

/// The least role that a request takes.  A route that is not named here takes the most.
fn role_for(method: &Method, route: &str) -> Role {
    match (is_change(method), route) {
        (false, "/v1/users") => Role::Operator,
        (false, _) => Role::Viewer,
        // It draws what it is sent, and keeps nothing.
        (true, "/topo/look") => Role::Viewer,
        // Whose job it is the route looks at.
        (true, "/v1/jobs" | "/v1/jobs/{id}/{order}" | "/v1/orders" | "/v1/keys") => Role::User,
        (true, "/v1/mark") => Role::User,
        (true, _) => Role::Operator,
    }
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

/// The host that a request names.
fn host_of(request: &Request) -> Result<Option<&str>, ApiError> {
    match request.uri().authority() {
        Some(authority) => Ok(Some(authority.as_str())),
        None => single(request.headers(), header::HOST),
    }
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

/// Whether a page is asked for, as browsers do, and no data.
pub(crate) fn wants_html(headers: &HeaderMap) -> bool {
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

//! Who is kept out, and how.

use axum::body::Body;
use serde_json::json;

use super::*;

/// Sends a good submit after `spoil`, and returns the status that it gets.
async fn spoilt(
    stand: &Stand,
    spoil: impl Fn(axum::http::request::Builder) -> axum::http::request::Builder,
) -> u16 {
    let body = json!({ "name": "n", "shape": "2x2x1" }).to_string();
    let request = spoil(stand.request("POST", "/v1/jobs")).body(Body::from(body)).unwrap();
    stand.send(request).await.0.as_u16()
}

fn without(builder: axum::http::request::Builder, name: &str) -> axum::http::request::Builder {
    with(builder, name, None)
}

/// `builder` with this one value of a header, or none.
fn with(
    mut builder: axum::http::request::Builder,
    name: &str,
    value: Option<&str>,
) -> axum::http::request::Builder {
    let headers = builder.headers_mut().unwrap();
    headers.remove(name);
    if let Some(value) = value {
        headers.insert(axum::http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    builder
}

#[tokio::test]
async fn only_the_token_opens_reads_and_changes() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    assert_eq!(spoilt(&stand, |it| it).await, 201);
    assert_eq!(spoilt(&stand, |it| without(it, "authorization")).await, 401);
    for wrong in ["Bearer ", "Bearer 0", "Basic abc", "", &format!("bearer {}", stand.token)] {
        assert_eq!(
            spoilt(&stand, |it| with(it, "authorization", Some(wrong))).await,
            401,
            "{wrong}"
        );
    }
    let document = stand.get("/openapi.json").await;
    for path in document["paths"].as_object().unwrap().keys() {
        let path = path.replace("{id}", "0").replace(['{', '}'], "");
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS"] {
            let request = without(stand.request(method, &path), "authorization");
            let (status, _, text) = stand.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(status, 401, "{method} {path}: {text}");
        }
    }
    let open = without(stand.request("GET", "/openapi.json"), "authorization");
    assert_eq!(stand.send(open.body(Body::empty()).unwrap()).await.0, 200);
    assert_eq!(stand.get("/v1/jobs").await["jobs"].as_array().unwrap().len(), 1);
    stand.down();
}

#[tokio::test]
async fn names_that_resolve_to_us_and_pages_of_others_are_kept_out() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    for (host, status) in [
        ("127.0.0.1:7070", 201),
        ("localhost:7070", 201),
        ("LOCALHOST:7070", 201),
        ("localhost", 421),
        ("127.0.0.1:7071", 421),
        ("evil.example:7070", 421),
        ("127.0.0.1.evil.example:7070", 421),
        ("", 421),
    ] {
        assert_eq!(spoilt(&stand, |it| with(it, "host", Some(host))).await, status, "{host}");
    }
    assert_eq!(spoilt(&stand, |it| without(it, "host")).await, 421);
    assert_eq!(spoilt(&stand, |it| it.header("host", "evil.example")).await, 400);
    for (origin, status) in [
        ("http://127.0.0.1:7070", 201),
        ("http://localhost:7070", 201),
        ("https://127.0.0.1:7070", 403),
        ("http://127.0.0.1:7071", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("", 403),
    ] {
        assert_eq!(spoilt(&stand, |it| with(it, "origin", Some(origin))).await, status, "{origin}");
    }
    stand.down();
}

/// A method that no route has is told so, whatever the body is said to be.
#[tokio::test]
async fn a_delete_is_told_which_methods_there_are() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    stand.submit("here", "2x2x1").await;
    for method in ["DELETE", "OPTIONS"] {
        for path in ["/v1/jobs/0", "/v1/jobs", "/v1/status"] {
            let request = without(stand.request(method, path), "content-type");
            let (status, headers, text) = stand.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(status, 405, "{method} {path}: {text}");
            assert!(text.contains("/openapi.json"), "{text}");
            assert!(headers["allow"].to_str().unwrap().contains("GET"), "{headers:?}");
        }
    }
    let request = without(stand.request("DELETE", "/v1/nothing"), "content-type");
    assert_eq!(stand.send(request.body(Body::empty()).unwrap()).await.0, 404);
    assert_eq!(stand.get("/v1/jobs").await["jobs"].as_array().unwrap().len(), 1);
    stand.down();
}

#[tokio::test]
async fn a_change_is_json_of_a_bounded_size() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    for (kind, status) in [
        ("application/json; charset=utf-8", 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/jsonp", 415),
        ("", 415),
    ] {
        assert_eq!(
            spoilt(&stand, |it| with(it, "content-type", Some(kind))).await,
            status,
            "{kind}"
        );
    }
    assert_eq!(spoilt(&stand, |it| without(it, "content-type")).await, 415);
    let cancel = without(stand.request("POST", "/v1/jobs/0/cancel"), "content-type");
    let (status, _, text) = stand.send(cancel.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 415);
    assert!(text.contains("does not say") && text.contains("curl -H"), "{text}");
    let form = with(stand.request("POST", "/v1/jobs"), "content-type", Some("text/plain"));
    let (status, _, text) = stand.send(form.body(Body::from("{}")).unwrap()).await;
    assert_eq!(status, 415);
    assert!(text.contains("this body is text/plain"), "{text}");
    // 10 MB that say so, and 10 MB that do not.
    let large = "x".repeat(10 << 20);
    let said = stand.request("POST", "/v1/jobs").header("content-length", large.len());
    let unsaid = stand.request("POST", "/v1/jobs");
    for request in [said, unsaid] {
        assert_eq!(stand.send(request.body(Body::from(large.clone())).unwrap()).await.0, 413);
    }
    for (body, status) in [
        ("{", 400),
        ("[]", 422),
        ("null", 422),
        (r#"{"name": "n"}"#, 422),
        (r#"{"name": "n", "shape": "2x2x1", "hosts": 1}"#, 422),
        (r#"{"name": "n", "shape": "2x2x1", "sudo": true}"#, 422),
        (r#"{"name": "n", "shape": "3x3x3"}"#, 422),
        (r#"{"name": "n", "shape": "64x64x64"}"#, 422),
        (r#"{"name": "n", "shape": "2x2x1", "limit": "soon"}"#, 422),
        (r#"{"name": "n", "shape": "2x2x1", "priority": 10}"#, 422),
        (r#"{"name": "a\nb", "shape": "2x2x1"}"#, 422),
        (r#"{"name": "", "shape": "2x2x1"}"#, 422),
        (&format!(r#"{{"name": "{}", "shape": "2x2x1"}}"#, "x".repeat(10_000)), 422),
        (&format!(r#"{{"name": {}"#, "[".repeat(100_000)), 422),
    ] {
        let request = stand.request("POST", "/v1/jobs").body(Body::from(body.to_owned())).unwrap();
        let (got, _, text) = stand.send(request).await;
        let shown: String = body.chars().take(60).collect();
        assert_eq!(got.as_u16(), status, "{shown}: {text}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert!(!error["error"].as_str().unwrap().is_empty(), "{text}");
    }
    assert_eq!(stand.get("/v1/jobs").await["jobs"].as_array().unwrap().len(), 1);
    stand.down();
}

#[tokio::test]
async fn a_key_opens_the_dashboard_once_and_its_cookie_obeys_the_origin() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let link = stand.post("/v1/keys", json!({})).await["url"].as_str().unwrap().to_owned();
    let path = link.strip_prefix(&format!("http://{HOST}")).unwrap();
    let visit =
        || without(stand.request("GET", path), "authorization").body(Body::empty()).unwrap();
    let (status, headers, _) = stand.send(visit()).await;
    assert_eq!((status.as_u16(), headers["location"].to_str().unwrap()), (303, "/"));
    let cookie = headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&stand.token), "the cookie does not give the token away");
    assert_eq!(stand.send(visit()).await.0, 401, "a key works once");

    let cookie = cookie.split(';').next().unwrap();
    let by_cookie = |method: &str, path: &str| {
        without(stand.request(method, path), "authorization").header("cookie", cookie)
    };
    let page = by_cookie("GET", "/").body(Body::empty()).unwrap();
    assert_eq!(stand.send(page).await.0, 200);
    let hold = |origin: Option<&str>| {
        with(by_cookie("POST", "/v1/keys"), "origin", origin).body(Body::from("{}")).unwrap()
    };
    assert_eq!(stand.send(hold(None)).await.0, 403);
    assert_eq!(stand.send(hold(Some("http://evil.example"))).await.0, 403);
    assert_eq!(stand.send(hold(Some("http://127.0.0.1:7070"))).await.0, 200);
    let forged = without(stand.request("GET", "/v1/jobs"), "authorization")
        .header("cookie", "selvedge_7070=0000; selvedge_7070=");
    assert_eq!(stand.send(forged.body(Body::empty()).unwrap()).await.0, 401);
    stand.down();
}

#[tokio::test]
async fn an_address_beyond_loopback_is_refused() {
    let dir = tempdir();
    let mut options = options(dir.path());
    options.listen = "0.0.0.0:0".parse().unwrap();
    let refused = crate::up(options).await.unwrap_err();
    assert!(matches!(refused, UpError::NotLoopback { .. }), "{refused}");
    assert!(!dir.path().join("data").exists(), "a refusal leaves nothing behind");
}

//! What each role may do, and what the audit trail keeps of it.

use super::*;

impl Stand {
    /// Adds a user, and returns its token.
    async fn add_user(&self, name: &str, role: &str) -> String {
        let added = self.post("/v1/users", json!({ "name": name, "role": role })).await;
        added["token"].as_str().unwrap().to_owned()
    }

    /// The same request with another token, or none.
    async fn as_user(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let mut request = self.request(method, path);
        let headers = request.headers_mut().unwrap();
        headers.remove("authorization");
        if let Some(token) = token {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let body = if method == "GET" { Body::empty() } else { Body::from(body.to_string()) };
        let (status, _, text) = self.send(request.body(body).unwrap()).await;
        (status.as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// All changes of the OpenAPI document, with things that exist in their paths.
    async fn changes(&self) -> Vec<(String, String)> {
        let document = self.get("/openapi.json").await;
        let mut changes = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            let order = match path.as_str() {
                "/v1/cases/{id}/{order}" => "take",
                "/v1/users/{name}/{order}" => "token",
                _ => "hold",
            };
            let path = path.replace("{id}", "0").replace("{name}", "vi").replace("{order}", order);
            for method in item.as_object().unwrap().keys().filter(|it| *it != "get") {
                changes.push((method.to_uppercase(), path.clone()));
            }
        }
        changes
    }
}

#[tokio::test]
async fn a_viewer_changes_nothing_and_nobody_without_a_token_does() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    stand.submit("held", "16x16x16").await;
    let token = stand.add_user("vi", "viewer").await;
    let before = stand.get("/v1/status").await["journal"].clone();
    let changes = stand.changes().await;
    assert!(15 <= changes.len(), "{changes:?}");
    for (method, path) in &changes {
        let body = json!({});
        let (status, answer) = stand.as_user(Some(&token), method, path, &body).await;
        assert_eq!(status, 403, "{method} {path}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains("vi is a viewer"), "{answer}");
        assert_eq!(stand.as_user(None, method, path, &body).await.0, 401, "{method} {path}");
    }
    for path in ["/v1/jobs", "/v1/status", "/v1/audit", "/metrics", "/v1/jobs/0/explain"] {
        assert_eq!(stand.as_user(Some(&token), "GET", path, &Value::Null).await.0, 200, "{path}");
    }
    assert_eq!(stand.as_user(Some(&token), "GET", "/v1/users", &Value::Null).await.0, 403);
    assert_eq!(stand.get("/v1/jobs/0").await["held"], false);
    let after = stand.get("/v1/status").await["journal"].clone();
    assert!(after.as_u64().unwrap() - before.as_u64().unwrap() < 1000, "{before} {after}");
    stand.down();
}

#[tokio::test]
async fn a_user_changes_ones_own_jobs_alone() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let others = stand.submit("others", "4x4x4").await;
    let ada = stand.add_user("ada", "user").await;
    let form = json!({ "name": "own", "shape": "4x4x4", "duration": "1000d" });
    let (status, job) = stand.as_user(Some(&ada), "POST", "/v1/jobs", &form).await;
    assert_eq!((status, &job["owner"], &job["by"]), (201, &json!("ada"), &json!("ada")), "{job}");
    let mut for_bo = form.clone();
    for_bo["owner"] = json!("bo");
    assert_eq!(stand.as_user(Some(&ada), "POST", "/v1/jobs", &for_bo).await.0, 403);
    let own = job["id"].as_u64().unwrap();
    for order in ["hold", "release", "requeue", "cancel"] {
        let path = format!("/v1/jobs/{others}/{order}");
        let (status, answer) = stand.as_user(Some(&ada), "POST", &path, &json!({})).await;
        assert_eq!(status, 403, "{order}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains("operator's"), "{answer}");
    }
    let cancel = |job: u64| format!("/v1/jobs/{job}/cancel");
    assert_eq!(stand.as_user(Some(&ada), "POST", &cancel(own), &json!({})).await.0, 200);
    assert_eq!(stand.as_user(Some(&ada), "POST", &cancel(77), &json!({})).await.0, 404);
    let many = json!({ "order": "cancel", "ids": [others, 77] });
    let (status, answer) = stand.as_user(Some(&ada), "POST", "/v1/orders", &many).await;
    assert_eq!((status, &answer["done"]), (200, &json!([])), "{answer}");
    for (method, path) in stand.changes().await {
        let own = ["/v1/jobs", "/v1/jobs/0/hold", "/v1/orders", "/v1/keys", "/v1/mark"];
        let own = own.contains(&path.as_str());
        if !own {
            let (status, answer) = stand.as_user(Some(&ada), &method, &path, &json!({})).await;
            assert_eq!(status, 403, "{method} {path}: {answer}");
        }
    }
    // Another's name in the header is not believed of somebody who has a token of their own.
    let request = stand.request("POST", "/v1/jobs").header("selvedge-by", "root");
    let mut request = request.body(Body::from(form.to_string())).unwrap();
    let bearer = format!("Bearer {ada}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (_, _, text) = stand.send(request).await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["by"], "ada", "{text}");
    stand.post("/v1/users/ada/remove", json!({})).await;
    assert_eq!(stand.as_user(Some(&ada), "GET", "/v1/jobs", &Value::Null).await.0, 401);
    stand.down();
}

/// Method: a program in replicas has the token of whoever started it.
#[tokio::test]
async fn a_user_marks_machines_of_ones_own_job_alone() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let ada = stand.add_user("ada", "user").await;
    let mut form = json!({ "name": "lu", "shape": "4x4x4", "duration": "1000d" });
    form["redundancy"] = json!(3);
    let (_, job) = stand.as_user(Some(&ada), "POST", "/v1/jobs", &form).await;
    let own = job["id"].as_u64().unwrap();
    let others = stand.post("/v1/jobs", form).await["id"].as_u64().unwrap();
    stand.until_running(own).await;
    stand.until_running(others).await;
    let part = |job: u64| {
        let stand = &stand;
        async move {
            let parts = stand.get(&format!("/v1/jobs/{job}")).await["cubes"].clone();
            parts[0].as_str().unwrap().to_owned()
        }
    };
    let (mine, not_mine) = (part(own).await, part(others).await);
    let tell = async |job: Option<u64>, part: &str| {
        let machine = format!("{part}/m03");
        let mark = json!({ "machine": machine, "job": job, "rank": 0, "set": 1, "call": 9 });
        stand.as_user(Some(&ada), "POST", "/v1/mark", &mark).await
    };
    let (status, told) = tell(Some(own), &mine).await;
    assert_eq!((status, told["cases"].as_array().unwrap().len()), (200, 1), "{told}");
    assert_eq!(tell(Some(own), &not_mine).await.0, 422);
    assert_eq!(tell(Some(others), &not_mine).await.0, 403);
    assert_eq!(tell(Some(77), &mine).await.0, 404);
    assert_eq!(tell(None, &mine).await.0, 403);
    stand.post(&format!("/v1/jobs/{own}/cancel"), json!({})).await;
    stand.until(&format!("/v1/jobs/{own}"), |it| it["state"] == "cancelled").await;
    assert_eq!(tell(Some(own), &mine).await.0, 422);
    stand.down();
}

#[tokio::test]
async fn who_ordered_what_and_why_is_known_after_a_restart() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let bo = stand.add_user("bo", "operator").await;
    let job = stand.submit("train", "4x4x4").await;
    let drain = json!({ "target": "cube9", "why": "new fibre" });
    assert_eq!(stand.as_user(Some(&bo), "POST", "/v1/drain", &drain).await.0, 200);
    let request = stand.request("POST", &format!("/v1/jobs/{job}/cancel"));
    let request = request.header("selvedge-by", "ada").header("selvedge-reason", "wrong <data>");
    assert_eq!(stand.send(request.body(Body::from("{}")).unwrap()).await.0, 200);
    let fault = json!({ "target": "cube3/m05", "action": "inject" });
    stand.post("/v1/faults", fault).await;
    // What is refused has changed nothing, and is not in the trail.
    assert_eq!(stand.json("POST", "/v1/jobs/77/cancel", &json!({})).await.0, 404);
    let what = |it: &Value| {
        let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
        format!("{}: {} ({})", text("by"), text("what"), text("reason"))
    };
    let trail = stand.get("/v1/audit").await["orders"].as_array().unwrap().clone();
    let told: Vec<String> = trail.iter().filter(|it| it["by"] != "crew").map(what).collect();
    assert_eq!(
        told,
        [
            "operator: fault inject: machine_down at cube3/m05 (-)",
            "ada: cancel job0 (wrong <data>)",
            "bo: drain cube9 (new fibre)",
            "operator: submit job0 \"train\" of operator, 4x4x4 (-)",
            "operator: user bo added as operator (-)",
        ]
    );
    assert!(1_600_000_000 < trail[0]["unix_s"].as_u64().unwrap());
    let of_bo = stand.get("/v1/audit?by=bo&n=1").await;
    assert_eq!(of_bo["orders"][0]["what"], "drain cube9");
    let older = stand.get(&format!("/v1/audit?before={}", of_bo["next_before"])).await;
    assert!(older["orders"].as_array().unwrap().len() < trail.len());
    stand.leave();
    let again = Stand::up(dir.path());
    let kept = again.get("/v1/audit").await["orders"].clone();
    for order in &trail {
        assert!(kept.as_array().unwrap().contains(order), "{order}");
    }
    assert_eq!(again.as_user(Some(&bo), "GET", "/v1/users", &Value::Null).await.0, 200);
    again.down();
}

#[tokio::test]
async fn the_dashboard_is_opened_for_a_viewer_by_an_operator() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let token = stand.add_user("vi", "viewer").await;
    let ada = stand.add_user("ada", "user").await;
    let for_vi = json!({ "user": "vi" });
    assert_eq!(stand.as_user(Some(&ada), "POST", "/v1/keys", &for_vi).await.0, 403);
    assert_eq!(stand.as_user(Some(&ada), "POST", "/v1/keys", &json!({})).await.0, 200);
    let link = stand.post("/v1/keys", for_vi).await["url"].as_str().unwrap().to_owned();
    let path = link.strip_prefix(&format!("http://{HOST}")).unwrap();
    let visit = |path: &str, cookie: Option<&str>| {
        let mut request = stand.request("GET", path);
        request.headers_mut().unwrap().remove("authorization");
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        request.body(Body::empty()).unwrap()
    };
    let (_, headers, _) = stand.send(visit(path, None)).await;
    let cookie = headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(!cookie.contains(&token));
    assert_eq!(stand.send(visit("/", Some(&cookie))).await.0, 200);
    assert_eq!(stand.send(visit("/v1/users", Some(&cookie))).await.0, 403);
    stand.post("/v1/users/vi/remove", json!({})).await;
    assert_eq!(stand.send(visit("/v1/jobs", Some(&cookie))).await.0, 401);
    stand.down();
}

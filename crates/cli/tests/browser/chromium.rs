//! A page of Chromium without a window, driven by the browser's own protocol over its own pipes.
//!
//! A message is JSON with a zero byte behind it: a call has a number that its answer repeats, and
//! what has none is an event (<https://chromedevtools.github.io/devtools-protocol/>).  Libraries
//! for it are made from the whole protocol, and were a sixth of all that the lints wait for.

use std::cell::{Cell, RefCell};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Debian's own.
pub(crate) const CHROMIUM: &str = "/usr/bin/chromium";

/// How long the browser may take for an answer, or for a page.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Page {
    browser: Child,
    to_browser: RefCell<ChildStdin>,
    from_browser: Receiver<Value>,
    n_calls: Cell<u64>,
    /// What messages for this page are marked with; empty before there is one.
    session: String,
    /// How many times a page was there with all that belongs to it.
    n_loaded: Cell<u64>,
    /// What stood on the console, and which scripts failed.
    said: RefCell<Vec<String>>,
    _profile: tempfile::TempDir,
}

impl Page {
    /// Starts a browser of its own, which ends with it, and has one page of this size in pixels.
    pub(crate) fn open(width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // Chromium's own sandbox refuses to run as root, as tests in a container do.
        let user = Command::new("id").arg("-u").output().unwrap().stdout;
        let sandbox = if user.trim_ascii() == b"0" { &["--no-sandbox"][..] } else { &[] };
        let mut browser = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#, CHROMIUM])
            .args(["--headless", "--remote-debugging-pipe", "--no-first-run"])
            .args(["--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .args(sandbox)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to_browser = RefCell::new(browser.stdin.take().unwrap());
        let messages = BufReader::new(browser.stdout.take().unwrap()).split(0);
        let (put, from_browser) = mpsc::channel();
        thread::spawn(move || {
            for message in messages.map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if put.send(message).is_err() {
                    return;
                }
            }
        });
        let mut page = Self {
            browser,
            to_browser,
            from_browser,
            n_calls: Cell::new(0),
            session: String::new(),
            n_loaded: Cell::new(0),
            said: RefCell::default(),
            _profile: profile,
        };
        let made = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let to = json!({ "targetId": made["targetId"], "flatten": true });
        let session = page.call("Target.attachToTarget", to);
        page.session = session["sessionId"].as_str().unwrap().to_owned();
        for part in ["Page", "Runtime", "Log"] {
            page.call(&format!("{part}.enable"), json!({}));
        }
        page
    }

    /// What the browser answers to a call of its protocol; a call that it refuses is a failure.
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        let id = self.n_calls.get() + 1;
        self.n_calls.set(id);
        let mut call = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            call["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&call).unwrap();
        bytes.push(0);
        self.to_browser.borrow_mut().write_all(&bytes).unwrap();
        loop {
            let mut message = self.hear(method);
            if message["id"] == id {
                assert_eq!(message["error"], Value::Null, "{method} {params}");
                return message["result"].take();
            }
        }
    }

    /// The next message, which is counted or kept if it is an event that matters here.
    fn hear(&self, what_for: &str) -> Value {
        let Ok(message) = self.from_browser.recv_timeout(PATIENCE) else {
            panic!("the browser said nothing to {what_for} for {PATIENCE:?}");
        };
        let params = &message["params"];
        let complaint = match message["method"].as_str() {
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                format!("{} {}", params["entry"]["text"], params["entry"]["url"])
            }
            Some("Runtime.exceptionThrown") => params["exceptionDetails"].to_string(),
            Some("Runtime.consoleAPICalled") => format!("console: {}", params["args"]),
            Some("Page.loadEventFired") => {
                self.n_loaded.set(self.n_loaded.get() + 1);
                return message;
            }
            _ => return message,
        };
        self.said.borrow_mut().push(complaint);
        message
    }

    /// Goes to an address and returns when the page is there.
    pub(crate) fn go(&self, url: &str) {
        let before = self.n_loaded.get();
        let gone = self.call("Page.navigate", json!({ "url": url }));
        assert_eq!(gone["errorText"], Value::Null, "{url}");
        let since = Instant::now();
        while self.n_loaded.get() == before {
            assert!(since.elapsed() < PATIENCE, "{url} is not there after {PATIENCE:?}");
            self.hear(url);
        }
    }

    /// What a script makes of the page; null unless it is text, a number or a truth.
    pub(crate) fn ask(&self, script: &str) -> Value {
        let mut answer = self.call("Runtime.evaluate", json!({ "expression": script }));
        answer["result"]["value"].take()
    }

    /// Presses a key and lets it go; `code` is its number on Windows, which the protocol wants.
    pub(crate) fn press(&self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let press = json!({ "type": kind, "key": key, "code": key,
                "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", press);
        }
    }

    /// What it has complained of until now, less what was forgiven.
    pub(crate) fn said(&self) -> Vec<String> {
        // Whatever came before this answer is heard with it.
        self.ask("0");
        self.said.borrow().clone()
    }

    /// Forgets complaints that have this in them.
    pub(crate) fn forgive(&self, what: &str) {
        self.said();
        self.said.borrow_mut().retain(|it| !it.contains(what));
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // With it go the processes that it started.
        self.browser.kill().ok();
        self.browser.wait().ok();
    }
}

//! The dashboard in a real browser: `cargo xtask prove browser`, and shortened in the tests.
//!
//! Goal: what the plant does is what a person sees, within two seconds, on every page, without an
//! error on the console, whatever the names of jobs are.  Method: Debian's Chromium without a
//! window, driven over its own protocol, looks at a server of our own while jobs, a switch that is
//! under way, a drain and a fault come and go.  The full proof also walks through every page in
//! light and dark, on a desk and on a phone, and leaves a picture of each in `target/browser`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a real browser takes real time")]
#![allow(clippy::print_stderr, reason = "what was not run is named, and what was measured is told")]

mod chromium;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use chromium::{CHROMIUM, Page};
use support::Up;

/// How long a page may take to show what it must, where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a change may take to be seen.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// What the page is called here that lets nobody in.
const CLOSED: &str = "closed";

/// What nobody should call a job.
const HOSTILE: &str = "<script>hit=1</script>\"'&<img src=x onerror=hit=1>\u{202e}txt.exe";

impl Up {
    fn submit(&self, name: &str, shape: &str, duration: &str) -> u64 {
        let args = ["job", "submit", "--shape", shape, "--name", name, "--duration", duration];
        self.json(&args)["id"].as_u64().unwrap()
    }

    fn until_state(&self, id: u64, state: &str) -> Value {
        let id = id.to_string();
        self.until_within(PATIENCE, &["job", "show", &id], |it| it["state"] == state)
    }
}

/// A browser's window.
struct Window {
    page: Page,
    base: String,
    pictures: PathBuf,
}

/// How a page is looked at.
#[derive(Clone, Copy)]
struct Look {
    name: &'static str,
    width: u32,
    height: u32,
    dark: bool,
}

const DESK: Look = Look { name: "light", width: 1280, height: 900, dark: false };
const NIGHT: Look = Look { name: "dark", dark: true, ..DESK };
const PHONE: Look = Look { name: "phone", width: 390, height: 844, dark: false };

impl Window {
    fn open(up: &Up) -> Self {
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("browser");
        fs::create_dir_all(&pictures).unwrap();
        let page = Page::open(DESK.width, DESK.height);
        let window = Self { page, base: up.url.clone(), pictures };
        window.look(DESK);
        window.page.go(&up.link);
        window
    }

    fn look(&self, look: Look) {
        let mobile = look.width < 600;
        let metrics = json!({ "width": look.width, "height": look.height, "mobile": mobile,
            "deviceScaleFactor": 1.0 });
        self.page.call("Emulation.setDeviceMetricsOverride", metrics);
        let value = if look.dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.page.call("Emulation.setEmulatedMedia", media);
    }

    fn go(&self, path: &str) {
        self.page.go(&format!("{}{path}", self.base));
        self.until(path, "document.getElementById('live')?.textContent === 'live'", PATIENCE);
    }

    fn ask(&self, script: &str) -> Value {
        self.page.ask(script)
    }

    fn count(&self, selector: &str) -> u64 {
        let found = self.ask(&format!("document.querySelectorAll({}).length", json!(selector)));
        found.as_u64().unwrap()
    }

    /// Waits until `script` is true, and returns how long that took.
    fn until(&self, what: &str, script: &str, limit: Duration) -> Duration {
        let since = Instant::now();
        while self.ask(script) != Value::Bool(true) {
            if limit < since.elapsed() {
                self.picture("failed");
                let said = self.page.said().join("\n");
                panic!("{what}: not within {limit:?}: {script}; console: {said}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        since.elapsed()
    }

    /// Keeps the whole page as a picture.
    fn picture(&self, name: &str) {
        let whole = self.ask(
            "JSON.stringify({x: 0, y: 0, scale: 1, width: innerWidth, \
             height: Math.max(innerHeight, document.documentElement.scrollHeight)})",
        );
        let clip: Value = serde_json::from_str(whole.as_str().unwrap()).unwrap();
        let shot = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        let shot = self.page.call("Page.captureScreenshot", shot);
        let bytes = decoded(shot["data"].as_str().unwrap());
        fs::write(self.pictures.join(format!("{name}.png")), bytes).unwrap();
    }

    /// What holds of every page, however it is looked at.
    fn is_sound(&self, path: &str, look: Look) {
        let wider = self.ask("document.documentElement.scrollWidth - innerWidth");
        assert!(wider.as_i64().unwrap() <= 0, "{path} is {wider} too wide as {}", look.name);
        // One for light and dark, one for what the page does; the closed page does nothing.
        let n_scripts = if path == CLOSED { 0 } else { 2 };
        assert_eq!(self.count("script"), n_scripts, "{path}");
        assert_eq!(self.count("img"), 0, "{path}");
        assert_eq!(self.ask("typeof hit"), json!("undefined"), "{path}: a name has run");
        let ids = "(() => { const ids = [...document.querySelectorAll('[id]')].map(it => it.id); \
                   return ids.filter((it, at) => ids.indexOf(it) !== at).join(' '); })()";
        assert_eq!(self.ask(ids), json!(""), "{path}: ids stand twice");
        let unnamed = "[...document.querySelectorAll('a, button')].filter(it => \
                       !(it.textContent.trim() || it.getAttribute('aria-label'))).length";
        assert_eq!(self.ask(unnamed), json!(0), "{path}: links without a name");
    }

    fn is_quiet(&self) {
        let said = self.page.said();
        assert!(said.is_empty(), "the console says: {}", said.join("\n"));
    }
}

/// What base64 stands for.
fn decoded(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|it| *it != b'=').map(value).collect();
    let mut bytes = Vec::with_capacity(digits.len());
    for four in digits.chunks(4) {
        let bits = four.iter().fold(0u32, |bits, it| bits << 6 | u32::from(*it));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Whether a browser can be run here; says so if not.
fn has_browser() -> bool {
    let is_there = Path::new(CHROMIUM).is_file();
    if !is_there {
        eprintln!("not run: chromium is missing; add --install");
    }
    is_there
}

/// The cubes that the map shows for a job, by name.
fn cubes_of(job: u64) -> String {
    format!(
        "[...document.querySelectorAll('[data-cube]')].filter(it => \
         it.querySelector('[data-job=\"{job}\"]')).map(it => it.dataset.cube).sort().join(' ')"
    )
}

fn sorted(names: &Value) -> String {
    let mut names: Vec<&str> =
        names.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn what_the_plant_does_is_what_a_browser_shows() {
    if !has_browser() {
        return;
    }
    let up = Up::start();
    let window = Window::open(&up);
    window.until("live", "document.getElementById('live').textContent === 'live'", PATIENCE);
    assert_eq!((window.count("[data-cube]"), window.count("[data-ocs]")), (64, 48));

    // A job's cubes, by id.
    let job = up.submit("watched", "8x8x8", "100d");
    let running = up.until_state(job, "running");
    let script = format!("{} === {}", cubes_of(job), json!(sorted(&running["cubes"])));
    window.until("the job's cubes", &script, PATIENCE);

    a_switch_under_way(&up, &window);

    // A drain is marked on the map and on the cube's page.
    up.text(&["machine", "drain", "cube60/m03", "--why", HOSTILE]);
    let drained = "document.querySelector('[data-cube=cube60]').hasAttribute('data-drained')";
    let took = window.until("the drain", drained, PATIENCE);
    eprintln!("a drain was seen {:.2} s after it was acknowledged", took.as_secs_f64());
    window.go("/cubes/cube60");
    assert_eq!(window.count("[data-machine='cube60/m03'][data-drained]"), 1);
    assert_eq!(window.count("[data-drained]"), 1);
    window.go("/");

    // A job that has ended is gone.
    let brief = up.submit("brief", "4x4x4", "3m");
    let there = format!("document.querySelector('[data-cube] [data-job=\"{brief}\"]') !== null");
    window.until("the brief job", &there, PATIENCE);
    up.until_state(brief, "finished");
    let took = window.until("the brief job's end", &format!("!({there})"), SEEN_WITHIN);
    eprintln!("a finished job was gone {:.2} s later", took.as_secs_f64());

    keys(&window);
    hostile_names(&up, &window);
    topology_page(&window);
    closed_page(&window);
    if std::env::var_os("SELVEDGE_PROOF").is_some() {
        every_page(&up, &window, job);
    }
    window.is_quiet();
}

/// The plant's process is stopped in the middle of a switch: what is intended is not there yet.
fn a_switch_under_way(up: &Up, window: &Window) {
    let plant = up.json(&["status"])["plant_pid"].to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &plant]).status().unwrap().success());
    };
    signal("-STOP");
    up.submit("switching", "4x4x8", "100d");
    let differ = "document.querySelectorAll('[data-ocs]:not([data-differ=\"0\"])').length";
    window.until("the switch", &format!("{differ} === 48"), PATIENCE / 3);
    assert_ne!(window.ask("document.getElementById('ocs-sum').dataset.differ"), json!("0"));
    window.picture("switching");
    signal("-CONT");
    window.until("the switch's end", &format!("{differ} === 0"), PATIENCE);
}

/// The first stop of the tab key leads to the content, and arrows walk over the map.
fn keys(window: &Window) {
    let at = "document.activeElement.dataset.cube";
    window.page.press("Tab", 9);
    assert_eq!(window.ask("document.activeElement.className"), json!("skip"));
    window.ask("document.querySelector('[data-cube=cube0]').focus()");
    for (key, code, cube) in
        [("ArrowRight", 39, "cube1"), ("ArrowDown", 40, "cube9"), ("ArrowLeft", 37, "cube8")]
    {
        window.page.press(key, code);
        assert_eq!(window.ask(at), json!(cube), "{key}");
    }
    // A page that is drawn again takes nobody's place away.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(window.ask(at), json!("cube8"));
    let shown =
        "[...document.querySelectorAll('svg.pod a')].filter(it => it.tabIndex === 0).length";
    assert_eq!(window.ask(shown), json!(1), "the map is one stop of the tab key");
    window.ask("document.getElementById('theme').click()");
    window.ask("document.getElementById('theme').click()");
    assert_eq!(window.ask("document.documentElement.dataset.theme"), json!("dark"));
    window.ask("document.getElementById('theme').click()");
    assert_eq!(window.ask("document.documentElement.dataset.theme ?? 'auto'"), json!("auto"));
}

/// A job with a hostile name, running and waiting, is text on every page that shows it.
fn hostile_names(up: &Up, window: &Window) {
    let job = up.submit(HOSTILE, "4x4x4", "100d");
    up.until_state(job, "running");
    let waiting = up.submit(HOSTILE, "16x16x16", "100d");
    for path in [
        "/".to_owned(),
        "/queue".to_owned(),
        format!("/jobs/{job}"),
        format!("/jobs/{job}/slice"),
        format!("/jobs/{waiting}"),
        "/health".to_owned(),
        "/events".to_owned(),
        "/cubes/cube60".to_owned(),
        "/cubes/%3Cimg%20src=x%20onerror=hit=1%3E".to_owned(),
    ] {
        if path.starts_with("/cubes/%") {
            let url = format!("{}{path}", window.base);
            window.page.go(&url);
            // The browser itself reports that the page is not found.
            std::thread::sleep(Duration::from_millis(200));
            window.page.forgive("404");
        } else {
            window.go(&path);
        }
        window.is_sound(&path, DESK);
    }
    let text = window.ask("document.body.textContent.includes('<img src=x')");
    assert_eq!(text, json!(true), "it is told what was not found, as text");
    up.text(&["job", "cancel", &waiting.to_string()]);
}

/// A topology that is pasted is drawn, and one that is none is told so.
fn topology_page(window: &Window) {
    let open = || {
        let url = format!("{}/topo", window.base);
        window.page.go(&url);
        window.until("the page", "document.readyState === 'complete'", PATIENCE);
    };
    let paste = |text: &str| {
        let text = json!(text);
        window.ask(&format!("document.getElementById('text').value = {text}; 0"));
        window.ask("document.querySelector('#ask button').click()");
    };
    open();
    paste("<system><img src=x onerror=hit=1></system");
    let told = "document.querySelector('#answer [role=alert]') !== null";
    window.until("what is wrong with it", told, PATIENCE);
    window.is_sound("/topo", DESK);
    // The browser itself reports that it was refused.
    window.page.forgive("422");
    open();
    paste(include_str!("../../../../fuzz/corpus/server/small.xml"));
    window.until("the picture", "document.querySelector('#answer svg') !== null", PATIENCE);
    assert!(1 <= window.count("#answer table"), "there is a matrix");
}

/// A browser that nobody has let in is told how one comes in.
fn closed_page(window: &Window) {
    // Its cookie is that of the address, not of the name.
    let url = window.base.replace("127.0.0.1", "localhost");
    window.page.go(&url);
    let told = "document.body.textContent.includes('selvedge dashboard')";
    window.until("how one comes in", told, PATIENCE);
    assert_eq!(window.count("nav"), 0, "nothing else is shown");
    window.is_sound(CLOSED, DESK);
    window.page.forgive("401");
}

/// Every page in every look, with a picture of each.
fn every_page(up: &Up, window: &Window, job: u64) {
    for (name, shape) in [
        ("sweep-a", "2x2x1"),
        ("sweep-b", "2x2x2"),
        ("vision", "4x8x8"),
        ("twist", "4x4x8_twisted"),
    ] {
        up.submit(name, shape, "100d");
    }
    let large = up.submit("large", "8x16x16", "100d");
    let waits = up.submit("foundation", "8x16x16", "100d");
    up.submit("later", "16x16x16", "100d");
    for (what, target) in
        [("machine", "cube12/m05"), ("port", "y7/s11"), ("chip", "cube40/chip1.2.1")]
    {
        up.text(&["fault", "inject", what, target]);
    }
    let cases = "document.querySelectorAll('[data-case]').length";
    window.go("/");
    window.until("a case", &format!("2 <= {cases}"), PATIENCE);
    std::thread::sleep(Duration::from_secs(4));
    let case = window.ask("document.querySelector('[data-case]')?.dataset.case ?? '0'");
    let pages = [
        ("pod", "/".to_owned()),
        ("switches", "/switches".to_owned()),
        ("switch", "/switches/y7".to_owned()),
        ("cube", "/cubes/cube60".to_owned()),
        ("queue", "/queue".to_owned()),
        ("job", format!("/jobs/{job}")),
        ("waiting", format!("/jobs/{waits}")),
        ("slice", format!("/jobs/{job}/slice?at=37")),
        ("slice-large", format!("/jobs/{large}/slice")),
        ("slice-cube", format!("/jobs/{large}/slice?cube=5&at=21")),
        ("health", "/health".to_owned()),
        ("case", format!("/cases/{}", case.as_str().unwrap())),
        ("events", "/events".to_owned()),
    ];
    for look in [DESK, NIGHT, PHONE] {
        window.look(look);
        for (name, path) in &pages {
            window.go(path);
            window.is_sound(path, look);
            window.picture(&format!("{name}-{}", look.name));
        }
        topology_page(window);
        window.is_sound("/topo", look);
        window.picture(&format!("topo-{}", look.name));
        closed_page(window);
        window.is_sound(CLOSED, look);
        window.picture(&format!("closed-{}", look.name));
    }
    eprintln!("pictures are in {}", window.pictures.display());
}

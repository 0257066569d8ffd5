//! What a hundred people who watch cost: `cargo xtask prove viewers`, and shortened in the tests.
//!
//! Goal: a dashboard on a hundred screens costs the server less than a tenth of a core.  Method: a
//! whole pod on which jobs come and go all the time, once with nobody looking and once with a
//! hundred connections that follow the first page; the difference in processor time, as the system
//! counts it, is the cost.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "processor time is measured over real time")]
#![allow(clippy::print_stderr, reason = "what was measured is told")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::Up;
use support::clients::Client;

/// People who look.
const VIEWERS: usize = 100;

/// The most that they may cost, in percent of one core.
const COST_MAX: f64 = 10.0;

/// Clock ticks in a second, as Linux counts processor time for programs.
const TICKS: f64 = 100.0;

impl Up {
    fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Submits jobs that come and go for `span`, four each second.
    fn busy(&self, span: Duration) {
        let since = Instant::now();
        let mut n = 0u32;
        while since.elapsed() < span {
            let body = format!(
                r#"{{"name":"job {n}","shape":"{}","duration":"2m"}}"#,
                ["4x4x4", "2x2x1", "4x4x8", "8x8x8"][n as usize % 4]
            );
            let mut client = Client::new(&self.door()).unwrap();
            client.submit(&body).unwrap();
            n += 1;
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// Processor time that the server has used, in seconds.
    fn used(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The program's name may hold anything; what follows its parenthesis is numbers.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / TICKS
    }

    /// The share of a core that the server takes while it is busy for `span`, in percent.
    fn cost(&self, span: Duration) -> f64 {
        let (before, since) = (self.used(), Instant::now());
        self.busy(span);
        100.0 * (self.used() - before) / since.elapsed().as_secs_f64()
    }
}

/// Follows the first page; counts messages and bytes.
fn follow(up: &Up, n_messages: &Arc<AtomicU64>, n_bytes: &Arc<AtomicU64>) -> TcpStream {
    let mut stream = TcpStream::connect(up.address()).unwrap();
    write!(
        stream,
        "GET /live/ HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        up.address(),
        up.token()
    )
    .unwrap();
    let mut reader = stream.try_clone().unwrap();
    let (messages, bytes) = (Arc::clone(n_messages), Arc::clone(n_bytes));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            let starts = buffer[..n].windows(6).filter(|it| it == b"data: ").count();
            messages.fetch_add(starts as u64, Ordering::Relaxed);
            bytes.fetch_add(n as u64, Ordering::Relaxed);
        }
    });
    stream
}

#[test]
fn a_hundred_viewers_cost_less_than_a_tenth_of_a_core() {
    let is_proof = std::env::var_os("SELVEDGE_PROOF").is_some();
    let span = Duration::from_secs(if is_proof { 30 } else { 5 });
    let up = Up::start();
    up.busy(Duration::from_secs(2));
    let alone = up.cost(span);
    let (n_messages, n_bytes): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
    let viewers: Vec<TcpStream> =
        (0..VIEWERS).map(|_| follow(&up, &n_messages, &n_bytes)).collect();
    std::thread::sleep(Duration::from_secs(1));
    let watched = up.cost(span);
    for viewer in &viewers {
        viewer.shutdown(std::net::Shutdown::Both).unwrap();
    }
    let (n_messages, n_bytes) =
        (n_messages.load(Ordering::Relaxed), n_bytes.load(Ordering::Relaxed));
    let cost = watched - alone;
    eprintln!(
        "{VIEWERS} viewers of a busy pod for {} s: {cost:.1} % of a core ({watched:.1} % with them, \
         {alone:.1} % without), {n_messages} messages, {:.1} kB each",
        span.as_secs(),
        n_bytes as f64 / n_messages.max(1) as f64 / 1000.0
    );
    // A page is drawn at most once a second, and each viewer is sent at least a few drawings.
    assert!((2 * VIEWERS) as u64 <= n_messages, "{n_messages}");
    assert!(cost < COST_MAX, "{cost:.1} % of a core");
}

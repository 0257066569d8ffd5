//! How long the core takes to place a job on a busy pod, plan and check included.
//!
//! A pod of 64 cubes is kept 85 % full with jobs drawn from the published slice mix; each of
//! 10,000 steps lets drawn jobs finish until there is room, then submits one.  Devices answer at
//! once.  Then the same without waiting for room, so that the queue grows by some thousands, and
//! a 16x16x16 on an empty pod whose mirrors stand as other jobs left them.
//!
//! ```text
//! cargo bench -p xtask --bench place_finish
//! ```
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::print_stdout, reason = "a measurement prints what it measured")]

use std::time::Duration;

use selvedge_family::torus::shape::Shape;

use crate::pod::{Pod, mix};

#[path = "support/pod.rs"]
mod pod;

const STEPS: usize = 10_000;

fn main() {
    let mut pod = Pod::new();
    let mix = mix();
    let total: u64 = mix.iter().map(|it| it.1).sum();
    let (mut submits, mut finishes) = (Vec::new(), Vec::new());
    let mut overload = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        let shape = pod.draw_shape(&mix, total);
        let n_seats = Shape::parse(&shape).expect("a shape of the mix").0.n_chips();
        while 4096 * 85 / 100 < pod.n_held() + n_seats && 0 < pod.n_held() {
            finishes.push(pod.finish_one());
        }
        let (took, has_placed) = pod.submit(&shape);
        submits.push(took);
        // One that finds no whole cubes free is placed as others finish.
        while !has_placed && pod.n_waiting() != 0 {
            finishes.push(pod.finish_one());
        }
    }
    report("submit", &mut submits);
    report("finish", &mut finishes);
    for _ in 0..STEPS {
        while 4096 * 85 / 100 < pod.n_held() {
            overload.1.push(pod.finish_one());
        }
        let shape = pod.draw_shape(&mix, total);
        overload.0.push(pod.submit(&shape).0);
    }
    report("submit, deep queue", &mut overload.0);
    report("finish, deep queue", &mut overload.1);
    let mut pod = Pod::new();
    let mut whole = Vec::new();
    for _ in 0..200 {
        for shape in ["8x8x8", "4x4x8", "4x8x8", "8x8x16", "4x4x12"] {
            pod.submit(shape);
        }
        while 0 < pod.n_held() {
            pod.finish_one();
        }
        let (took, has_placed) = pod.submit("16x16x16");
        assert!(has_placed, "an empty pod holds it");
        whole.push(took);
    }
    report("16x16x16", &mut whole);
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000].as_micros();
    let n = times.len();
    print!("{what:<20} n {n:>6}");
    for (name, share) in [("p50", 500), ("p90", 900), ("p98", 980), ("p99", 990), ("p99.9", 999)] {
        print!("  {name} {:>6} us", at(share));
    }
    println!();
}

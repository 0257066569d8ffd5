//! Topology files changed at random, by a seed: whatever comes out is refused with a place or
//! answered, and nothing panics or runs away.
//!
//! This is what the targets in `fuzz/` do, on the stable toolchain and without coverage as guide.
//! `SELVEDGE_MUTATIONS=N` makes N changed files in place of a few; the seed of one that fails is in
//! the message.

use std::env;
use std::fs;
use std::path::PathBuf;

const SMALL: &str = include_str!("../../../../fuzz/corpus/server/small.xml");

/// Numbers from a seed: a linear congruence, its upper half.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// What is put somewhere into a text.
const WORDS: [&str; 20] = [
    "0",
    "-1",
    "99999999999",
    "\"",
    "<",
    ">",
    "/>",
    "'",
    "&x;",
    "\t",
    "\n",
    "é",
    "0x",
    "<!--",
    "<gpu rank=\"0\"/>",
    "]]>",
    "nan",
    "-inf",
    "1e39",
    "latency=\"0x1p9\"",
];

fn mutated(text: &str, dice: &mut Dice) -> String {
    let mut text = text.to_owned();
    for _ in 0..=dice.below(4) {
        let lines: Vec<&str> = text.lines().collect();
        match dice.below(6) {
            0 => {
                let at = dice.place(&text);
                text.insert_str(at, WORDS[dice.below(WORDS.len())]);
            }
            1 => {
                let from = dice.place(&text);
                let mut to = (from + dice.below(40)).min(text.len());
                while !text.is_char_boundary(to) {
                    to += 1;
                }
                text.replace_range(from..to, "");
            }
            2 if !lines.is_empty() => {
                let mut lines = lines.clone();
                let line = lines[dice.below(lines.len())];
                lines.insert(dice.below(lines.len() + 1), line);
                text = lines.join("\n");
            }
            3 if lines.len() > 1 => {
                let mut lines = lines.clone();
                lines.remove(dice.below(lines.len()));
                text = lines.join("\n");
            }
            4 if !lines.is_empty() => {
                let mut lines = lines.clone();
                let (a, b) = (dice.below(lines.len()), dice.below(lines.len()));
                lines.swap(a, b);
                text = lines.join("\n");
            }
            // One attribute's value for another's.
            _ => {
                let values: Vec<String> =
                    text.split('"').skip(1).step_by(2).map(str::to_owned).collect();
                if !values.is_empty() {
                    let (a, b) = (dice.below(values.len()), dice.below(values.len()));
                    text = text.replacen(
                        &format!("\"{}\"", values[a]),
                        &format!("\"{}\"", values[b]),
                        1,
                    );
                }
            }
        }
    }
    text
}

/// Everything that looks at a file, at this one.
fn look(text: &str) {
    crate::look::read_both_ways(text);
    crate::look::ask_everything(text);
}

#[test]
fn no_changed_file_makes_anything_panic() {
    let count = env::var("SELVEDGE_MUTATIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(1500);
    let mut texts = vec![SMALL.to_owned()];
    if let Some(folder) = env::var_os("SELVEDGE_DATA") {
        for name in ["simllm-perlmutter_a100.xml", "nccl-pr2202-gb10.xml", "ibm-vpc_h100.xml"] {
            let path = PathBuf::from(&folder).join("nccl/topos").join(name);
            texts.extend(fs::read_to_string(path));
        }
    }
    for seed in 0..count {
        let mut dice = Dice(seed);
        let text = mutated(&texts[dice.below(texts.len())], &mut dice);
        let looked = std::panic::catch_unwind(|| look(&text));
        assert!(looked.is_ok(), "seed {seed}:\n{text}");
    }
}

#[test]
fn nothing_that_the_fuzz_targets_keep_breaks_anything() {
    let fuzz = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    let kept = ["topology", "server"].map(|it| PathBuf::from(fuzz).join(it));
    let files = kept.iter().flat_map(|it| fs::read_dir(it).expect("the target has a corpus"));
    let mut n_files = 0;
    for file in files {
        let path = file.expect("a file").path();
        let bytes = fs::read(&path).expect("a file");
        let looked = std::panic::catch_unwind(|| look(&String::from_utf8_lossy(&bytes)));
        assert!(looked.is_ok(), "{}", path.display());
        n_files += 1;
    }
    assert!(n_files > 2, "{n_files}");
}

//! Topology files changed at random, by a seed: whatever comes out is refused with a place or
//! answered, and nothing panics or runs away.
//!
//! This is the parser's fuzz target on the stable toolchain.  `SELVEDGE_MUTATIONS=N` makes N
//! changed files in place of a few; the seed of one that fails is in the message.

use std::env;
use std::fs;
use std::path::PathBuf;

use selvedge_family::host::change::Question;
use selvedge_family::host::decision::port_keys;
use selvedge_family::host::explain::{Lab, Pair};
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Strictness, read, write};
use selvedge_family::host::picture::{Picture, svg};
use selvedge_family::host::widest::Widest;

const SMALL: &str = "<system version=\"1\">
  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">
    <pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">
      <pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
        <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">
          <nvlink target=\"0000:04:00.0\" count=\"4\" tclass=\"0x030200\"/>
          <nvlink target=\"0000:05:00.0\" count=\"4\" tclass=\"0x068000\"/>
        </gpu>
      </pci>
      <pci busid=\"0000:04:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
        <gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\">
          <nvlink target=\"0000:03:00.0\" count=\"4\" tclass=\"0x030200\"/>
          <c2c bw=\"1000\" count=\"2\"/>
        </gpu>
      </pci>
      <pcilink target=\"0000:01:00.0\"/>
    </pci>
  </cpu>
  <cpu numaid=\"1\" arch=\"arm64\">
    <pci busid=\"0000:90:00.0\" class=\"0x020000\" link_speed=\"\" link_width=\"0\">
      <nic><net name=\"m\" dev=\"0\" speed=\"200000\" port=\"1\" guid=\"0x1\" maxconn=\"9\" gdr=\"1\"/></nic>
    </pci>
  </cpu>
</system>
";

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

fn mutated(text: &str, dice: &mut Dice) -> String {
    const WORDS: [&str; 16] = [
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
    ];
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
    for single_quotes in [true, false] {
        let _ = read(text, Strictness::AsNccl { single_quotes });
    }
    let Ok(document) = read(text, Strictness::Lenient { single_quotes: true }) else { return };
    let again = write(&document.root);
    let same = read(&again, Strictness::Lenient { single_quotes: true });
    assert_eq!(write(&same.expect("what is written is read").root), again);
    for profile in Profile::ALL {
        let question = Question::new(document.root.clone(), profile);
        let Ok(view) = question.view() else { continue };
        let _ = Matrix::of(&view).map(|it| it.text());
        let way = view.gpus().first().copied().zip(view.nets().first().copied());
        let _ = svg(&view, &Picture { title: String::new(), way });
        let widest = Widest::of(&view);
        let ranks: Vec<i32> = view.gpus().iter().map(|it| view.graph.gpu(*it).rank).collect();
        if let [a, b, ..] = view.gpus() {
            let _ = widest.between(*a, *b);
        }
        let lab = Lab::new(question);
        if let [a, b, ..] = ranks[..] {
            let _ = lab.explain(Pair::P2p { a, b });
        }
        if let (Some(gpu), Some((_, net))) = (ranks.first(), port_keys(&view).first()) {
            let _ = lab.explain(Pair::Gdr { gpu: *gpu, net: *net, send: true });
        }
    }
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

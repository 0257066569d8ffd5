use expect_test::{Expect, expect};

use crate::spec::plant::{Family, GridChip};
use crate::spec::{Plant, Wrong, diff};

mod refused;

mod drawn;

/// What a file that cannot be read prints.
fn check(text: &str, expected: Expect) {
    let errors = Plant::parse("demo.toml", text).unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&(shown.join("\n") + "\n"));
}

#[test]
fn all_faults_of_a_file_are_shown_in_its_order() {
    let text =
        "format = 1\nname = \"\"\n[[pod]]\nfamily = \"tpuv9\"\n[power]\nracks_per_feed = 0\n";
    let errors = Plant::parse("demo.toml", text).unwrap_err();
    let places: Vec<(u32, u32)> = errors.iter().map(|it| (it.line, it.column)).collect();
    assert_eq!(places, [(2, 8), (4, 10), (6, 18)]);
}

/// Every key that an error names as known stands in docs/plant-files.md.
#[test]
fn every_key_is_documented() {
    let page = include_str!("../../../../docs/plant-files.md");
    let keys_of = |text: &str| {
        let errors = Plant::parse("demo.toml", text).unwrap_err();
        let known = errors.iter().find_map(|it| match &it.wrong {
            Wrong::UnknownKey { known, .. } => Some(*known),
            _ => None,
        });
        known.unwrap_or_else(|| panic!("{text}"))
    };
    let mut n_keys = 0;
    for table in ["[[pod]]", "[thresholds]", "[optics]", "[power]", "[[cable]]", "[[domain]]"]
        .into_iter()
        .chain(["[[part]]", "[[missing]]", "[[template]]", ""])
    {
        let keys = keys_of(&format!("format = 1\nname = \"demo\"\n{table}\nzzzzzzzz = 1\n"));
        for key in keys {
            let forms = [format!("`{key}"), format!("[{key}]"), format!("\n{key} = ")];
            assert!(forms.iter().any(|it| page.contains(it)), "{key} of {table}");
            n_keys += 1;
        }
    }
    assert!(40 < n_keys, "{n_keys}");
}

/// A plant with everything that the format knows.
pub(super) const FULL: &str = r#"format = 1
name = "everything"

[[pod]]
family = "tpuv4"
cubes = 32
deployed = "0-15,20"
control = "ocs.example:830"

[[pod]]
family = "tpuv3"
grid = "128x32"
wrap = "y"

[[pod]]
family = "hosts"
hosts = 2

[thresholds]
loss_max_db = 1.80
flap_window = "5m"

[optics]
loss_db = 0.90

[power]
racks_per_feed = 8

[[template]]
name = "toy"
role = "compute"
nodes = [
  { name = "m0", kind = "machine" },
  { name = "gpu0", kind = "chip", parent = "m0" },
  { name = "nic0", kind = "nic", parent = "m0" },
]
ports = [
  { name = "gpu0/a", node = "gpu0" },
  { name = "nic0/a", node = "nic0" },
  { name = "nic0/port", node = "nic0" },
]
links = [
  { a = "gpu0/a", b = "nic0/a", kind = "pcie", gbps = 126, latency_ns = 500 },
]
seats = ["gpu0"]

[[part]]
name = "toy0"
template = "toy"
pool = "toys"

[[domain]]
name = "feed-a"
kind = "power"
parts = ["cube0", "toy0"]

[[cable]]
end = "cube5/x/in/7"
port = "x7/s66"
loss_db = 1.20

[[cable]]
a = "toy0/nic0/port"
b = "host0/nic0/port"
kind = "ethernet"
gbps = 400
latency_ns = 500

[[missing]]
part = "x9"

[[missing]]
cable = "cube3/y/out/0"
"#;

#[test]
fn canonical_text_reads_back_to_itself() {
    let plant = Plant::parse("full.toml", FULL).unwrap();
    assert_eq!(plant.render(), FULL);
    assert!(plant.has_real_device());
}

#[test]
fn a_short_file_means_the_whole_published_pod() {
    let text = "format = 1\nname = \"p\"\npod = [{ family = \"tpuv4\" }, { family = \"tpuv2\" }]";
    let plant = Plant::parse("p.toml", text).unwrap();
    let grid = Family::Grid { chip: GridChip::Tpuv2, sides: [16, 16], wraps: [true, true] };
    assert_eq!(plant, Plant::of_pods("p", [Family::tpuv4(64), grid]));
}

#[test]
fn a_difference_is_said_in_words() {
    let old = Plant::parse("a.toml", FULL).unwrap();
    let mut text = FULL.replace("0-15,20", "0-14,20,21").replace("loss_db = 0.90", "loss_db = 1");
    text = text.replace("x7/s66", "x7/s67").replace("part = \"x9\"", "part = \"z9\"");
    text = text.replace("gbps = 126", "gbps = 252").replace("hosts = 2", "hosts = 3");
    text = text.replace("1.80", "2.00").replace("racks_per_feed = 8", "racks_per_feed = 2");
    text = text.replace("name = \"feed-a\"", "name = \"feed-b\"").replace("128x32", "64x32");
    let new = Plant::parse("b.toml", &text).unwrap();
    let words: Vec<String> = diff(&old, &new).iter().map(ToString::to_string).collect();
    expect![[r#"
        ~ pod1: tpuv3 128x32 wrap y, simulated -> tpuv3 64x32 wrap y, simulated
        - cube15: pod0 slot 15
        + cube21: pod0 slot 21
        + host2: pod2
        ~ threshold loss_max_db: 1.80 -> 2.00
        ~ optics loss_db: 0.90 -> 1.00
        ~ power racks_per_feed: 8 -> 2
        ~ template toy link gpu0/a: to nic0/a, pcie, 126Gb/s, 500ns, place 0 -> to nic0/a, pcie, 252Gb/s, 500ns, place 0
        ~ cable cube5/x/in/7: to x7/s66, 1.20dB -> to x7/s67, 1.20dB
        ~ cable toy0/nic0/port: to host0/nic0/port, ethernet, 400Gb/s, 500ns, 0.90dB -> to host0/nic0/port, ethernet, 400Gb/s, 500ns, 1.00dB
        - domain feed-a: power of cube0, toy0
        + domain feed-b: power of cube0, toy0
        - missing x9: part
        + missing z9: part
    "#]].assert_eq(&(words.join("\n") + "\n"));
    assert_eq!(diff(&old, &old), []);
}

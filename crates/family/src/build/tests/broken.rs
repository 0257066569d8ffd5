//! Files broken by dice.

use super::*;

const TEXT: &str = r#"format = 1
name = "broken"
[[pod]]
family = "tpuv4"
cubes = 4
deployed = "0-1,3"
[[pod]]
family = "tpuv2"
grid = "4x6"
wrap = "y"
[[pod]]
family = "hosts"
hosts = 2
[[template]]
name = "toy"
nodes = [{ name = "m0", kind = "machine" }, { name = "gpu0", kind = "chip", parent = "m0" }]
ports = [{ name = "a", node = "gpu0" }, { name = "b", node = "m0" }, { name = "c", node = "m0" }]
links = [{ a = "a", b = "b", kind = "pcie" }]
seats = ["gpu0"]
[[part]]
name = "toy0"
template = "toy"
pool = "pod0"
[[part]]
name = "toy1"
template = "ocs"
[[domain]]
name = "feed-a"
kind = "power"
parts = ["cube0", "toy0", "x3"]
[[cable]]
end = "cube1/x/in/7"
port = "x7/s66"
loss_db = 1.20
[[cable]]
end = "cube3/y/out/7"
port = "y7/n64"
[[cable]]
a = "toy0/c"
b = "host0/nic0/port"
[[missing]]
part = "x9"
[[missing]]
cable = "cube0/y/out/0"
"#;

/// Goal: no file that reads can make building panic.  Method: a valid file with one or
/// two names exchanged or bytes changed; whatever is built holds the fabric's invariants, and laid
/// on the fabric of the valid file gives the same number of live parts.
#[test]
fn a_broken_file_never_breaks_the_building() {
    let whole = parse(TEXT);
    let fabric = build(&whole).unwrap();
    fabric.audit();
    let mut dice = Dice(9);
    let (mut n_built, mut n_refused, mut n_unread) = (0, 0, 0);
    for _ in 0..3000 {
        // What stands between quotes has odd places.
        let mut pieces: Vec<String> = TEXT.split('"').map(str::to_owned).collect();
        for _ in 0..1 + dice.below(2) {
            let mut pick = || 1 + 2 * dice.below(pieces.len() as u64 / 2) as usize;
            let (from, to) = (pick(), pick());
            match dice.below(8) {
                0 | 1 => pieces[to] = pieces[from].clone(),
                2..=6 => pieces[to] = changed(&mut dice, &pieces[to]),
                _ => pieces[to - 1] = changed(&mut dice, &pieces[to - 1]),
            }
        }
        let text = pieces.join("\"");
        match Plant::parse("broken.toml", &text).map(|it| (build(&it), it)) {
            Ok((Ok(built), plant)) => {
                n_built += 1;
                built.audit();
                if let Ok(extended) = extend(&fabric, &whole, &plant) {
                    extended.audit();
                    let live = |it: &Fabric| it.parts().iter().filter(|it| !it.retired).count();
                    assert_eq!(live(&extended), live(&built), "{text}");
                }
            }
            Ok((Err(error), _)) => {
                n_refused += 1;
                assert!(error.show("broken.toml", &text).contains("right: "));
            }
            Err(_) => n_unread += 1,
        }
    }
    let counts = [n_built, n_refused, n_unread];
    assert!(counts.iter().all(|it| 100 < *it), "{counts:?} built, refused, unread");
}

/// `text` with one of its bytes another.
fn changed(dice: &mut Dice, text: &str) -> String {
    let at = dice.below(text.len() as u64) as usize;
    let byte = char::from(b"0123456789/xyzns-"[dice.below(17) as usize]);
    format!("{}{byte}{}", &text[..at], &text[at + 1..])
}

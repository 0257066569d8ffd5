//! The reader of topology XML against NCCL's measured refusals and against hostile text.

use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::host::nccl::xml::{Strictness, read, write};

const STRICT: Strictness = Strictness::AsNccl { single_quotes: true };
const OLD: Strictness = Strictness::AsNccl { single_quotes: false };
const LENIENT: Strictness = Strictness::Lenient { single_quotes: true };

const SMALL: &str = "<system version=\"1\">
  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">
    <pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
      <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>
    </pci>
  </cpu>
</system>
";

#[track_caller]
fn refused(text: &str, strictness: Strictness, message: &str) {
    let error = read(text, strictness).expect_err("NCCL refuses it");
    assert_eq!(error.to_string(), message);
}

#[test]
fn what_nccl_refuses_is_refused_with_its_place() {
    let prolog = format!("<?xml version=\"1.0\"?>\n{SMALL}");
    let message =
        "1:1: NCCL refuses an XML declaration; delete it, a file begins with its first tag";
    refused(&prolog, STRICT, message);
    let message = "1:1: NCCL refuses a byte order mark; write the file as UTF-8 without one";
    refused(&format!("\u{feff}{SMALL}"), STRICT, message);
    let tab = SMALL.replace("    <pci", "\t<pci");
    refused(&tab, STRICT, "3:1: NCCL refuses a tab; indent with spaces");
    let broken = SMALL.replace(" vendor", "\n vendor");
    let message = "2:32: NCCL refuses a line break inside a tag; put the tag on one line";
    refused(&broken, STRICT, message);
}

#[test]
fn single_quotes_are_refused_by_2_7_8_alone() {
    let single = SMALL.replace("\"80\"", "'80'");
    let message = "4:23: NCCL refuses an attribute in single quotes; use double quotes";
    refused(&single, OLD, message);
    read(&single, STRICT).expect("later versions take them");
}

#[test]
fn a_lenient_reading_says_what_it_passed_over() {
    let text = format!("<?xml version=\"1.0\"?>\n{}", SMALL.replace("    <pci", "\t<pci"));
    let document = read(&text, LENIENT).expect("well-formed");
    let tolerated = document.tolerated.iter().map(|it| it.place.to_string());
    assert_eq!(tolerated.collect::<Vec<_>>(), ["1:1", "4:1"]);
    assert_eq!(write(&document.root), SMALL);
    let marked = read(&format!("\u{feff}{SMALL}"), LENIENT).expect("well-formed");
    assert!(marked.tolerated[0].quirk.is_form());
    assert_eq!(write(&marked.root), SMALL);
}

#[test]
fn comments_and_foreign_line_ends_are_no_trouble() {
    let text = SMALL.replace('\n', "\r\n").replace("<gpu", "<!-- <gpu> -->\r\n      <gpu");
    let document = read(&text, OLD).expect("NCCL reads these");
    assert_eq!(write(&document.root), SMALL);
}

#[test]
fn what_is_not_well_formed_names_the_place_and_what_belongs_there() {
    for strictness in [STRICT, LENIENT] {
        refused("", strictness, "1:1: found the end of the file, expected a tag");
        refused("<a", strictness, "1:3: found the end of the file, expected a blank, /> or >");
        refused(
            "<a b",
            strictness,
            "1:5: found the end of the file, expected = after an attribute's name",
        );
        refused(
            "<a b=\"",
            strictness,
            "1:7: found the end of the file, expected the closing quote",
        );
        refused("<a><b></a>", strictness, "1:7: </a> closes <b> of 1:4; close <b> first");
        refused("</a>", strictness, "1:1: found </a>, expected a start tag");
        refused("<a/><b/>", strictness, "1:5: found '<', expected the end of the file");
        let message = "1:2: found '!', expected an element: a topology file has no DOCTYPE and no \
                       instructions; delete this";
        refused("<!DOCTYPE a><a/>", strictness, message);
        refused(
            "<a b=\"1\" b=\"2\"/>",
            strictness,
            "1:10: attribute b stands twice in one tag; keep one",
        );
        refused("<ä/>", strictness, "1:2: found 'ä', expected a name");
    }
}

#[test]
fn depth_and_size_have_limits() {
    let deep = "<a>".repeat(1_000_000);
    refused(&deep, LENIENT, "1:193: more than 64 nested elements; a server has fewer");
    let wide = format!("<a>{}</a>", "<b/>".repeat(100_000));
    let message = "1:262144: more than 65536 elements; a server has fewer";
    refused(&wide, LENIENT, message);
    let large = format!("<a>{}</a>", " ".repeat(9 << 20));
    refused(&large, LENIENT, "1:1: more than 8388608 bytes; a server has fewer");
}

/// Every cut of a good file and every change of one byte in it: read, and where it reads, viewed.
#[test]
fn no_cut_and_no_changed_byte_makes_it_panic() {
    let look = |text: &str| {
        if let Ok(document) = read(text, LENIENT) {
            for profile in Profile::ALL {
                let settings = Settings::defaults(profile);
                let broken = Default::default();
                let ask = Ask { profile, nodes: 2, rank: 0, settings, broken, shm_pairs: false };
                let _ = View::of(&document.root, ask);
            }
        }
    };
    for at in 0..SMALL.len() {
        look(&SMALL[..at]);
        for byte in ["<", ">", "\"", "/", "=", "\0", "9", "x", "é"] {
            look(&format!("{}{byte}{}", &SMALL[..at], &SMALL[at + 1..]));
        }
    }
}

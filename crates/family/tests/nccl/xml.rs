//! The reader of topology XML against NCCL's measured refusals and against hostile text.

use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::host::nccl::xml::{Quirk, Strictness, read, write};

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

/// Goal: what NCCL reads is read as it reads it, whatever it is.  Method: each text, what 2.7.8's
/// own parser made of it (held to by hand over many more, docs/topo.md), and what a lenient reading
/// says beside it.
#[test]
fn what_nccl_alone_takes_is_read_as_it_reads_it() {
    let gpu = |text: &str| {
        let text = SMALL.replace("<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>", text);
        assert_ne!(text, SMALL);
        text
    };
    let many: String = (0..15).map(|it| format!(" x{it}=\"1\"")).collect();
    let blanks = format!("<gpu dev=\"0\"{}sm=\"80\" rank=\"0\" gdr=\"1\"/>", " ".repeat(16));
    let behind = format!("{SMALL}<system version=\"1\"/>\n<other/>\n");
    let below = "<new><cpu></pci></other><gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>";
    for (text, sm, place, quirk) in [
        (gpu("<gpu dev=\"0\" sm=\"80\" sm=\"90\"/>"), Some("80"), "4:28", Quirk::Twice),
        (gpu("<gpu dev=\"0\" sm=\"8<0\"/>"), Some("8<0"), "4:25", Quirk::Less),
        (gpu(&format!("<gpu dev=\"0\"{many} sm=\"80\"/>")), None, "4:130", Quirk::Attributes),
        (gpu(&blanks), None, "4:35", Quirk::Attributes),
        (gpu("<gpu dev=\"0\" \tsm=\"80\"/>"), None, "4:20", Quirk::Misread),
        (gpu("<gpu dev=\"0\" sm=\"80\" gdr/>"), Some("80"), "4:31", Quirk::Malformed),
        (gpu("<gpu dev=\"0\" sm=\"80\"/gdr>"), Some("80"), "4:27", Quirk::Malformed),
        (gpu(below), Some("80"), "4:17", Quirk::Malformed),
        (behind, Some("80"), "8:1", Quirk::Malformed),
    ] {
        let sm_of = |strictness| {
            let document = read(&text, strictness).unwrap_or_else(|it| panic!("{it}: {text}"));
            let gpu = &document.root.children[0].children[0].child("gpu").expect("a GPU");
            assert_eq!(gpu.attr("sm"), sm, "{text}");
            document.tolerated
        };
        assert_eq!(sm_of(STRICT), []);
        assert_eq!(sm_of(OLD), []);
        let tolerated = sm_of(LENIENT);
        let tolerated: Vec<_> =
            tolerated.iter().map(|it| (it.place.to_string(), it.quirk)).collect();
        assert_eq!(tolerated, [(place.to_owned(), quirk)], "{text}");
    }
}

/// Until 2.21 either quote begins a value and the next double one ends it.
#[test]
fn a_single_quote_ends_what_it_began_from_2_27_7_on() {
    let text = SMALL.replace("\"80\"", "'80\"");
    assert_eq!(read(&text, OLD).expect("it takes this").root.children[0].children.len(), 1);
    read(&text, STRICT).expect_err("the value goes on");
    read(&text, LENIENT).expect_err("so it does for others");
    let document = read(&text, Strictness::Lenient { single_quotes: false }).expect("NCCL does");
    assert_eq!(document.tolerated[0].quirk, Quirk::Malformed);
    for profile in Profile::ALL {
        let is_late = profile >= Profile::V2_27_7;
        let expected = Strictness::AsNccl { single_quotes: is_late };
        assert_eq!(Strictness::as_nccl(profile), expected, "{profile}");
    }
}

#[test]
fn names_and_values_are_as_long_as_nccl_has_room() {
    for (length, by_old, by_new) in [(253, true, true), (254, true, false), (256, false, false)] {
        let text = SMALL.replace("AuthenticAMD", &"v".repeat(length));
        assert_eq!(read(&text, OLD).is_ok(), by_old, "{length}");
        assert_eq!(read(&text, STRICT).is_ok(), by_new, "{length}");
        let document = read(&text, LENIENT).expect("well-formed");
        let tolerated: Vec<_> = document.tolerated.iter().map(|it| it.quirk).collect();
        assert_eq!(tolerated == [Quirk::Length], !by_new, "{length}: {tolerated:?}");
    }
    // Of what ends a name = alone takes no room.
    for (name, is_taken) in [(" =\"1\"", true), (" ", false)] {
        let name = format!("{}{}", "n".repeat(254), name.trim_start());
        let text = SMALL.replace("gdr=\"1\"", &name);
        assert_eq!(read(&text, OLD).is_ok(), is_taken, "{text}");
    }
}

/// Comments are read as tags are, up to their first blank.
#[test]
fn a_comment_that_nccl_takes_for_a_tag_is_mended_by_writing_anew() {
    for begun in ["<!--a=b -->".to_owned(), format!("<!--{}-->", "-".repeat(300))] {
        let text = SMALL.replace("<gpu", &format!("{begun}<gpu"));
        read(&text, STRICT).expect_err("it gives up");
        let document = read(&text, LENIENT).expect("well-formed");
        assert_eq!(document.tolerated.iter().map(|it| it.quirk).collect::<Vec<_>>(), [Quirk::Form]);
        assert_eq!(write(&document.root), SMALL);
    }
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
        let after = format!("{SMALL}the end");
        refused(&after, strictness, "8:1: found 't', expected the end of the file");
        let message = "1:2: found '!', expected an element: a topology file has no DOCTYPE and no \
                       instructions; delete this";
        refused("<!DOCTYPE a><a/>", strictness, message);
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

//! Texts that are no plant file, and what a file as a whole must have.

use expect_test::expect;

use crate::limits;
use crate::spec::Plant;
use crate::spec::tests::check;

#[test]
fn a_text_that_is_not_toml_shows_where_it_stops_being_toml() {
    check(
        r#"format = 1
name = "demo
"#,
        expect![[r#"
            demo.toml:2:13: this is not TOML: invalid basic string, expected `"`
             2 | name = "demo
               |             ^
               right: see https://toml.io for how TOML is written
        "#]],
    );
}

#[test]
fn a_text_without_its_quotes_is_shown_with_them() {
    check(
        "format = 1\nname = \"demo\"\n[[pod]]\nfamily = tpuv4 # ours\n",
        expect![[r#"
            demo.toml:4:10: tpuv4 stands without quotes
             4 | family = tpuv4 # ours
               |          ^^^^^
               right: family = "tpuv4"
        "#]],
    );
    check(
        "format = 1\nname = a-pod\n",
        expect![[r#"
        demo.toml:2:8: a-pod stands without quotes
         2 | name = a-pod
           |        ^^^^^
           right: name = "a-pod"
    "#]],
    );
}

#[test]
fn a_file_without_a_format_is_not_guessed_at() {
    check(
        r#"name = "demo"
[[pod]]
family = "tpuv4"
"#,
        expect![[r#"
            demo.toml:1:1: the file does not say which format it has
             1 | name = "demo"
               | ^
               right: start the file with `format = 1`
        "#]],
    );
}

#[test]
fn a_newer_format_is_refused_and_nothing_else_of_it_is_read() {
    check(
        r#"format = 2
name = "demo"
warp = true
"#,
        expect![[r#"
            demo.toml:1:10: format 2 is newer than this version reads
             1 | format = 2
               |          ^
               right: format = 1, or a newer selvedge that reads this file
        "#]],
    );
}

#[test]
fn a_format_below_the_first_is_out_of_range() {
    check(
        r#"format = 0
name = "demo"
"#,
        expect![[r#"
            demo.toml:1:10: format = 0 is out of range
             1 | format = 0
               |          ^
               right: a number from 1 to 1
        "#]],
    );
}

#[test]
fn a_format_must_be_a_number() {
    check(
        r#"format = "1"
name = "demo"
"#,
        expect![[r#"
            demo.toml:1:10: format is no number
             1 | format = "1"
               |          ^^^
               right: a whole number
        "#]],
    );
}

#[test]
fn a_plant_has_a_name() {
    check(
        r#"format = 1
[[pod]]
family = "tpuv4"
"#,
        expect![[r#"
            demo.toml:1:1: the file has no name
             1 | format = 1
               | ^
               right: add a line such as `name = "demo"`
        "#]],
    );
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
deploied = "0-15"
"#,
        expect![[r#"
            demo.toml:5:1: unknown key "deploied" in [[pod]]
             5 | deploied = "0-15"
               | ^^^^^^^^
               right: did you mean "deployed"?
        "#]],
    );
}

#[test]
fn an_unknown_key_that_looks_like_none_lists_all() {
    check(
        r#"format = 1
name = "demo"
warp_speed = 9
[[pod]]
family = "tpuv4"
"#,
        expect![[r#"
            demo.toml:3:1: unknown key "warp_speed" in the file
             3 | warp_speed = 9
               | ^^^^^^^^^^
               right: one of format, name, pod, thresholds, optics, power, domain, template, topology, machine, part, cable, missing
        "#]],
    );
}

#[test]
fn a_pod_is_a_list_of_tables() {
    check(
        r#"format = 1
name = "demo"
[pod]
family = "tpuv4"
"#,
        expect![[r#"
            demo.toml:3:1: pod is a table
             3 | [pod]
               | ^^^^^
               right: [[pod]]
        "#]],
    );
}

#[test]
fn a_plant_has_hardware() {
    check(
        r#"format = 1
name = "demo"
"#,
        expect![[r#"
            demo.toml:2:8: the plant has no hardware
             2 | name = "demo"
               |        ^^^^^^
               right: add a [[pod]] with a family, or a [[part]]
        "#]],
    );
}

#[test]
fn a_long_line_is_shown_around_its_place() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[[domain]]
name = "feed3"
kind = "power"
parts = ["cube0", "cube1", "cube2", "cube3", "cube4", "cube5", "cube6", "cube7", "cube8", "cube9", "cube10", "cube11", "cube12", "cube13", "cube14", "cube15", "cube16", "cube17", "cube18", "cube19", "cube20", "cube21", "cube22", "cube23", "cube24", "cube25", "cube26", "cube27", "cube28", "cube29", 7]
"#,
        expect![[r#"
            demo.toml:8:300: parts is a whole number
             8 | "cube28", "cube29", 7]
               |                     ^
               right: a text in quotes
        "#]],
    );
}

/// A file of faults alone is refused as fast as it is read, and shows the first of them.
#[test]
fn a_file_that_is_wrong_all_over_shows_a_limited_number_of_faults() {
    let part = "[[part]]\nname = \"same\"\ntemplate = \"host\"\nzzz = 1\n";
    let text = format!("format = 1\nname = \"demo\"\n{}", part.repeat(50_000));
    let errors = Plant::parse("demo.toml", &text).unwrap_err();
    assert_eq!((errors.len(), errors[0].line), (limits::PLANT_ERRORS_MAX, 6));
}

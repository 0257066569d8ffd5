//! Files that cannot be read, and exactly what they print.

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
               right: one of format, name, pod, thresholds, optics, power, domain, template, part, cable, missing
        "#]],
    );
}

#[test]
fn an_unknown_family_names_the_known_ones() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv5"
"#,
        expect![[r#"
            demo.toml:4:10: unknown family "tpuv5"
             4 | family = "tpuv5"
               |          ^^^^^^^
               right: one of tpuv4, tpuv3, tpuv2, hypersquare, hosts; did you mean "tpuv4"?
        "#]],
    );
}

#[test]
fn a_pod_has_a_family() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
cubes = 4
"#,
        expect![[r#"
            demo.toml:3:1: [[pod]] has no family
             3 | [[pod]]
               | ^^^^^^^
               right: add a line such as `family = "tpuv4"`
        "#]],
    );
}

#[test]
fn more_cubes_than_slots_are_out_of_range() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
cubes = 65
"#,
        expect![[r#"
            demo.toml:5:9: cubes = 65 is out of range
             5 | cubes = 65
               |         ^^
               right: a number from 1 to 64
        "#]],
    );
}

#[test]
fn a_count_must_be_a_number() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
cubes = "many"
"#,
        expect![[r#"
            demo.toml:5:9: cubes is a text
             5 | cubes = "many"
               |         ^^^^^^
               right: a whole number
        "#]],
    );
}

#[test]
fn a_cube_deployed_twice_is_named() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
deployed = "0-15,7"
"#,
        expect![[r#"
            demo.toml:5:12: cube 7 is deployed twice
             5 | deployed = "0-15,7"
               |            ^^^^^^^^
               right: name each cube once
        "#]],
    );
}

#[test]
fn a_cube_beyond_the_slots_is_named() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
cubes = 16
deployed = "0-15,20"
"#,
        expect![[r#"
            demo.toml:6:12: cube 20 is deployed, but the pod has 16 slots
             6 | deployed = "0-15,20"
               |            ^^^^^^^^^
               right: cubes are numbered 0 to 15 within their pod
        "#]],
    );
}

#[test]
fn a_range_that_runs_backwards_cannot_be_read() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
deployed = "15-0"
"#,
        expect![[r#"
            demo.toml:5:12: deployed "15-0" cannot be read
             5 | deployed = "15-0"
               |            ^^^^^^
               right: cubes and ranges of cubes such as "0-15,20", or "all", or "none"
        "#]],
    );
}

#[test]
fn a_key_of_another_family_says_which_keys_there_are() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv3"
cubes = 16
"#,
        expect![[r#"
            demo.toml:5:1: "cubes" says nothing of a pod of family tpuv3
             5 | cubes = 16
               | ^^^^^
               right: it has grid, wrap, control
        "#]],
    );
}

#[test]
fn a_grid_has_even_sides() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv2"
grid = "15x16"
"#,
        expect![[r#"
            demo.toml:5:8: grid "15x16" cannot be read
             5 | grid = "15x16"
               |        ^^^^^^^
               right: chips along x and y such as "32x32", both even, 2 to 512
        "#]],
    );
}

#[test]
fn a_wrap_is_one_of_four_words() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv2"
wrap = "z"
"#,
        expect![[r#"
            demo.toml:5:8: unknown wrap "z"
             5 | wrap = "z"
               |        ^^^
               right: one of xy, x, y, none; did you mean "x"?
        "#]],
    );
}

#[test]
fn hosts_are_counted() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "hosts"
"#,
        expect![[r#"
            demo.toml:3:1: [[pod]] has no hosts
             3 | [[pod]]
               | ^^^^^^^
               right: add a line such as `hosts = 2`
        "#]],
    );
}

#[test]
fn all_hosts_of_a_plant_together_have_a_limit() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "hosts"
hosts = 60000
[[pod]]
family = "hosts"
hosts = 60000
"#,
        expect![[r#"
            demo.toml:3:3: the plant has 120000 hosts
             3 | [[pod]]
               |   ^^^
               right: at most 100000; split the plant
        "#]],
    );
}

#[test]
fn a_real_device_has_a_host_and_a_port() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
control = "ocs.example"
"#,
        expect![[r#"
            demo.toml:5:11: control "ocs.example" cannot be read
             5 | control = "ocs.example"
               |           ^^^^^^^^^^^^^
               right: "simulated", or the host:port of its devices such as "ocs.example:830"
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
fn a_loss_has_two_digits_after_the_point() {
    check(
        r#"format = 1
name = "demo"
[optics]
loss_db = 1.234
[[pod]]
family = "tpuv4"
"#,
        expect![[r#"
            demo.toml:4:11: loss_db "1.234" cannot be read
             4 | loss_db = 1.234
               |           ^^^^^
               right: decibels from 0 to 100 with at most two digits after the point
        "#]],
    );
}

#[test]
fn a_loss_is_not_negative() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[thresholds]
loss_max_db = -2.0
"#,
        expect![[r#"
            demo.toml:6:15: loss_max_db "-2.0" cannot be read
             6 | loss_max_db = -2.0
               |               ^^^^
               right: decibels from 0 to 100 with at most two digits after the point
        "#]],
    );
}

#[test]
fn a_time_has_a_unit() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[thresholds]
flap_window = "3 weeks"
"#,
        expect![[r#"
            demo.toml:6:15: flap_window "3 weeks" cannot be read
             6 | flap_window = "3 weeks"
               |               ^^^^^^^^^
               right: a time such as "500ms", "2s" or "15m"
        "#]],
    );
}

#[test]
fn a_port_cabled_twice_names_both_lines() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[[cable]]
end = "cube17/x/in/7"
port = "x7/s66"
[[cable]]
end = "cube18/x/in/7"
port = "x7/s66"
"#,
        expect![[r#"
            demo.toml:10:8: port x7/s66 is cabled twice: in line 7 and in line 10
             10 | port = "x7/s66"
                |        ^^^^^^^^
                right: a port takes one cable: use a free port
        "#]],
    );
}

#[test]
fn a_cable_has_two_ends() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "hosts"
hosts = 2
[[cable]]
a = "host0/nic0/port"
b = "host0/nic0/port"
[[cable]]
a = "host1/nic0/port"
"#,
        expect![[r#"
            demo.toml:8:5: both ends of the cable are port host0/nic0/port
             8 | b = "host0/nic0/port"
               |     ^^^^^^^^^^^^^^^^^
               right: a cable joins two ports
            demo.toml:9:1: [[cable]] has no b
             9 | [[cable]]
               | ^^^^^^^^^
               right: add a line such as `b = "host1/nic0/port"`
        "#]],
    );
}

#[test]
fn a_cable_is_an_override_or_one_of_its_own() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[[cable]]
end = "cube17/x/in/7"
a = "x7/s66"
[[cable]]
loss_db = 1.0
[[cable]]
end = "cube3/x/in/7"
"#,
        expect![[r#"
            demo.toml:5:1: this override of cube17/x/in/7 changes nothing
             5 | [[cable]]
               | ^^^^^^^^^
               right: add port, loss_db or both
            demo.toml:7:1: this cable is both an override and a cable of its own: it has end and a
             7 | a = "x7/s66"
               | ^
               right: end goes with port and loss_db; a and b go with kind, gbps, latency_ns and loss_db
            demo.toml:8:1: this cable has neither an end nor an a and a b
             8 | [[cable]]
               | ^^^^^^^^^
               right: `end = "cube17/x/in/7"` with `port = "x7/s66"` or `loss_db = 1.2` for a generated cable, `a` and `b` for one of its own
            demo.toml:10:1: this override of cube3/x/in/7 changes nothing
             10 | [[cable]]
                | ^^^^^^^^^
                right: add port, loss_db or both
        "#]],
    );
}

#[test]
fn a_name_cannot_hold_spaces_or_hang_on_a_slash() {
    check(
        r#"format = 1
name = "demo"
[[part]]
name = "my host"
template = "host"
[[part]]
name = "host/"
template = "host"
"#,
        expect![[r#"
            demo.toml:4:8: name "my host" is not a name
             4 | name = "my host"
               |        ^^^^^^^^^
               right: 1 to 128 letters, digits or any of `. _ - / +`
            demo.toml:7:8: name "host/" is not a name
             7 | name = "host/"
               |        ^^^^^^^
               right: 1 to 128 letters, digits or any of `. _ - / +`
        "#]],
    );
}

#[test]
fn a_part_stands_once() {
    check(
        r#"format = 1
name = "demo"
[[part]]
name = "h0"
template = "host"
[[part]]
name = "h0"
template = "host"
"#,
        expect![[r#"
            demo.toml:7:8: part "h0" stands twice; the first is in line 4
             7 | name = "h0"
               |        ^^^^
               right: give the second part a name of its own
        "#]],
    );
}

#[test]
fn a_missing_thing_is_a_part_or_a_cable() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[[missing]]
[[missing]]
part = "x7"
cable = "cube1/x/in/7"
"#,
        expect![[r#"
            demo.toml:5:1: one missing thing is either a part or a cable
             5 | [[missing]]
               | ^^^^^^^^^^^
               right: `part = "x7"` or `cable = "cube17/x/in/7"`
            demo.toml:6:1: one missing thing is either a part or a cable
             6 | [[missing]]
               | ^^^^^^^^^^^
               right: `part = "x7"` or `cable = "cube17/x/in/7"`
        "#]],
    );
}

#[test]
fn a_template_refers_to_its_own_nodes_and_ports() {
    check(
        r#"format = 1
name = "demo"
[[template]]
name = "board"
nodes = [{ name = "gpu0", kind = "chip", parent = "m0" }, { name = "m0", kind = "machine" }]
ports = [{ name = "gpu0/a", node = "gpu1" }, { name = "m0", node = "m0" }]
links = [{ a = "gpu0/a", b = "gpu0/b" }]
seats = ["gpu0", "gpu0"]
[[part]]
name = "b0"
template = "board"
"#,
        expect![[r#"
            demo.toml:5:51: there is no node before this one "m0" in template board
             5 | nodes = [{ name = "gpu0", kind = "chip", parent = "m0" }, { name = "m0", kind = "machine" }]
               |                                                   ^^^^
               right: name a node before this one that there is
            demo.toml:6:36: there is no node "gpu1" in template board
             6 | ports = [{ name = "gpu0/a", node = "gpu1" }, { name = "m0", node = "m0" }]
               |                                    ^^^^^^
               right: did you mean "gpu0"?
            demo.toml:6:55: m0 is a node and a port
             6 | ports = [{ name = "gpu0/a", node = "gpu1" }, { name = "m0", node = "m0" }]
               |                                                       ^^^^
               right: call the port m0/port
            demo.toml:7:30: there is no port "gpu0/b" in template board
             7 | links = [{ a = "gpu0/a", b = "gpu0/b" }]
               |                              ^^^^^^^^
               right: did you mean "gpu0/a"?
            demo.toml:8:18: seat "gpu0" stands twice; the first is in line 8
             8 | seats = ["gpu0", "gpu0"]
               |                  ^^^^^^
               right: leave out the second
        "#]],
    );
}

#[test]
fn a_port_of_a_template_has_one_link() {
    check(
        r#"format = 1
name = "demo"
[[template]]
name = "board"
nodes = [{ name = "gpu0", kind = "chip" }, { name = "gpu1", kind = "chip" }]
ports = [{ name = "a", node = "gpu0" }, { name = "b", node = "gpu1" }, { name = "c", node = "gpu1" }]
links = [{ a = "a", b = "b" }, { a = "a", b = "c" }]
[[part]]
name = "b0"
template = "board"
"#,
        expect![[r#"
            demo.toml:7:9: port board/a has two links
             7 | links = [{ a = "a", b = "b" }, { a = "a", b = "c" }]
               |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               right: a port takes one link: add a port
        "#]],
    );
}

#[test]
fn a_domain_has_a_kind_and_names_each_part_once() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
[[domain]]
name = "feed3"
kind = "powre"
parts = ["cube1", "cube1"]
"#,
        expect![[r#"
            demo.toml:7:8: unknown kind "powre"
             7 | kind = "powre"
               |        ^^^^^^^
               right: one of rack, power, cooling, plane; did you mean "power"?
            demo.toml:8:19: member "cube1" stands twice; the first is in line 8
             8 | parts = ["cube1", "cube1"]
               |                   ^^^^^^^
               right: leave out the second
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

#[test]
fn all_boards_of_a_plant_together_have_a_limit() {
    let pod = "{ family = \"tpuv3\", grid = \"512x512\" }";
    let text = format!("format = 1\nname = \"demo\"\npod = [{pod}, {pod}, {pod}, {pod}, {pod}]\n");
    check(
        &text,
        expect![[r#"
        demo.toml:3:1: the plant has 327680 boards
         3 | pod = [{ family = "tpuv3", grid = "512x512" }, { family = "tpuv3", grid = "512x512" }, { family = "t
           | ^^^
           right: at most 262144; split the plant
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

#[test]
fn boards_farther_apart_than_their_wire_reaches_are_refused() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "hypersquare"
groups = "4x4"
pitch_mm = 2001
[[pod]]
family = "hypersquare"
groups = "4x4"
wire = "fibre"
pitch_mm = 2001
reach_mm = 2000
"#,
        expect![[r#"
            demo.toml:6:12: cables of 2001mm are longer than copper carries, which is 2000mm
             6 | pitch_mm = 2001
               |            ^^^^
               right: boards at most 2000mm apart, or another wire
            demo.toml:11:12: cables of 2001mm are longer than fibre carries, which is 2000mm
             11 | pitch_mm = 2001
                |            ^^^^
                right: boards at most 2000mm apart, or another wire
        "#]],
    );
}

#[test]
fn a_hyper_square_machine_of_no_or_too_many_groups_is_refused() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "hypersquare"
[[pod]]
family = "hypersquare"
groups = "0x4"
[[pod]]
family = "hypersquare"
groups = "65x+4"
wire = "tin"
gbps = 0
cubes = 4
"#,
        expect![[r#"
            demo.toml:3:1: [[pod]] has no groups
             3 | [[pod]]
               | ^^^^^^^
               right: add a line such as `groups = "16x16"`
            demo.toml:7:10: groups "0x4" cannot be read
             7 | groups = "0x4"
               |          ^^^^^
               right: rows and columns of groups such as "16x16", each 1 to 64
            demo.toml:10:10: groups "65x+4" cannot be read
             10 | groups = "65x+4"
                |          ^^^^^^^
                right: rows and columns of groups such as "16x16", each 1 to 64
            demo.toml:11:8: unknown wire "tin"
             11 | wire = "tin"
                |        ^^^^^
                right: one of copper, fibre
            demo.toml:12:8: gbps = 0 is out of range
             12 | gbps = 0
                |        ^
                right: a number from 1 to 1000000
            demo.toml:13:1: "cubes" says nothing of a pod of family hypersquare
             13 | cubes = 4
                | ^^^^^
                right: it has groups, pitch_mm, wire, reach_mm, ns_per_m, gbps, control
        "#]],
    );
}

//! Generated hardware that cannot be: families, their counts and their measures.

use expect_test::expect;

use crate::spec::tests::check;

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
               right: chips along x and y such as "128x32", both even, one of them 2 to 128, the other 2 to 512
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
fn all_boards_of_a_plant_together_have_a_limit() {
    let pod = "{ family = \"tpuv3\", grid = \"128x512\" }";
    let text = format!("format = 1\nname = \"demo\"\npod = [{}]\n", [pod; 17].join(", "));
    check(
        &text,
        expect![[r#"
        demo.toml:3:1: the plant has 278528 boards
         3 | pod = [{ family = "tpuv3", grid = "128x512" }, { family = "tpuv3", grid = "128x512" }, { family = "t
           | ^^^
           right: at most 262144; split the plant
    "#]],
    );
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

#[test]
fn a_cable_written_down_is_no_longer_than_its_kind_carries() {
    check(
        r#"format = 1
name = "demo"
[[pod]]
family = "hosts"
hosts = 4
[[cable]]
a = "host0/nic0/port"
b = "host1/nic0/port"
kind = "board"
length_mm = 2001
[[cable]]
a = "host2/nic0/port"
b = "host3/nic0/port"
length_mm = 0
"#,
        expect![[r#"
            demo.toml:10:13: a cable of 2001mm is longer than copper carries, which is 2000mm
             10 | length_mm = 2001
                |             ^^^^
                right: at most 2000mm, or a kind that reaches farther
            demo.toml:14:13: length_mm = 0 is out of range
             14 | length_mm = 0
                |             ^
                right: a number from 1 to 1000000
        "#]],
    );
}

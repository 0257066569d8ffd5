//! Plants that read but cannot be built.

use super::*;

#[test]
fn a_port_that_is_not_there_names_the_nearest() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[cable]]
end = "cube1/x/in/17"
loss_db = 1.0
"#,
        expect![[r#"
            demo.toml:5:7: there is no port "cube1/x/in/17"
             5 | end = "cube1/x/in/17"
               |       ^^^^^^^^^^^^^^^
               right: did you mean "cube1/x/in/12"?
        "#]],
    );
}

#[test]
fn a_part_that_is_not_there_names_the_nearest() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[domain]]
name = "f"
kind = "power"
parts = ["cbue1"]
"#,
        expect![[r#"
            demo.toml:7:10: there is no part "cbue1"
             7 | parts = ["cbue1"]
               |          ^^^^^^^
               right: did you mean "cube1"?
        "#]],
    );
}

#[test]
fn a_cube_in_an_empty_slot_is_not_deployed() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[cable]]
end = "cube12/x/in/7"
loss_db = 1.0
"#,
        expect![[r#"
            demo.toml:5:7: cube12 is not deployed
             5 | end = "cube12/x/in/7"
               |       ^^^^^^^^^^^^^^^
               right: deploy it, or leave this out until then
        "#]],
    );
}

#[test]
fn an_empty_slot_is_in_no_domain() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[domain]]
name = "f"
kind = "power"
parts = ["cube12"]
"#,
        expect![[r#"
            demo.toml:7:10: cube12 is not deployed
             7 | parts = ["cube12"]
               |          ^^^^^^^^
               right: deploy it, or leave this out until then
        "#]],
    );
}

#[test]
fn a_patch_onto_a_cabled_port_says_where_that_leads() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[cable]]
end = "cube1/x/in/7"
port = "x7/s2"
"#,
        expect![[r#"
            demo.toml:6:8: port x7/s2 is cabled twice: it already leads to cube2/x/in/7
             6 | port = "x7/s2"
               |        ^^^^^^^
               right: use a free port; n64 to n67 and s64 to s67 of each switch are spare
        "#]],
    );
}

#[test]
fn a_patch_stays_on_the_switch_of_its_index() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[cable]]
end = "cube1/x/in/7"
port = "x8/s66"
"#,
        expect![[r#"
            demo.toml:6:8: x8/s66 is not on x7, the switch of cube1/x/in/7
             6 | port = "x8/s66"
               |        ^^^^^^^^
               right: a free port of x7
        "#]],
    );
}

#[test]
fn a_patch_stays_on_its_side_of_the_switch() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[cable]]
end = "cube1/x/in/7"
port = "x7/n66"
"#,
        expect![[r#"
            demo.toml:6:8: x7/n66 is on the other side of x7 than cube1/x/in/7 needs
             6 | port = "x7/n66"
               |        ^^^^^^^^
               right: an out end takes a north port (n), an in end a south port (s)
        "#]],
    );
}

#[test]
fn an_inner_port_has_no_generated_cable() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[cable]]
end = "cube1/chip1.1.1/+x"
loss_db = 1.0
"#,
        expect![[r#"
            demo.toml:5:7: no generated cable ends at cube1/chip1.1.1/+x
             5 | end = "cube1/chip1.1.1/+x"
               |       ^^^^^^^^^^^^^^^^^^^^
               right: name the end of a generated cable, such as cube17/x/in/7
        "#]],
    );
}

#[test]
fn a_cable_to_an_inner_port_is_refused() {
    check(
        r#"pod = [{ family = "hosts", hosts = 2 }]
[[cable]]
a = "host0/gpu0/pcie"
b = "host1/nic0/port"
"#,
        expect![[r#"
            demo.toml:5:5: port host0/gpu0/pcie has a link inside its part
             5 | a = "host0/gpu0/pcie"
               |     ^^^^^^^^^^^^^^^^^
               right: use a port that leads out of its part
        "#]],
    );
}

#[test]
fn a_cable_to_a_generated_one_s_port_is_refused() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[part]]
name = "probe"
template = "host"
[[cable]]
a = "probe/nic0/port"
b = "x7/n3"
"#,
        expect![[r#"
            demo.toml:9:5: port x7/n3 is cabled twice: it already leads to cube3/x/out/7
             9 | b = "x7/n3"
               |     ^^^^^^^
               right: use a free port; n64 to n67 and s64 to s67 of each switch are spare
        "#]],
    );
}

#[test]
fn a_board_has_no_switch_to_be_patched_on() {
    check(
        r#"pod = [{ family = "tpuv2" }]
[[cable]]
end = "board0.0/chip1.0/+x"
port = "board3.3/chip0.0/-x"
"#,
        expect![[r#"
            demo.toml:5:7: board0.0/chip1.0/+x leads to no switch
             5 | end = "board0.0/chip1.0/+x"
               |       ^^^^^^^^^^^^^^^^^^^^^
               right: leave out port, and give loss_db alone
        "#]],
    );
}

#[test]
fn a_template_must_be_there() {
    check(
        r#"[[part]]
name = "h"
template = "hots"
"#,
        expect![[r#"
            demo.toml:5:12: there is no template "hots"
             5 | template = "hots"
               |            ^^^^^^
               right: did you mean "host"?
        "#]],
    );
}

#[test]
fn a_built_in_template_is_not_redefined() {
    check(
        r#"[[template]]
name = "host"
nodes = [{ name = "m0", kind = "machine" }]
[[part]]
name = "h"
template = "host"
"#,
        expect![[r#"
            demo.toml:4:8: template "host" is built in
             4 | name = "host"
               |        ^^^^^^
               right: give it another name
        "#]],
    );
}

#[test]
fn a_part_does_not_take_a_generated_name() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[part]]
name = "x7"
template = "ocs"
"#,
        expect![[r#"
            demo.toml:5:8: part "x7" is there already
             5 | name = "x7"
               |        ^^^^
               right: give it another name
        "#]],
    );
}

#[test]
fn a_domain_does_not_take_a_generated_name() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[domain]]
name = "pod0/rack1"
kind = "rack"
parts = []
"#,
        expect![[r#"
            demo.toml:5:8: domain "pod0/rack1" is there already
             5 | name = "pod0/rack1"
               |        ^^^^^^^^^^^^
               right: give it another name
        "#]],
    );
}

#[test]
fn a_cube_goes_missing_by_its_slot() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[missing]]
part = "cube3"
"#,
        expect![[r#"
            demo.toml:5:8: cube3 is missing by this line and there by another
             5 | part = "cube3"
               |        ^^^^^^^
               right: take it out of deployed
        "#]],
    );
}

#[test]
fn a_part_written_down_is_not_missing() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[part]]
name = "h"
template = "host"
[[missing]]
part = "h"
"#,
        expect![[r#"
            demo.toml:8:8: h is missing by this line and there by another
             8 | part = "h"
               |        ^^^
               right: take it out of [[part]]
        "#]],
    );
}

#[test]
fn a_missing_switch_takes_no_cable() {
    check(
        r#"pod = [{ family = "tpuv4", cubes = 16, deployed = "0-7" }]
[[part]]
name = "h"
template = "host"
[[missing]]
part = "x7"
[[cable]]
a = "h/nic0/port"
b = "x7/n66"
"#,
        expect![[r#"
            demo.toml:11:5: x7 is missing by another line
             11 | b = "x7/n66"
                |     ^^^^^^^^
                right: take out one of the two lines
        "#]],
    );
}

#[test]
fn a_cable_between_boards_is_no_longer_than_its_kind_carries() {
    let machine = "[[pod]]\nfamily = \"hypersquare\"\ngroups = \"4x8\"\n";
    let far = "[[cable]]\na = \"board0.0/A/west\"\nb = \"board0.7/A/east\"\nkind = \"board\"\n";
    check(
        &format!("{machine}{far}latency_ns = 10\n"),
        expect![[r#"
        demo.toml:8:5: board0.0/A/west to board0.7/A/east is 4200mm, longer than copper carries, which is 2000mm
         8 | b = "board0.7/A/east"
           |     ^^^^^^^^^^^^^^^^^
           right: ends at most 2000mm apart, or a kind that reaches farther
    "#]],
    );
    let near = "[[cable]]\na = \"board0.0/A/west\"\nb = \"board1.0/A/west\"\n";
    check(
        &format!("{machine}{near}kind = \"board\"\nlatency_ns = 400\n"),
        expect![[r#"
        demo.toml:8:5: board0.0/A/west to board1.0/A/west is 80000mm, longer than copper carries, which is 2000mm
         8 | b = "board1.0/A/west"
           |     ^^^^^^^^^^^^^^^^^
           right: latency_ns = 10 or less, or a kind that reaches farther
    "#]],
    );
    // Fibre reaches over the machine, and what is near may be of copper.
    let far = far.replace("board\"\n", "fibre\"\n");
    for good in [far.as_str(), &format!("{near}kind = \"board\"\n")] {
        let text = format!("format = 1\nname = \"demo\"\n{machine}{good}");
        build(&parse(&text)).unwrap();
    }
}

#[test]
fn more_ports_than_memory_takes_are_refused_before_they_are_made() {
    let parts = (0..140_000).map(|it| format!("[[part]]\nname = \"c{it}\"\ntemplate = \"cube\"\n"));
    let text = format!("format = 1\nname = \"demo\"\n{}", parts.collect::<String>());
    let error = build(&parse(&text)).unwrap_err();
    assert_eq!(error, BuildError::TooLarge { n: 140_000 * 512 });
}

//! Parts, cables, domains and measures that are written out and cannot be.

use expect_test::expect;

use crate::spec::tests::check;

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

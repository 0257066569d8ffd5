use expect_test::{Expect, expect};

use super::*;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// What `plant check` prints of a file.
fn check_text(text: &str, expected: Expect) {
    expected.assert_eq(&plain(&check_page("demo.toml", &checked("demo.toml", text))));
}

fn parse(text: &str) -> (Plant, Fabric) {
    let plant = Plant::parse("demo.toml", text).unwrap();
    let fabric = selvedge_family::build(&plant).unwrap();
    (plant, fabric)
}

fn new_of(kind: Kind) -> New {
    let (cubes, deployed, hosts, name, output) = (None, None, None, None, None);
    let groups = (kind == Kind::HyperSquare).then(|| "16x16".to_owned());
    New { kind, pods: 1, cubes, deployed, groups, hosts, name, output }
}

#[test]
fn a_new_plant_of_each_kind_has_the_published_number_of_chips() {
    let n_chips = |kind| {
        let (_, fabric) = parse(&draft(&new_of(kind)).unwrap().render());
        show::Counts::of(&fabric).line()
    };
    let lines: Vec<String> = Kind::value_variants().iter().map(|it| n_chips(*it)).collect();
    expect![[r#"
        64 cubes, 48 OCSes, 1,024 machines, 4,096 chips, 6,144 cables
        256 tpuv3-boards, 256 machines, 1,024 chips, 1,024 cables
        64 tpuv2-boards, 64 machines, 256 chips, 256 cables
        1,024 tpuv3-boards, 1,024 machines, 4,096 chips, 3,936 cables
        256 hypersquare-boards, 256 machines, 1,024 chips, 1,920 cables
        2 hosts, 2 machines, 16 chips, 8 cables"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn an_option_of_another_kind_is_refused() {
    let args = New { cubes: Some(4), ..new_of(Kind::Tpuv3) };
    assert!(draft(&args).is_err());
    let args = New { deployed: Some("0-64".to_owned()), ..new_of(Kind::Tpuv4) };
    assert!(draft(&args).is_err());
    let args = New { name: Some("two\nlines".to_owned()), ..new_of(Kind::Tpuv4) };
    assert!(draft(&args).is_err());
}

#[test]
fn a_good_plant_is_counted_and_what_is_strange_is_told() {
    check_text(
        r#"format = 1
name = "demo"
[[pod]]
family = "tpuv4"
cubes = 8
deployed = "0-3"
control = "ocs.example:830"
[[pod]]
family = "tpuv2"
[[pod]]
family = "tpuv4"
deployed = "none"
[[cable]]
end = "cube1/x/in/7"
port = "x7/s5"
[[cable]]
end = "cube2/y/out/0"
loss_db = 2.5
"#,
        expect![[r#"
            demo.toml: good, 4 cubes, 96 OCSes, 64 tpuv2-boards, 128 machines, 512 chips, 640 cables
            warning: pod0 names real devices at ocs.example:830: Selvedge only observes them until told otherwise by --act
            warning: pod2 has no cube
            warning: x7/s5 is patched, and cube5 will need it once it is deployed
            warning: fibres that are expected to lose more than loss_max_db (2.00dB): 1, such as cube2/y/out/0 with 2.50dB; they would not pass preflight
        "#]],
    );
}

#[test]
fn what_cannot_be_read_and_what_cannot_be_built_are_shown_alike() {
    check_text(
        "format = 2\n",
        expect![[r#"
        error: demo.toml:1:10: format 2 is newer than this version reads
         1 | format = 2
           |          ^
           right: format = 1, or a newer selvedge that reads this file
    "#]],
    );
    let pod = "format = 1\nname = \"d\"\npod = [{ family = \"tpuv4\" }]\n";
    let text = format!("{pod}[[missing]]\npart = \"x16\"\n");
    check_text(
        &text,
        expect![[r#"
        error: demo.toml:5:8: there is no part "x16"
         5 | part = "x16"
           |        ^^^^^
           right: did you mean "x1"?
    "#]],
    );
}

#[test]
fn a_plant_is_shown_with_its_counts_thresholds_and_shares() {
    let text = "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 32\n\
                deployed = \"0-15\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n\
                [thresholds]\nloss_max_db = 1.5\n";
    let (plant, fabric) = parse(text);
    let page = plain(&show::Shown::of(&plant, &fabric).page());
    expect![[r#"
        demo

        pod   family  control    shape           chips
        pod0  tpuv4   simulated  16 of 32 cubes  1,024
        pod1  hosts   simulated  2 hosts            16

        what                 count
        part cube               16
        part host                2
        part ocs                48
        machines               258
        chips                1,040
        network cards           16
        switches                48
        ports               14,832
        chip-to-chip links   2,304
        directed links       9,824
        cables               1,536
        of them fibres       1,536
        power domains            5
        rack domains            20

        threshold                         value  source
        loss_max_db                        1.50  the plant file
        loss_excess_max_db                 0.50  assumed: what a dirty connector adds
        bits_per_error_min        1000000000000  assumed: one error in 10^12 bits
        pcie_lanes_min                       16  assumed: the modelled machines have 16 lanes
        pcie_generation_min                   3  assumed: the modelled machines have generation 3
        chip_errors_per_hour_max             50  assumed: no source gives a TPUv4's
        flaps_max                             2  gpud: a flap is three returns
        flap_window                         10m  gpud: within ten minutes

        pod   share of                     capital     power  basis
        pod0  optical switches and fibre  < 17.4 %  < 11.0 %  assumed for 16 cubes, all switches bought; from Zu et al. 2024 (NSDI), section 2.2: under 5 % of a pod's capital cost and under 3 % of its power
        pod1  cables between its parts           -         -  no published figure for hosts
    "#]].assert_eq(&page);
}

#[test]
fn two_plants_are_compared_line_by_line() {
    let text = "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"tpuv4\"\ndeployed = \"0-1\"\n";
    let (old, _) = parse(text);
    let (new, _) = parse(&text.replace("0-1", "1-2").replace("demo", "test"));
    let changes = selvedge_model::spec::diff(&old, &new);
    expect![[r#"
        ~ plant name: demo -> test
        - cube0: pod0 slot 0
        + cube2: pod0 slot 2
    "#]]
    .assert_eq(&plain(&diff_page(&changes)));
    assert_eq!(diff_page(&selvedge_model::spec::diff(&old, &old)), "");
}

/// Seed 000 §2.2 bounds the optics of a full pod; fewer cubes bear the same switches.
#[test]
fn shares_of_a_full_pod_are_those_published_and_grow_as_cubes_are_fewer() {
    let share = |deployed: &str| {
        let pod = Family::tpuv4_with(64, deployed).unwrap();
        let share = show::shares(&Plant::of_pods("demo", [pod]));
        let json = serde_json::to_value(&share[0]).unwrap();
        let percent = |key: &str| (json[key].as_f64().unwrap() * 10.0).round() / 10.0;
        [percent("capital_max_percent"), percent("power_max_percent")]
    };
    assert_eq!(
        [share("all"), share("0-15"), share("none")],
        [[5.0, 3.0], [17.4, 11.0], [100.0; 2]]
    );
}

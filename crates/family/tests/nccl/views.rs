//! Servers of which each rank has a view of its own.

use selvedge_family::host::change::{Change, Question};
use selvedge_family::host::explain::ring::explain_ring;
use selvedge_family::host::fleet::group;
use selvedge_family::host::lint::lint;
use selvedge_family::host::nccl::dump::dump_and_left_out;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Strictness, read};
use selvedge_family::host::picture::{Picture, svg};
use selvedge_family::host::place::{PlaceName, find_in_view};
use selvedge_family::host::predict::{Op, predict};
use selvedge_family::host::views::{decided, differing, left_out, left_out_note, views};

/// Two GPUs whose ports are faster than the way between them.
const APART: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="a" dev="0" speed="200000" port="1" guid="0x1" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:11:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:12:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1"/>
      </pci>
      <pci busid="0000:14:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="b" dev="1" speed="200000" port="1" guid="0x2" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"#;

fn question() -> Question {
    let root = read(APART, Strictness::Lenient { single_quotes: true }).expect("well-formed").root;
    Question::new(root, Profile::V2_30_7)
}

#[test]
fn what_a_view_leaves_out_is_told_wherever_it_is_shown() {
    let all = views(&question()).expect("NCCL takes it");
    assert_eq!(all.iter().map(left_out).collect::<Vec<_>>(), [[1], [0]]);
    let note = left_out_note(&all[0]).expect("GPU1 is left out");
    assert!(note.starts_with("NCCL leaves GPU1 out of rank 0's view: "), "{note}");
    let picture = svg(&all[0], &Picture { title: "a".to_owned(), way: None });
    assert!(picture.contains("rank 0's view, which leaves out GPU1"), "{picture}");
    let text = dump_and_left_out(&all[0], "a").expect("NCCL goes on");
    assert!(text.contains("\"leftOut\":[1]"), "{text}");
    for name in ["GPU1", "0000:12:00.0"] {
        let name: PlaceName = name.parse().expect("a name");
        let error = find_in_view(&all[0], &question().root, &name).expect_err("left out");
        let error = error.to_string();
        assert!(error.starts_with(&format!("NCCL leaves {name} out of rank 0's view")), "{error}");
        find_in_view(&all[1], &question().root, &name).expect("its own view has it");
    }
}

#[test]
fn a_change_to_what_one_rank_alone_sees_is_seen() {
    let before = question();
    let differs = |edit: &str| {
        let change: Change = edit.parse().expect("a change");
        let after = before.with(&change).expect("it can be made");
        let [old, new] = [&before, &after].map(|it| decided(it).expect("NCCL takes it"));
        differing(&old, &new).iter().map(|it| it.rank).collect::<Vec<_>>()
    };
    assert_eq!(differs("GPU1=gone"), [Some(1)]);
    assert_eq!(differs("NCCL_NET_DISABLE_INTRA=1"), [None, Some(1)]);
    assert_eq!(differs("rank=0"), []);
}

#[test]
fn servers_that_one_rank_alone_sees_otherwise_are_no_equals() {
    let usual = question();
    let odd = usual.with(&"GPU1.gdr=0".parse().expect("a change")).expect("it can be made");
    let servers = [("a", &usual), ("b", &usual), ("c", &odd)];
    let member = |(name, it): (&str, &Question)| {
        (name.to_owned(), decided(it).map_err(|error| error.to_string()))
    };
    let groups = group(servers.map(member).to_vec());
    assert_eq!(groups.iter().map(|it| it.servers.len()).collect::<Vec<_>>(), [2, 1]);
    assert!(!groups[1].differences.is_empty());
    assert!(groups[1].differences.iter().all(|it| it.rank == Some(1)), "{groups:?}");
}

/// To NCCL the parts of a server that reach each other over the network alone are servers: a job on
/// one of two such parts is one on two servers of one part.
#[test]
fn a_forecast_for_parts_of_a_server_is_that_for_servers() {
    let start = APART.find("  <cpu numaid=\"1\"").expect("the second half");
    let half = format!("{}</system>\n", &APART[..start]);
    for profile in [Profile::V2_21_5, Profile::V2_27_7, Profile::V2_30_7] {
        let of = |text: &str, nodes| {
            let root = read(text, Strictness::lenient(profile)).expect("well-formed").root;
            let question = Question { nodes, ..Question::new(root, profile) };
            predict(&question, Op::AllReduce, &[8, 1 << 20, 1 << 30]).expect("a forecast")
        };
        for (whole, halves) in [(1, 2), (2, 4)] {
            let (parts, servers) = (of(APART, whole), of(&half, halves));
            assert_eq!(parts.views, [[0], [1]], "{profile}");
            assert_eq!(parts.n_ranks, servers.n_ranks, "{profile}");
            assert_eq!(parts.n_channels, servers.n_channels, "{profile}");
            assert_eq!(parts.forecasts, servers.forecasts, "{profile}");
            assert_eq!(parts.table, servers.table, "{profile}");
            assert_eq!(servers.views, [[0]], "{profile}");
        }
    }
    // The slower part holds the faster one up.
    let slow = APART.replace("dev=\"1\" speed=\"200000\"", "dev=\"1\" speed=\"160000\"");
    let time = |text: &str, rank| {
        let root = read(text, Strictness::lenient(Profile::V2_30_7)).expect("well-formed").root;
        let question = Question { rank, ..Question::new(root, Profile::V2_30_7) };
        let found = predict(&question, Op::AllReduce, &[1 << 30]).expect("a forecast");
        assert_eq!(found.views.len(), 2);
        found.forecasts[0].time_us
    };
    assert!(time(APART, 0) < time(&slow, 0));
    assert_eq!(time(&slow, 0), time(&slow, 1));
}

#[test]
fn an_explanation_of_rings_tells_whose_they_are() {
    let told = explain_ring(&question()).expect("there are rings");
    assert_eq!(told.views.iter().map(|it| &it.ranks[..]).collect::<Vec<_>>(), [[0], [1]]);
    let text = told.to_string();
    assert!(text.contains("this is the view of GPU0; views of their own have GPU1"), "{text}");
    let whole: Change = "NCCL_NET_DISABLE_INTRA=1".parse().expect("a change");
    let told = explain_ring(&question().with(&whole).expect("it can be made")).expect("rings");
    assert_eq!(told.views, []);
}

#[test]
fn a_port_that_any_rank_uses_is_not_idle() {
    let third = APART.replacen(
        "<net name=\"b\"",
        "<net name=\"c\" dev=\"2\" speed=\"10000\" port=\"2\" guid=\"0x2\" maxconn=\"9\" gdr=\"1\"/>\n\
         <net name=\"d\" dev=\"3\" speed=\"10000\" port=\"3\" guid=\"0x2\" maxconn=\"9\" gdr=\"1\"/>\n\
         <net name=\"b\"",
        1,
    );
    let idle = |text: &str| {
        let report = lint(text, Profile::V2_30_7).expect("well-formed");
        let found = report.findings.into_iter().filter(|it| it.rule == "idle-port");
        found.map(|it| it.what).collect::<Vec<_>>()
    };
    assert_eq!(idle(APART), Vec::<String>::new());
    assert_eq!(idle(&third), ["NET2 and NET3 are nobody's nearest port"]);
}

#[test]
fn what_points_nowhere_or_is_no_number_of_a_server_is_found() {
    let found = |text: &str| {
        let report = lint(text, Profile::V2_30_7).expect("well-formed");
        report.findings.into_iter().map(|it| it.rule).collect::<Vec<_>>()
    };
    let plain = found(APART);
    for (rule, old, new) in [
        ("number", "numaid=\"1\"", "numaid=\"999999999999\""),
        ("busid", "0000:14:00.0", "ffffffffffffffff:ff:ff.f"),
        ("busid", "0000:14:00.0", "0000:14:20.0"),
        (
            "missing-target",
            "<pci busid=\"0000:14:00.0\"",
            "<pcilink target=\"0000:99:00.0\"/>\n<pci busid=\"0000:14:00.0\"",
        ),
    ] {
        assert!(!plain.contains(&rule));
        let spoilt = APART.replacen(old, new, 1);
        assert!(found(&spoilt).contains(&rule), "{rule}: {:?}", found(&spoilt));
    }
}

use expect_test::{Expect, expect};
use selvedge_model::fabric::{Fabric, LinkKind, NodeKind};
use selvedge_model::spec::Plant;

use crate::host::inside::{draw, inside};
use crate::host::lint::{RULES, number_of};

/// Two GPUs below a switch and one beside it on a second socket, with NVLinks to one another and to
/// the switches, and cards with one and with two ports.
const SMALL: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1" gdr="1">
          <nvlink target="0000:FF:00.0" count="18" tclass="0x068000"/>
          <nvlink target="0000:03:00.0" count="2" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:02:00.0" count="2" tclass="0x030200"/>
          <c2c bw="25000" count="4"/>
        </gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="" link_width="0">
        <nic>
          <net name="b" dev="1" speed="400000" port="1" guid="0x2" maxconn="9" gdr="1"/>
          <net name="c" dev="2" speed="400000" port="2" guid="0x2" maxconn="9" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:91:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="90" rank="2" gdr="1"/>
    </pci>
    <nic><net name="a" dev="0" speed="100000" port="1" guid="0x1" maxconn="9" gdr="0"/></nic>
  </cpu>
</system>
"#;

fn check(xml: &str, expect: Expect) {
    let template = inside("small.xml", xml).expect("a host").template;
    let mut lines = format!("{}: seats", template.name);
    for seat in template.seats() {
        lines.push_str(&format!(" {}", template.nodes()[*seat as usize].name));
    }
    lines.push('\n');
    for port in (0..template.ports().len()).filter(|it| template.link_from(*it).is_none()) {
        let port = &template.ports()[port];
        lines.push_str(&format!(
            "{} on {}\n",
            port.name,
            template.nodes()[port.node as usize].name
        ));
    }
    for link in template.link_pairs() {
        let [a, b] = [link.a, link.b].map(|it| &template.ports()[it as usize].name);
        let attrs = link.attrs;
        lines.push_str(&format!("{a} - {b}: {:?} {:?}\n", attrs.kind, attrs.capacity));
    }
    expect.assert_eq(&lines);
}

#[test]
fn each_device_and_link_of_a_file_is_one_of_the_house() {
    check(
        SMALL,
        expect![[r#"
        host:small.xml: seats gpu0 gpu1 gpu2
        nic0/port on nic0
        nic1/port on nic1
        nic2/port on nic1
        gpu1/nvlink - m0/nvswitch/1: NvLink 3600Gb/s
        gpu0/nvlink-gpu1 - gpu1/nvlink-gpu0: NvLink 400Gb/s
        m0/pci0/pcie - m0/cpu0/pci0: Pcie 504Gb/s
        gpu1/pcie - m0/pci0/gpu1: Pcie 252Gb/s
        gpu0/pcie - m0/pci0/gpu0: Pcie 126Gb/s
        nic1/pcie - m0/pci0/nic1: Pcie 126Gb/s
        gpu2/pcie - m0/cpu1/gpu2: Pcie 126Gb/s
        nic0/pcie - m0/cpu1/nic0: Pcie 126Gb/s
        gpu0/c2c-cpu0 - m0/cpu0/c2c-gpu0: NvLink 800Gb/s
        m0/cpu0/cpu1 - m0/cpu1/cpu0: Socket 176Gb/s
    "#]],
    );
}

#[test]
fn a_guests_file_says_by_class_what_its_devices_are() {
    let xml = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
"#;
    check(
        xml,
        expect![[r#"
        host:small.xml: seats gpu0
        nic0/port on nic0
        m0/pci0/pcie - m0/cpu0/pci0: Pcie 252Gb/s
        gpu0/pcie - m0/pci0/gpu0: Pcie 252Gb/s
        nic0/pcie - m0/pci0/nic0: Pcie 252Gb/s
    "#]],
    );
}

#[test]
fn a_file_that_gives_no_host_is_drawn_at_its_place() {
    let drawn = |xml: &str| {
        let error = inside("x.xml", xml).expect_err("no host");
        draw("x.xml", xml, &error)
    };
    expect![[r#"
        x.xml:2:15: found '0', expected a quote
         2 |   <cpu numaid=0>
           |               ^
           right: NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it"#]]
    .assert_eq(&drawn("<system version=\"1\">\n  <cpu numaid=0>\n</system>\n"));
    expect![[r#"
        x.xml:1:1: <topology> is no topology of NCCL; its files begin with <system
         1 | <topology version="2.0"/>
           | ^
           right: NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it"#]]
    .assert_eq(&drawn("<topology version=\"2.0\"/>\n"));
    expect![[r#"
        x.xml:1:1: no GPU below a CPU; use a file that NCCL_TOPO_DUMP_FILE wrote
         1 | <system version="1"/>
           | ^
           right: NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it"#]]
    .assert_eq(&drawn("<system version=\"1\"/>\n"));
    let gpus: String = (0..65)
        .map(|it| format!("<pci busid=\"0000:{it:02x}:00.0\" class=\"0x030200\"/>\n"))
        .collect();
    let many = format!("<system version=\"1\">\n<cpu numaid=\"0\">\n{gpus}</cpu>\n</system>\n");
    expect![[r#"
        x.xml:67:1: 65 GPUs; one host of a plant has at most 64
         67 | <pci busid="0000:40:00.0" class="0x030200"/>
            | ^
            right: NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it"#]]
    .assert_eq(&drawn(&many));
}

#[test]
fn every_rule_that_a_file_can_break_has_a_number_of_its_own() {
    let mut sorted = RULES.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), RULES.len());
    assert_eq!(number_of("syntax"), 0);
    assert_eq!(usize::from(number_of("no rule")), RULES.len());
    // Whoever writes a rule writes it down: this is where findings are made.
    for text in [include_str!("../lint.rs"), include_str!("../lint/rules.rs")] {
        for severity in ["Error, \"", "Warning, \"", "Note, \""] {
            for rest in text.split(severity).skip(1) {
                let rule = rest.split('"').next().expect("a word");
                assert!(RULES.contains(&rule), "{rule}");
            }
        }
    }
}

fn plant(text: &str, files: &[(&str, &str)]) -> Result<Fabric, String> {
    let files: Vec<(String, String)> =
        files.iter().map(|(name, xml)| ((*name).to_owned(), (*xml).to_owned())).collect();
    let text = Plant::with_topologies(text, &files);
    let plant = Plant::parse("p.toml", &text).map_err(|errors| errors[0].to_string())?;
    assert_eq!(Plant::parse("p.toml", &plant.render()).as_ref(), Ok(&plant));
    crate::build(&plant).map_err(|error| error.show("p.toml", &text))
}

const PODS: &str = "format = 1\nname = \"p\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n";

#[test]
fn hosts_of_a_plant_are_built_from_their_files_and_cabled_by_their_ports() {
    let text = format!(
        "{PODS}topology = \"small.xml\"\n[[machine]]\nname = \"host1\"\ntopology = \"own.xml\"\n\
         [[part]]\nname = \"spare\"\ntemplate = \"host\"\n\
         [[cable]]\na = \"host0/nic2/port\"\nb = \"host1/nic0/port\"\n"
    );
    let own = SMALL.replace("count=\"18\"", "count=\"12\"");
    let fabric = plant(&text, &[("small.xml", SMALL), ("own.xml", &own)]).expect("a fabric");
    let [a, b, spare] = ["host0", "host1", "spare"].map(|it| fabric.part_named(it).expect("it"));
    assert_eq!(fabric.template_of(a).name, "host:small.xml");
    assert_eq!(fabric.template_of(b).name, "host:own.xml");
    assert_eq!(fabric.template_of(spare).name, "host");
    assert_eq!(fabric.cables().len(), 1);
    let chips = fabric.template_of(a).nodes().iter().filter(|it| it.kind == NodeKind::Chip);
    assert_eq!(chips.count(), 3);
    let sockets = |part| {
        let links = fabric.template_of(part).link_pairs().iter();
        links.filter(|it| it.attrs.kind == LinkKind::Socket).count()
    };
    assert_eq!([sockets(a), sockets(spare)], [1, 0]);
}

#[test]
fn what_is_wrong_with_a_plants_topologies_is_drawn_at_its_place() {
    let shown = |text: &str, files: &[(&str, &str)]| plant(text, files).expect_err("refused");
    let of_pod = format!("{PODS}topology = \"smal.xml\"\n");
    expect![[r#"
        p.toml:6:12: there is no topology file "smal.xml"
         6 | topology = "smal.xml"
           |            ^^^^^^^^^^
           right: did you mean "small.xml"?"#]]
    .assert_eq(&shown(&of_pod, &[("small.xml", SMALL)]));
    let bad = SMALL.replace("</system>", "</sys>");
    expect![[r#"
        p.toml:6:12: smal.xml describes no host: 30:1: </sys> closes <system> of 1:1; close <system> first
         6 | topology = "smal.xml"
           |            ^^^^^^^^^^
           right: a file that NCCL_TOPO_DUMP_FILE wrote, or `selvedge topo read`
        smal.xml:30:1: </sys> closes <system> of 1:1; close <system> first
         30 | </sys>
            | ^
            right: NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it"#]].assert_eq(&shown(&of_pod, &[("smal.xml", &bad)]));
    let machine =
        |name: &str| format!("{PODS}[[machine]]\nname = \"{name}\"\ntopology = \"small.xml\"\n");
    expect![[r#"
        p.toml:7:8: there is no part "host7"
         7 | name = "host7"
           |        ^^^^^^^
           right: did you mean "host0"?"#]]
    .assert_eq(&shown(&machine("host7"), &[("small.xml", SMALL)]));
    let cubes = machine("cube0").replace("family = \"hosts\"\nhosts = 2", "family = \"tpuv4\"");
    expect![[r#"
        p.toml:6:8: cube0 is no host: it has no topology
         6 | name = "cube0"
           |        ^^^^^^^
           right: name a host, or a [[part]] of template "host""#]]
    .assert_eq(&shown(&cubes, &[("small.xml", SMALL)]));
    let other = "format = 1\nname = \"p\"\n[[pod]]\nfamily = \"tpuv4\"\ntopology = \"a.xml\"\n";
    expect![[r#"
        p.toml:5:1: "topology" says nothing of a pod of family tpuv4
         5 | topology = "a.xml"
           | ^^^^^^^^
           right: it has cubes, deployed, control"#]]
    .assert_eq(&shown(other, &[]));
    let twice = [("a.xml", SMALL), ("a.xml", SMALL)];
    expect![[r#"
        p.toml:44:8: topology "a.xml" stands twice; the first is in line 9
         44 | name = "a.xml"
            |        ^^^^^^^
            right: give the second topology a name of its own"#]]
    .assert_eq(&shown(&format!("{PODS}topology = \"a.xml\"\n"), &twice));
}

#[test]
fn any_text_of_a_file_comes_through_a_plant_unchanged() {
    for xml in ["", "a\r\nb\tc\u{1}", "'''", "x'", "\n\nx", "\"\\\"", "\u{feff}<a/>"] {
        let text = Plant::with_topologies(PODS, &[("x".to_owned(), xml.to_owned())]);
        let plant = Plant::parse("p.toml", &text).expect("a plant");
        assert_eq!(plant.topologies[0].xml, xml);
        let again = Plant::parse("p.toml", &plant.render()).expect("a plant");
        assert_eq!(again, plant);
    }
}

#[test]
fn a_file_is_held_once_for_12500_hosts() {
    let text = PODS.replace("hosts = 2", "hosts = 12500") + "topology = \"small.xml\"\n";
    let fabric = plant(&text, &[("small.xml", SMALL)]).expect("a fabric");
    assert_eq!(fabric.parts().len(), 12_500);
    assert_eq!(fabric.templates().len(), 1);
}

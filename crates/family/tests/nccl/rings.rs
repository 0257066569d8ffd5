//! The rings of jobs on hosts, followed over the links of a plant: by hand on small hosts, and by
//! what holds of any rings on the given files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::rings::{
    Bound, Conditions, Crossing, Files, Member, NoRings, Rings, rings,
};
use selvedge_family::{build, warnings};
use selvedge_model::fabric::Fabric;
use selvedge_model::id::{LinkId, NodeId};
use selvedge_model::spec::Plant;

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("SELVEDGE_DATA")?).join(path))
}

/// Two CPUs; below each a switch with two GPUs and a port, NVLinks only within a pair.
const HOST: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="a" dev="0" speed="100000" port="1" guid="0x1" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:81:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:82:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="2" sm="80" rank="2" gdr="1">
          <nvlink target="0000:83:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:83:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="3" sm="80" rank="3" gdr="1">
          <nvlink target="0000:82:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:84:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="b" dev="1" speed="100000" port="1" guid="0x2" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"#;

/// Hosts of files, each with its ports on a switch for each rail, and two spines above the rails.
fn plant(files: &[(&str, &str, usize)], n_rails: usize) -> Plant {
    let mut text = "format = 1\nname = \"t\"\n".to_owned();
    let n_hosts = files.len();
    text += &format!("[[pod]]\nfamily = \"hosts\"\nhosts = {n_hosts}\n");
    for (host, (file, _, _)) in files.iter().enumerate() {
        text += &format!("[[machine]]\nname = \"host{host}\"\ntopology = \"{file}\"\n");
    }
    let switch = |name: &str, ports: Vec<String>| {
        let ports: Vec<String> =
            ports.iter().map(|it| format!("{{ name = \"{it}\", node = \"s\" }}")).collect();
        format!(
            "[[template]]\nname = \"{name}\"\nrole = \"packet-switch\"\n\
             nodes = [{{ name = \"s\", kind = \"switch\" }}]\nports = [{}]\n",
            ports.join(", ")
        )
    };
    let ups = || (0..2).map(|it| format!("u{it}"));
    text += &switch("leaf", (0..n_hosts).map(|it| format!("h{it}")).chain(ups()).collect());
    text += &switch("spine", (0..n_rails).map(|it| format!("r{it}")).collect());
    for name in (0..n_rails).map(|it| format!("leaf{it}")) {
        text += &format!("[[part]]\nname = \"{name}\"\ntemplate = \"leaf\"\n");
    }
    for spine in 0..2 {
        text += &format!("[[part]]\nname = \"spine{spine}\"\ntemplate = \"spine\"\n");
        for rail in 0..n_rails {
            let (a, b) = (format!("leaf{rail}/u{spine}"), format!("spine{spine}/r{rail}"));
            text += &format!("[[cable]]\na = \"{a}\"\nb = \"{b}\"\ngbps = 200\n");
        }
    }
    for (host, (_, _, n_ports)) in files.iter().enumerate() {
        for rail in 0..*n_ports {
            let (a, b) = (format!("host{host}/nic{rail}/port"), format!("leaf{rail}/h{host}"));
            text += &format!("[[cable]]\na = \"{a}\"\nb = \"{b}\"\ngbps = 200\n");
        }
    }
    let known: BTreeMap<&str, &str> = files.iter().map(|it| (it.0, it.1)).collect();
    let known: Vec<(String, String)> =
        known.into_iter().map(|(name, xml)| (name.to_owned(), xml.to_owned())).collect();
    let text = Plant::with_topologies(&text, &known);
    Plant::parse("t.toml", &text).unwrap_or_else(|it| panic!("{it:?}"))
}

fn follow(
    plant: &Plant,
    fabric: &Fabric,
    hosts: &[(usize, &[usize])],
    profile: Profile,
) -> Result<Rings, NoRings> {
    let files = Files::of(plant);
    let member = |(host, seats): &(usize, &[usize])| {
        let part = fabric.part_named(&format!("host{host}")).expect("a host");
        let file = files.of_part(fabric, part).expect("a file");
        Member { part, seats: seats.to_vec(), file }
    };
    let members: Vec<Member<'_>> = hosts.iter().map(member).collect();
    rings(fabric, &members, &Conditions { profile, env: Vec::new() })
}

/// What holds of any rings: each goes through all ranks, every chip passes on what it gets, and
/// nothing is lost on the way.
fn hold_whole(fabric: &Fabric, rings: &Rings) {
    let n = rings.ranks.len();
    for ring in &rings.channels {
        let mut ranks = ring.ranks.clone();
        ranks.sort_unstable();
        assert_eq!(ranks, (0..n).collect::<Vec<_>>());
        for it in &ring.crossings {
            let after = ring.ranks.iter().position(|rank| *rank == it.from).expect("a rank") + 1;
            assert_eq!(ring.ranks[after % n], it.to);
            let [from, to] = [it.from, it.to].map(|it| fabric.part_of_node(rings.ranks[it]));
            let ports = [it.out, it.into].map(|it| fabric.part_of_port(it));
            assert_eq!(ports, [from, to], "ports are on the hosts of their ranks");
        }
    }
    let mut sums: BTreeMap<NodeId, f64> = BTreeMap::new();
    let mut sent: BTreeMap<NodeId, f64> = BTreeMap::new();
    for (&link, &load) in &rings.load {
        let link = fabric.link(link);
        let [from, to] = [link.source, link.target].map(|it| fabric.node_of_port(it));
        *sums.entry(from).or_default() -= load;
        *sums.entry(to).or_default() += load;
        *sent.entry(from).or_default() += load;
    }
    for (node, sum) in sums {
        assert!(sum.abs() < 1e-9, "{sum} is left at {}", fabric.node_path(node));
    }
    for chip in &rings.ranks {
        let (sent, least) = (sent[chip], rings.channels.len() as f64);
        assert!(least - 1e-9 <= sent, "{} sends {sent} of {least}", fabric.node_path(*chip));
    }
}

fn load_of(fabric: &Fabric, rings: &Rings, source: &str) -> f64 {
    let of = |(link, load): (&LinkId, &f64)| {
        (fabric.port_path(fabric.link(*link).source) == source).then_some(*load)
    };
    rings.load.iter().find_map(of).unwrap_or(0.0)
}

#[test]
fn two_hosts_joined_by_rails_are_as_by_hand() {
    let plant = plant(&[("h.xml", HOST, 2), ("h.xml", HOST, 2)], 2);
    let fabric = build(&plant).expect("a plant");
    let whole: &[usize] = &[0, 1, 2, 3];
    let found =
        follow(&plant, &fabric, &[(0, whole), (1, whole)], Profile::V2_27_7).expect("rings");
    hold_whole(&fabric, &found);
    // The processors exchange 16 GB/s, which are four channels of 4; each is there twice, and they
    // leave by the two ports in turn.
    assert_eq!((found.channels.len(), found.n_searched), (8, 4));
    assert!((found.taken_bus_gb() - 16.0).abs() < 1e-9);
    let names = |it: &Crossing| [it.out, it.into].map(|it| fabric.port_path(it));
    for (channel, ring) in found.channels.iter().enumerate() {
        let port = |host| format!("host{host}/nic{}/port", channel % 2);
        let crossings: Vec<_> = ring.crossings.iter().map(names).collect();
        assert_eq!(crossings, [[port(0), port(1)], [port(1), port(0)]]);
        assert!(ring.crossings.iter().all(|it| it.n_switches == 1));
    }
    // Half of them go by each rail, and all between the processors, there and back.
    let loads = [
        ("host0/nic0/port", 4.0),
        ("host1/nic1/port", 4.0),
        ("leaf0/h1", 4.0),
        ("host0/m0/cpu0/cpu1", 8.0),
        ("host0/m0/cpu1/cpu0", 8.0),
        ("host0/gpu0/nvlink-gpu1", 8.0),
        ("host0/gpu1/nvlink-gpu0", 0.0),
        ("leaf0/u0", 0.0),
        ("spine0/r1", 0.0),
    ];
    for (port, load) in loads {
        assert!((load_of(&fabric, &found, port) - load).abs() < 1e-9, "{port}");
    }
    // 200 Gb/s are 25 GB/s, which half of the channels fill at 50; the processors are full at 16.
    let bounds = found.bounds(&fabric);
    let bound = |source: &str| {
        let is_it = |it: &&Bound| fabric.port_path(fabric.link(it.link).source) == source;
        bounds.iter().find(is_it).expect("it is used").bus_gb
    };
    assert!((bound("host0/nic0/port") - 50.0).abs() < 1e-9);
    assert!((bounds[0].bus_gb - 16.0).abs() < 1e-9);
    assert_eq!(fabric.port_path(fabric.link(bounds[0].link).source), "host0/m0/cpu0/cpu1");
    assert!(bounds.is_sorted_by(|a, b| a.bus_gb <= b.bus_gb));
}

#[test]
fn a_job_on_some_gpus_has_rings_of_its_own_and_two_rails_meet_over_the_spines() {
    let plant = plant(&[("h.xml", HOST, 2), ("h.xml", HOST, 2)], 2);
    let fabric = build(&plant).expect("a plant");
    // The first pair of one host and the second of the other: their nearest ports are on two rails.
    let found =
        follow(&plant, &fabric, &[(0, &[0, 1]), (1, &[2, 3])], Profile::V2_30_7).expect("rings");
    hold_whole(&fabric, &found);
    let chips: Vec<String> = found.ranks.iter().map(|it| fabric.node_path(*it)).collect();
    assert_eq!(chips, ["host0/gpu0", "host0/gpu1", "host1/gpu2", "host1/gpu3"]);
    let n = found.channels.len() as f64;
    assert!(found.channels.iter().flat_map(|it| &it.crossings).all(|it| it.n_switches == 3));
    // Half of it goes by each spine.
    for up in ["leaf0/u0", "leaf0/u1", "leaf1/u0", "leaf1/u1"] {
        assert!((load_of(&fabric, &found, up) - n / 2.0).abs() < 1e-9, "{up}");
    }
    // What the job does not have carries nothing of it.
    assert!(load_of(&fabric, &found, "host0/gpu2/pcie").abs() < 1e-9);
    assert!(load_of(&fabric, &found, "host0/m0/cpu0/cpu1").abs() < 1e-9);
}

#[test]
fn hosts_that_differ_go_by_the_slower_one() {
    // The same host with a tenth of the lanes to its GPUs.
    let slow = HOST.replace(
        "class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"",
        "class=\"0x030200\" link_speed=\"2.5 GT/s PCIe\" link_width=\"8\"",
    );
    assert_ne!(slow, HOST);
    let plant = plant(&[("h.xml", HOST, 2), ("s.xml", &slow, 2), ("h.xml", HOST, 2)], 2);
    let fabric = build(&plant).expect("a plant");
    let whole: &[usize] = &[0, 1, 2, 3];
    let of = |hosts: &[(usize, &[usize])]| {
        let found = follow(&plant, &fabric, hosts, Profile::V2_27_7).expect("rings");
        hold_whole(&fabric, &found);
        found
    };
    let (fast, mixed) = (of(&[(0, whole), (2, whole)]), of(&[(0, whole), (1, whole), (2, whole)]));
    assert!(mixed.taken_bus_gb() < fast.taken_bus_gb());
    assert!(mixed.bounds(&fabric)[0].bus_gb < fast.bounds(&fabric)[0].bus_gb);
    assert_eq!(
        fabric.part_of_port(fabric.link(mixed.bounds(&fabric)[0].link).source),
        fabric.part_named("host1").expect("a host")
    );
}

/// One GPU finds one channel, a whole host more: the job has one, made twice, and both go by the
/// port of the first.
#[test]
fn a_host_that_found_more_channels_than_another_uses_the_ports_of_those_that_all_found() {
    let plant = plant(&[("h.xml", HOST, 2), ("h.xml", HOST, 2)], 2);
    let fabric = build(&plant).expect("a plant");
    for profile in [Profile::V2_18_5, Profile::V2_27_7, Profile::V2_30_7] {
        let hosts: [(usize, &[usize]); 2] = [(0, &[0]), (1, &[0, 1, 2, 3])];
        let found = follow(&plant, &fabric, &hosts, profile).expect("rings");
        hold_whole(&fabric, &found);
        assert_eq!((found.n_searched, found.channels.len()), (1, 2), "{profile}");
        let ports = |it: &Crossing| [it.out, it.into].map(|it| fabric.port_path(it));
        for it in found.channels.iter().flat_map(|it| &it.crossings) {
            assert_eq!(it.n_switches, 1, "{profile}: {:?}", ports(it));
        }
        for (port, load) in
            [("host0/nic0/port", 2.0), ("host1/nic0/port", 2.0), ("host1/nic1/port", 0.0)]
        {
            assert!((load_of(&fabric, &found, port) - load).abs() < 1e-9, "{profile}: {port}");
        }
    }
}

/// Ports that are faster than the processors' link: NCCL takes the network between them, and each
/// half of a host for a host.
#[test]
fn halves_of_a_host_that_reach_each_other_over_the_network_alone_are_hosts_of_their_own() {
    let fast = HOST.replace("speed=\"100000\"", "speed=\"200000\"");
    let plant = plant(&[("f.xml", &fast, 2), ("f.xml", &fast, 2)], 2);
    let fabric = build(&plant).expect("a plant");
    let whole: &[usize] = &[0, 1, 2, 3];
    let found =
        follow(&plant, &fabric, &[(0, whole), (1, whole)], Profile::V2_27_7).expect("rings");
    hold_whole(&fabric, &found);
    // Four parts, so each ring goes out four times; rails are changed over the spines.
    for ring in &found.channels {
        let steps: Vec<_> = ring.crossings.iter().map(|it| (it.from / 2, it.to / 2)).collect();
        assert_eq!(steps, [(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert!(ring.crossings.iter().all(|it| it.n_switches == 3));
    }
    assert!(load_of(&fabric, &found, "host0/m0/cpu0/cpu1").abs() < 1e-9);
}

#[test]
fn what_is_not_joined_is_named() {
    let whole: &[usize] = &[0, 1, 2, 3];
    let uncabled = plant(&[("h.xml", HOST, 2), ("h.xml", HOST, 0)], 2);
    let fabric = build(&uncabled).expect("a plant");
    let why = |hosts: &[(usize, &[usize])]| {
        follow(&uncabled, &fabric, hosts, Profile::V2_30_7).expect_err("no rings").to_string()
    };
    assert_eq!(
        why(&[(0, whole), (1, whole)]),
        "channel 0 leaves host1 by host1/nic0/port, which has no cable"
    );
    assert_eq!(why(&[(0, &[1])]), "a ring takes two GPUs; the job has 1");
    // One host needs no cable.
    let alone = follow(&uncabled, &fabric, &[(1, whole)], Profile::V2_30_7).expect("rings");
    hold_whole(&fabric, &alone);
    assert!(alone.channels.iter().all(|it| it.crossings.is_empty()));
    // A switch that leads nowhere: the first host's ports end in a switch of their own.
    let text = "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\ntopology = \"h.xml\"\n\
        [[template]]\nname = \"leaf\"\nrole = \"packet-switch\"\n\
        nodes = [{ name = \"s\", kind = \"switch\" }]\n\
        ports = [{ name = \"p0\", node = \"s\" }, { name = \"p1\", node = \"s\" }]\n\
        [[part]]\nname = \"x\"\ntemplate = \"leaf\"\n[[part]]\nname = \"y\"\ntemplate = \"leaf\"\n\
        [[cable]]\na = \"host0/nic0/port\"\nb = \"x/p0\"\n[[cable]]\na = \"host0/nic1/port\"\nb = \"x/p1\"\n\
        [[cable]]\na = \"host1/nic0/port\"\nb = \"y/p0\"\n[[cable]]\na = \"host1/nic1/port\"\nb = \"y/p1\"\n";
    let text = Plant::with_topologies(text, &[("h.xml".to_owned(), HOST.to_owned())]);
    let apart = Plant::parse("t.toml", &text).expect("a plant");
    let fabric = build(&apart).expect("a fabric");
    assert_eq!(
        follow(&apart, &fabric, &[(0, whole), (1, whole)], Profile::V2_30_7)
            .expect_err("no way")
            .to_string(),
        "channel 0 goes from host0/nic0/port to host1/nic0/port, and no cables and switches join them"
    );
}

/// All files that NCCL takes: three servers of each, and four in the newest version.
#[test]
fn rings_of_real_servers_pass_on_all_that_they_get_over_links_that_are_there() {
    let Some(folder) = real_input("nccl/topos") else {
        println!("not run: SELVEDGE_DATA is not set, nccl/topos is not there");
        return;
    };
    let mut n_followed = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("a folder").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let xml = std::fs::read_to_string(file.path()).expect("a text");
        let n_ports = xml.matches("<net ").count();
        for (n_hosts, profiles) in
            [(3, &[Profile::V2_7_8, Profile::V2_27_7][..]), (4, &[Profile::V2_30_7][..])]
        {
            let plant =
                plant(&vec![(name.as_str(), xml.as_str(), n_ports); n_hosts], n_ports.max(1));
            let Ok(fabric) = build(&plant) else { continue };
            let n_seats =
                fabric.template_of(fabric.part_named("host0").expect("a host")).seats().len();
            let seats: Vec<usize> = (0..n_seats).collect();
            let hosts: Vec<(usize, &[usize])> = (0..n_hosts).map(|it| (it, &*seats)).collect();
            for &profile in profiles {
                match follow(&plant, &fabric, &hosts, profile) {
                    Ok(rings) => {
                        hold_whole(&fabric, &rings);
                        n_followed += 1;
                    }
                    Err(NoRings::Host { .. } | NoRings::Connect(_)) => {}
                    Err(other) => panic!("{name}, {n_hosts} hosts, {profile}: {other}"),
                }
            }
        }
    }
    println!("{n_followed} jobs followed");
    assert!(200 < n_followed, "{n_followed} jobs are few");
}

/// What stands in many places of a file is told once, at the first, with the number of the others.
#[test]
fn a_plant_names_a_fault_of_a_file_once_and_in_how_many_places_it_is() {
    let found = |text: &str| {
        let plant = plant(&[("h.xml", text, 2), ("h.xml", text, 2)], 2);
        let fabric = build(&plant).expect("a fabric");
        let found = warnings(&plant, &fabric);
        found
            .iter()
            .map(ToString::to_string)
            .filter(|it| it.contains("[self-link]"))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(HOST), Vec::<String>::new());
    let mut text = HOST.to_owned();
    for (n, own) in ["02", "03", "82"].into_iter().enumerate() {
        let gpu = format!("rank=\"{n}\" gdr=\"1\">\n");
        let link = format!("<nvlink target=\"0000:{own}:00.0\" count=\"1\" tclass=\"0x030200\"/>");
        text = text.replacen(&gpu, &format!("{gpu}          {link}\n"), 1);
        let more = ["", ", and in 1 more place", ", and in 2 more places"][n];
        let [told] = &found(&text)[..] else { panic!("{:?}", found(&text)) };
        let start =
            format!("h.xml:6:11: an NVLink from a GPU to itself{more} [self-link], of 2 hosts: ");
        assert!(told.starts_with(&start), "{told}");
    }
}

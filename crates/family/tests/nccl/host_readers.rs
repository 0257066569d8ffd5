//! What an operating system, hwloc and a guest's lspci say, made into topology files that NCCL
//! reads.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use selvedge_family::host::change::Question;
use selvedge_family::host::machine::topology;
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Element, Strictness, read, write};
use selvedge_family::host::sysfs::{Files, GpuFacts};
use selvedge_family::host::{hwloc, lspci, sysfs, vm};

const STRICT: Strictness = Strictness::AsNccl { single_quotes: false };

/// A root port, a switch with two ports below it, a GPU and a card on them; a GPU elsewhere.
fn files() -> Files {
    let mut files = Files::new();
    let mut device = |path: &str, class: &str, id: &str, speed: &str, width: &str, numa: &str| {
        let facts = [
            ("class", class),
            ("vendor", "0x10de"),
            ("device", id),
            ("subsystem_vendor", "0x10de"),
            ("subsystem_device", "0x0001"),
            ("max_link_speed", speed),
            ("max_link_width", width),
            ("numa_node", numa),
        ];
        for (name, value) in facts {
            files.insert(format!("{path}/{name}"), value.to_owned());
        }
    };
    let root = "devices/pci0000:00/0000:00:01.0";
    let up = format!("{root}/0000:01:00.0");
    let (gen4, gen5) = ("16.0 GT/s PCIe", "32.0 GT/s PCIe");
    device(root, "0x060400", "0x0001", gen5, "16", "0");
    device(&up, "0x060400", "0x0002", gen5, "16", "0");
    device(&format!("{up}/0000:02:00.0"), "0x060400", "0x0003", gen4, "16", "0");
    device(&format!("{up}/0000:02:01.0"), "0x060400", "0x0003", gen5, "16", "0");
    device(&format!("{up}/0000:02:00.0/0000:03:00.0"), "0x030200", "0x2330", gen5, "16", "0");
    let card = format!("{up}/0000:02:01.0/0000:04:00.0");
    device(&card, "0x020700", "0x1021", gen5, "8", "0");
    let other = "devices/pci0000:80/0000:80:01.0";
    device(other, "0x060400", "0x0001", gen5, "16", "1");
    device(&format!("{other}/0000:81:00.0"), "0x030200", "0x2330", gen5, "16", "1");
    for (key, value) in [
        ("class/infiniband/mlx5_0/device", card.as_str()),
        ("class/infiniband/mlx5_0/sys_image_guid", "58a2:e103:00e3:f434"),
        ("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE"),
        ("class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)"),
        ("class/infiniband/mlx5_0/ports/2/state", "1: DOWN"),
        ("devices/system/node/node0/cpumap", "00000000,0000ffff"),
        ("devices/system/node/node1/cpumap", "ffff0000,00000000"),
        ("module/nvidia_peermem/", ""),
    ] {
        files.insert(key.to_owned(), value.to_owned());
    }
    files
}

const CPUINFO: &str =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n";

#[track_caller]
fn check(root: &Element, expected: Expect) {
    let text = write(root);
    let root = read(&text, STRICT).expect("NCCL reads what is written").root;
    let matrix = match Question::new(root, Profile::V2_30_7).view() {
        Ok(view) => Matrix::of(&view).expect("nothing is broken").text(),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&format!("{text}{matrix}"));
}

#[test]
fn a_linux_host_is_read_as_nccl_reads_it() {
    let machine = sysfs::machine(&files(), CPUINFO, &[]).expect("a server");
    assert_eq!(machine.assumed.len(), 2, "{:?}", machine.assumed);
    check(
        &topology(&machine),
        expect![[r#"
        <system version="1">
          <cpu numaid="0" affinity="00000000,0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
            <pci busid="0000:01:00.0" class="0x060400" vendor="0x10de" device="0x0002" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="32.0 GT/s PCIe" link_width="16">
              <pci busid="0000:03:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="16.0 GT/s PCIe" link_width="16">
                <gpu dev="0" sm="90" rank="0" gdr="1"/>
              </pci>
              <pci busid="0000:04:00.0" class="0x020700" vendor="0x10de" device="0x1021" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="32.0 GT/s PCIe" link_width="8">
                <nic>
                  <net name="mlx5_0" dev="0" speed="400000" port="1" latency="0" guid="0x34f4e30003e1a258" maxconn="131072" gdr="1"/>
                </nic>
              </pci>
            </pci>
          </cpu>
          <cpu numaid="1" affinity="ffff0000,00000000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
            <pci busid="0000:81:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="32.0 GT/s PCIe" link_width="16">
              <gpu dev="1" sm="90" rank="1" gdr="1"/>
            </pci>
          </cpu>
        </system>
              GPU0  GPU1  NET0  CPU  width
        GPU0  X     SYS!  PIX*  0    22GB/s
        GPU1  SYS!  X     SYS   1    22GB/s
        NET0  PIX*  SYS   X     -    50GB/s

        GB/s  GPU0  GPU1  NET0
        GPU0  X     22    24
        GPU1  22    X     22
        NET0  24    22    X

        !  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving
        width: of a GPU's widest way to another, of a port

        PIX  one PCI switch at most
        SYS  between CPUs
    "#]],
    );
}

#[test]
fn a_driver_s_facts_count_before_guesses() {
    let far = |it: &str| (format!("0000:{it}:00.0"), "0x030200".to_owned());
    let facts = |bus: &str, dev, to: &str| {
        let links = vec![far(to), far(to)];
        GpuFacts { bus: format!("0000:{bus}:00.0"), dev, sm: 90, links }
    };
    let gpus = [facts("03", 1, "81"), facts("81", 0, "03")];
    let machine = sysfs::machine(&files(), CPUINFO, &gpus).expect("a server");
    assert_eq!(machine.assumed, Vec::<String>::new());
    let text = write(&topology(&machine));
    assert!(text.contains("<gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">"), "{text}");
    assert!(text.contains("target=\"0000:81:00.0\" count=\"2\" tclass=\"0x030200\""), "{text}");
}

/// A virtual machine that shows its GPU below no bridge and on no NUMA node, an H100 under
/// Firecracker: but for the hash of the host and the socket, what NCCL 2.28.9 wrote there.
#[test]
fn a_virtual_machine_s_gpu_stands_as_nccl_put_it() {
    let gpu = "devices/pci0000:00/0000:00:06.0";
    let files: Files = [
        ("class", "0x030200"),
        ("vendor", "0x10de"),
        ("device", "0x2330"),
        ("subsystem_vendor", "0x10de"),
        ("subsystem_device", "0x16c1"),
        ("max_link_speed", "32.0 GT/s PCIe"),
        ("max_link_width", "16"),
        ("numa_node", "-1"),
    ]
    .map(|(name, value)| (format!("{gpu}/{name}"), value.to_owned()))
    .into_iter()
    .chain([("devices/system/node/node0/cpumap".to_owned(), "ffff".to_owned())])
    .collect();
    let facts = GpuFacts { bus: "0000:00:06.0".to_owned(), dev: 0, sm: 90, links: Vec::new() };
    let cpuinfo = CPUINFO.replace("143", "207");
    let machine = sysfs::machine(&files, &cpuinfo, &[facts]).expect("a server");
    check(
        &topology(&machine),
        expect![[r#"
            <system version="1">
              <cpu numaid="-1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207">
                <pci busid="0000:00:06.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x16c1" link_speed="32.0 GT/s PCIe" link_width="0">
                  <gpu dev="0" sm="90" rank="0" gdr="1"/>
                </pci>
              </cpu>
            </system>
                  GPU0  CPU
            GPU0  X     -1

            GB/s  GPU0
            GPU0  X

            !  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving

        "#]],
    );
}

#[test]
fn a_host_without_devices_is_no_server() {
    let error = sysfs::machine(&Files::new(), "", &[]).expect_err("nothing there");
    assert_eq!(error.to_string(), "sysfs shows no GPU and no network card");
}

const HWLOC: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000ffff">
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x0000ffff">
      <info name="CPUVendor" value="AuthenticAMD"/>
      <info name="CPUFamilyNumber" value="25"/>
      <info name="CPUModelNumber" value="1"/>
      <object type="NUMANode" os_index="0" cpuset="0x0000ffff" gp_index="5"/>
      <object type="Bridge" gp_index="9" bridge_type="0-1" depth="0" bridge_pci="0000:[00-04]">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_type="0604 [1022:1483] [0000:0000] 00" pci_link_speed="31.507692">
          <object type="Bridge" bridge_type="1-1" pci_busid="0000:01:00.0" pci_type="0604 [1000:c010] [0000:0000] b0" pci_link_speed="31.507692">
            <object type="Bridge" bridge_type="1-1" pci_busid="0000:02:00.0" pci_type="0604 [1000:c010] [0000:0000] b0" pci_link_speed="31.507692">
              <object type="PCIDev" pci_busid="0000:03:00.0" pci_type="0302 [10de:20b0] [10de:144e] a1" pci_link_speed="31.507692">
                <object type="OSDev" gp_index="44" name="nvml0" osdev_type="1"/>
              </object>
            </object>
            <object type="Bridge" bridge_type="1-1" pci_busid="0000:02:01.0" pci_type="0604 [1000:c010] [0000:0000] b0" pci_link_speed="15.753846">
              <object type="PCIDev" pci_busid="0000:04:00.0" pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="15.753846">
                <object type="OSDev" name="mlx5_0" osdev_type="3">
                  <info name="NodeGUID" value="0c42:a103:00aa:bbcc"/>
                </object>
              </object>
            </object>
          </object>
        </object>
      </object>
    </object>
  </object>
</topology>
"#;

#[test]
fn an_hwloc_file_is_read() {
    let machine = hwloc::machine(HWLOC, "server.xml").expect("a server");
    check(
        &topology(&machine),
        expect![[r#"
        <system version="1">
          <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
            <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x0000" subsystem_device="0x0000" link_speed="16.0 GT/s PCIe" link_width="16">
              <pci busid="0000:03:00.0" class="0x030200" vendor="0x10de" device="0x20b0" subsystem_vendor="0x10de" subsystem_device="0x144e" link_speed="16.0 GT/s PCIe" link_width="16">
                <gpu dev="0" sm="80" rank="0" gdr="1"/>
              </pci>
              <pci busid="0000:04:00.0" class="0x020700" vendor="0x15b3" device="0x101b" subsystem_vendor="0x15b3" subsystem_device="0x0007" link_speed="8.0 GT/s PCIe" link_width="16">
                <nic>
                  <net name="mlx5_0" dev="0" speed="100000" port="1" latency="0" guid="0xccbbaa0003a1420c" maxconn="131072" gdr="1"/>
                </nic>
              </pci>
            </pci>
          </cpu>
        </system>
              GPU0  NET0  CPU  width
        GPU0  X     PIX*  0    -
        NET0  PIX*  X     -    12.5GB/s

        GB/s  GPU0  NET0
        GPU0  X     12
        NET0  12    X

        !  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving
        width: of a GPU's widest way to another, of a port

        PIX  one PCI switch at most
    "#]],
    );
    let error = hwloc::machine("<topology/>", "x.xml").expect_err("nothing there");
    assert_eq!(error.to_string(), "x.xml shows no GPU and no network card");
    let error = hwloc::machine("<system/>", "x.xml").expect_err("another file");
    assert!(error.to_string().contains("<system> is no hwloc file"), "{error}");
    for at in 0..HWLOC.len() {
        let _ = hwloc::machine(&HWLOC[..at], "cut");
    }
}

const GUEST: &str = "\
0000:00:01.0 ISA bridge [0601]: Intel Corporation 82371SB [8086:7000]
0000:00:05.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
\tNUMA node: 0
\tLnkSta:\tSpeed 32GT/s, Width x16
0000:00:06.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
\tNUMA node: 0
0000:00:07.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [15b3:1021]
\tCapabilities: [100 v1] Device Serial Number 58-a2-e1-03-00-e3-f4-34
";

fn bare() -> Element {
    let machine = sysfs::machine(&files(), CPUINFO, &[]).expect("a server");
    let mut root = topology(&machine);
    let text = write(&root).replace("\"0x10de\" device=\"0x1021\"", "\"0x15b3\" device=\"0x1021\"");
    root = read(&text, STRICT).expect("NCCL reads what is written").root;
    root
}

fn options(map: &[(&str, &str)], filled: bool) -> vm::Options {
    let map: BTreeMap<String, String> =
        map.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    vm::Options { map, filled }
}

#[test]
fn a_guest_s_file_keeps_the_server_s_tree() {
    let guest = lspci::read(GUEST).expect("lspci's form");
    let built = vm::build(&bare(), &guest, &options(&[], true)).expect("devices in common");
    let by: Vec<String> =
        built.matches.iter().map(|it| format!("{} {} {:?}", it.host, it.guest, it.by)).collect();
    expect![[r#"
        0000:03:00.0 0000:00:05.0 Order
        0000:04:00.0 0000:00:07.0 Serial
        0000:81:00.0 0000:00:06.0 Order"#]]
    .assert_eq(&by.join("\n"));
    let findings: Vec<String> =
        built.findings.iter().map(|(severity, what)| format!("{severity}: {what}")).collect();
    expect![[r#"
        warning: 2 of 10de:2330 were matched by the order of bus ids alone; hypervisors need not keep it: compare UUIDs with `nvidia-smi -L` and use --map
        warning: the guest's NUMA node 0 holds devices of several of the server's: give the guest the server's NUMA nodes, for the <cpu> of this file names theirs
        note: the server's masks of processors (affinity) are left out: NCCL reads the guest's own for a NUMA node of the same number"#]].assert_eq(&findings.join("\n"));
    check(
        &built.root,
        expect![[r#"
            <system version="1">
              <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
                <pci busid="ffff:ff:01.0" class="0x060400" vendor="0x10de" device="0x0002" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="32.0 GT/s PCIe" link_width="16">
                  <pci busid="0000:00:05.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="16.0 GT/s PCIe" link_width="16">
                    <gpu dev="0" sm="90" rank="0" gdr="1"/>
                  </pci>
                  <pci busid="0000:00:07.0" class="0x020700" vendor="0x15b3" device="0x1021" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="32.0 GT/s PCIe" link_width="8">
                    <nic>
                      <net name="mlx5_0" dev="0" speed="400000" port="1" latency="0" guid="0x34f4e30003e1a258" maxconn="131072" gdr="1"/>
                    </nic>
                  </pci>
                </pci>
              </cpu>
              <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
                <pci busid="0000:00:06.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x0001" link_speed="32.0 GT/s PCIe" link_width="16">
                  <gpu dev="1" sm="90" rank="1" gdr="1"/>
                </pci>
              </cpu>
            </system>
                  GPU0  GPU1  NET0  CPU  width
            GPU0  X     SYS!  PIX*  0    22GB/s
            GPU1  SYS!  X     SYS   1    22GB/s
            NET0  PIX*  SYS   X     -    50GB/s

            GB/s  GPU0  GPU1  NET0
            GPU0  X     22    24
            GPU1  22    X     22
            NET0  24    22    X

            !  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving
            width: of a GPU's widest way to another, of a port

            PIX  one PCI switch at most
            SYS  between CPUs
        "#]],
    );
    let empty = vm::build(&bare(), &guest, &options(&[], false)).expect("devices in common");
    assert!(!write(&empty.root).contains("<gpu"), "NCCL fills GPUs in itself");
}

#[test]
fn a_map_decides_and_must_name_what_is_there() {
    let guest = lspci::read(GUEST).expect("lspci's form");
    let swapped = [("0000:03:00.0", "0000:00:06.0"), ("0000:81:00.0", "0000:00:05.0")];
    let built = vm::build(&bare(), &guest, &options(&swapped, false)).expect("both are there");
    assert!(built.findings.iter().all(|it| !it.1.contains("order of bus ids")));
    let error = |map: &[(&str, &str)]| {
        vm::build(&bare(), &guest, &options(map, false)).expect_err("refused").to_string()
    };
    assert!(error(&[("0000:99:00.0", "0000:00:06.0")]).contains("no GPU and no card of the dump"));
    assert!(error(&[("0000:03:00.0", "0000:99:00.0")]).contains("lspci does not list"));
    let twice = [("0000:03:00.0", "0000:00:06.0"), ("0000:81:00.0", "0000:00:06.0")];
    assert!(error(&twice).contains("two devices"));
    expect!["--map puts 0000:03:00.0, which is a GPU, on 0000:00:07.0, which is a network card"]
        .assert_eq(&error(&[("0000:03:00.0", "0000:00:07.0")]));
    let bridge = error(&[("0000:04:00.0", "0000:00:01.0")]);
    assert!(bridge.ends_with("on 0000:00:01.0, which is a bridge (class 0601)"), "{bridge}");
}

fn told(bare: &Element, guest: &str) -> String {
    let guest = lspci::read(guest).expect("lspci's form");
    let built = vm::build(bare, &guest, &options(&[], false)).expect("devices in common");
    let by = built.matches.iter().map(|it| format!("{} {} {:?}", it.host, it.guest, it.by));
    let findings = built.findings.iter().map(|(severity, what)| format!("{severity}: {what}"));
    by.chain(findings).collect::<Vec<_>>().join("\n")
}

/// Clouds give guests virtual functions, without the card's serial number.
#[test]
fn virtual_functions_are_the_cards_of_their_kind() {
    let (before, _) = GUEST.split_once("\tCapabilities").expect("a serial number");
    let guest = before.replace("MT2910 [15b3:1021]", "mlx5Gen Virtual Function [15b3:101e]");
    expect![[r#"
        0000:03:00.0 0000:00:05.0 Order
        0000:04:00.0 0000:00:07.0 VirtualFunction
        0000:81:00.0 0000:00:06.0 Order
        warning: 2 of 10de:2330 were matched by the order of bus ids alone; hypervisors need not keep it: compare UUIDs with `nvidia-smi -L` and use --map
        warning: 1 of virtual functions 15b3:101e of class 0207 were matched to cards 15b3:1021 by the order of bus ids alone; hypervisors need not keep it: compare GUIDs with `ibstat` and use --map
        warning: the guest's NUMA node 0 holds devices of several of the server's: give the guest the server's NUMA nodes, for the <cpu> of this file names theirs
        note: the server's masks of processors (affinity) are left out: NCCL reads the guest's own for a NUMA node of the same number"#]].assert_eq(&told(&bare(), &guest));
    // One of another class is no match, and whoever knows better says so by --map.
    let other = guest.replace("[0207]", "[0200]");
    expect![[r#"
        0000:03:00.0 0000:00:05.0 Order
        0000:81:00.0 0000:00:06.0 Order
        error: the server's network card 0000:04:00.0 (15b3:1021) may be the guest's 0000:00:07.0 (15b3:101e), which nothing says: if it is, --map 0000:04:00.0=0000:00:07.0
        warning: 2 of 10de:2330 were matched by the order of bus ids alone; hypervisors need not keep it: compare UUIDs with `nvidia-smi -L` and use --map
        warning: the guest's 0000:00:07.0 (15b3:101e) is not on the server's dump; NCCL will put it below a CPU
        warning: the guest's NUMA node 0 holds devices of several of the server's: give the guest the server's NUMA nodes, for the <cpu> of this file names theirs
        note: 0000:04:00.0 is not in the guest; left out
        note: the server's masks of processors (affinity) are left out: NCCL reads the guest's own for a NUMA node of the same number"#]].assert_eq(&told(&bare(), &other));
}

#[test]
fn a_dump_without_numbers_is_matched_by_kind_and_order() {
    let text = write(&bare());
    let bare = text.lines().map(|line| {
        let words =
            line.split(" vendor=\"0x").map(|it| it.split_once(" link_speed").map_or(it, |it| it.1));
        words.collect::<Vec<_>>().join(" link_speed")
    });
    let bare = read(&bare.collect::<Vec<_>>().join("\n"), STRICT).expect("well-formed").root;
    expect![[r#"
        0000:03:00.0 0000:00:05.0 Kind
        0000:04:00.0 0000:00:07.0 Serial
        0000:81:00.0 0000:00:06.0 Kind
        warning: the dump has no vendor and device of its 2 GPUs, of which 2 were matched by the order of bus ids alone; hypervisors need not keep it: compare UUIDs with `nvidia-smi -L` and use --map
        warning: the guest's NUMA node 0 holds devices of several of the server's: give the guest the server's NUMA nodes, for the <cpu> of this file names theirs
        note: the server's masks of processors (affinity) are left out: NCCL reads the guest's own for a NUMA node of the same number"#]].assert_eq(&told(&bare, GUEST));
}

#[test]
fn lspci_without_numbers_or_devices_is_refused() {
    lspci::read("").expect_err("nothing");
    let error = lspci::read("00:01.0 ISA bridge: Intel").expect_err("no numbers").to_string();
    assert!(error.contains("add -nn"), "{error}");
    for at in 0..GUEST.len() {
        let _ = lspci::read(&GUEST[..at]);
    }
}

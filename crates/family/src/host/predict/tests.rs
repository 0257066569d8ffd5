use expect_test::{Expect, expect};

use crate::host::change::Question;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::{Strictness, read};
use crate::host::predict::{Forecast, Op, Prediction, measured, predict};

/// Eight GPUs on NVSwitches, each with a port on its own switch.
fn server(sm: u32, links: u32, class: &str) -> String {
    let mut text = String::from("<system version=\"1\">\n");
    for numa in 0..2 {
        text.push_str(&format!(
            "<cpu numaid=\"{numa}\" affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\" \
             familyid=\"6\" modelid=\"143\">\n"
        ));
        for place in 0..4 {
            let gpu = numa * 4 + place;
            text.push_str(&format!(
                "<pci busid=\"0000:{gpu}1:00.0\" class=\"0x060400\" link_speed=\"{class}\" \
                 link_width=\"16\">\n\
                 <pci busid=\"0000:{gpu}2:00.0\" class=\"0x030200\" link_speed=\"{class}\" \
                 link_width=\"16\">\n\
                 <gpu dev=\"{gpu}\" sm=\"{sm}\" rank=\"{gpu}\" gdr=\"1\">\n\
                 <nvlink target=\"ffff:ff:ff.f\" count=\"{links}\" tclass=\"0x068000\"/>\n\
                 </gpu>\n</pci>\n\
                 <pci busid=\"0000:{gpu}3:00.0\" class=\"0x020700\" link_speed=\"{class}\" \
                 link_width=\"16\">\n\
                 <nic>\n<net name=\"mlx5_{gpu}\" dev=\"{gpu}\" speed=\"400000\" port=\"1\" \
                 guid=\"0x{gpu}0\" maxconn=\"131072\" gdr=\"1\"/>\n</nic>\n</pci>\n</pci>\n"
            ));
        }
        text.push_str("</cpu>\n");
    }
    text + "</system>\n"
}

fn hopper() -> String {
    server(90, 18, "32.0 GT/s PCIe")
}

fn question(xml: &str, profile: Profile, nodes: u32, env: &[(&str, &str)]) -> Question {
    let root = read(xml, Strictness::AsNccl { single_quotes: true }).expect("well-formed").root;
    let mut question = Question::new(root, profile);
    question.nodes = nodes;
    question.env = env.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    question
}

const SIZES: [u64; 6] = [8, 32 << 10, 1 << 20, 16 << 20, 256 << 20, 8 << 30];

fn choice(it: &Forecast) -> String {
    format!("{}/{}", it.algorithm, it.protocol)
}

fn lines(it: &Prediction) -> String {
    let mut out = format!("{} {} ranks, {} channels\n", it.op.name(), it.n_ranks, it.n_channels);
    for it in it.table.iter().filter(|it| 0.0 < it.bandwidth_gbps) {
        let (name, proto) = (it.algorithm, it.protocol);
        out += &format!("{name}/{proto} {:.1}/{:.1}\n", it.latency_us, it.bandwidth_gbps);
    }
    for it in &it.forecasts {
        let (bytes, choice) = (it.bytes, choice(it));
        out += &format!("{bytes} {choice} {:.2} us, {:.2} GB/s\n", it.time_us, it.busbw_gbps);
    }
    out
}

#[track_caller]
fn check(question: &Question, op: Op, expect: Expect) {
    let prediction = predict(question, op, &SIZES).expect("a prediction");
    expect.assert_eq(&lines(&prediction));
}

#[test]
fn a_hopper_server_alone_reduces_in_its_switches() {
    check(
        &question(&hopper(), Profile::V2_27_7, 1, &[]),
        Op::AllReduce,
        expect![[r#"
            all_reduce 8 ranks, 24 channels
            Tree/LL 15.2/43.6
            Tree/LL128 31.5/128.8
            Tree/Simple 64.4/165.6
            Ring/LL 15.0/80.6
            Ring/LL128 40.6/189.3
            Ring/Simple 56.0/205.7
            NVLS/Simple 25.0/266.7
            8 Ring/LL 15.00 us, 0.00 GB/s
            32768 Ring/LL 15.41 us, 3.72 GB/s
            1048576 Ring/LL 28.01 us, 65.50 GB/s
            16777216 NVLS/Simple 87.91 us, 333.96 GB/s
            268435456 NVLS/Simple 1031.63 us, 455.36 GB/s
            8589934592 NVLS/Simple 32237.26 us, 466.30 GB/s
        "#]],
    );
}

#[test]
fn four_hopper_servers_reduce_in_trees_of_switches() {
    let four = question(&hopper(), Profile::V2_30_7, 4, &[]);
    check(
        &four,
        Op::AllReduce,
        expect![[r#"
        all_reduce 32 ranks, 16 channels
        Tree/LL 35.2/8.7
        Tree/LL128 65.5/98.6
        Tree/Simple 120.4/122.4
        Ring/LL 78.8/10.5
        Ring/LL128 144.4/151.5
        Ring/Simple 282.8/198.2
        NVLSTree/Simple 108.6/187.9
        8 Tree/LL 35.20 us, 0.00 GB/s
        32768 Tree/LL 40.60 us, 1.56 GB/s
        1048576 Tree/LL128 83.22 us, 24.41 GB/s
        16777216 NVLSTree/Simple 197.90 us, 164.25 GB/s
        268435456 NVLSTree/Simple 1537.43 us, 338.29 GB/s
        8589934592 Ring/Simple 43737.06 us, 380.52 GB/s
    "#]],
    );
    check(
        &four,
        Op::AllGather,
        expect![[r#"
        all_gather 32 ranks, 16 channels
        Ring/LL 42.7/21.1
        Ring/LL128 79.2/303.1
        Ring/Simple 145.6/396.4
        8 Ring/LL 42.70 us, 0.00 GB/s
        32768 Ring/LL 44.26 us, 0.72 GB/s
        1048576 Ring/LL128 82.66 us, 12.29 GB/s
        16777216 Ring/LL128 134.56 us, 120.79 GB/s
        268435456 Ring/Simple 822.81 us, 316.05 GB/s
        8589934592 Ring/Simple 21816.17 us, 381.44 GB/s
    "#]],
    );
}

#[test]
fn version_2_7_knows_rings_and_trees() {
    let xml = server(80, 12, "16 GT/s");
    check(
        &question(&xml, Profile::V2_7_8, 1, &[]),
        Op::AllReduce,
        expect![[r#"
        all_reduce 8 ranks, 24 channels
        Tree/LL 11.7/14.5
        Tree/LL128 21.2/50.6
        Tree/Simple 392.0/55.0
        Ring/LL 10.2/33.6
        Ring/LL128 36.6/114.5
        Ring/Simple 56.0/134.3
        8 Ring/LL 10.18 us, 0.00 GB/s
        32768 Ring/LL 11.16 us, 5.14 GB/s
        1048576 Ring/LL 41.41 us, 44.31 GB/s
        16777216 Ring/Simple 180.94 us, 162.27 GB/s
        268435456 Ring/Simple 2054.99 us, 228.60 GB/s
        8589934592 Ring/Simple 64023.60 us, 234.79 GB/s
    "#]],
    );
    let two = question(&xml, Profile::V2_7_8, 2, &[]);
    check(
        &two,
        Op::AllReduce,
        expect![[r#"
        all_reduce 16 ranks, 16 channels
        Tree/LL 27.5/14.5
        Tree/LL128 38.2/52.0
        Tree/Simple 492.0/55.0
        Ring/LL 32.7/25.6
        Ring/LL128 71.2/71.3
        Ring/Simple 122.8/102.4
        8 Tree/LL 27.50 us, 0.00 GB/s
        32768 Tree/LL 30.74 us, 2.00 GB/s
        1048576 Tree/LL128 71.84 us, 27.37 GB/s
        16777216 Ring/LL128 306.66 us, 102.58 GB/s
        268435456 Ring/Simple 2854.76 us, 176.31 GB/s
        8589934592 Ring/Simple 84119.39 us, 191.47 GB/s
    "#]],
    );
    check(
        &two,
        Op::Broadcast,
        expect![[r#"
        broadcast 16 ranks, 16 channels
        Ring/LL 46.8/48.0
        Ring/LL128 74.0/150.4
        Ring/Simple 808.4/192.0
        8 Ring/LL 46.80 us, 0.00 GB/s
        32768 Ring/LL 47.48 us, 0.69 GB/s
        1048576 Ring/LL 68.65 us, 15.28 GB/s
        16777216 Ring/LL128 185.55 us, 90.42 GB/s
        268435456 Ring/LL128 1858.81 us, 144.41 GB/s
        8589934592 Ring/Simple 45547.64 us, 188.59 GB/s
    "#]],
    );
}

/// The same server with ports whose network reduces.
fn reducing(sm: u32, links: u32, class: &str) -> String {
    server(sm, links, class).replace("<net ", "<net coll=\"1\" ")
}

const COLLNET: (&str, &str) = ("NCCL_COLLNET_ENABLE", "1");

/// Four Hopper servers in such a network.
fn four_reducing(profile: Profile) -> Question {
    question(&reducing(90, 18, "32.0 GT/s PCIe"), profile, 4, &[COLLNET])
}

#[test]
fn a_network_that_reduces_is_weighed_in_2_7_and_2_18() {
    let ampere = question(&reducing(80, 12, "16 GT/s"), Profile::V2_7_8, 4, &[COLLNET]);
    check(
        &ampere,
        Op::AllReduce,
        expect![[r#"
        all_reduce 32 ranks, 16 channels
        Tree/LL 37.5/10.5
        Tree/LL128 55.2/48.0
        Tree/Simple 592.0/40.0
        Ring/LL 67.2/24.8
        Ring/LL128 140.4/69.0
        Ring/Simple 256.4/99.1
        CollNet/LL 22.0/14.4
        CollNet/Simple 66.7/86.4
        8 CollNet/LL 22.00 us, 0.00 GB/s
        32768 CollNet/LL 24.28 us, 2.62 GB/s
        1048576 CollNet/Simple 78.84 us, 25.77 GB/s
        16777216 CollNet/Simple 260.88 us, 124.60 GB/s
        268435456 CollNet/Simple 3173.59 us, 163.88 GB/s
        8589934592 Ring/Simple 87169.44 us, 190.93 GB/s
    "#]],
    );
    check(
        &four_reducing(Profile::V2_18_5),
        Op::AllReduce,
        expect![[r#"
        all_reduce 32 ranks, 16 channels
        Tree/LL 35.2/8.7
        Tree/LL128 65.5/98.6
        Tree/Simple 112.0/122.4
        Ring/LL 82.2/10.5
        Ring/LL128 148.6/151.5
        Ring/Simple 304.0/185.8
        CollNetDirect/Simple 33.7/163.2
        CollNetChain/Simple 80.5/192.0
        NVLS/Simple 41.0/266.7
        NVLSTree/Simple 137.0/149.3
        8 CollNetDirect/Simple 33.70 us, 0.00 GB/s
        32768 CollNetDirect/Simple 33.90 us, 1.87 GB/s
        1048576 CollNetDirect/Simple 40.13 us, 50.63 GB/s
        16777216 NVLS/Simple 103.91 us, 312.81 GB/s
        268435456 NVLS/Simple 1047.63 us, 496.45 GB/s
        8589934592 NVLS/Simple 32253.26 us, 516.01 GB/s
    "#]],
    );
}

#[test]
fn a_network_that_reduces_is_weighed_in_2_21() {
    check(
        &four_reducing(Profile::V2_21_5),
        Op::AllReduce,
        expect![[r#"
        all_reduce 32 ranks, 16 channels
        Tree/LL 35.2/8.7
        Tree/LL128 65.5/98.6
        Tree/Simple 504.0/122.4
        Ring/LL 82.2/10.5
        Ring/LL128 148.6/151.5
        Ring/Simple 304.0/198.2
        CollNetDirect/Simple 44.0/163.2
        CollNetChain/Simple 69.2/192.0
        NVLS/Simple 43.0/266.7
        NVLSTree/Simple 81.0/160.0
        8 Tree/LL 35.20 us, 0.00 GB/s
        32768 Tree/LL 40.60 us, 1.56 GB/s
        1048576 NVLS/Simple 46.93 us, 43.29 GB/s
        16777216 NVLS/Simple 105.91 us, 306.91 GB/s
        268435456 NVLS/Simple 1049.63 us, 495.50 GB/s
        8589934592 NVLS/Simple 32255.26 us, 515.98 GB/s
    "#]],
    );
    check(
        &four_reducing(Profile::V2_21_5),
        Op::ReduceScatter,
        expect![[r#"
        reduce_scatter 32 ranks, 16 channels
        Ring/LL 42.7/21.1
        Ring/LL128 79.2/303.1
        Ring/Simple 145.6/396.4
        CollNetDirect/Simple 44.0/326.4
        NVLS/Simple 43.0/266.7
        8 Ring/LL 42.70 us, 0.00 GB/s
        32768 NVLS/Simple 43.12 us, 0.74 GB/s
        1048576 NVLS/Simple 46.93 us, 21.64 GB/s
        16777216 CollNetDirect/Simple 95.40 us, 170.36 GB/s
        268435456 Ring/Simple 822.81 us, 316.05 GB/s
        8589934592 Ring/Simple 21816.17 us, 381.44 GB/s
    "#]],
    );
}

#[test]
fn a_network_that_reduces_is_weighed_in_2_27_and_2_30() {
    check(
        &four_reducing(Profile::V2_27_7),
        Op::AllReduce,
        expect![[r#"
        all_reduce 32 ranks, 16 channels
        Tree/LL 35.2/8.7
        Tree/LL128 65.5/98.6
        Tree/Simple 120.4/122.4
        Ring/LL 78.8/10.5
        Ring/LL128 144.4/151.5
        Ring/Simple 282.8/198.2
        CollNetDirect/Simple 44.0/163.2
        CollNetChain/Simple 69.2/192.0
        NVLS/Simple 43.0/266.7
        NVLSTree/Simple 81.0/160.0
        8 Tree/LL 35.20 us, 0.00 GB/s
        32768 Tree/LL 40.60 us, 1.56 GB/s
        1048576 NVLS/Simple 46.93 us, 43.29 GB/s
        16777216 NVLS/Simple 105.91 us, 306.91 GB/s
        268435456 NVLS/Simple 1049.63 us, 495.50 GB/s
        8589934592 NVLS/Simple 32255.26 us, 515.98 GB/s
    "#]],
    );
    check(
        &four_reducing(Profile::V2_27_7),
        Op::AllGather,
        expect![[r#"
        all_gather 32 ranks, 16 channels
        Ring/LL 42.7/21.1
        Ring/LL128 79.2/303.1
        Ring/Simple 145.6/396.4
        CollNetDirect/Simple 44.0/345.6
        NVLS/Simple 43.0/280.0
        8 Ring/LL 42.70 us, 0.00 GB/s
        32768 NVLS/Simple 43.12 us, 0.74 GB/s
        1048576 NVLS/Simple 46.74 us, 21.73 GB/s
        16777216 CollNetDirect/Simple 92.55 us, 175.62 GB/s
        268435456 CollNetDirect/Simple 820.72 us, 316.85 GB/s
        8589934592 Ring/Simple 21816.17 us, 381.44 GB/s
    "#]],
    );
    check(
        &four_reducing(Profile::V2_30_7),
        Op::AllReduce,
        expect![[r#"
        all_reduce 32 ranks, 16 channels
        Tree/LL 35.2/8.7
        Tree/LL128 65.5/98.6
        Tree/Simple 120.4/122.4
        Ring/LL 78.8/10.5
        Ring/LL128 144.4/151.5
        Ring/Simple 282.8/198.2
        CollNetDirect/Simple 44.0/163.2
        CollNetChain/Simple 69.2/192.0
        NVLS/Simple 43.0/198.2
        NVLSTree/Simple 108.6/187.9
        8 Tree/LL 35.20 us, 0.00 GB/s
        32768 Tree/LL 40.60 us, 1.56 GB/s
        1048576 NVLS/Simple 48.29 us, 42.07 GB/s
        16777216 NVLS/Simple 127.65 us, 254.65 GB/s
        268435456 NVLS/Simple 1397.41 us, 372.18 GB/s
        8589934592 NVLS/Simple 43384.14 us, 383.62 GB/s
    "#]],
    );
}

/// The algorithms with any bandwidth.
fn used(question: &Question, op: Op) -> String {
    let found = predict(question, op, &[8]).expect("a prediction");
    let mut names: Vec<_> = found.table.iter().filter(|it| 0.0 < it.bandwidth_gbps).collect();
    names.dedup_by_key(|it| it.algorithm);
    names.iter().map(|it| it.algorithm.name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_network_reduces_for_enough_servers_of_few_gpus_that_ask_for_it() {
    let xml = reducing(80, 12, "16.0 GT/s PCIe");
    let of = |profile, nodes, env: &[(&str, &str)]| {
        used(&question(&xml, profile, nodes, env), Op::AllReduce)
    };
    for profile in Profile::ALL {
        let plain = "Tree Ring";
        let all = match profile {
            Profile::V2_7_8 => "Tree Ring CollNet",
            _ => "Tree Ring CollNetDirect CollNetChain",
        };
        assert_eq!(of(profile, 2, &[]), plain, "{profile}");
        assert_eq!(of(profile, 2, &[COLLNET]), all, "{profile}");
        assert_eq!(of(profile, 1, &[COLLNET]), plain, "{profile}");
        let threshold = [COLLNET, ("NCCL_COLLNET_NODE_THRESHOLD", "4")];
        let reads = profile != Profile::V2_7_8;
        assert_eq!(of(profile, 3, &threshold), if reads { plain } else { all }, "{profile}");
        assert_eq!(of(profile, 4, &threshold), all, "{profile}");
    }
    // Ports that do not reduce.
    let plain = server(80, 12, "16.0 GT/s PCIe");
    let asked = question(&plain, Profile::V2_27_7, 2, &[COLLNET]);
    assert_eq!(used(&asked, Op::AllReduce), "Tree Ring");
    // Nine GPUs are too many.
    let ninth = "<pci busid=\"0000:91:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" \
                 link_width=\"16\">\n<gpu dev=\"8\" sm=\"80\" rank=\"8\" gdr=\"1\">\n\
                 <nvlink target=\"ffff:ff:ff.f\" count=\"12\" tclass=\"0x068000\"/>\n</gpu>\n</pci>\n";
    let nine = xml.replacen("</cpu>", &format!("{ninth}</cpu>"), 1);
    for profile in [Profile::V2_18_5, Profile::V2_21_5, Profile::V2_27_7, Profile::V2_30_7] {
        let asked = question(&nine, profile, 2, &[COLLNET]);
        assert_eq!(used(&asked, Op::AllReduce), "Tree Ring", "{profile}");
    }
}

#[test]
fn chains_to_a_reducing_network_begin_at_its_heads_in_2_30() {
    // Four GPUs and two ports on one processor: chains from the first and the last GPU, direct
    // channels from the first and the second.
    let mut xml = String::from(
        "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" \
         vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n",
    );
    let link = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
    for gpu in 0..4 {
        xml += &format!(
            "<pci busid=\"0000:{}0:00.0\" class=\"0x030200\" {link}>\n\
             <gpu dev=\"{gpu}\" sm=\"80\" rank=\"{gpu}\" gdr=\"1\"/>\n</pci>\n",
            gpu + 1
        );
    }
    for net in 0..2 {
        xml += &format!(
            "<pci busid=\"0000:{}5:00.0\" class=\"0x020700\" {link}>\n<nic>\n\
             <net name=\"m{net}\" dev=\"{net}\" speed=\"100000\" port=\"1\" guid=\"0x{net}1\" \
             maxconn=\"64\" gdr=\"1\" coll=\"1\"/>\n</nic>\n</pci>\n",
            net + 1
        );
    }
    xml += "</cpu>\n</system>\n";
    let of = |profile| used(&question(&xml, profile, 2, &[COLLNET]), Op::AllReduce);
    assert_eq!(of(Profile::V2_29_7), "Tree Ring CollNetChain");
    assert_eq!(of(Profile::V2_30_7), "Tree Ring");
}

#[test]
fn each_variable_of_the_model_changes_what_is_foreseen() {
    let one = hopper().split("</pci>\n</pci>\n").next().expect("a first switch").to_owned()
        + "</pci>\n</pci>\n</cpu>\n</system>\n";
    let op = Op::AllGather;
    let of = |profile, env: &[(&str, &str)]| {
        let asked = question(&one, profile, 4, env);
        let found = predict(&asked, op, &[8]).expect("a prediction");
        (used(&asked, op), found.forecasts[0].time_us, found.unread)
    };
    let late = Profile::V2_27_7;
    assert_eq!(of(late, &[]).0, "Ring PAT");
    assert_eq!(of(late, &[("NCCL_PAT_ENABLE", "0")]).0, "Ring");
    assert_eq!(of(late, &[("NCCL_PAT_ENABLE", "2")]).0, "Ring PAT");
    let eight = question(&hopper(), late, 2, &[("NCCL_PAT_ENABLE", "1")]);
    assert_eq!(used(&eight, op), "Ring PAT");
    let slow = question(&hopper(), late, 2, &[("NCCL_NET_OVERHEAD", "7000")]);
    let fast = question(&hopper(), late, 2, &[]);
    let time = |it: &Question| predict(it, op, &[8]).expect("a prediction").forecasts[0].time_us;
    assert!(time(&fast) < time(&slow));
    // 2.21 has neither PAT nor its variable.
    let variables = [("NCCL_PAT_ENABLE", "1"), ("NCCL_NETDEVS_POLICY", "ALL")];
    let (names, _, unread) = of(Profile::V2_21_5, &variables);
    assert_eq!(names, "Ring");
    assert_eq!(unread, ["NCCL_NETDEVS_POLICY", "NCCL_PAT_ENABLE"]);
    let wrong = question(&one, late, 4, &[("NCCL_PAT_ENABLE", "yes")]);
    expect![[r#"NCCL_PAT_ENABLE is "yes"; a whole number is expected"#]]
        .assert_eq(&predict(&wrong, op, &[8]).expect_err("refused").to_string());
}

#[test]
fn what_the_variables_take_away_is_not_chosen() {
    let of = |env: &[(&str, &str)], op| {
        let question = question(&hopper(), Profile::V2_27_7, 4, env);
        let found = predict(&question, op, &[8, 1 << 30]).map_err(|error| error.to_string())?;
        let choices: Vec<String> = found.forecasts.iter().map(choice).collect();
        Ok::<_, String>(choices.join(" "))
    };
    let all = Op::AllReduce;
    assert_eq!(of(&[("NCCL_ALGO", "Ring")], all).as_deref(), Ok("Ring/LL Ring/Simple"));
    assert_eq!(of(&[("NCCL_ALGO", "^ring,NVLSTree")], all).as_deref(), Ok("Tree/LL Tree/Simple"));
    assert_eq!(of(&[("NCCL_PROTO", "simple")], all).as_deref(), Ok("NVLSTree/Simple Ring/Simple"));
    let mixed = [("NCCL_ALGO", "tree;allgather:ring"), ("NCCL_PROTO", "LL128")];
    assert_eq!(of(&mixed, Op::AllGather).as_deref(), Ok("Ring/LL128 Ring/LL128"));
    let none = of(&[("NCCL_ALGO", "Tree")], Op::AllGather).expect_err("nothing");
    expect!["NCCL_ALGO and NCCL_PROTO leave no way to do all_gather; NCCL gives up"]
        .assert_eq(&none);
    // Until 2.23 rings are taken away from nobody who has nothing else.
    for profile in [Profile::V2_7_8, Profile::V2_18_5, Profile::V2_21_5] {
        let old = question(&hopper(), profile, 2, &[("NCCL_ALGO", "Tree")]);
        assert_eq!(used(&old, Op::AllGather), "Ring", "{profile}");
    }
    // So is a wish for a network's reduction that there is not.
    for profile in [Profile::V2_18_5, Profile::V2_21_5] {
        let vain = question(&hopper(), profile, 2, &[("NCCL_ALGO", "CollNetChain")]);
        assert_eq!(used(&vain, all), "Tree Ring", "{profile}");
    }
}

#[test]
fn words_that_nccl_does_not_know_are_named() {
    let of = |profile, name, value| {
        let question = question(&hopper(), profile, 1, &[(name, value)]);
        predict(&question, Op::AllReduce, &[8]).expect_err("refused").to_string()
    };
    expect![[r#"NCCL_ALGO names "Rnig"; NCCL 2.7.8 knows Tree, Ring, CollNet"#]].assert_eq(&of(
        Profile::V2_7_8,
        "NCCL_ALGO",
        "Rnig",
    ));
    let late = of(Profile::V2_27_7, "NCCL_ALGO", "CollNet");
    assert!(late.ends_with("Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT"), "{late}");
    let op = of(Profile::V2_27_7, "NCCL_PROTO", "all_reduce:LL");
    assert!(op.contains("\"all_reduce\" is none of Broadcast, Reduce, AllGather"), "{op}");
    expect![[r#"NCCL_ALGO is "allreduce:ring"; NCCL 2.7.8 takes one list for all operations"#]]
        .assert_eq(&of(Profile::V2_7_8, "NCCL_ALGO", "allreduce:ring"));
    expect![[r#"NCCL_ALGO is "ring;tree"; only its first list may be without an operation"#]]
        .assert_eq(&of(Profile::V2_27_7, "NCCL_ALGO", "ring;tree"));
}

#[test]
fn every_forecast_is_the_least_of_its_table_and_grows_with_its_size() {
    for profile in Profile::ALL {
        for nodes in [1, 2, 5] {
            for op in Op::ALL {
                let sizes: Vec<u64> = (3..34).map(|it| 1 << it).collect();
                let asked = question(&hopper(), profile, nodes, &[]);
                let found = predict(&asked, op, &sizes).expect("a prediction");
                let sane = |it: &Forecast| 0.0 < it.time_us && it.time_us.is_finite();
                assert!(found.forecasts.iter().all(sane), "{profile} {nodes} {op:?}");
                let least = found.table.iter().filter(|it| 0.0 < it.bandwidth_gbps);
                let least = least.map(|it| it.latency_us).fold(f32::MAX, f32::min);
                assert!(f64::from(least) <= found.forecasts[0].time_us, "{profile} {nodes} {op:?}");
                let (first, last) = (&found.forecasts[0], &found.forecasts[sizes.len() - 1]);
                assert!(first.time_us < last.time_us, "{profile} {nodes} {op:?}");
            }
        }
    }
}

const TESTS: &str = "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)
# Collective test starting: all_reduce_perf
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    28.23    0.00    0.00      0    27.91    0.00    0.00      0
   134217728      33554432     float     sum      -1    689.1  194.78  340.86      0    690.3  194.44  340.26    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 170.4
";

#[test]
fn tables_of_nccl_tests_are_read_in_their_forms() {
    let rows = |text: &str| {
        let measured = measured::read(text).expect("a table");
        let rows =
            measured.rows.iter().map(|it| format!("{} {} {}", it.bytes, it.time_us, it.busbw_gbps));
        format!("{:?} {}", measured.op, rows.collect::<Vec<_>>().join(", "))
    };
    expect!["Some(AllReduce) 8 28.23 0, 134217728 689.1 340.86"].assert_eq(&rows(TESTS));
    // mpirun's and srun's own words before each line, and CRLF.
    let tagged: String = TESTS.lines().map(|it| format!("[1,0]<stdout>:{it}\r\n")).collect();
    assert_eq!(rows(&tagged), rows(TESTS));
    let numbered: String = TESTS.lines().map(|it| format!("0: {it}\n")).collect();
    assert_eq!(rows(&numbered), rows(TESTS));
    // Without a root and a redop, and out of place alone.
    let short =
        "#  size  count  type  time  algbw  busbw #wrong\n 1024 256 float 12.5 0.08 0.07 0e+00\n";
    expect!["None 1024 12.5 0.07"].assert_eq(&rows(short));
}

#[test]
fn tables_that_cannot_be_read_are_named_by_their_line() {
    let wrong = |text: &str| measured::read(text).expect_err("refused").to_string();
    expect!["no row of nccl-tests in 0 lines; paste all that its program prints"]
        .assert_eq(&wrong(""));
    expect!["line 2: 4 words; a row has size, count, type, time, algbw, busbw, #wrong"]
        .assert_eq(&wrong("# size time busbw\n8 2 float 1.0\n"));
    expect![[r#"line 7: "fast" is no time in us"#]]
        .assert_eq(&wrong(&TESTS.replace("28.23", "fast")));
    expect![[r#"line 8: "12x" is no size in bytes"#]]
        .assert_eq(&wrong(&TESTS.replace("134217728      3", "12x      3")));
    expect![[r#"line 8: "nan" is no busbw in GB/s"#]]
        .assert_eq(&wrong(&TESTS.replace("340.86", "nan")));
}

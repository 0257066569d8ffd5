//! Pictures of real servers; docs/topo.svg is one of them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_family::host::change::Question;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Strictness, read};
use selvedge_family::host::picture::{Picture, svg};

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

fn view(path: &Path, profile: Profile) -> selvedge_family::host::nccl::view::View {
    let text = fs::read_to_string(path).expect("readable");
    let root = read(&text, Strictness::Lenient { single_quotes: true }).expect("well-formed").root;
    Question::new(root, profile).view().expect("NCCL takes it")
}

/// `selvedge topo show simllm-perlmutter_a100.xml --svg docs/topo.svg --path GPU0,NET2`.
#[test]
fn the_picture_in_the_readme_is_what_is_drawn() {
    let Some(path) = real_input("nccl/topos/simllm-perlmutter_a100.xml") else {
        println!("not run: SELVEDGE_DATA is not set, nccl/topos is not there");
        return;
    };
    let view = view(&path, Profile::V2_30_7);
    let net = view.nets().iter().copied().find(|it| view.graph.net(*it).dev == 2);
    let way = view.graph.gpu_of_rank(0).zip(net);
    let title = "simllm-perlmutter_a100.xml".to_owned();
    let drawn = svg(&view, &Picture { title, way });
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/topo.svg");
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&golden, &drawn).expect("writable");
    }
    assert!(fs::read_to_string(golden).is_ok_and(|it| it == drawn), "UPDATE_EXPECT=1 redraws it");
}

#[test]
fn every_real_server_can_be_drawn() {
    let Some(folder) = real_input("nccl/topos") else {
        println!("not run: SELVEDGE_DATA is not set, nccl/topos is not there");
        return;
    };
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        for profile in Profile::ALL {
            let view = view(&path, profile);
            let way = view.gpus().first().copied().zip(view.nets().last().copied());
            let drawn = svg(&view, &Picture { title: "<&>".to_owned(), way });
            let gpus = drawn.matches("rect class=\"GPU").count();
            assert_eq!(gpus, view.gpus().len(), "{} {profile}", path.display());
            let reached = way.is_some_and(|(gpu, net)| view.path(gpu, net).count > 0);
            assert_eq!(drawn.contains("class=\"way\""), reached, "{} {profile}", path.display());
            assert!(!drawn.contains("NaN") && !drawn.contains("<&>"));
        }
    }
}

/// Eight CPUs stand in two rows, and the way between two that are no neighbours is whole.
#[test]
fn a_way_over_eight_cpus_is_drawn_without_a_hole() {
    let mut text = "<system version=\"1\">\n".to_owned();
    for cpu in 0..8 {
        text.push_str(&format!(
            "<cpu numaid=\"{cpu}\" affinity=\"ff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" \
             familyid=\"23\" modelid=\"49\">\n<pci busid=\"0000:{cpu}1:00.0\" class=\"0x030200\" \
             link_speed=\"16 GT/s\" link_width=\"16\">\n<gpu dev=\"{cpu}\" sm=\"80\" rank=\"{cpu}\" \
             gdr=\"1\"/>\n</pci>\n</cpu>\n"
        ));
    }
    let root = read(&(text + "</system>\n"), Strictness::Lenient { single_quotes: true });
    let question = Question::new(root.expect("well-formed").root, Profile::V2_27_7);
    let view = question.view().expect("NCCL takes it");
    let gpus = view.gpus();
    for (from, to) in [(0, 7), (0, 3), (5, 7), (4, 1), (2, 3)] {
        let way = Some((gpus[from], gpus[to]));
        let drawn = svg(&view, &Picture { title: "eight".to_owned(), way });
        // PCI, between CPUs, PCI.
        assert_eq!(drawn.matches("class=\"way\"").count(), 3, "{from} {to}");
        let head = drawn.lines().next().expect("a line");
        let size = |name: &str| -> f32 {
            let (_, rest) = head.split_once(&format!(" {name}=\"")).expect("it has a size");
            rest.split('"').next().and_then(|it| it.parse().ok()).expect("a number")
        };
        assert!(size("width") < 3.0 * size("height"), "{head}");
    }
}

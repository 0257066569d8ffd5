//! The matrix from a log, and pictures of real servers; docs/topo.svg is one of them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use selvedge_family::host::change::Question;
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Strictness, read};
use selvedge_family::host::picture::{Picture, svg};

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

const LOG: &str = "\
n:7:9 [0] NCCL INFO === System : maxBw 24.0 totalBw 240.0 ===
n:7:9 [0] NCCL INFO CPU/0-0 (1/1/2)
n:7:9 [0] NCCL INFO + PCI[24.0] - GPU/0-7000 (0)
n:7:9 [0] NCCL INFO               + NVL[240.0] - NVS/0-0
n:7:9 [0] NCCL INFO + PCI[24.0] - GPU/0-f000 (1)
n:7:9 [0] NCCL INFO + PCI[24.0] - NIC/0-9000
n:7:9 [0] NCCL INFO               + NET[25.0] - NET/0-a (0/b060/1/25.000000)
n:7:9 [0] NCCL INFO GPU/0-7000 :GPU/0-7000 (0/5000.000000/LOC) GPU/0-f000 (2/240.000000/NVL) \
CPU/0-0 (1/24.000000/PHB) NET/0-a (3/24.000000/PHB)
n:8:9 [1] NCCL INFO GPU/0-7000 :GPU/0-7000 (0/5000.000000/LOC) GPU/0-f000 (2/1.000000/SYS)
n:7:9 [0] NCCL INFO GPU/0-f000 :GPU/0-7000 (2/240.000000/NVL) GPU/0-f000 (0/5000.000000/LOC)
n:7:9 [0] NCCL INFO NET/0-a :GPU/0-7000 (3/24.000000/PHB) GPU/0-f000 (3/24.000000/PHB)
n:7:9 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 7000 / HCA a (distance 8 <= 9), read 1
n:7:9 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 7000 / HCA a (distance 8 <= 9), read 0
n:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct
";

#[test]
fn a_log_s_lines_make_the_matrix() {
    let matrix = Matrix::in_log(LOG).expect("paths are spelled out");
    expect![[r#"
               GPU0  GPU1  NET10
        GPU0   X     NVL!  PHB*
        GPU1   NVL   X     ?
        NET10  PHB*  PHB   X

        GB/s   GPU0  GPU1  NET10
        GPU0   X     240   24
        GPU1   240   X     ?
        NET10  24    24    X

        !  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving

        NVL  NVLink
        PHB  through a CPU
    "#]]
    .assert_eq(&matrix.text());
    assert_eq!(Matrix::in_log("nothing of the kind\nGPU/1 :broken (x/y/z) GPU/2"), None);
}

/// A log made of a view's own paths gives the view's own matrix again.
#[test]
fn no_cut_of_a_log_makes_it_panic() {
    for at in 0..LOG.len() {
        let _ = Matrix::in_log(&LOG[..at]);
        let _ = Matrix::in_log(&LOG[at..]);
    }
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

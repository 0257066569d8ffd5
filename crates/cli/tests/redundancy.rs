//! `selvedge redundancy place`, and what a launcher makes of its files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use mpi::{Mpi, told};

const MESH: &str = "format = 1\nname = \"mesh\"\n[[pod]]\nfamily = \"tpuv2\"\ngrid = \"8x6\"\n\
                    wrap = \"none\"\n";

fn place(folder: &Path, words: &[&str]) -> Output {
    let plant = folder.join("mesh.toml");
    fs::write(&plant, MESH).unwrap();
    let mut selvedge = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    selvedge.args(["redundancy", "place"]).args(words).current_dir(folder);
    if !words.iter().any(|it| it.starts_with("--same-host") || *it == "--slice") {
        selvedge.arg("--plant").arg(&plant);
    }
    selvedge.output().unwrap()
}

fn said(out: &Output) -> String {
    assert!(out.status.success(), "{}", told(out));
    String::from_utf8(out.stdout.clone()).unwrap()
}

fn refused(out: &Output, why: &str) {
    let text = told(out);
    assert!(!out.status.success() && text.contains(why), "{text}");
}

/// Method: Open MPI starts its daemons by an agent of ours, which gives each a host name of its
/// own; every process tells its number and its host.
#[test]
fn open_mpi_starts_each_replica_on_the_host_that_the_rankfile_names() {
    let Some(mpi) = Mpi::named("openmpi") else {
        println!("not run: Open MPI is not installed");
        return;
    };
    let can = Command::new("unshare").args(["--uts", "true"]).status();
    if !can.is_ok_and(|it| it.success()) {
        println!("not run: this account may not give processes a host name of their own");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ranks = said(&place(folder.path(), &["--ranks", "3", "--format", "rankfile"]));
    let (file, agent) = (folder.path().join("ranks"), folder.path().join("agent"));
    fs::write(&file, &ranks).unwrap();
    let text = format!(
        "#!/bin/sh\nhost=$1; shift\nexport TMPDIR={}/$host; mkdir -p $TMPDIR\n\
         exec unshare --uts sh -c \"hostname $host; $*\"\n",
        folder.path().display()
    );
    fs::write(&agent, text).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let mut plain = Command::new("timeout");
    plain.args([mpi::limit_s(), "mpirun.openmpi", "--allow-run-as-root", "--rankfile"]).arg(&file);
    plain.args(["--mca", "plm_rsh_agent"]).arg(&agent);
    plain.args(["--mca", "plm_rsh_no_tree_spawn", "1"]);
    plain.args(["sh", "-c", "echo $OMPI_COMM_WORLD_RANK $(hostname)"]);
    let out = plain.output().unwrap();
    let found: BTreeMap<usize, String> = said(&out)
        .lines()
        .map(|it| it.split_once(' ').unwrap())
        .map(|(process, host)| (process.parse().unwrap(), host.to_owned()))
        .collect();
    for line in ranks.lines() {
        let (process, rest) = line.strip_prefix("rank ").unwrap().split_once('=').unwrap();
        let host = rest.split(' ').next().unwrap();
        assert_eq!(found[&process.parse().unwrap()], host, "{ranks}\n{found:?}");
    }
    assert_eq!(found.len(), 9);
    assert_eq!(found.values().collect::<BTreeSet<_>>().len(), 9, "{found:?}");
    assert!(mpi.is_open_mpi());
}

#[test]
fn names_that_are_one_host_to_open_mpi_are_refused_where_it_would_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    let name =
        |it: &str| format!("board1.0 {it}\nboard2.0 n1.rack2.site\nboard3.0 n2.rack1.site\n");
    let files = ["hostlist", "slurm", "rankfile"];
    fs::write(&names, name("n1.rack1.site")).unwrap();
    for format in files {
        let words = ["--ranks", "1", "--names", "names", "--format", format];
        let out = place(folder.path(), &words);
        if format == "rankfile" {
            refused(&out, "n1.rack2.site and n1.rack1.site are one host to Open MPI");
        } else {
            assert!(said(&out).contains("n1.rack2.site"));
        }
    }
    // Addresses are not cut.
    let addresses = "board1.0 10.0.0.1\nboard2.0 10.0.0.2\nboard3.0 10.0.0.3\n";
    fs::write(&names, addresses).unwrap();
    let words = ["--ranks", "1", "--names", "names", "--format", "rankfile"];
    assert!(said(&place(folder.path(), &words)).contains("10.0.0.2"));
}

#[test]
fn every_rank_has_a_row_and_every_form_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let table = said(&place(folder.path(), &["--ranks", "5", "--slots", "2"]));
    assert!(table.starts_with("mesh: 5 ranks in 3 replicas on 3 clusters\n"), "{table}");
    let rows = table.lines().filter(|it| it.contains("board") && it.contains('+'));
    assert_eq!(rows.count(), 5, "{table}");
    let table = said(&place(folder.path(), &["--ranks", "100", "--slots", "50"]));
    assert!(table.contains("and 88 more"), "{table}");
    let one = said(&place(folder.path(), &["--ranks", "1"]));
    assert!(one.starts_with("mesh: 1 rank in 3 replicas on 1 cluster\n"), "{one}");
    let json = said(&place(folder.path(), &["--ranks", "1", "--format", "rankfile", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["placement"].as_array().unwrap().len(), 1);
}

#[test]
fn one_host_takes_what_it_has_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let on_one = |words: &[&str]| place(folder.path(), &[&["--ranks", "4"], words].concat());
    refused(&on_one(&["--same-host", "--slots", "1"]), "there is room for 0 processes");
    refused(&on_one(&["--same-host="]), "is no name of a host");
    let file = said(&on_one(&["--same-host", "--slots", "12", "--format", "rankfile"]));
    assert_eq!(file.lines().count(), 12);
}

/// Goal: a job's own clusters are what a launcher is told, by the addresses of their machines.
#[test]
fn a_slice_is_told_to_launchers_by_its_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let write = |clusters: &str, network: &str| {
        let tasks: Vec<_> = (0..6)
            .map(|it| {
                let address = format!("{network}.{}", it + 1);
                serde_json::json!({"machine": format!("cube0/m0{it}"), "address": address})
            })
            .collect();
        let clusters: serde_json::Value = serde_json::from_str(clusters).unwrap();
        let text = serde_json::json!({"job": 3, "tasks": tasks, "clusters": clusters});
        fs::write(folder.path().join("slice.json"), text.to_string()).unwrap();
    };
    let placed =
        |words: &[&str]| place(folder.path(), &[&["--slice", "slice.json"], words].concat());
    write("[[1, 0, 2], [4, 3, 5]]", "10.0.0");
    let ranks = said(&placed(&["--ranks", "3", "--slots", "2", "--format", "rankfile"]));
    let rows: Vec<&str> = ranks.lines().collect();
    assert_eq!(rows.len(), 9, "{ranks}");
    assert_eq!(rows[0], "rank 0=10.0.0.2 slot=0");
    assert_eq!(rows[5], "rank 5=10.0.0.6 slot=0");
    assert_eq!(rows[7], "rank 7=10.0.0.1 slot=1", "rank 2 goes to the first cluster again");
    refused(&placed(&["--ranks", "3"]), "there is room for 2 processes");
    write("[[1, 0, 2], [4, 3, 5]]", "127.0.0");
    let hosts = said(&placed(&["--format", "hostlist"]));
    assert!(hosts.contains("cube0-m01"), "simulated machines have no hosts of their own: {hosts}");
    write("[]", "10.0.0");
    refused(&placed(&[]), "it has no clusters");
}

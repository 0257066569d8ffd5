//! What the Debian package brings, without building it; `cargo xtask prove package` builds it.

use std::fs;
use std::process::Command;

use crate::{has_program, program, root};

#[test]
fn the_unit_is_one_that_systemd_takes_and_finds_hardened() {
    if !has_program("systemd-analyze", "systemd-analyze verify and security") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let unit = fs::read_to_string(root("packaging/selvedge.service")).unwrap();
    let bin = env!("CARGO_BIN_EXE_selvedge");
    let path = dir.path().join("selvedge.service");
    fs::write(&path, unit.replace("/usr/bin/selvedge", bin)).unwrap();
    let analyze = |args: &[&str]| {
        let done = Command::new("systemd-analyze").args(args).arg(&path).output().unwrap();
        let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert!(done.status.success(), "{args:?}: {text}");
        text
    };
    let told = analyze(&["verify", "--man=no"]);
    assert!(!told.contains("selvedge.service"), "{told}");
    // Tenths of its exposure, from 0 (closed) to 100.
    analyze(&["security", "--offline=yes", "--no-pager", "--threshold=25"]);
}

#[test]
fn scripts_of_the_package_read_and_leave_data_alone() {
    for name in ["postinst", "prerm", "postrm"] {
        let path = root("packaging/deb").join(name);
        let done = Command::new("sh").arg("-n").arg(&path).output().unwrap();
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("#!/bin/sh\nset -e\n"), "{name} goes on after an error");
        assert!(!text.contains("rm -r"), "{name} removes data");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o111, 0o111, "{name} is a program");
    }
}

#[test]
fn every_verb_has_a_page_that_says_what_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let done = program(dir.path()).args(["man", "."]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let pages = fs::read_dir(dir.path().join("man1")).unwrap();
    let names: Vec<String> =
        pages.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    for verb in ["selvedge", "selvedge-up", "selvedge-user-add", "selvedge-top", "selvedge-events"]
    {
        assert!(names.contains(&format!("{verb}.1")), "{verb}: {names:?}");
    }
    let up = fs::read_to_string(dir.path().join("man1/selvedge-up.1")).unwrap();
    for option in ["config", "tls\\-cert", "listen"] {
        assert!(up.contains(option), "{option}: {up}");
    }
    // The unit names a page that there is.
    let unit = fs::read_to_string(root("packaging/selvedge.service")).unwrap();
    assert!(unit.contains("man:selvedge-up(1)"));
}

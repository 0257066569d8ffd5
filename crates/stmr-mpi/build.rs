//! Makes the exported symbols, and what is done with each, from calls.txt.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=calls.txt");
    // See `prepare` of ends.rs.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    let table = fs::read_to_string("calls.txt").expect("calls.txt stands beside build.rs");
    let rows: Vec<[&str; 3]> = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            words.try_into().unwrap_or_else(|_| panic!("calls.txt: `{line}` is not three words"))
        })
        .collect();
    let mut out = String::new();
    let mut names = String::new();
    let mut communicators = String::new();
    let mut buffers = String::new();
    let mut arms = String::new();
    for (idx, [name, args, class]) in rows.iter().enumerate() {
        let n_args = args.trim_end_matches('-').len();
        let upper = name.to_uppercase();
        let _ = writeln!(out, "pub(crate) const {upper}: Call = Call({idx});");
        let symbol =
            if name.starts_with("MPIX_") { (*name).to_owned() } else { format!("MPI_{name}") };
        let _ = writeln!(names, "    \"P{symbol}\\0\",");
        let mask = |letter: char| -> u32 {
            args.chars().enumerate().filter(|it| it.1 == letter).map(|(at, _)| 1 << at).sum()
        };
        let _ = writeln!(communicators, "    {},", mask('c'));
        let _ = writeln!(buffers, "    {},", mask('b'));
        let answer = match *class {
            "pass" => "Class::Pass".to_owned(),
            "value" => "Class::Value".to_owned(),
            "refuse" => "Class::Refuse".to_owned(),
            "large" => {
                let plain = name.trim_end_matches("_c").to_uppercase();
                let letters = args.as_bytes();
                format!("Class::Large({plain}, &{letters:?})")
            }
            path => format!("Class::Own(crate::{path})"),
        };
        let _ = writeln!(arms, "    {answer},");
        let params: String = (0..n_args).map(|it| format!("a{it}: usize, ")).collect();
        let values: String = (0..n_args).map(|it| format!("a{it}, ")).collect();
        for (prefix, enter) in [("", "enter_first"), ("P", "enter")] {
            let _ = writeln!(
                out,
                "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{symbol}({params}) -> \
                 usize {{\n    let mut args: [usize; {n_args}] = [{values}];\n    let answer = \
                 unsafe {{ crate::{enter}({upper}, &args) }};\n    \
                 crate::stack::forget_call(&mut args);\n    answer\n}}"
            );
        }
    }
    let n = rows.len();
    let _ = writeln!(out, "pub(crate) const N_CALLS: usize = {n};");
    let _ = writeln!(out, "pub(crate) static NAMES: [&str; {n}] = [\n{names}];");
    let _ = writeln!(out, "pub(crate) static COMMUNICATORS: [u32; {n}] = [\n{communicators}];");
    let _ = writeln!(out, "pub(crate) static BUFFERS: [u32; {n}] = [\n{buffers}];");
    let _ = writeln!(out, "pub(crate) static CLASSES: [Class; {n}] = [\n{arms}];");
    let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&folder).join("calls.rs"), out).expect("OUT_DIR is cargo's to write");
}

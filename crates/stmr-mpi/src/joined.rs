//! A process that somebody else's launcher started, with this library preloaded and what `selvedge
//! mpirun --launcher none` said in its environment: before anything else of it runs, it becomes the
//! replica that its launcher's number says.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;

use crate::real;

/// Where launchers write a process's number; what they start beside the program has none.
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// Becomes a replica, if this process is to be one and is none.
pub(crate) fn become_replica(n: c_int, args: *const *const c_char) {
    let has = |name: &str| std::env::var_os(name).is_some();
    let Some(program) = std::env::var_os("SELVEDGE_REPLICA_BY") else { return };
    if has("SELVEDGE_SET") || !RANKS.iter().any(|it| has(it)) {
        return;
    }
    let Ok(program) = CString::new(program.as_bytes()) else { return };
    let given = (0..n as usize).map(|idx| unsafe { CStr::from_ptr(*args.add(idx)) });
    let words = [program.as_c_str(), c"mpirun-replica", c"--"].into_iter().chain(given);
    let row: Vec<*const c_char> = words.map(CStr::as_ptr).chain([std::ptr::null()]).collect();
    // The program that is started in between makes no use of it, and gives it to the replica.
    let others = std::env::var("LD_PRELOAD").unwrap_or_default();
    let others: Vec<&str> =
        others.split([':', ' ']).filter(|it| !it.ends_with("/selvedge-mpi.so")).collect();
    unsafe {
        if others.iter().all(|it| it.is_empty()) {
            std::env::remove_var("LD_PRELOAD");
        } else {
            std::env::set_var("LD_PRELOAD", others.join(":"));
        }
        std::env::remove_var("SELVEDGE_REPLICA_BY");
    }
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    unsafe { libc::syscall(libc::SYS_execve, program.as_ptr(), row.as_ptr(), environ) };
    let why = std::io::Error::last_os_error();
    real::fail(&format!("{} cannot be started: {why}", program.to_string_lossy()));
}

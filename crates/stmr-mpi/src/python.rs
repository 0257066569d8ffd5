//! CPython's own looks at clocks, which no program sees.
//!
//! It looks at one whenever a thread takes a lock, and again and again while a thread waits for its
//! turn to run Python.  How often that is hangs on what other threads do, and so is another number
//! in each replica: these looks are not shared.  What a library looks for that a program of Python
//! calls is shared, also where it runs beside Python, as by `ctypes`.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::origin;

/// No function that takes a lock is farther from its look at the clock, in frames; nor is who looks
/// at it from us.
const FRAMES_MAX: usize = 8;

type Check = unsafe extern "C" fn() -> c_int;

// What the linker finds when it loads this library, if it is there.  To ask for it later takes
// memory, and an allocator of the program's may look at a clock to give it.
std::arch::global_asm!(
    ".weak Py_IsInitialized",
    ".weak PyGILState_Check",
    ".weak PyThread_acquire_lock",
    ".weak PyThread_acquire_lock_timed",
    ".pushsection .data.rel, \"aw\"",
    ".balign 8",
    ".globl selvedge_python",
    ".hidden selvedge_python",
    "selvedge_python:",
    ".quad Py_IsInitialized, PyGILState_Check",
    ".quad PyThread_acquire_lock, PyThread_acquire_lock_timed",
    ".popsection",
);

unsafe extern "C" {
    static selvedge_python: [Option<Check>; 4];
}

/// What of the interpreter is in this process.
struct Python {
    /// Whether it has begun: a program may be linked with it and not want it.
    has_begun: Check,
    /// Whether this thread is the one that runs Python.
    runs: Check,
    /// The code that takes a lock, of which compilers put one form into the other.
    locks: Vec<Range<usize>>,
    /// All its code.
    code: Vec<Range<usize>>,
    /// This library's code.
    own: Vec<Range<usize>>,
}

impl Python {
    fn find() -> Option<Self> {
        let [has_begun, runs, locks @ ..] = unsafe { selvedge_python };
        let (has_begun, runs) = (has_begun?, runs?);
        Some(Self {
            has_begun,
            runs,
            locks: locks.iter().flatten().filter_map(|it| code_of(*it as *const c_void)).collect(),
            code: origin::code_around(runs as usize),
            own: origin::code_around(Self::find as *const () as usize),
        })
    }
}

/// The addresses of a function of the C language, if its library says how long it is.
fn code_of(function: *const c_void) -> Option<Range<usize>> {
    /// `RTLD_DL_SYMENT` of dlfcn.h.
    const SYMBOL: c_int = 1;
    unsafe extern "C" {
        fn dladdr1(
            at: *const c_void,
            info: *mut libc::Dl_info,
            extra: *mut *mut c_void,
            flags: c_int,
        ) -> c_int;
    }
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut symbol: *mut c_void = std::ptr::null_mut();
    let found = unsafe { dladdr1(function, &raw mut info, &raw mut symbol, SYMBOL) };
    if found == 0 || symbol.is_null() {
        return None;
    }
    let length = unsafe { (*symbol.cast::<libc::Elf64_Sym>()).st_size } as usize;
    Some(function as usize..function as usize + length)
}

/// Whether this thread takes a lock of CPython's, or waits for its turn to run Python.
pub(crate) fn locks() -> bool {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let Some(python) = PYTHON.get_or_init(Python::find) else { return false };
    // It takes locks also while it ends, and says then that it has not begun.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.load(Ordering::Relaxed) {
        if unsafe { (python.has_begun)() } == 0 {
            return false;
        }
        BEGUN.store(true, Ordering::Relaxed);
    }
    let is_beside = unsafe { (python.runs)() } == 0;
    let mut frames = [std::ptr::null_mut(); FRAMES_MAX];
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES_MAX as c_int) };
    let mut frames = frames[..n.max(0) as usize].iter().map(|it| *it as usize);
    let is_in = |code: &[Range<usize>], at: usize| code.iter().any(|it| it.contains(&at));
    if is_beside {
        let asking = frames.find(|it| !is_in(&python.own, *it));
        return asking.is_some_and(|it| is_in(&python.code, it));
    }
    frames.any(|it| is_in(&python.locks, it))
}

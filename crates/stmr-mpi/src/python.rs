//! CPython's own looks at clocks, which no program sees.
//!
//! It looks at one whenever a thread takes a lock, and again and again while a thread waits for its
//! turn to run Python.  How often that is hangs on what other threads do, and so is another number
//! in each replica: these looks are not shared.  Nor are those by which it knows until when it is
//! to wait for a lock or to sleep: a program may do so again and again until another thread has
//! done something.  What a library looks for that a program of Python calls is shared, also where
//! it runs beside Python, as by `ctypes`.

use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use selvedge_stmr::digest::Digest;

use crate::origin::{self, Frame};

/// So many of its functions may stand behind one look: the last knows what it is for.
const ASKING: usize = 3;

/// Who looks at a clock is no farther from us, in frames.
const FRAMES_MAX: usize = 16;

/// So many calls of Python's tell where it is.
const LINES: usize = 16;

type Check = unsafe extern "C" fn() -> c_int;

// What the linker finds when it loads this library, if it is there.  To ask for it later takes
// memory, and an allocator of the program's may look at a clock to give it.
std::arch::global_asm!(
    ".weak Py_IsInitialized",
    ".weak PyGILState_Check",
    ".weak PyThread_acquire_lock",
    ".weak PyThread_acquire_lock_timed",
    ".weak _PyDeadline_Init",
    ".weak _PyDeadline_Get",
    ".pushsection .data.rel, \"aw\"",
    ".balign 8",
    ".globl selvedge_python",
    ".hidden selvedge_python",
    "selvedge_python:",
    ".quad Py_IsInitialized, PyGILState_Check",
    ".quad PyThread_acquire_lock, PyThread_acquire_lock_timed",
    ".quad _PyDeadline_Init, _PyDeadline_Get",
    ".weak _PyEval_EvalFrameDefault",
    ".globl selvedge_python_loop",
    ".hidden selvedge_python_loop",
    "selvedge_python_loop: .quad _PyEval_EvalFrameDefault",
    ".weak PyUnicode_FromString",
    ".weak PyImport_GetModule",
    ".weak PyObject_GetAttrString",
    ".weak PyCFunction_GetFunction",
    ".weak Py_DecRef",
    ".weak PyErr_Fetch",
    ".weak PyErr_Restore",
    ".globl selvedge_python_objects",
    ".hidden selvedge_python_objects",
    "selvedge_python_objects:",
    ".quad PyUnicode_FromString, PyImport_GetModule, PyObject_GetAttrString",
    ".quad PyCFunction_GetFunction, Py_DecRef, PyErr_Fetch, PyErr_Restore",
    ".weak PyEval_GetFrame",
    ".weak PyFrame_GetBack",
    ".weak PyFrame_GetLineNumber",
    ".globl selvedge_python_frames",
    ".hidden selvedge_python_frames",
    "selvedge_python_frames:",
    ".quad PyEval_GetFrame, PyFrame_GetBack, PyFrame_GetLineNumber, Py_DecRef",
    ".popsection",
);

unsafe extern "C" {
    static selvedge_python: [Option<Check>; 6];
    static selvedge_python_loop: Option<Check>;
    static selvedge_python_objects: Objects;
    static selvedge_python_frames: Frames;
}

type Object = *mut c_void;

/// What tells where a program of Python is.
#[repr(C)]
#[derive(Clone, Copy)]
struct Frames {
    last: Option<unsafe extern "C" fn() -> Object>,
    back: Option<unsafe extern "C" fn(Object) -> Object>,
    line: Option<unsafe extern "C" fn(Object) -> c_int>,
    let_go: Option<unsafe extern "C" fn(Object)>,
}

impl Frames {
    /// The lines of the calls that are under way, from the last on; 0 where there are no more.
    unsafe fn lines(self) -> Option<[c_int; LINES]> {
        let (back, line, let_go) = (self.back?, self.line?, self.let_go?);
        let mut lines = [0; LINES];
        // The first is borrowed.
        let first = unsafe { (self.last?)() };
        let mut frame = first;
        for it in &mut lines {
            if frame.is_null() {
                break;
            }
            *it = unsafe { line(frame) };
            let next = unsafe { back(frame) };
            if frame != first {
                unsafe { let_go(frame) };
            }
            frame = next;
        }
        if !frame.is_null() && frame != first {
            unsafe { let_go(frame) };
        }
        Some(lines)
    }
}

/// What tells which function of the C language a function of Python's is.
#[repr(C)]
#[derive(Clone, Copy)]
struct Objects {
    text: Option<unsafe extern "C" fn(*const c_char) -> Object>,
    module: Option<unsafe extern "C" fn(Object) -> Object>,
    attribute: Option<unsafe extern "C" fn(Object, *const c_char) -> Object>,
    function: Option<unsafe extern "C" fn(Object) -> usize>,
    let_go: Option<unsafe extern "C" fn(Object)>,
    take_error: Option<unsafe extern "C" fn(*mut Object, *mut Object, *mut Object)>,
    put_error: Option<unsafe extern "C" fn(Object, Object, Object)>,
}

impl Objects {
    /// Where `time.sleep` begins; nothing if that module is not there yet, or the program has put
    /// something of its own there.  An error that Python has is there afterwards, and no other.
    unsafe fn sleep(self) -> Option<usize> {
        let (take_error, put_error) = (self.take_error?, self.put_error?);
        let [mut kind, mut value, mut trace] = [std::ptr::null_mut(); 3];
        unsafe {
            take_error(&raw mut kind, &raw mut value, &raw mut trace);
            let found = self.look_for_sleep();
            put_error(kind, value, trace);
            found.filter(|it| *it != 0)
        }
    }

    unsafe fn look_for_sleep(self) -> Option<usize> {
        let (text, module) = (self.text?, self.module?);
        let (attribute, function, let_go) = (self.attribute?, self.function?, self.let_go?);
        let some = |it: Object| (!it.is_null()).then_some(it);
        unsafe {
            let name = some(text(c"time".as_ptr()))?;
            let time = some(module(name));
            let_go(name);
            let time = time?;
            let sleep = some(attribute(time, c"sleep".as_ptr()));
            let_go(time);
            let sleep = sleep?;
            let begins = function(sleep);
            let_go(sleep);
            Some(begins)
        }
    }
}

/// What of the interpreter is in this process.
struct Python {
    /// Whether it has begun and not ended: a program may be linked with it and not want it.
    has_begun: Check,
    /// Whether this thread is the one that runs Python.
    runs: Check,
    /// The code that takes a lock, of which compilers put one form into the other, or asks until
    /// when one is waited for.
    locks: Vec<Range<usize>>,
    /// All its code.
    code: Vec<Range<usize>>,
    /// Where the functions begin that wait for locks, most of which have no names; but for the one
    /// that runs Python, which calls everything.
    waits: Vec<usize>,
    /// Where the one begins that sleeps; looked up when Python first looks at a clock.
    sleeps: OnceLock<Option<usize>>,
}

impl Python {
    fn find() -> Option<Self> {
        let [has_begun, runs, locks @ ..] = unsafe { selvedge_python };
        let (has_begun, runs) = (has_begun?, runs?);
        let code = origin::code_around(runs as usize);
        let runs_all = unsafe { selvedge_python_loop }.map_or(0, |it| it as usize);
        let is_loop = |it: usize| it == runs_all;
        let named: Vec<usize> = locks.iter().flatten().map(|it| *it as usize).collect();
        Some(Self {
            has_begun,
            runs,
            locks: locks.iter().flatten().filter_map(|it| code_of(*it as *const c_void)).collect(),
            waits: code
                .iter()
                .flat_map(|it| callers(it, &named))
                .filter(|it| !is_loop(*it))
                .collect(),
            code,
            sleeps: OnceLock::new(),
        })
    }

    /// Whether Python has begun.  It goes on to ask also while it ends, and says then that it has
    /// not.
    fn was_begun(&self) -> bool {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        if !BEGUN.load(Ordering::Relaxed) {
            if unsafe { (self.has_begun)() } == 0 {
                return false;
            }
            BEGUN.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Whether what returns there takes a lock, or asks until when it is to wait or to sleep.
    fn is_until(&self, at: usize) -> bool {
        let function = origin::function_around(at);
        let sleeps = self.sleeps.get().copied().flatten();
        let is_known = Some(function) == sleeps || self.waits.contains(&function);
        function != 0 && is_known || is_in(&self.locks, at)
    }

    /// The frames of who asks, and of those who have it ask, if the first is the interpreter's.
    fn asking(&self) -> Option<[usize; ASKING]> {
        let mut found = [0; ASKING];
        let mut n = 0;
        origin::each_frame(FRAMES_MAX, |Frame { at, .. }| {
            if !origin::is_own(at) {
                found[n] = at;
                n += 1;
            }
            n < found.len()
        });
        is_in(&self.code, found[0]).then_some(found)
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

/// Where the functions begin that call one of these by its address.
#[cfg(target_arch = "x86_64")]
fn callers(code: &Range<usize>, called: &[usize]) -> Vec<usize> {
    const CALL: u8 = 0xe8;
    const LENGTH: usize = 5;
    let bytes = unsafe { std::slice::from_raw_parts(code.start as *const u8, code.len()) };
    let calls = bytes.windows(LENGTH).enumerate().filter(|(_, it)| it[0] == CALL);
    let returns = calls.filter_map(|(at, it)| {
        let behind = code.start + at + LENGTH;
        let far = i32::from_le_bytes([it[1], it[2], it[3], it[4]]);
        called.contains(&behind.wrapping_add_signed(far as isize)).then_some(behind)
    });
    returns.map(origin::function_around).filter(|it| *it != 0).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn callers(_code: &Range<usize>, _called: &[usize]) -> Vec<usize> {
    Vec::new()
}

fn python() -> Option<&'static Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    PYTHON.get_or_init(Python::find).as_ref()
}

fn is_in(code: &[Range<usize>], at: usize) -> bool {
    code.iter().any(|it| it.contains(&at))
}

/// Where the program of Python is that this thread runs, if it does.
pub(crate) fn position() -> Option<u64> {
    let python = python()?;
    // Not what has begun and ended.
    if unsafe { (python.has_begun)() == 0 || (python.runs)() == 0 } {
        return None;
    }
    let lines = unsafe { selvedge_python_frames.lines() }?;
    Some(Digest::of(&lines.map(c_int::to_le_bytes).concat()).0 as u64)
}

/// Whether this thread takes a lock of CPython's, waits for its turn to run Python, or asks until
/// when it is to wait or to sleep.
pub(crate) fn locks() -> bool {
    let Some(python) = python() else { return false };
    if !python.was_begun() {
        return false;
    }
    let Some(frames) = python.asking() else { return false };
    if unsafe { (python.runs)() } == 0 {
        return true;
    }
    python.sleeps.get_or_init(|| unsafe { selvedge_python_objects.sleep() });
    frames.iter().any(|it| python.is_until(*it))
}

//! Whose libraries are in this process: what is there for MPI's sake alone, MPI's own and those
//! that nothing else wants, and the drivers of accelerators.
//!
//! Some look at clocks, process numbers and the cycle counter when they are loaded, before any call
//! of MPI: UCX holds the counter against the clock until both agree, which is another number of
//! looks in each replica.  What they ask is MPI's question, and gets the true answer.  So do
//! drivers, whenever they ask, but for the number of the process: each replica is a process of its
//! own to an accelerator.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::state;

/// Who asks something at load is at the most so many frames above us.
const FRAMES_MAX: usize = 16;

/// How the names of MPI's own libraries begin, also of those that programs are linked with by name.
const MPI: [&[u8]; 3] = [b"libmpi", b"libopen-pal.", b"libopen-rte."];

/// How the names of drivers' libraries begin: of CUDA, HIP and Level Zero.
const DRIVERS: [&[u8]; 7] = [
    b"libcuda.so",
    b"libnvidia-",
    b"libamdhip64.so",
    b"libhsa-runtime64.so",
    b"libze_loader.so",
    b"libze_intel_gpu.so",
    b"libigdrcl.so",
];

/// How the names of OpenMP's libraries begin; Python's packages bring some with a number behind.
const OPENMP: [&[u8]; 3] = [b"libgomp", b"libiomp5", b"libomp"];

/// The program has called `MPI_Init`; what MPI asks from then on, it asks within its calls.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Where MPI's code is.
static MPIS: Mutex<OfLoaded<Vec<Range<usize>>>> = Mutex::new(OfLoaded::new(Vec::new()));

/// Where that of drivers is; the program's thread alone has it.
static OF_DRIVERS: Mutex<OfLoaded<Vec<Range<usize>>>> = Mutex::new(OfLoaded::new(Vec::new()));

/// What was found out about everything that was loaded.
#[derive(Default)]
pub(crate) struct OfLoaded<T> {
    /// How many objects had been loaded, ever, when it was.
    n_loaded: u64,
    found: T,
}

impl<T> OfLoaded<T> {
    /// Nothing was looked for yet.
    pub(crate) const fn new(nothing: T) -> Self {
        Self { n_loaded: 0, found: nothing }
    }

    /// Finds it out again if something was loaded since.
    pub(crate) fn look(&mut self, find: impl FnOnce() -> T) -> &T {
        if !self.is_so_still() {
            *self = Self { n_loaded: n_loaded(), found: find() };
        }
        &self.found
    }

    /// Whether nothing was loaded since.
    pub(crate) fn is_so_still(&self) -> bool {
        self.n_loaded == n_loaded()
    }

    /// As it was when it was last looked for.
    pub(crate) fn last(&self) -> &T {
        &self.found
    }
}

/// The program calls `MPI_Init`.
pub(crate) fn begin() {
    BEGUN.store(true, Ordering::Relaxed);
}

/// Whether it is MPI that calls us, before the program has begun it.
pub(crate) fn is_mpi() -> bool {
    if BEGUN.load(Ordering::Relaxed) || !state::is_replica() {
        return false;
    }
    // Who cannot be answered is the program.
    let Ok(mut known) = MPIS.try_lock() else { return false };
    is_called_by(known.look(|| code_of(Loaded::look().mpis)))
}

/// Whether it is an accelerator's driver that calls us; asked in the program's thread.
pub(crate) fn is_driver() -> bool {
    // That thread has it already only in a handler of a signal.
    let Ok(mut known) = OF_DRIVERS.try_lock() else { return false };
    is_called_by(known.look(drivers))
}

/// Whether an instruction of a driver's stands there.
pub(crate) fn is_of_driver(at: usize) -> bool {
    let Ok(mut known) = OF_DRIVERS.try_lock() else { return false };
    known.look(drivers).iter().any(|it| it.contains(&at))
}

fn drivers() -> Vec<Range<usize>> {
    code_of(objects().into_iter().filter(Object::is_driver))
}

fn code_of(objects: impl IntoIterator<Item = Object>) -> Vec<Range<usize>> {
    objects.into_iter().flat_map(|it| it.code).collect()
}

/// Whether some of this code stands behind the call that is made.
fn is_called_by(code: &[Range<usize>]) -> bool {
    if code.is_empty() {
        return false;
    }
    let mut is_by_them = false;
    each_frame(FRAMES_MAX, |Frame { at, .. }| {
        is_by_them = code.iter().any(|it| it.contains(&at));
        !is_by_them
    });
    is_by_them
}

/// A call that is under way.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    /// The instruction that it returns to.
    pub(crate) at: usize,
    /// Where the stack ends there once it has returned.
    pub(crate) stack: usize,
}

/// Looks at the frames behind a call, from its own on, as long as `look` says so and at no more
/// than `most`.
pub(crate) fn each_frame(most: usize, mut look: impl FnMut(Frame) -> bool) {
    let mut frames = 0;
    let mut look = |it: Frame| {
        frames += 1;
        look(it) && frames < most
    };
    let mut look: &mut dyn FnMut(Frame) -> bool = &mut look;
    unsafe { _Unwind_Backtrace(look_at_frame, (&raw mut look).cast()) };
}

// What backtrace(3) is made of, which itself may want the program's memory.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        look: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        with: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
    fn _Unwind_GetCFA(frame: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(at: *const c_void) -> usize;
}

/// Where the function begins to which a call returns there, as what unwinds stacks knows it; 0 if
/// it does not.
pub(crate) fn function_around(at: usize) -> usize {
    unsafe { _Unwind_FindEnclosingFunction(at as *const c_void) }
}

unsafe extern "C" fn look_at_frame(frame: *mut c_void, look: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 5;
    let look = unsafe { &mut *look.cast::<&mut dyn FnMut(Frame) -> bool>() };
    let it = unsafe { Frame { at: _Unwind_GetIP(frame), stack: _Unwind_GetCFA(frame) } };
    if look(it) { GO_ON } else { STOP }
}

/// Everything that is loaded.
pub(crate) struct Loaded {
    /// What the program wants, itself among them.
    pub(crate) programs: Vec<Object>,
    /// What is there for MPI's sake alone.
    mpis: Vec<Object>,
}

impl Loaded {
    pub(crate) fn look() -> Self {
        let objects = objects();
        let find = |need: &Vec<u8>| objects.iter().position(|it| it.answers_to(need));
        let needs: Vec<Vec<usize>> =
            objects.iter().map(|it| it.needs.iter().filter_map(find).collect()).collect();
        let is_needed: BTreeSet<usize> = needs.iter().flatten().copied().collect();
        let is_mpi = |idx: usize| MPI.iter().any(|it| objects[idx].file.starts_with(it));
        // The program, and what it has opened by itself.
        let is_first = |it: &usize| !is_needed.contains(it) && !is_mpi(*it);
        let mut todo: Vec<usize> = (0..objects.len()).filter(is_first).collect();
        let mut wanted: BTreeSet<usize> = todo.iter().copied().collect();
        while let Some(idx) = todo.pop() {
            let next = needs[idx].iter().copied().filter(|it| !is_mpi(*it));
            todo.extend(next.filter(|it| wanted.insert(*it)));
        }
        let mut this = Self { programs: Vec::new(), mpis: Vec::new() };
        for (idx, object) in objects.into_iter().enumerate() {
            let to = if wanted.contains(&idx) { &mut this.programs } else { &mut this.mpis };
            to.push(object);
        }
        this
    }
}

/// How many objects this process has loaded so far.
fn n_loaded() -> u64 {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        unsafe { *found.cast::<u64>() = (*info).dlpi_adds };
        // The first knows it already.
        1
    }
    let mut found = 0_u64;
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// A program or a library in memory.
pub(crate) struct Object {
    /// The name of its file, without folders; empty for the program.
    pub(crate) file: Vec<u8>,
    /// What it calls itself.
    soname: Option<Vec<u8>>,
    /// What it was linked with.
    needs: Vec<Vec<u8>>,
    /// Where its instructions are.
    pub(crate) code: Vec<Range<usize>>,
}

impl Object {
    pub(crate) fn is_driver(&self) -> bool {
        DRIVERS.iter().any(|it| self.file.starts_with(it))
    }

    fn answers_to(&self, need: &[u8]) -> bool {
        self.soname.as_deref().is_some_and(|it| it == need) || self.file == need
    }
}

/// Where the instructions are of what has one there.
pub(crate) fn code_around(at: usize) -> Vec<Range<usize>> {
    let is_around = |it: &Object| it.code.iter().any(|it| it.contains(&at));
    objects().into_iter().find(is_around).map(|it| it.code).unwrap_or_default()
}

/// Whether an instruction of this library's stands there.
pub(crate) fn is_own(at: usize) -> bool {
    static OWN: OnceLock<Vec<Range<usize>>> = OnceLock::new();
    let own = OWN.get_or_init(|| code_around(is_own as *const () as usize));
    own.iter().any(|it| it.contains(&at))
}

/// Where the code of everything is that is loaded, and what its files are called.
pub(crate) fn named_code() -> Vec<(Range<usize>, Vec<u8>)> {
    let named = |it: Object| it.code.into_iter().map(move |code| (code, it.file.clone()));
    objects().into_iter().flat_map(named).collect()
}

/// Whether one of OpenMP's libraries is loaded.
pub(crate) fn has_openmp() -> bool {
    objects().iter().any(|it| OPENMP.iter().any(|name| it.file.starts_with(name)))
}

/// Where the instructions begin of everything that is loaded.
pub(crate) fn code_begins() -> BTreeSet<usize> {
    code_of(objects()).into_iter().map(|it| it.start).collect()
}

/// Everything that is loaded, in the loader's order.
fn objects() -> Vec<Object> {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        let found = unsafe { &mut *found.cast::<Vec<Object>>() };
        found.extend(unsafe { object(&*info) });
        0
    }
    let mut found: Vec<Object> = Vec::new();
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// A row of an object's dynamic section (System V ABI, chapter 5).
#[repr(C)]
struct Row {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;
const DT_SONAME: i64 = 14;

unsafe fn object(info: &libc::dl_phdr_info) -> Option<Object> {
    let base = info.dlpi_addr as usize;
    let name = match info.dlpi_name {
        it if it.is_null() => &[],
        it => unsafe { CStr::from_ptr(it) }.to_bytes(),
    };
    let file = name.rsplit(|it| *it == b'/').next().unwrap_or_default().to_vec();
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let is_code =
        |it: &&libc::Elf64_Phdr| it.p_type == libc::PT_LOAD && it.p_flags & libc::PF_X != 0;
    let range = |it: &libc::Elf64_Phdr| {
        let start = base + it.p_vaddr as usize;
        start..start + it.p_filesz as usize
    };
    let code = headers.iter().filter(is_code).map(range).collect();
    let mut object = Object { file, soname: None, needs: Vec::new(), code };
    let Some(dynamic) = headers.iter().find(|it| it.p_type == libc::PT_DYNAMIC) else {
        return Some(object);
    };
    let first = (base + dynamic.p_vaddr as usize) as *const Row;
    let n = dynamic.p_memsz as usize / size_of::<Row>();
    let rows = unsafe { std::slice::from_raw_parts(first, n) };
    let rows = || rows.iter().take_while(|it| it.tag != DT_NULL);
    // The loader has put addresses in the place of offsets, but for the kernel's own object.
    let texts = rows().find(|it| it.tag == DT_STRTAB).map(|it| it.value)?;
    let texts = if texts < base { base + texts } else { texts };
    let text = |it: &Row| {
        let at = (texts + it.value) as *const c_char;
        unsafe { CStr::from_ptr(at) }.to_bytes().to_vec()
    };
    object.soname = rows().find(|it| it.tag == DT_SONAME).map(text);
    object.needs = rows().filter(|it| it.tag == DT_NEEDED).map(text).collect();
    Some(object)
}

//! The program's own MPI library, found at the first call.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use selvedge_stmr::report::Report;

use crate::ARGS_MAX;
use crate::abi::Family;
use crate::calls::{self, N_CALLS, NAMES};
use crate::ends;
use crate::idle;
use crate::lookup;
use crate::memory::{Bell, For};
use crate::objects;
use crate::stack;
use crate::state;
use crate::streams;
use crate::told::Told;

/// A function of MPI, by its row in calls.txt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call(pub(crate) usize);

impl Call {
    /// Its name as a person writes it.
    pub(crate) fn name(self) -> &'static str {
        let it = NAMES[self.0];
        // Between the profiling name's P and the byte that ends it.
        &it[1..it.len() - 1]
    }
}

thread_local! {
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// MPI has started this thread, or this library has.
    static IS_MPIS: Cell<bool> = const { Cell::new(false) };
}

/// This thread is MPI's for good.
pub(crate) fn be_mpis() {
    IS_MPIS.set(true);
}

/// Whether this thread is in a call of MPI already: what MPI itself calls is passed on.
pub(crate) fn is_inside() -> bool {
    INSIDE.with(|it| 0 < it.get())
}

/// The C library's own function of that name.  What it takes to find it stays off the program's
/// stack.
pub(crate) fn next(name: &CStr) -> usize {
    stack::on_own(|| streams::next(name))
}

/// Whether it is MPI that asks the C library for something: in a call of it, in a thread of its
/// own, or while it is loaded.
pub(crate) fn is_mpi_asking() -> bool {
    is_inside() || IS_MPIS.get() || crate::origin::is_mpi()
}

/// Whether it is not the program: MPI, or the driver of an accelerator.
fn is_other_asking() -> bool {
    is_mpi_asking() || crate::origin::is_driver()
}

/// Whether the program asks for it, in the thread whose order its replicas share.
pub(crate) fn is_program_asking() -> bool {
    // MPI asks most often, and is told apart without a question to the kernel.
    !is_inside() && state::is_ordered() && !is_other_asking()
}

/// What a replica was told, if its program asks before it can ask the others.
pub(crate) fn early_asking() -> Option<&'static Told> {
    if is_inside() { None } else { state::early().filter(|_| !is_other_asking()) }
}

/// While it lives, calls of this thread are MPI's own or ours.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn enter() -> Self {
        let depth = INSIDE.with(|it| it.replace(it.get() + 1));
        if depth == 0 {
            crate::cycles::cross(true);
        }
        Self(())
    }

    /// The same for what is over at once.
    pub(crate) fn enter_shortly() -> Self {
        INSIDE.set(INSIDE.get() + 1);
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = INSIDE.with(|it| it.replace(it.get() - 1));
        if depth == 1 {
            crate::cycles::cross(false);
        }
    }
}

/// Has something of the program's called, whose calls are the program's, from within a call.
pub(crate) fn outside<R>(what: impl FnOnce() -> R) -> R {
    let depth = INSIDE.replace(0);
    crate::cycles::cross(false);
    let answer = what();
    crate::cycles::cross(true);
    INSIDE.set(depth);
    answer
}

/// The library as dlopen knows it, without loading one: packages of Python open theirs so that no
/// ordinary look-up finds it.
fn library() -> *mut c_void {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let found = *LIBRARY.get_or_init(|| match loaded() {
        Some(path) => unsafe {
            libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) as usize
        },
        None => 0,
    });
    found as *mut c_void
}

/// Whether this process has an MPI library.
pub(crate) fn is_loaded() -> bool {
    loaded().is_some()
}

/// Whose ABI the program's MPI has.
pub(crate) fn family() -> Family {
    let Some(path) = loaded() else { stop("this process has no MPI library") };
    let file = path.to_bytes().rsplit(|it| *it == b'/').next().unwrap_or_default();
    if file.starts_with(b"libmpi_abi.") {
        return Family::Standard;
    }
    if symbol(c"ompi_mpi_comm_world").is_some() {
        return Family::OpenMpi;
    }
    let version = library_version();
    let kin = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"];
    if kin.iter().any(|it| version.starts_with(it)) {
        return Family::Mpich;
    }
    stop(&format!(
        "this program's MPI library says that it is `{}`; served are Open MPI, MPICH and its kin, \
         and the standard ABI",
        version.lines().next().unwrap_or_default()
    ))
}

/// Ends a process whose MPI is not its launcher's: it would take itself for the only one.
pub(crate) fn check_launcher() {
    let launcher = std::env::var("SELVEDGE_LAUNCHER").unwrap_or_default();
    let is_open_mpi = family() == Family::OpenMpi;
    if launcher.is_empty() || is_open_mpi == (launcher == "open-mpi") {
        return;
    }
    let version = library_version();
    let version = version.lines().next().unwrap_or_default().trim();
    let (library, wants) = if is_open_mpi {
        ("Open MPI", "Open MPI's mpirun")
    } else {
        ("of MPICH's kind", "an mpiexec.hydra")
    };
    stop(&format!(
        "this program's MPI is {library} ({version}), but it was started by the launcher of \
         another; give {wants} as --launcher"
    ));
}

/// Whether it is MPICH 5 or later.  There, errors that belong to no communicator go to the handler
/// of the process by itself (MPI 4.0 §9.3), and not to that of all processes; and a call whose
/// error a handler of the program's has heard of returns as one without.  Measured with 5.0.2; Open
/// MPI 5.0.11 and MPICH 4.0.2 do neither.
pub(crate) fn is_mpich_5() -> bool {
    static IS_MPICH_5: OnceLock<bool> = OnceLock::new();
    *IS_MPICH_5.get_or_init(|| is_from_5("MPICH Version:"))
}

/// Whether it is Open MPI 5 or later.
pub(crate) fn is_open_mpi_5() -> bool {
    is_from_5("Open MPI v")
}

/// Whether the library calls itself that, and 5 or more.
fn is_from_5(name: &str) -> bool {
    let version = library_version();
    let number = version.strip_prefix(name).unwrap_or_default().trim_start();
    let major = number.split('.').next().and_then(|it| it.parse().ok());
    major.is_some_and(|it: u32| 5 <= it)
}

/// What the library says of itself, which it does before MPI_Init as well.
fn library_version() -> String {
    let (mut text, mut length) = (vec![0_u8; 8192], 0_i32);
    let args = [text.as_mut_ptr() as usize, &raw mut length as usize];
    code(calls::GET_LIBRARY_VERSION, &args);
    text.truncate(length.max(0) as usize);
    // MPICH counts the byte that ends it.
    String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned()
}

/// The file of the MPI library in this process, if it has one.
fn loaded() -> Option<CString> {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        let name: *const c_char = unsafe { (*info).dlpi_name };
        if name.is_null() {
            return 0;
        }
        let name = unsafe { CStr::from_ptr(name) };
        let file = name.to_bytes().rsplit(|it| *it == b'/').next().unwrap_or_default();
        let kinds: [&[u8]; 4] = [b"libmpi.so", b"libmpich.so", b"libmpi_abi.so", b"libmpi_mt.so"];
        let version = kinds.iter().find_map(|it| file.strip_prefix(*it));
        if version.is_some_and(|it| it.is_empty() || it[0] == b'.') {
            let found = unsafe { &mut *found.cast::<Vec<CString>>() };
            found.push(name.to_owned());
        }
        0
    }
    let mut found: Vec<CString> = Vec::new();
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    if 1 < found.len() {
        let names: Vec<_> = found.iter().map(|it| it.to_string_lossy()).collect();
        let names = names.join(" and ");
        stop(&format!("this process has two MPI libraries, {names}; it can have one"));
    }
    found.pop()
}

/// The address of something that the library exports.
pub(crate) fn symbol(name: &CStr) -> Option<usize> {
    // Predefined handles are data that the linker may have copied into the program.
    lookup::theirs(libc::RTLD_DEFAULT, name).or_else(|| lookup::theirs(library(), name))
}

/// The library's own function of a name that this library has too.
pub(crate) fn theirs(name: &CStr) -> Option<usize> {
    lookup::theirs(libc::RTLD_NEXT, name).or_else(|| mpis(name))
}

/// The function of that name of MPI's own library.
pub(crate) fn mpis(name: &CStr) -> Option<usize> {
    let library = Some(library()).filter(|it| !it.is_null());
    library.and_then(|it| lookup::theirs(it, name))
}

fn address(call: Call) -> usize {
    static ADDRESSES: [AtomicUsize; N_CALLS] = [const { AtomicUsize::new(0) }; N_CALLS];
    let known = ADDRESSES[call.0].load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let library = library();
    if library.is_null() {
        fail(&format!("{} was called, but this process has no MPI library", call.name()));
    }
    let name = unsafe { CStr::from_ptr(NAMES[call.0].as_ptr().cast()) };
    let Some(found) = lookup::theirs(library, name) else {
        fail(&format!("this program's MPI library has no {}", call.name()))
    };
    ADDRESSES[call.0].store(found, Ordering::Relaxed);
    found
}

/// Calls the library's own function.
pub(crate) fn call(call: Call, args: &[usize]) -> usize {
    let _inside = Inside::enter();
    call_open(call, args)
}

/// The same where the calls of what it calls back are the program's.
pub(crate) fn call_open(call: Call, args: &[usize]) -> usize {
    let at = address(call);
    objects::within(call, || unsafe { call_at(at, args) })
}

/// Calls a function of MPI's kind that stands there.
pub(crate) unsafe fn call_at(at: usize, args: &[usize]) -> usize {
    let mut a = [0; ARGS_MAX];
    a[..args.len()].copy_from_slice(args);
    type Function = unsafe extern "C" fn(
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
    ) -> usize;
    // Scalars are passed alike whatever their width, and a function that takes fewer arguments
    // does not look at the others.
    let function: Function = unsafe { std::mem::transmute::<usize, Function>(at) };
    let [a, b, c, d, e, f, g, h, i, j, k, l, m] = a;
    unsafe { function(a, b, c, d, e, f, g, h, i, j, k, l, m) }
}

/// Calls the library's own function, which returns an error code.
pub(crate) fn code(which: Call, args: &[usize]) -> i32 {
    call(which, args) as i32
}

/// A thread that makes the calls that can only block, so that the program's thread can go on when
/// one never returns.
///
/// It has nothing that the loader does at a thread's end, as threads of Rust's own have: one could
/// not begin while the program loads a library, whose first functions may call MPI.
pub(crate) struct Blocking(Arc<Desk>);

/// What its thread is to do, and did.
struct Desk {
    thread: AtomicUsize,
    work: Mutex<Work>,
    comes: Condvar,
    bell: &'static Bell,
}

enum Work {
    Nothing,
    Todo(Call, [usize; ARGS_MAX], usize),
    Done(usize),
    /// Nobody waits for its thread.
    Left,
}

impl Desk {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what comes, until nobody waits for it.
    fn serve(&self) {
        self.thread.store(unsafe { libc::gettid() } as usize, Ordering::Relaxed);
        let _inside = Inside::enter();
        idle::begin();
        let mut work = self.work();
        loop {
            match *work {
                Work::Left => return,
                Work::Todo(which, args, n_args) => {
                    drop(work);
                    let answer = call(which, &args[..n_args]);
                    work = self.work();
                    if !matches!(*work, Work::Left) {
                        *work = Work::Done(answer);
                        self.bell.ring(For::Thread);
                    }
                }
                Work::Nothing | Work::Done(_) => {
                    work = self.comes.wait(work).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

extern "C" fn serve(desk: *mut c_void) -> *mut c_void {
    unsafe { Arc::from_raw(desk.cast::<Desk>()) }.serve();
    std::ptr::null_mut()
}

impl Blocking {
    /// Starts it; it rings when a call is over.
    pub(crate) fn start(bell: &'static Bell) -> Self {
        let (work, comes) = (Mutex::new(Work::Nothing), Condvar::new());
        let desk = Arc::new(Desk { thread: AtomicUsize::new(0), work, comes, bell });
        let given = Arc::into_raw(desk.clone()).cast_mut().cast();
        let mut thread = 0;
        let error =
            unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), serve, given) };
        if error != 0 {
            let why = std::io::Error::from_raw_os_error(error);
            fail(&format!("a thread for calls that block cannot be started: {why}"));
        }
        unsafe { libc::pthread_detach(thread) };
        Self(desk)
    }

    pub(crate) fn begin(&self, which: Call, args: &[usize]) {
        let mut row = [0; ARGS_MAX];
        row[..args.len()].copy_from_slice(args);
        // Nor could the thread look for it while a library is loaded.
        address(which);
        *self.0.work() = Work::Todo(which, row, args.len());
        self.0.comes.notify_one();
    }

    /// The call may never return; its thread takes only time that nobody else wants.
    pub(crate) fn abandon(&self) {
        *self.0.work() = Work::Left;
        self.0.comes.notify_one();
        let idle = libc::sched_param { sched_priority: 0 };
        let thread = self.0.thread.load(Ordering::Relaxed) as libc::pid_t;
        unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &raw const idle) };
    }

    pub(crate) fn poll(&self) -> Option<usize> {
        let mut work = self.0.work();
        let Work::Done(answer) = *work else { return None };
        *work = Work::Nothing;
        Some(answer)
    }
}

/// Says why the program cannot begin, which is no fault of this replica alone, and ends it.
pub(crate) fn stop(why: &str) -> ! {
    crate::told::tell_launcher(Report::Stop(why));
    ends::leave(1)
}

/// Says why the program cannot go on, and ends this process.
pub(crate) fn fail(why: &str) -> ! {
    let line = format!("selvedge: {why}\n");
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    ends::leave(1)
}

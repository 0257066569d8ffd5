//! The program's own MPI library, found at the first call.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::{N_CALLS, NAMES};

/// A function of MPI, by its row in calls.txt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call(pub(crate) usize);

impl Call {
    /// Its name as a person writes it.
    pub(crate) fn name(self) -> &'static str {
        NAMES[self.0].to_str().unwrap_or("PMPI_?").trim_start_matches('P')
    }
}

thread_local! {
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is in a call of MPI already: what MPI itself calls is passed on.
pub(crate) fn is_inside() -> bool {
    INSIDE.with(|it| 0 < it.get())
}

/// While it lives, calls of this thread are MPI's own or ours.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn enter() -> Self {
        INSIDE.with(|it| it.set(it.get() + 1));
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|it| it.set(it.get() - 1));
    }
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

/// The file of the MPI library in this process, if it has one.
pub(crate) fn loaded() -> Option<std::ffi::CString> {
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
        let kinds: [&[u8]; 4] =
            [b"libmpi.so.", b"libmpich.so.", b"libmpi_abi.so.", b"libmpi_mt.so."];
        if kinds.iter().any(|it| file.starts_with(it)) {
            let found = unsafe { &mut *found.cast::<Vec<std::ffi::CString>>() };
            found.push(name.to_owned());
        }
        0
    }
    let mut found: Vec<std::ffi::CString> = Vec::new();
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    if 1 < found.len() {
        fail(&format!("this process has two MPI libraries, {found:?}; it can have one"));
    }
    found.pop()
}

/// The address of something that the library exports.
pub(crate) fn symbol(name: &CStr) -> Option<usize> {
    // Predefined handles are data that the linker may have copied into the program.
    let there = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let found =
        if there.is_null() { unsafe { libc::dlsym(library(), name.as_ptr()) } } else { there };
    (!found.is_null()).then_some(found as usize)
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
    let found = unsafe { libc::dlsym(library, NAMES[call.0].as_ptr()) } as usize;
    if found == 0 {
        fail(&format!("this program's MPI library has no {}", call.name()));
    }
    ADDRESSES[call.0].store(found, Ordering::Relaxed);
    found
}

/// Calls the library's own function.
pub(crate) fn call(call: Call, args: &[usize]) -> usize {
    let _inside = Inside::enter();
    let at = address(call);
    let mut a = [0; 12];
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
    ) -> usize;
    // Scalars are passed alike whatever their width, and a function that takes fewer arguments
    // does not look at the others.
    let function: Function = unsafe { std::mem::transmute::<usize, Function>(at) };
    unsafe { function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]) }
}

/// Calls the library's own function, which returns an error code.
pub(crate) fn code(which: Call, args: &[usize]) -> i32 {
    call(which, args) as i32
}

/// A thread that makes the calls that can only block, so that the program's thread can go on when
/// one never returns.
pub(crate) struct Blocking {
    thread: std::sync::Arc<AtomicUsize>,
    work: std::sync::mpsc::Sender<(Call, [usize; 12], usize)>,
    done: std::sync::mpsc::Receiver<usize>,
}

impl Blocking {
    pub(crate) fn start() -> Self {
        let (work, todo) = std::sync::mpsc::channel::<(Call, [usize; 12], usize)>();
        let (finished, done) = std::sync::mpsc::channel();
        let thread = std::sync::Arc::new(AtomicUsize::new(0));
        let own = thread.clone();
        std::thread::spawn(move || {
            own.store(unsafe { libc::gettid() } as usize, Ordering::Relaxed);
            let _inside = Inside::enter();
            while let Ok((which, args, n_args)) = todo.recv() {
                if finished.send(call(which, &args[..n_args])).is_err() {
                    return;
                }
            }
        });
        Self { thread, work, done }
    }

    pub(crate) fn begin(&self, which: Call, args: &[usize]) {
        let mut row = [0; 12];
        row[..args.len()].copy_from_slice(args);
        // The thread ends only with the process.
        let _ = self.work.send((which, row, args.len()));
    }

    /// The call may never return; its thread takes only time that nobody else wants.
    pub(crate) fn abandon(&self) {
        let idle = libc::sched_param { sched_priority: 0 };
        let thread = self.thread.load(Ordering::Relaxed) as libc::pid_t;
        unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &raw const idle) };
    }

    pub(crate) fn poll(&self) -> Option<usize> {
        self.done.try_recv().ok()
    }
}

/// Says why the program cannot go on, and ends this process.
pub(crate) fn fail(why: &str) -> ! {
    let line = format!("selvedge: {why}\n");
    unsafe {
        libc::write(2, line.as_ptr().cast(), line.len());
        libc::_exit(1)
    }
}

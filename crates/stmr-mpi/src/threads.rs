//! How the program ends by another thread than the one whose calls have an order among replicas:
//! by exit or a signal there, or because it is the last.
//!
//! ```text
//! exit in a worker ──► it takes the state, and tells the launcher where the ordered thread is
//! most replicas of the process have told the same ──► it has the order, and ends the process
//! pthread_exit in the ordered thread ──► it waits for the program's others, and exits with 0
//! ```
//! MPI's own threads live on: it is left only when all processes end.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use selvedge_stmr::quits::Quit;
use selvedge_stmr::report::Report;

use crate::clock;
use crate::real::{self, Inside};
use crate::stack;
use crate::state::{self, State};
use crate::told::{native_pid, tell_launcher, told};

/// How long a call of the ordered thread is waited for, in milliseconds.
const CALL_MS: u64 = 5_000;

/// How often it is looked whether other threads live, in microseconds.
const LOOK_US: u32 = 2_000;

/// Threads of MPI's or this library's, also those that are gone.
static MPIS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// This thread is MPI's for good.
pub(crate) fn be_mpis() {
    real::be_mpis();
    MPIS.lock().unwrap_or_else(PoisonError::into_inner).insert(stack::thread_id());
}

/// Whether this is a thread of the program's that has no order among replicas.
fn is_programs() -> bool {
    let is_own = || told().is_some_and(|it| it.pid == native_pid());
    state::is_replica() && state::is_beside() && is_own() && !real::is_mpi_asking()
}

/// A thread calls MPI for the first time.
pub(crate) fn note_first_call() {
    if CALLS.replace(true) || !is_programs() {
        return;
    }
    note(
        "a second thread calls MPI: files, clocks and dice are alike in replicas in the first alone",
    );
}

thread_local! {
    /// This thread has called MPI.
    static CALLS: Cell<bool> = const { Cell::new(false) };
}

/// A file is opened, with these flags of open(2).
pub(crate) fn note_opening(path: &CStr, flags: c_int) {
    let is_shared =
        || ["/dev/", "/proc/"].iter().any(|it| path.to_bytes().starts_with(it.as_bytes()));
    if flags & libc::O_ACCMODE == libc::O_RDONLY || !is_programs() || is_shared() {
        return;
    }
    if !HAS_OPENED.swap(true, Ordering::Relaxed) {
        let name = path.to_string_lossy();
        let name = name.escape_debug();
        note(&format!("{name} is opened to write by a thread beside the first: each replica does"));
    }
}

/// A thread beside the first has opened a file to write.
static HAS_OPENED: AtomicBool = AtomicBool::new(false);

fn note(what: &str) {
    tell_launcher(Report::Note(what));
}

/// Whether this thread, which ends the program with `code`, now has the order among replicas: they
/// have agreed to that.  False of a thread that has none to take: of MPI's, of a process that the
/// program has started.
pub(crate) fn take_order(code: c_int) -> bool {
    if !is_programs() {
        return false;
    }
    let _inside = Inside::enter();
    if !state::take_for_good(CALL_MS) {
        tell_launcher(Report::Quit(Quit { code, place: None }));
        loop {
            unsafe { libc::pause() };
        }
    }
    state::with(|state| state.wait_to_quit(code));
    true
}

/// Most replicas agree to the end that another thread wants.
static MAY_QUIT: AtomicBool = AtomicBool::new(false);

/// The launcher says so.
pub(crate) fn let_quit() {
    MAY_QUIT.store(true, Ordering::Relaxed);
}

impl State {
    fn wait_to_quit(&mut self, code: c_int) {
        let place = Some(self.shape.0);
        self.doing = "its end by another thread";
        self.say(Report::Quit(Quit { code, place }));
        let mut alone_ms = None;
        while !MAY_QUIT.load(Ordering::Relaxed) {
            self.pump();
            unsafe { libc::usleep(LOOK_US) };
            // Two that went on and want the same would have said so by then.
            let others = self.replica.others();
            if 1 < others.len() && others.iter().all(|it| self.replica.has_offered(*it)) {
                let since_ms = *alone_ms.get_or_insert_with(clock::coarse_ms);
                if since_ms + 2 * CALL_MS < clock::coarse_ms() {
                    self.stray();
                }
            }
        }
    }
}

/// The first thread's and the ordered one's, whose destructor is called when one ends without
/// the process.
static KEY: AtomicU32 = AtomicU32::new(0);

/// How often destructors are called while they leave something to do.
const ROUNDS: usize = 4;

/// Has the first thread wait, when it ends alone.
pub(crate) fn prepare() {
    let mut key = 0;
    unsafe {
        if libc::pthread_key_create(&raw mut key, Some(on_end)) == 0 {
            KEY.store(key, Ordering::Relaxed);
            libc::pthread_setspecific(key, ROUNDS as *const c_void);
        }
    }
}

/// This thread has the order among replicas from here on; when it ends, the first has it.
pub(crate) fn have_order() {
    state::give_order(stack::thread_id());
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), ROUNDS as *const c_void) };
}

/// What the program registered for the end of this thread comes first: others may wait for it.
unsafe extern "C" fn on_end(rounds: *mut c_void) {
    let left = rounds as usize - 1;
    if left != 0 {
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), left as *const c_void) };
        return;
    }
    if !state::is_ordered() {
        return;
    }
    let first = native_pid() as u32;
    if stack::thread_id() != first {
        state::give_order(first);
        return;
    }
    while stack::on_own(has_others) {
        unsafe { libc::syscall(libc::SYS_poll, 0, 0, LOOK_US / 1000) };
    }
    unsafe { libc::exit(0) }
}

/// Whether another thread of the program's lives.
fn has_others() -> bool {
    let _inside = Inside::enter_shortly();
    let Ok(all) = std::fs::read_dir("/proc/self/task") else { return false };
    let numbers = all.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
    let mpis = MPIS.lock().unwrap_or_else(PoisonError::into_inner);
    let own = stack::thread_id();
    let mut others = numbers.filter(|it: &u32| *it != own && !mpis.contains(it));
    others.next().is_some()
}

//! How a process ends: with a code, by a call that is not served, or with the whole program.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use selvedge_stmr::report::{Differed, Report};
use selvedge_stmr::verdict::{Double, SetId};

use crate::abi::{self, Family};
use crate::clock;
use crate::crashes;
use crate::joined;
use crate::link::Sibling;
use crate::real::{self, Call, Inside};
use crate::segments;
use crate::stack;
use crate::state::{self, ENDING, OVER, State};
use crate::threads;

/// One that strayed has so long to tell the launcher, in milliseconds.
const STRAY_MS: u64 = 500;

/// This process is gone, without a word to anybody.
pub(crate) fn leave(code: i32) -> ! {
    loop {
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

impl State {
    /// Waits until the launcher ends this process.
    pub(crate) fn wait_for_the_end(&mut self) -> ! {
        segments::forget();
        loop {
            self.launcher.flush();
            let mut fd = [self.launcher.poll_for()];
            unsafe { libc::poll(fd.as_mut_ptr(), 1, 200) };
            self.launcher.fill();
            if self.launcher.ended {
                leave(1)
            }
        }
    }

    /// Goes on where no two replicas have the same, if nothing else is why.
    pub(crate) fn concede(&mut self, why: Double) {
        if why.is_of_deaths() {
            self.restart(why);
        }
        self.replica.concede();
    }

    /// This cluster cannot go on, and the program starts again.
    pub(crate) fn restart(&mut self, why: Double) -> ! {
        let (rank, calls) = (self.told.rank, self.replica.n_calls());
        self.note(&format!("rank {rank} stopped at compare {calls}"));
        self.restart_as_said(why)
    }

    /// The same where the launcher has heard at which call.
    pub(crate) fn restart_as_said(&mut self, why: Double) -> ! {
        self.say(Report::Restart(why));
        self.wait_for_the_end()
    }

    /// This replica has strayed: it ends without a word to its twins, which go on.  They may have
    /// seen no more of it than its end.
    pub(crate) fn stray(&mut self) -> ! {
        self.tell_notes();
        self.tell_stray(SetId::new(self.told.set));
        self.memory.keep_counts(self.counts.words());
        self.tell_counts();
        let until_ms = clock::coarse_ms() + STRAY_MS;
        while !self.launcher.unsent.is_empty()
            && !self.launcher.ended
            && clock::coarse_ms() < until_ms
        {
            unsafe { libc::poll(&mut self.launcher.poll_for(), 1, 10) };
            self.launcher.flush();
        }
        leave(0)
    }

    /// Counts a replica that makes other calls, and tells the launcher.
    pub(crate) fn tell_stray(&mut self, set: SetId) {
        self.counts.marks += 1;
        let rank = self.told.rank;
        let what = match self.told.window {
            0 | 1 => "makes other calls".to_owned(),
            window => format!("differs within {window} sends"),
        };
        self.note(&format!("rank {rank}: {set} {what} and is left out"));
        let call = self.replica.n_calls().saturating_sub(1);
        self.say(Report::Strayed(Differed { set, call, byte: None }));
    }

    /// Stops the program because of a call that is not served.
    pub(crate) fn refuse(&mut self, call: Call) -> ! {
        self.refuse_in_words(call.name())
    }

    /// The same once its replicas have agreed to: one that errs may make any call.
    pub(crate) fn refuse_in_words(&mut self, words: &str) -> ! {
        self.mix(&[u64::MAX - 1]);
        self.compare(words.as_bytes().to_vec());
        self.refuse_at_once(words)
    }

    /// What the program printed and wrote before goes out first.
    pub(crate) fn refuse_at_once(&mut self, words: &str) -> ! {
        unsafe { libc::fflush(std::ptr::null_mut()) };
        self.let_out();
        self.tell_counts();
        self.say(Report::Refuse(words));
        self.wait_for_the_end()
    }

    /// Stops the program because of how a call is made.
    pub(crate) fn refuse_as(&mut self, call: Call, how: &str) -> ! {
        let name = call.name();
        self.refuse_in_words(&format!("{name} {how}"))
    }

    /// Stops the program with `code`, once its replicas have agreed to.
    pub(crate) fn abort(&mut self, code: i32) -> ! {
        unsafe { libc::fflush(std::ptr::null_mut()) };
        self.give_up(code)
    }

    /// The same for what has let out all that is to be seen.
    pub(crate) fn give_up(&mut self, code: i32) -> ! {
        self.compare(code.to_le_bytes().to_vec());
        self.tell_counts();
        self.say(Report::Abort(code));
        self.wait_for_the_end()
    }

    /// All processes have come through MPI_Init.  None goes on before: who waits in it for one that
    /// is lost meanwhile may stay there for ever.
    pub(crate) fn begin_together(&mut self) {
        self.say(Report::Running);
        while !std::mem::take(&mut self.gone_on) {
            self.progress();
            // The others have the processor.
            unsafe { libc::usleep(1000) };
            self.pump();
        }
    }

    /// All processes are at the end of the program.
    pub(crate) fn end_together(&mut self) {
        ENDING.store(true, Ordering::Relaxed);
        self.tell_counts();
        self.say(Report::Ending);
        while !self.gone_on {
            self.progress();
            unsafe { libc::usleep(200) };
            self.pump();
            // One that comes no more would keep all of them here.
            self.look_for_late(|it| it.replica.awaited());
        }
    }

    /// The process ends with `code`: its replicas agree to it, and it is gone.
    pub(crate) fn exit(&mut self, code: i32) -> ! {
        self.mix(&[u64::MAX, code as u64]);
        self.doing = "its end";
        self.compare(code.to_le_bytes().to_vec());
        self.replica.end();
        self.has_said_bye = true;
        self.send_out();
        self.tell_counts();
        if self.handles.is_none() || self.gone_on {
            self.say(Report::Ended(code));
        } else {
            // A process that ends without MPI_Finalize ends the program, as under mpirun; that has
            // failed to Open MPI, and not to hydra.
            let is_failure = code == 0 && abi::table().family == Family::OpenMpi;
            self.say(Report::Early(if is_failure { 1 } else { code }));
        }
        let is_unsent = |this: &Self| {
            let siblings = || this.siblings.iter().flatten().any(Sibling::is_unsent);
            siblings() || (!this.launcher.unsent.is_empty() && !this.launcher.ended)
        };
        self.begin_wait();
        while is_unsent(self) {
            self.wait_for_siblings(|_| Vec::new());
        }
        segments::forget();
        OVER.store(true, Ordering::Relaxed);
        // Not 0 would be told by mpirun in words about a failure; selvedge gives the code.
        leave(0)
    }
}

unsafe extern "C" fn at_exit(code: c_int, _nothing: *mut c_void) {
    state::tell_never(code);
    if !state::is_ordered() && !threads::take_order(code) {
        return;
    }
    state::end_if_held(code);
    let _inside = Inside::enter();
    unsafe { libc::fflush(std::ptr::null_mut()) };
    state::with(|state| state.exit(code));
}

/// The program ends with `code`, and what it has printed and not flushed is lost.  To others this
/// returns, and they end by themselves: MPI, a process that the program has started.
fn end_unflushed(code: c_int) {
    if real::is_inside() {
        return;
    }
    let code = code & 0xff;
    state::tell_never(code);
    let is_free = || !state::is_held() && !stack::is_on_own();
    // A signal's handler may have come into this library's own work, which would wait for itself.
    if is_free() && (state::is_ordered() || threads::take_order(code)) {
        stack::on_own_for_good(|| {
            let _inside = Inside::enter();
            state::with(|state| state.exit(code));
        });
    }
}

/// See _exit(2): so a shell ends, which may be all of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(code: c_int) -> ! {
    end_unflushed(code);
    leave(code)
}

/// See _exit(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(code: c_int) -> ! {
    unsafe { _exit(code) }
}

/// Stops a program that has begun MPI where it becomes another, if it would: its launcher and its
/// replicas know this one.
pub(crate) fn refuse_another(path: *const c_char, named: bool) {
    if real::is_program_asking() && !state::is_held() && is_found(path, named) {
        let _inside = Inside::enter();
        state::with(|state| state.refuse_in_words("exec after MPI_Init"));
    }
}

/// Whether it is the path of something to run; where `named`, it may be the name of something in
/// PATH.
fn is_found(path: *const c_char, named: bool) -> bool {
    if path.is_null() {
        return false;
    }
    stack::on_own(|| {
        let _inside = Inside::enter_shortly();
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        let has = |it: &Path| {
            let path = CString::new(it.as_os_str().as_bytes());
            path.is_ok_and(|it| unsafe { libc::access(it.as_ptr(), libc::X_OK) } == 0)
        };
        let is_name = named && !path.contains(&b'/');
        let path = Path::new(OsStr::from_bytes(path));
        if !is_name {
            return has(path);
        }
        let places = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&places).any(|it| has(&it.join(path)))
    })
}

/// What the program called quick_exit with: what is registered for that is not told.
static QUICK: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn at_quick_exit(_nothing: *mut c_void) {
    end_unflushed(QUICK.load(Ordering::Relaxed));
}

/// See quick_exit(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quick_exit(code: c_int) -> ! {
    QUICK.store(code, Ordering::Relaxed);
    type Function = unsafe extern "C" fn(c_int) -> !;
    let native = unsafe { std::mem::transmute::<usize, Function>(real::next(c"quick_exit")) };
    unsafe { native(code) }
}

type Words = *const *const c_char;

unsafe extern "C" {
    static mut environ: Words;
    fn on_exit(what: unsafe extern "C" fn(c_int, *mut c_void), with: *mut c_void) -> c_int;
    /// What at_quick_exit(3) calls.
    fn __cxa_at_quick_exit(
        what: unsafe extern "C" fn(*mut c_void),
        library: *const c_void,
    ) -> c_int;
}

/// What is done at the end, and after all that the program registers for it, is registered before
/// that: the linker is told that this comes before what other libraries do when they are loaded.
/// Some end the program there.
extern "C" fn prepare(n: c_int, args: Words, environment: Words) {
    unsafe {
        // The C library has not come to it.
        if environ.is_null() {
            environ = environment;
        }
    }
    joined::become_replica(n, args);
    clock::prepare();
    if state::is_replica() {
        threads::prepare();
        crashes::begin();
        unsafe {
            on_exit(at_exit, std::ptr::null_mut());
            __cxa_at_quick_exit(at_quick_exit, std::ptr::null());
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn(c_int, Words, Words) = prepare;

//! How a process ends: with a code, by a call that is not served, or with the whole program.

use std::sync::atomic::Ordering;

use selvedge_stmr::verdict::SetId;

use crate::abi::{self, Family};
use crate::clock;
use crate::link::Sibling;
use crate::real::Call;
use crate::segments;
use crate::state::{OVER, State};

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
        self.say(&format!("note rank {rank}: {set} {what} and is left out"));
        let call = self.replica.n_calls().saturating_sub(1);
        self.say(&format!("strayed {} {call}", set.idx()));
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
        self.say(&format!("refuse {words}"));
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
        self.say(&format!("abort {code}"));
        self.wait_for_the_end()
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
            self.say(&format!("ended {code}"));
        } else {
            // A process that ends without MPI_Finalize ends the program, as under mpirun; that has
            // failed to Open MPI, and not to hydra.
            let is_failure = code == 0 && abi::table().family == Family::OpenMpi;
            self.say(&format!("early {}", if is_failure { 1 } else { code }));
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

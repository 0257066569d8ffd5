//! The launcher's threads: two that read all replicas ([`super::readers`]), and one for each slow
//! reader, each link to another host and what else may wait.

use std::sync::mpsc::Sender;
use std::thread;

use super::{Event, io_error};

/// Each of them does little more than read and write.
const STACK_BYTES: usize = 256 << 10;

/// Does it beside everything else.  Where there is no room for a thread, the run ends and says so.
pub(super) fn begin(sender: &Sender<Event>, what: impl FnOnce() + Send + 'static) {
    if let Err(e) = thread::Builder::new().stack_size(STACK_BYTES).spawn(what) {
        let failed = "start one more thread (see `ulimit -u` and `ulimit -v`)";
        let _ = sender.send(Event::Failed(io_error(failed)(e)));
    }
}

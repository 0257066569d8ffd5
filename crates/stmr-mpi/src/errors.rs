//! What the program does wrong: MPI says what that is, and the program's error handlers hear of it.
//!
//! A call that MPI would refuse is found before anything of it is compared or begun.  It is given
//! to MPI as it is, which begins nothing of it either and answers with the code that a run without
//! replicas would have.  All replicas make the same wrong call, so all go the same way.
//!
//! A handler of the program's runs when the call is over here, so that what it calls of MPI is the
//! program's own, as in a run without replicas.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Class;
use crate::abi::{self, Family};
use crate::calls::{self, COMMUNICATORS};
use crate::comm::Comm;
use crate::mpi_files;
use crate::pack::{self, Part};
use crate::partitioned;
use crate::parts::Kind;
use crate::places;
use crate::real::{self, Call};
use crate::state::{self, State};

/// An error that a handler of the program's is to hear of.
pub(crate) struct Due {
    of: Of,
    code: i32,
}

/// Whose error it is, and who is to hear of it.
enum Of {
    /// A communicator, as the program names it, and its handler.
    Comm(usize, usize),
    /// A communicator, a window or a file, and what the program gave to be called.
    Own(usize, usize),
    /// No file, which is the only one that MPI knows, and its handler.
    File(usize),
}

/// Whether some handler is to hear of something.
static ARE_DUE: AtomicBool = AtomicBool::new(false);

/// Calls the handlers of the program's that are due, outside all that this library does.
#[inline(never)]
pub(crate) fn deliver() {
    if !ARE_DUE.load(Ordering::Relaxed) {
        return;
    }
    ARE_DUE.store(false, Ordering::Relaxed);
    let (due, handles) = state::with(|state| (std::mem::take(&mut state.due), state.handles()));
    for Due { of, code } in due {
        match of {
            Of::Comm(comm, handler) => {
                real::call(calls::COMM_SET_ERRHANDLER, &[comm, handler]);
                real::call_open(calls::COMM_CALL_ERRHANDLER, &[comm, code as u32 as usize]);
                real::call(calls::COMM_SET_ERRHANDLER, &[comm, handles.errors_return]);
            }
            Of::File(handler) => {
                let none = mpi_files::null();
                real::call(calls::FILE_SET_ERRHANDLER, &[none, handler]);
                real::call_open(calls::FILE_CALL_ERRHANDLER, &[none, code as u32 as usize]);
                real::call(calls::FILE_SET_ERRHANDLER, &[none, handles.errors_return]);
            }
            Of::Own(handle, function) => {
                type Hear = unsafe extern "C" fn(usize, usize);
                let at = [&raw const handle as usize, &raw const code as usize];
                unsafe { std::mem::transmute::<usize, Hear>(function)(at[0], at[1]) };
            }
        }
    }
}

/// The same handler, held once more: the program frees what it gave and what it got; MPI's code if
/// that is no handler of such objects.  The two calls set and get the handler of an object of MPI's
/// on which only this library's calls are made, which is left with one that returns.
pub(crate) fn held(
    [set, get]: [Call; 2],
    on: usize,
    handler: usize,
    errors_return: usize,
) -> Result<usize, i32> {
    let mut again = 0_usize;
    let code = real::code(set, &[on, handler]);
    if code != abi::SUCCESS {
        return Err(code);
    }
    real::call(get, &[on, &raw mut again as usize]);
    real::call(set, &[on, errors_return]);
    Ok(abi::cut(again))
}

/// What a call returns of whose error a handler of the program's hears.
pub(crate) fn answered(code: i32) -> usize {
    if real::is_mpich_5() { abi::SUCCESS as usize } else { code as usize }
}

/// MPI_Comm_create_errhandler and its kin.
pub(crate) fn create_handler(state: &mut State, call: Call, args: &[usize]) -> usize {
    let code = real::code(call, args);
    if code == abi::SUCCESS {
        state.handlers_of_errors.insert(unsafe { abi::handle_at(args[1], 0) }, args[0]);
    }
    state.error_of_none(code, call)
}

impl State {
    /// Does what the program wants done about an error that belongs to a communicator; returns the
    /// code.
    pub(crate) fn error(&mut self, comm: usize, code: i32, call: Call) -> usize {
        if code == abi::SUCCESS {
            return 0;
        }
        let handles = self.handles();
        let behind = self.behind(comm);
        let handler = self.errhandlers.get(&behind).copied().unwrap_or(handles.errors_fatal);
        if handles.are_final(handler) {
            self.die_of(code, call)
        }
        let code = self.codes.shared(code);
        if let Some(function) = self.handlers_of_errors.get(&handler).copied() {
            self.tell_of_own(comm, function, code);
            return answered(code);
        }
        if handler != handles.errors_return {
            // One that Fortran made.
            // MPI does not know the communicator of this process's set, nor those made here.
            let is_hidden = behind == self.world || self.is_made(behind);
            let comm = if is_hidden { handles.world } else { behind };
            self.due.push(Due { of: Of::Comm(comm, handler), code });
            ARE_DUE.store(true, Ordering::Relaxed);
            return answered(code);
        }
        code as usize
    }

    /// Has what the program gave for the errors of such a thing hear of one.
    pub(crate) fn tell_of_own(&mut self, handle: usize, function: usize, code: i32) {
        let code = self.codes.shared(code);
        self.due.push(Due { of: Of::Own(handle, function), code });
        ARE_DUE.store(true, Ordering::Relaxed);
    }

    /// The same for what Fortran gave about files, which MPI calls.
    pub(crate) fn tell_fortran_of_file(&mut self, handler: usize, code: i32) {
        self.due.push(Due { of: Of::File(handler), code });
        ARE_DUE.store(true, Ordering::Relaxed);
    }

    /// The program ends with an error that nobody is to hear of.
    pub(crate) fn die_of(&mut self, code: i32, call: Call) -> ! {
        let text = self.text_of(code).unwrap_or_default();
        // MPICH's has lines.
        let text = String::from_utf8_lossy(&text).replace('\n', "; ");
        let (name, rank) = (call.name(), self.told.rank);
        self.note(&format!("rank {rank}: {name} failed: {text}"));
        let code = self.codes.shared(code);
        self.abort(code)
    }

    /// The same about an error that belongs to no communicator: it goes to the one that MPI says.
    pub(crate) fn error_of_none(&mut self, code: i32, call: Call) -> usize {
        self.error(self.comm_of_none(), code, call)
    }

    /// The communicator whose handler hears of errors that belong to none.
    pub(crate) fn comm_of_none(&self) -> usize {
        if real::is_mpich_5() { self.handles().own } else { self.handles().world }
    }

    /// Whether it is a communicator that was made here, after this replica had left MPI.
    fn is_made(&self, behind: usize) -> bool {
        self.comms.get(&behind).is_some_and(|it| it.made.is_some())
    }

    /// Whether the program's handle is one of a communicator.
    pub(crate) fn is_comm(&self, comm: usize) -> bool {
        let (behind, mut size) = (self.behind(comm), 0_i32);
        self.comms.contains_key(&behind)
            || real::code(calls::COMM_SIZE, &[behind, &raw mut size as usize]) == abi::SUCCESS
    }

    /// A communicator of MPI's in whose place wrong arguments are as wrong.
    fn in_mpi(&self, comm: usize) -> usize {
        let behind = self.behind(comm);
        if self.is_made(behind) { self.handles().own } else { behind }
    }

    /// What MPI says of a call that it refuses.
    fn ask(&self, call: Call, args: &[usize]) -> i32 {
        let mut mapped = args.to_vec();
        for place in places(COMMUNICATORS[call.0]) {
            mapped[place] = self.in_mpi(mapped[place]);
        }
        real::code(call, &mapped)
    }
}

/// The answer to a call that MPI refuses, if it is one.  Of collectives only the communicator is
/// looked at: see [`of_collective`].
pub(crate) fn refusal(state: &mut State, call: Call, args: &[usize]) -> Option<usize> {
    state.handles?;
    let mask = COMMUNICATORS[call.0];
    // What returns no code takes any handle: that of no communicator has a number in Fortran too.
    if mask == 0 || call == calls::ABORT || matches!(calls::CLASSES[call.0], Class::Value) {
        return None;
    }
    for idx in places(mask) {
        // Who does not lead need not know where the leaders meet.
        let is_asked = (call, idx) != (calls::INTERCOMM_CREATE, 2);
        if is_asked && !state.is_comm(args[idx]) {
            let code = state.ask(call, args);
            // To MPICH it is an error of a file that is not there.
            let is_of_file = call == calls::FILE_OPEN && abi::table().family != Family::OpenMpi;
            return Some(match is_of_file {
                true => state.file_error(mpi_files::null(), code, call),
                false => state.error_of_none(code, call),
            });
        }
    }
    let Message { sent, received, comm } = message_of(call, args)?;
    let n_peers = state.comm(comm).peers().len();
    let tag_max = partitioned::tag_max(state);
    let is_known = |(_, peer, tag): &End, any: [Option<i32>; 2]| {
        let (peer, tag) = (*peer as i32, *tag as i32);
        let is_peer = (0..n_peers as i64).contains(&i64::from(peer))
            || [Some(abi::table().proc_null), any[0]].contains(&Some(peer));
        is_peer && ((0..=tag_max).contains(&tag) || any[1] == Some(tag))
    };
    let any = [Some(abi::table().any_source), Some(abi::table().any_tag)];
    let are_known = sent.as_ref().is_none_or(|it| is_known(it, [None, None]))
        && received.as_ref().is_none_or(|it| is_known(it, any));
    let mut code = abi::SUCCESS;
    if !are_known {
        // MPI itself has more of them.
        let is_beyond = |it: &Option<End>| it.as_ref().is_some_and(|it| tag_max < it.2 as i32);
        let of_beyond = is_beyond(&sent) || is_beyond(&received);
        code = if of_beyond { of_no_tag(state) } else { state.ask(call, args) };
    }
    let parts = [(calls::SEND, sent), (calls::RECV, received)];
    for (which, part) in parts.iter().filter_map(|it| Some((it.0, it.1.as_ref()?.0?))) {
        if code == abi::SUCCESS {
            code = of_part(state, which, part);
        }
    }
    (code != abi::SUCCESS).then(|| state.error(comm, code, call))
}

/// What is sent, to whom, with which tag; or what may come, and from whom.  Where it is not looked
/// at what that is, nothing.
type End = (Option<Part>, usize, usize);

/// What a call of messages says of one.
struct Message {
    sent: Option<End>,
    received: Option<End>,
    comm: usize,
}

fn message_of(call: Call, args: &[usize]) -> Option<Message> {
    let row = |at: usize| Part {
        at: args[at],
        count: args[at + 1] as i32 as usize,
        datatype: abi::cut(args[at + 2]),
    };
    let (sent, received, comm) = match call {
        calls::SEND
        | calls::SSEND
        | calls::BSEND
        | calls::RSEND
        | calls::ISEND
        | calls::ISSEND
        | calls::IBSEND
        | calls::IRSEND
        | calls::SEND_INIT
        | calls::SSEND_INIT
        | calls::BSEND_INIT
        | calls::RSEND_INIT => (Some((Some(row(0)), args[3], args[4])), None, args[5]),
        calls::RECV | calls::IRECV | calls::RECV_INIT => {
            (None, Some((Some(row(0)), args[3], args[4])), args[5])
        }
        calls::SENDRECV | calls::ISENDRECV => {
            let received = (Some(row(5)), args[8], args[9]);
            (Some((Some(row(0)), args[3], args[4])), Some(received), args[10])
        }
        calls::SENDRECV_REPLACE | calls::ISENDRECV_REPLACE => {
            let received = (Some(row(0)), args[5], args[6]);
            (Some((Some(row(0)), args[3], args[4])), Some(received), args[7])
        }
        calls::PROBE | calls::IPROBE | calls::MPROBE | calls::IMPROBE => {
            (None, Some((None, args[0], args[1])), args[2])
        }
        calls::PSEND_INIT => (Some((None, args[4], args[5])), None, args[6]),
        calls::PRECV_INIT => (None, Some((None, args[4], args[5])), args[6]),
        _ => return None,
    };
    Some(Message { sent, received, comm })
}

/// Lower and negative addresses have a meaning to MPI, and no program has memory there.
pub(crate) const LOWEST: isize = 1 << 16;

/// An address to ask about where it does not matter: MPI does not look there.
pub(crate) const SOMEWHERE: usize = LOWEST as usize;

/// What MPI says of a tag that is none.
fn of_no_tag(state: &State) -> i32 {
    let handles = state.handles();
    let (nobody, none) = (abi::table().proc_null as u32 as usize, i32::MIN as u32 as usize);
    real::code(calls::SEND, &[0, 0, handles.byte, nobody, none, handles.own])
}

/// What MPI says of sending or receiving this: it is asked to send it to nobody, or to receive it
/// from nobody, which it does at once, and looks at all that the program said before.
pub(crate) fn of_part(state: &State, which: Call, part: Part) -> i32 {
    // Nothing is wrong with some of a type of MPI's own at an address of the program's.
    let is_count = i32::try_from(part.count).is_ok();
    if is_count && LOWEST <= part.at as isize && pack::known_size(part.datatype).is_some() {
        return abi::SUCCESS;
    }
    let nobody = abi::table().proc_null as u32 as usize;
    let row = [part.at, part.count, part.datatype, nobody, 0, state.handles().own];
    match which {
        calls::RECV => real::code(which, &[&row[..], &[abi::status_ignore()]].concat()),
        _ => real::code(which, &row),
    }
}

/// What MPI says of the root and the operation of a collective, if it refuses them; `call` is the
/// form that blocks.
pub(crate) fn of_collective(
    state: &State,
    call: Call,
    kind: Kind,
    args: &[usize],
    known: &Comm,
) -> Option<i32> {
    let root = match kind {
        Kind::Bcast => Some(3),
        Kind::Reduce => Some(5),
        Kind::Gather | Kind::Scatter => Some(6),
        Kind::Gatherv | Kind::Scatterv => Some(7),
        _ => None,
    };
    let is_wrong_root = root.is_some_and(|at| {
        let root = args[at] as i32;
        let none = [abi::table().root, abi::table().proc_null];
        let is_rank = (0..known.peers().len() as i64).contains(&i64::from(root));
        !is_rank && (known.remote.is_none() || !none.contains(&root))
    });
    let has_op = matches!(
        kind,
        Kind::Reduce
            | Kind::Allreduce
            | Kind::Scan
            | Kind::Exscan
            | Kind::ReduceScatter
            | Kind::ReduceScatterBlock
    );
    let is_wrong_op = has_op && [0, state.handles().op_null].contains(&abi::cut(args[4]));
    (is_wrong_root || is_wrong_op)
        .then(|| state.ask(call, args))
        .filter(|code| *code != abi::SUCCESS)
}

/// What MPI says of what a process gives to a collective and gets, if it refuses one of these.
pub(crate) fn of_parts<'p>(state: &State, parts: impl Iterator<Item = &'p Part>) -> Option<i32> {
    parts.copied().find_map(|part| {
        let count = (part.count as isize).clamp(-1, i32::MAX as isize) as usize;
        // Where it lies may be counted from another address.
        let part = Part { at: std::ptr::from_ref(&part) as usize, count, ..part };
        let code = of_part(state, calls::SEND, part);
        (code != abi::SUCCESS).then_some(code)
    })
}

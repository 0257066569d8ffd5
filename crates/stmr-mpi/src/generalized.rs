//! Requests that the program itself completes, communicators that are made while it goes on, and
//! taking back what was begun.

use selvedge_stmr::message::EventKind;

use crate::abi::{self, RawStatus, Status};
use crate::attributes::Kept;
use crate::comm;
use crate::memory::For;
use crate::p2p::tested;
use crate::real::{self, Call};
use crate::request::Request;
use crate::state::State;

/// A generalized request: what the program gave to be asked and told (MPI 4.1 §13.2).
#[derive(Clone, Copy)]
pub(crate) struct Generalized {
    query: usize,
    free: usize,
    cancel: usize,
    extra: usize,
    pub(crate) is_complete: bool,
}

type Query = unsafe extern "C" fn(usize, usize) -> i32;
type Free = unsafe extern "C" fn(usize) -> i32;
type Cancel = unsafe extern "C" fn(usize, i32) -> i32;

impl Generalized {
    /// What the program says that it came to.
    pub(crate) fn ask(&self, state: &mut State) -> Status {
        let mut row = RawStatus::default();
        unsafe { Status::empty().write(row.at(), true) };
        let error = match self.query {
            0 => abi::SUCCESS,
            query => {
                let query = unsafe { std::mem::transmute::<usize, Query>(query) };
                state.code_in_program(|| unsafe { query(self.extra, row.at()) })
            }
        };
        Status { error, ..row.read() }
    }

    /// The same, after which the program hears that it is over.
    pub(crate) fn finish(&self, state: &mut State) -> Status {
        if !self.is_complete {
            real::fail("a wait for a generalized request, which this thread alone could complete");
        }
        let status = self.ask(state);
        let freed = self.free(state);
        let error = if status.error == abi::SUCCESS { freed } else { status.error };
        Status { error, ..status }
    }

    /// The program hears that it is over.
    pub(crate) fn free(&self, state: &mut State) -> i32 {
        match self.free {
            0 => abi::SUCCESS,
            free => {
                let free = unsafe { std::mem::transmute::<usize, Free>(free) };
                state.code_in_program(|| unsafe { free(self.extra) })
            }
        }
    }

    fn cancel(&self, state: &mut State) -> i32 {
        let is_complete = i32::from(self.is_complete);
        match self.cancel {
            0 => abi::SUCCESS,
            cancel => {
                let cancel = unsafe { std::mem::transmute::<usize, Cancel>(cancel) };
                state.code_in_program(|| unsafe { cancel(self.extra, is_complete) })
            }
        }
    }
}

pub(crate) fn start(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let [query, free, cancel, extra] = [args[0], args[1], args[2], args[3]];
    let made = Generalized { query, free, cancel, extra, is_complete: false };
    state.keep_request(Request::Generalized(made), args[4]);
    abi::SUCCESS as usize
}

pub(crate) fn complete(state: &mut State, call: Call, args: &[usize]) -> usize {
    let Some(Request::Generalized(it)) = state.request_mut(abi::cut(args[0])) else {
        return state.error_of_none(abi::table().err_request, call);
    };
    it.is_complete = true;
    abi::SUCCESS as usize
}

/// A send is not taken back, which the standard leaves open.
pub(crate) fn cancel(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = unsafe { abi::handle_at(args[0], 0) };
    let null = state.handles().request_null;
    let world = state.world;
    if handle == null || !state.is_request(handle) {
        return state.error_of_none(abi::table().err_request, call);
    }
    let mut request = state.request_mut(handle).expect("it was looked at above");
    if let Request::Persistent { active: Some(active), .. } = request {
        request = active;
    }
    let id = match request {
        Request::Generalized(it) => {
            let it = *it;
            let code = it.cancel(state);
            return state.error(world, code, call);
        }
        Request::Receive(id, _) => *id,
        Request::Send(_) | Request::Done(_) => return abi::SUCCESS as usize,
        _ => state.refuse_as(call, "of a collective, or of what is no message"),
    };
    if state.cancel_receive(id) {
        let request = state.request_mut(handle).expect("it was looked at above");
        let over = Request::Done(Status { cancelled: 1, ..Status::empty() });
        match request {
            Request::Persistent { active: Some(active), .. } => **active = over,
            request => *request = over,
        }
    }
    abi::SUCCESS as usize
}

/// A communicator that is being made.
pub(crate) struct Making {
    /// Nothing if this replica had left MPI when it began.
    real: Option<usize>,
    /// Where MPI writes the handle, at the latest when it is made.
    room: usize,
    /// Where the program wants it.
    at: usize,
    parent: usize,
    /// What is kept with it from the beginning.
    kept: Vec<Kept>,
    done: bool,
    code: i32,
}

impl Making {
    /// The communicator that it is made from.
    pub(crate) fn parent(&self) -> usize {
        self.parent
    }

    pub(crate) fn is_ready(&mut self) -> bool {
        if let (false, Some(real)) = (self.done, &mut self.real) {
            let (done, status) = tested(real);
            (self.done, self.code) = (done, status.error);
        }
        self.done
    }
}

/// MPI_Comm_idup and MPI_Comm_idup_with_info.
pub(crate) fn idup(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (at, request) = (args[args.len() - 2], args[args.len() - 1]);
    let parent = state.behind(args[0]);
    let known = state.comm(args[0]);
    let kept = match state.copy_kept(args[0]) {
        Ok(it) => it,
        Err(code) => return state.error(args[0], code, call),
    };
    state.mix(&[known.number, known.rank as u64]);
    state.compare(Vec::new());
    // It is leaked if MPI may still write there.
    let room = Box::into_raw(Box::new(0_usize)) as usize;
    let (mut real, mut code) = (None, abi::SUCCESS);
    if !state.replica.has_left() {
        let mut to = args.to_vec();
        let (last, mut made) = (args.len() - 1, 0_usize);
        (to[0], to[last - 1], to[last]) = (parent, room, &raw mut made as usize);
        code = real::code(call, &to);
        real = Some(made);
    }
    let done = code != abi::SUCCESS;
    state.keep_request(
        Request::Making(Making { real, room, at, parent, kept, done, code }),
        request,
    );
    abi::SUCCESS as usize
}

impl State {
    /// Waits for a communicator that is being made.
    pub(crate) fn finish_making(&mut self, mut making: Making) -> Status {
        let null = self.handles().comm_null;
        let made = |making: &Making| match making.code {
            abi::SUCCESS => unsafe { abi::handle_at(making.room, 0) },
            _ => null,
        };
        let (told, did) = self.event_for(For::Collective, EventKind::Data, |state| {
            if !making.is_ready() {
                return None;
            }
            Some([&making.code.to_le_bytes()[..], &comm::tell(state, made(&making))].concat())
        });
        let (code, rest) = told.split_first_chunk().expect("an event begins with its code");
        let error = i32::from_le_bytes(*code);
        let new = if did {
            let new = made(&making);
            self.keep_made(new, making.parent);
            drop(unsafe { Box::from_raw(making.room as *mut usize) });
            new
        } else {
            self.keep_told(rest, making.parent)
        };
        self.keep_all(new, making.kept);
        unsafe { abi::put_handle(making.at, 0, new) };
        Status { error, ..Status::empty() }
    }
}

//! Requests, which are this library's own, and what of them is complete, which the meta says.

use selvedge_stmr::message::EventKind;

use crate::abi::{self, Family, Own, Status};
use crate::calls;
use crate::collective::{self, Running};
use crate::epochs;
use crate::generalized::{Generalized, Making};
use crate::p2p::{self, Envelope, Mode};
use crate::pack::Part;
use crate::partitioned::{self, Partitioned};
use crate::real::{self, Call};
use crate::receives;
use crate::sends::Source;
use crate::state::State;

/// Something under way that the program holds a handle of.
pub(crate) enum Request {
    Send(u64),
    Receive(u64, Part),
    Done(Status),
    Collective(Running),
    /// A send and a receive that are one.
    Exchange {
        send: u64,
        receive: Box<Self>,
    },
    Partitioned(Box<Partitioned>),
    Generalized(Generalized),
    Making(Making),
    /// The answer to an access to a member's window, which is asked for at the latest when it is
    /// waited for.
    Access {
        handle: usize,
        number: u64,
        member: i32,
    },
    Persistent {
        call: Call,
        args: Vec<usize>,
        arrays: Vec<Vec<i32>>,
        active: Option<Box<Self>>,
    },
}

/// Whether MPI is asked for messages before it is said which are here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Mpi,
    No,
}

/// How many complete requests a call is through with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enough {
    /// The first, and of no other is it told.
    First,
    Some,
    All,
}

impl Request {
    /// Which sends and receives it waits for.
    fn put_messages(&self, sends: &mut Vec<u64>, receives: &mut Vec<u64>) {
        match self {
            Self::Send(id) => sends.push(*id),
            Self::Receive(id, _) => receives.push(*id),
            Self::Exchange { send, receive } => {
                sends.push(*send);
                receive.put_messages(sends, receives);
            }
            Self::Persistent { active: Some(it), .. } => it.put_messages(sends, receives),
            Self::Partitioned(it) => {
                it.active.iter().for_each(|it| it.put_messages(sends, receives));
            }
            Self::Persistent { active: None, .. } | Self::Done(_) | Self::Access { .. } => {}
            Self::Collective(_) | Self::Making(_) | Self::Generalized(_) => {}
        }
    }

    /// Whether it is a collective that may be under way.
    pub(crate) fn is_collective(&self) -> bool {
        match self {
            Self::Collective(_) | Self::Making(_) => true,
            Self::Persistent { active: Some(it), .. } => it.is_collective(),
            _ => false,
        }
    }

    /// Whether this library looks at a type or an operation of the program's for it, or may.
    pub(crate) fn uses(&self, handle: usize) -> bool {
        match self {
            Self::Send(_) | Self::Done(_) | Self::Generalized(_) => false,
            Self::Making(_) | Self::Access { .. } => false,
            Self::Receive(_, part) => part.datatype == handle,
            Self::Collective(running) => running.uses(handle),
            Self::Exchange { receive, .. } => receive.uses(handle),
            Self::Partitioned(_) => true,
            Self::Persistent { args, arrays, active, .. } => {
                // A number may look like a handle: then one is kept for longer.
                let holds = |row: &Vec<i32>| {
                    let words = abi::handle_words();
                    let at = row.as_ptr() as usize;
                    (0..row.len() / words).any(|idx| unsafe { abi::handle_at(at, idx) } == handle)
                };
                let is_active = active.as_ref().is_some_and(|it| it.uses(handle));
                is_active || args.contains(&handle) || arrays.iter().any(holds)
            }
        }
    }
}

/// So many requests may be under way in one process.
const REQUESTS_MAX: usize = 1 << 20;

impl State {
    /// Keeps a request and writes its handle to where the program wants it.
    pub(crate) fn keep_request(&mut self, request: Request, at: usize) {
        let idx = self.requests_free.pop_first().unwrap_or(self.requests.len());
        if idx == self.requests.len() {
            self.requests.push(None);
            self.show_to_fortran(idx);
        }
        self.requests[idx] = Some(request);
        unsafe { abi::put_handle(at, 0, Own::Request.handle(idx)) };
    }

    /// Lets a handle hold its number where Open MPI's requests hold theirs.
    fn show_to_fortran(&mut self, idx: usize) {
        if idx == REQUESTS_MAX {
            real::fail(&format!("more than {REQUESTS_MAX} requests are under way"));
        }
        if abi::table().family != Family::OpenMpi {
            return;
        }
        if idx == 0 {
            map_handles();
        }
        let offset = *self.fortran_offset.get_or_insert_with(|| {
            let handles = self.handles.unwrap_or_else(|| real::fail("a request before MPI_Init"));
            find_fortran_offset(handles.own, handles.byte)
        });
        if let Some(offset) = offset {
            let at = Own::Request.handle(idx) + offset;
            unsafe { *(at as *mut i32) = Own::Request.to_fortran(idx) };
        }
    }

    fn slot(&self, handle: usize) -> usize {
        assert!(self.is_request(handle), "{handle:#x} is looked at before");
        Own::Request.idx(handle)
    }

    /// Whether it is a request that the program has.
    pub(crate) fn is_request(&self, handle: usize) -> bool {
        self.requests.get(Own::Request.idx(handle)).is_some_and(Option::is_some)
    }

    /// The answer to a call with requests that the program has not, if some are.
    fn refuse_requests(&mut self, call: Call, handles: &[usize]) -> Option<usize> {
        let null = self.handles().request_null;
        let are_there = handles.iter().all(|it| *it == null || self.is_request(*it));
        (!are_there).then(|| self.error_of_none(abi::table().err_request, call))
    }

    /// The communicator that errors of a request belong to; to MPICH 4 they belong to none, as
    /// those of many requests do to MPICH 5.
    fn comm_of(&self, handle: usize, is_alone: bool) -> usize {
        if abi::table().family != Family::OpenMpi && !(is_alone && real::is_mpich_5()) {
            return self.comm_of_none();
        }
        let request = self.requests.get(Own::Request.idx(handle)).and_then(Option::as_ref);
        request.and_then(|it| self.comm_of_request(it)).unwrap_or(self.world)
    }

    fn comm_of_request(&self, request: &Request) -> Option<usize> {
        match request {
            Request::Receive(id, _) => self.comm_of_receive(*id),
            Request::Collective(running) => Some(running.comm()),
            Request::Exchange { receive, .. } => self.comm_of_request(receive),
            Request::Making(making) => Some(making.parent()),
            Request::Persistent { active, .. } => self.comm_of_request(active.as_ref()?),
            Request::Partitioned(it) => self.comm_of_request(it.active.as_ref()?),
            Request::Send(_) | Request::Done(_) => None,
            Request::Generalized(_) | Request::Access { .. } => None,
        }
    }

    /// Whether it is a request that something can be waited for with.
    pub(crate) fn is_active(&self, handle: usize) -> bool {
        if handle == self.handles().request_null {
            return false;
        }
        match &self.requests[self.slot(handle)] {
            Some(Request::Persistent { active, .. }) => active.is_some(),
            Some(Request::Partitioned(it)) => it.is_started,
            _ => true,
        }
    }

    /// Which of these are complete here, without completing them.
    fn are_ready(&mut self, handles: &[usize]) -> Vec<bool> {
        let slots: Vec<usize> = handles.iter().map(|it| self.slot(*it)).collect();
        let requests = || slots.iter().filter_map(|it| self.requests[*it].as_ref());
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        requests().for_each(|it| it.put_messages(&mut sends, &mut receives));
        if !sends.iter().all(|it| self.has_left_buffer(*it)) {
            self.reap();
        }
        self.ask_for_receives(receives);
        let ready = |slot: usize| {
            let mut request = self.requests[slot].take().expect("a slot in use is not empty");
            let is_ready = self.is_ready_request(&mut request, Ask::No);
            self.requests[slot] = Some(request);
            is_ready
        };
        slots.into_iter().map(ready).collect()
    }

    /// Whether one is complete here; messages that MPI is not to be asked for are by what is known.
    fn is_ready_request(&mut self, request: &mut Request, ask: Ask) -> bool {
        match request {
            Request::Send(id) if ask == Ask::No => self.has_left_buffer(*id),
            Request::Send(id) => self.is_sent(*id),
            Request::Receive(id, _) if ask == Ask::No => self.receives.has_come(*id),
            Request::Receive(id, _) => self.is_received(*id),
            Request::Done(_) | Request::Access { .. } => true,
            Request::Collective(running) => running.is_ready(),
            Request::Making(making) => making.is_ready(),
            Request::Generalized(it) => it.is_complete,
            Request::Partitioned(it) => {
                it.active.as_mut().is_some_and(|it| self.is_ready_request(it, ask))
            }
            Request::Exchange { send, receive } => {
                self.is_ready_request(&mut Request::Send(*send), ask)
                    && self.is_ready_request(receive, ask)
            }
            Request::Persistent { active, .. } => match active {
                Some(it) => self.is_ready_request(it, ask),
                None => true,
            },
        }
    }

    /// Waits for it; the program's handle of it becomes null, unless it can be started again.
    fn complete(&mut self, row: usize, idx: usize) -> Status {
        let handle = unsafe { abi::handle_at(row, idx) };
        if !self.is_active(handle) {
            return Status::empty();
        }
        let slot = self.slot(handle);
        let request = self.requests[slot].take().expect("a slot in use is not empty");
        match request {
            Request::Persistent { call, args, arrays, active } => {
                // The slot is in use while its request is waited for.
                self.requests[slot] = Some(Request::Done(Status::empty()));
                let active = active.expect("only active requests are completed");
                let status = self.complete_request(*active);
                self.requests[slot] =
                    Some(Request::Persistent { call, args, arrays, active: None });
                status
            }
            Request::Partitioned(mut it) => {
                self.requests[slot] = Some(Request::Done(Status::empty()));
                let status = self.finish_partitioned(&mut it);
                self.requests[slot] = Some(Request::Partitioned(it));
                status
            }
            request => {
                let status = self.complete_request(request);
                self.requests_free.insert(slot);
                unsafe { abi::put_handle(row, idx, self.handles().request_null) };
                status
            }
        }
    }

    /// Completes one that has come, which stays the program's to complete: its data are there.
    pub(crate) fn complete_in_place(&mut self, handle: usize) -> Status {
        let slot = self.slot(handle);
        let request = self.requests[slot].replace(Request::Done(Status::empty()));
        let (kept, status) = match request.expect("a slot in use is not empty") {
            Request::Persistent { call, args, arrays, active } => {
                let active = active.expect("only active requests are completed");
                let status = self.complete_request(*active);
                let active = Some(Box::new(Request::Done(status)));
                (Request::Persistent { call, args, arrays, active }, status)
            }
            Request::Generalized(it) => {
                let status = it.ask(self);
                (Request::Generalized(it), status)
            }
            Request::Partitioned(mut it) => {
                let status = self.finish_partitioned(&mut it);
                (it.is_started, it.active) = (true, Some(Request::Done(status)));
                (Request::Partitioned(it), status)
            }
            request => {
                let status = self.complete_request(request);
                (Request::Done(status), status)
            }
        };
        self.requests[slot] = Some(kept);
        status
    }

    /// Waits for a partitioned message, which can be started again then.
    fn finish_partitioned(&mut self, it: &mut Partitioned) -> Status {
        it.is_started = false;
        let Some(active) = it.active.take() else {
            real::fail("a wait for a partitioned send whose parts are not all ready")
        };
        let status = self.complete_request(active);
        Status { tag: partitioned::program_tag(self, status.tag), ..status }
    }

    /// What stands behind a handle, if it is one of this library's.
    pub(crate) fn request_mut(&mut self, handle: usize) -> Option<&mut Request> {
        self.requests.get_mut(Own::Request.idx(handle)).and_then(Option::as_mut)
    }

    /// Takes a partitioned message that was started, to do something with it.
    pub(crate) fn take_partitioned(&mut self, handle: usize) -> Option<Box<Partitioned>> {
        match self.request_mut(handle) {
            Some(Request::Partitioned(it)) if it.is_started => {}
            _ => return None,
        }
        let slot = self.slot(handle);
        match self.requests[slot].replace(Request::Done(Status::empty())) {
            Some(Request::Partitioned(it)) => Some(it),
            _ => unreachable!("it was looked at above"),
        }
    }

    pub(crate) fn put_partitioned(&mut self, handle: usize, it: Box<Partitioned>) {
        let slot = self.slot(handle);
        self.requests[slot] = Some(Request::Partitioned(it));
    }

    fn complete_request(&mut self, mut request: Request) -> Status {
        if !matches!(request, Request::Generalized(_) | Request::Partitioned(_)) {
            epochs::serve_until(self, |state| state.is_ready_request(&mut request, Ask::Mpi));
        }
        match request {
            Request::Send(id) => {
                self.finish_send(id);
                Status { source: abi::UNDEFINED, tag: abi::UNDEFINED, ..Status::empty() }
            }
            Request::Receive(id, part) => self.finish_receive(id, part),
            Request::Done(status) => status,
            Request::Access { handle, number, member } => {
                Status { error: self.finish_access(handle, number, member), ..Status::empty() }
            }
            Request::Collective(running) => self.finish_collective(running),
            Request::Exchange { send, receive } => {
                let status = self.complete_request(*receive);
                self.finish_send(send);
                status
            }
            Request::Generalized(it) => it.finish(self),
            Request::Making(making) => self.finish_making(making),
            Request::Partitioned(mut it) => self.finish_partitioned(&mut it),
            Request::Persistent { .. } => Status::empty(),
        }
    }

    /// Communicators that are being made from this one are made before it has another collective
    /// that blocks: Open MPI makes one by more than one collective of its own, each begun when
    /// another is over, and their order among the program's is another in each process.
    pub(crate) fn finish_makings(&mut self, comm: usize) {
        if abi::table().family != Family::OpenMpi {
            return;
        }
        let parent = self.behind(comm);
        for idx in 0..self.requests.len() {
            let is_of =
                |it: &mut Request| matches!(it, Request::Making(it) if it.parent() == parent);
            if let Some(making) = self.requests[idx].take_if(is_of) {
                self.requests[idx] = Some(Request::Done(Status::empty()));
                let status = self.complete_request(making);
                self.requests[idx] = Some(Request::Done(status));
            }
        }
    }

    /// Whether it is a request that can be started.
    fn can_start(&self, handle: usize) -> bool {
        match self.requests.get(Own::Request.idx(handle)).and_then(Option::as_ref) {
            Some(Request::Persistent { active, .. }) => active.is_none(),
            Some(Request::Partitioned(it)) => !it.is_started,
            _ => false,
        }
    }

    /// Starts a persistent request.
    pub(crate) fn start_request(&mut self, handle: usize, call: Call) -> usize {
        if !self.can_start(handle) {
            return self.error_of_none(abi::table().err_request, call);
        }
        let slot = self.slot(handle);
        let (call, args, arrays) = match self.requests[slot].take() {
            Some(Request::Persistent { call, args, arrays, active: None }) => (call, args, arrays),
            Some(Request::Partitioned(mut it)) if !it.is_started => {
                self.requests[slot] = Some(Request::Done(Status::empty()));
                it.start(self);
                self.requests[slot] = Some(Request::Partitioned(it));
                return abi::SUCCESS as usize;
            }
            _ => unreachable!("it was looked at above"),
        };
        self.requests[slot] = Some(Request::Done(Status::empty()));
        let active = self.start_persistent(call, &args);
        self.requests[slot] =
            Some(Request::Persistent { call, args, arrays, active: Some(Box::new(active)) });
        abi::SUCCESS as usize
    }

    fn start_persistent(&mut self, call: Call, args: &[usize]) -> Request {
        let modes = [calls::SEND_INIT, calls::SSEND_INIT, calls::BSEND_INIT, calls::RSEND_INIT];
        if call != calls::RECV_INIT && !modes.contains(&call) {
            return match collective::begin(self, call, args) {
                Ok(running) => Request::Collective(running),
                Err(error) => Request::Done(Status { error, ..Status::empty() }),
            };
        }
        let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
        let (peer, tag, comm) = (args[3] as i32, args[4] as i32, args[5]);
        if call == calls::RECV_INIT {
            match receives::begin_receive(self, part, peer, tag, comm) {
                None => Request::Done(Status::nobody()),
                Some(id) => Request::Receive(id, part),
            }
        } else {
            let envelope = Envelope { mode: Mode::of(call), dest: peer, tag, comm };
            Request::Send(p2p::begin_later(self, part, envelope))
        }
    }

    /// What of `handles` the meta has complete: nothing until that is `enough`.
    pub(crate) fn ready(&mut self, handles: &[usize], once: bool, enough: Enough) -> Vec<usize> {
        self.sources.insert(Source::Completion);
        // Which are complete here, if those will do.
        let look = |state: &mut Self| {
            let active: Vec<usize> =
                (0..handles.len()).filter(|it| state.is_active(handles[*it])).collect();
            let those: Vec<usize> = active.iter().map(|it| handles[*it]).collect();
            let is_ready = state.are_ready(&those);
            let ready = active.iter().zip(is_ready).filter_map(|(it, is)| is.then_some(*it));
            let most = if enough == Enough::First { 1 } else { usize::MAX };
            let ready: Vec<usize> = ready.take(most).collect();
            let least = if enough == Enough::All { active.len() } else { 1 };
            (least <= ready.len()).then_some(ready)
        };
        epochs::serve_until(self, |state| once || look(state).is_some());
        let found = |state: &mut Self| {
            let ready = look(state)?;
            Some(ready.iter().flat_map(|it| (*it as u32).to_le_bytes()).collect())
        };
        // Which messages are asked for: another may have the same handle afterwards.
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        let slots = handles.iter().filter(|it| self.is_request(**it)).map(|it| self.slot(*it));
        for slot in slots.collect::<Vec<_>>() {
            let request = self.requests[slot].iter();
            request.for_each(|it| it.put_messages(&mut sends, &mut receives));
        }
        let sizes = [enough as usize, handles.len(), sends.len()].map(|it| it as u64);
        let wanted = [&sizes[..], &sends, &receives].concat();
        let row = if once {
            self.inquire(&wanted, found).unwrap_or_default()
        } else {
            let what = self.shape.after(&wanted);
            self.aside(what, |state| state.event(EventKind::Decision, found)).0
        };
        row.chunks_exact(4)
            .map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]) as usize)
            .collect()
    }
}

/// Puts memory behind the handles; what is never used costs nothing.
fn map_handles() {
    let (base, length) = (Own::Request.handle(0), Own::Request.step() * REQUESTS_MAX);
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let kind = kind | libc::MAP_FIXED_NOREPLACE;
    let at = unsafe { libc::mmap(base as *mut _, length, rights, kind, -1, 0) };
    if at as usize != base {
        real::fail("the addresses of this library's requests are taken");
    }
}

/// Where in a request Open MPI keeps its Fortran number: the word that changes when it gets one.
fn find_fortran_offset(comm: usize, byte: usize) -> Option<usize> {
    let (mut request, mut box_) = (0_usize, 0_u8);
    let to = [&raw mut box_ as usize, 1, byte, 0, 0, comm, &raw mut request as usize];
    if real::code(calls::RECV_INIT, &to) != abi::SUCCESS {
        return None;
    }
    let words = || -> Vec<i32> {
        (0..Own::Request.step() / 4)
            .map(|idx| unsafe { *(request as *const i32).add(idx) })
            .collect()
    };
    let before = words();
    let number = real::call(calls::REQUEST_C2F, &[request]) as i32;
    let found = before
        .iter()
        .zip(words())
        .position(|(before, after)| *before != number && after == number)
        .map(|it| it * 4);
    real::call(calls::REQUEST_FREE, &[&raw mut request as usize]);
    found
}

unsafe fn handles(count: usize, at: usize) -> Vec<usize> {
    (0..count).map(|idx| unsafe { abi::handle_at(at, idx) }).collect()
}

pub(crate) fn wait(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = unsafe { abi::handle_at(args[0], 0) };
    if let Some(code) = state.refuse_requests(call, &[handle]) {
        return code;
    }
    let comm = state.comm_of(handle, true);
    let status = state.complete(args[0], 0);
    unsafe { status.write(args[1], false) };
    state.error(comm, status.error, call)
}

/// Completes those of `which` and writes their statuses in that order.
fn complete_all(
    state: &mut State,
    call: Call,
    requests: usize,
    which: &[usize],
    statuses: usize,
) -> usize {
    // That of the first one that failed.
    let mut failed = None;
    for (row, idx) in which.iter().enumerate() {
        let comm = state.comm_of(unsafe { abi::handle_at(requests, *idx) }, false);
        let mut status = state.complete(requests, *idx);
        if status.error != abi::SUCCESS {
            failed = failed.or(Some(comm));
            status.error = state.codes.shared(status.error);
        }
        unsafe { status.write(Status::place(statuses, row), true) };
    }
    match failed {
        Some(comm) => state.error(comm, abi::table().err_in_status, call),
        None => abi::SUCCESS as usize,
    }
}

pub(crate) fn waitall(state: &mut State, call: Call, args: &[usize]) -> usize {
    let n = args[0] as i32 as usize;
    if let Some(code) = state.refuse_requests(call, &unsafe { handles(n, args[1]) }) {
        return code;
    }
    let all: Vec<usize> = (0..n).collect();
    complete_all(state, call, args[1], &all, args[2])
}

pub(crate) fn waitany(state: &mut State, call: Call, args: &[usize]) -> usize {
    let all = unsafe { handles(args[0] as i32 as usize, args[1]) };
    let index = args[2] as *mut i32;
    if let Some(code) = state.refuse_requests(call, &all) {
        return code;
    }
    if !all.iter().any(|it| state.is_active(*it)) {
        unsafe {
            *index = abi::UNDEFINED;
            Status::empty().write(args[3], false);
        }
        return 0;
    }
    let ready = state.ready(&all, false, Enough::First);
    let idx = ready[0];
    let comm = state.comm_of(all[idx], true);
    let status = state.complete(args[1], idx);
    unsafe {
        *index = idx as i32;
        status.write(args[3], false);
    }
    state.error(comm, status.error, call)
}

pub(crate) fn waitsome(state: &mut State, call: Call, args: &[usize]) -> usize {
    some(state, call, args, false)
}

pub(crate) fn testsome(state: &mut State, call: Call, args: &[usize]) -> usize {
    some(state, call, args, true)
}

fn some(state: &mut State, call: Call, args: &[usize], once: bool) -> usize {
    let all = unsafe { handles(args[0] as i32 as usize, args[1]) };
    let n_out = args[2] as *mut i32;
    if let Some(code) = state.refuse_requests(call, &all) {
        return code;
    }
    if !all.iter().any(|it| state.is_active(*it)) {
        unsafe { *n_out = abi::UNDEFINED };
        return 0;
    }
    let ready = state.ready(&all, once, Enough::Some);
    unsafe {
        *n_out = ready.len() as i32;
        for (row, idx) in ready.iter().enumerate() {
            *(args[3] as *mut i32).add(row) = *idx as i32;
        }
    }
    complete_all(state, call, args[1], &ready, args[4])
}

pub(crate) fn test(state: &mut State, call: Call, args: &[usize]) -> usize {
    let flag = args[1] as *mut i32;
    let handle = unsafe { abi::handle_at(args[0], 0) };
    if let Some(code) = state.refuse_requests(call, &[handle]) {
        return code;
    }
    let done = !state.is_active(handle) || !state.ready(&[handle], true, Enough::First).is_empty();
    unsafe { *flag = i32::from(done) };
    if !done {
        return 0;
    }
    let comm = state.comm_of(handle, true);
    let status = state.complete(args[0], 0);
    unsafe { status.write(args[2], false) };
    state.error(comm, status.error, call)
}

pub(crate) fn testall(state: &mut State, call: Call, args: &[usize]) -> usize {
    let all = unsafe { handles(args[0] as i32 as usize, args[1]) };
    if let Some(code) = state.refuse_requests(call, &all) {
        return code;
    }
    let active = all.iter().any(|it| state.is_active(*it));
    let done = !active || !state.ready(&all, true, Enough::All).is_empty();
    unsafe { *(args[2] as *mut i32) = i32::from(done) };
    if !done {
        return 0;
    }
    let all: Vec<usize> = (0..all.len()).collect();
    complete_all(state, call, args[1], &all, args[3])
}

pub(crate) fn testany(state: &mut State, call: Call, args: &[usize]) -> usize {
    let all = unsafe { handles(args[0] as i32 as usize, args[1]) };
    let (index, flag) = (args[2] as *mut i32, args[3] as *mut i32);
    if let Some(code) = state.refuse_requests(call, &all) {
        return code;
    }
    let active = all.iter().any(|it| state.is_active(*it));
    let ready = if active { state.ready(&all, true, Enough::First) } else { Vec::new() };
    unsafe {
        *flag = i32::from(!active || !ready.is_empty());
        *index = ready.first().map_or(abi::UNDEFINED, |it| *it as i32);
    }
    let Some(idx) = ready.first() else {
        if !active {
            unsafe { Status::empty().write(args[4], false) };
        }
        return 0;
    };
    let comm = state.comm_of(all[*idx], true);
    let status = state.complete(args[1], *idx);
    unsafe { status.write(args[4], false) };
    state.error(comm, status.error, call)
}

/// Whether a request is complete.  One that is found so has its data and its status from here on,
/// and is still the program's to complete.
pub(crate) fn request_get_status(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    let flag = args[1] as *mut i32;
    if let Some(code) = state.refuse_requests(call, &[handle]) {
        return code;
    }
    if !state.is_active(handle) {
        unsafe {
            *flag = 1;
            Status::empty().write(args[2], false);
        }
        return abi::SUCCESS as usize;
    }
    let done = !state.ready(&[handle], true, Enough::First).is_empty();
    unsafe { *flag = i32::from(done) };
    if !done {
        return abi::SUCCESS as usize;
    }
    let comm = state.comm_of(handle, true);
    let status = state.complete_in_place(handle);
    unsafe { status.write(args[2], false) };
    state.error(comm, status.error, call)
}

/// Whether nothing is lost by what is under way if nobody asks for it again.
fn goes_on(active: Option<&Request>) -> bool {
    matches!(active, None | Some(Request::Send(_) | Request::Done(_)))
}

pub(crate) fn request_free(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = unsafe { abi::handle_at(args[0], 0) };
    if !state.is_request(handle) {
        return state.error_of_none(abi::table().err_request, call);
    }
    let slot = state.slot(handle);
    match state.requests[slot].take() {
        // Sends go on by themselves; nobody can be told that a receive is over.
        Some(Request::Send(_) | Request::Done(_)) => {}
        Some(Request::Persistent { active, .. }) if goes_on(active.as_deref()) => {}
        Some(Request::Partitioned(it)) if !it.is_started || it.has_left() => {}
        // The program completes it, and is told then that it is over.
        Some(Request::Generalized(it)) if it.is_complete => {
            it.free(state);
        }
        _ => state.refuse_as(call, "of a receive or collective that is under way"),
    }
    state.requests_free.insert(slot);
    unsafe { abi::put_handle(args[0], 0, state.handles().request_null) };
    0
}

pub(crate) fn request_c2f(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    if !state.is_request(handle) {
        return real::call(call, args);
    }
    Own::Request.to_fortran(state.slot(handle)) as usize
}

pub(crate) fn request_f2c(state: &mut State, call: Call, args: &[usize]) -> usize {
    let _ = state;
    Own::Request.of_fortran(args[0] as i32).unwrap_or_else(|| real::call(call, args))
}

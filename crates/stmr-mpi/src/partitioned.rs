//! Partitioned messages: one message of all parts, which leaves when the last of them is ready.
//!
//! It goes under a tag that no ordinary message has, since the two kinds never match each other
//! (MPI 4.1 §4.2.2).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::abi;
use crate::calls;
use crate::p2p::{self, Envelope, Mode};
use crate::pack::{self, Part};
use crate::real::{self, Call};
use crate::receives;
use crate::request::{Enough, Request};
use crate::state::State;

/// Partitioned messages have the highest of MPI's tags, one of so many of all.
const SHARE: i32 = 16;

/// The largest tag of an ordinary message.  Those above are the program's, with 1 and this more, of
/// partitioned ones.
pub(crate) fn tag_max(state: &State) -> i32 {
    shown_tag_max(state).load(Ordering::Relaxed)
}

/// Where the program finds it, which is given its address.
pub(crate) fn shown_tag_max(state: &State) -> &'static AtomicI32 {
    static TAG_MAX: OnceLock<AtomicI32> = OnceLock::new();
    TAG_MAX.get_or_init(|| {
        let (mut at, mut flag) = (0_usize, 0_i32);
        let (world, tag_ub) = (state.handles().world, abi::table().tag_ub() as u32 as usize);
        let args = [world, tag_ub, &raw mut at as usize, &raw mut flag as usize];
        real::call(calls::COMM_GET_ATTR, &args);
        let all = if flag == 0 { i32::MAX } else { unsafe { *(at as *const i32) } };
        AtomicI32::new(all - all / SHARE)
    })
}

/// A partitioned send or receive.
pub(crate) struct Partitioned {
    sends: bool,
    part: Part,
    peer: i32,
    tag: i32,
    comm: usize,
    /// Which parts the program has made ready, of a send.
    ready: Vec<bool>,
    pub(crate) is_started: bool,
    /// What is under way, once it is.
    pub(crate) active: Option<Request>,
}

/// MPI_Psend_init and MPI_Precv_init.
pub(crate) fn init(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (n, count, tag) = (args[1] as i32, args[2] as i64, args[5] as i32);
    let all = i64::from(n).checked_mul(count).and_then(|it| usize::try_from(it).ok());
    let max = tag_max(state);
    let is_tag = (0..max / SHARE).contains(&tag);
    let Some(count) = all.filter(|it| i32::try_from(*it).is_ok() && is_tag) else {
        state.refuse_as(call, pack::TOO_MANY)
    };
    let sends = call == calls::PSEND_INIT;
    let request = Request::Partitioned(Box::new(Partitioned {
        sends,
        part: Part { at: args[0], count, datatype: args[3] },
        peer: args[4] as i32,
        tag: max + 1 + tag,
        comm: args[6],
        ready: vec![false; if sends { n as usize } else { 0 }],
        is_started: false,
        active: None,
    }));
    state.keep_request(request, args[8]);
    abi::SUCCESS as usize
}

impl Partitioned {
    pub(crate) fn start(&mut self, state: &mut State) {
        self.is_started = true;
        self.ready.fill(false);
        let &mut Self { part, peer, tag, comm, .. } = self;
        if self.sends {
            self.send_if_ready(state);
        } else {
            let id = receives::begin_receive(state, part, peer, tag, comm);
            self.active = Some(receives::receiving(id, part));
        }
    }

    /// Whether it is a send that is under way.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.active, Some(Request::Send(_)))
    }

    fn send_if_ready(&mut self, state: &mut State) {
        if self.active.is_none() && self.ready.iter().all(|it| *it) {
            let &mut Self { part, peer, tag, comm, .. } = self;
            let id = p2p::begin_send(
                state,
                part,
                Envelope { mode: Mode::Standard, dest: peer, tag, comm },
            );
            self.active = Some(Request::Send(id));
        }
    }
}

/// The tag that the program gave, of one that came with a message.
pub(crate) fn program_tag(state: &State, tag: i32) -> i32 {
    let max = tag_max(state);
    if max < tag { tag - max - 1 } else { tag }
}

/// Stops the program where one that asks for messages of any tag has met a partitioned one: MPI
/// would never show it to it.
pub(crate) fn refuse_met(state: &mut State, tag: i32) {
    if tag_max(state) < tag {
        state.refuse_at_once("a receive or probe of any tag beside partitioned messages")
    }
}

fn make_ready(state: &mut State, handle: usize, parts: impl Iterator<Item = i32>) -> usize {
    let Some(mut it) = state.take_partitioned(handle) else {
        real::fail("MPI_Pready of a request that is no partitioned send, or was not started")
    };
    for idx in parts {
        let Some(ready) = usize::try_from(idx).ok().and_then(|idx| it.ready.get_mut(idx)) else {
            let n = it.ready.len();
            real::fail(&format!("MPI_Pready of part {idx} of a send of {n} parts"))
        };
        *ready = true;
    }
    it.send_if_ready(state);
    state.put_partitioned(handle, it);
    abi::SUCCESS as usize
}

pub(crate) fn pready(state: &mut State, _call: Call, args: &[usize]) -> usize {
    make_ready(state, abi::cut(args[1]), std::iter::once(args[0] as i32))
}

pub(crate) fn pready_range(state: &mut State, _call: Call, args: &[usize]) -> usize {
    make_ready(state, abi::cut(args[2]), args[0] as i32..=args[1] as i32)
}

pub(crate) fn pready_list(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let n = usize::try_from(args[0] as i32).unwrap_or(0);
    let list: Vec<i32> = (0..n).map(|it| unsafe { *(args[1] as *const i32).add(it) }).collect();
    make_ready(state, abi::cut(args[2]), list.into_iter())
}

/// Whether a part has come: all come together.
pub(crate) fn parrived(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let arrived = state.has_arrived(abi::cut(args[0]));
    unsafe { *(args[2] as *mut i32) = i32::from(arrived) };
    abi::SUCCESS as usize
}

impl State {
    /// The meta's answer, as to MPI_Test; but the request is not completed.
    fn has_arrived(&mut self, handle: usize) -> bool {
        if !self.is_active(handle) {
            return true;
        }
        let has_come = !self.ready(&[handle], true, Enough::First).is_empty();
        if has_come {
            // The program may read it from here on.
            self.complete_in_place(handle);
        }
        has_come
    }
}

//! The library that `selvedge mpirun` preloads into each replica of an MPI program.
//!
//! It exports every function of MPI under both its names and decides for each by `calls.txt`: pass
//! it on, refuse it by name, or do it here.  What is right, who leads and who feeds whom is
//! decided by `selvedge-stmr`; this crate carries it out over memory that the replicas share and
//! the program's own MPI.
//!
//! In reading order: its own heap (`heap`), the program's (`program_heap`), processes that others
//! started (`joined`), the program's MPI library and how it is called (`real`), what is loaded for
//! its sake (`origin`), where the objects behind its handles lie (`objects`), memory of
//! accelerators (`accelerators`), MPI's handles and statuses (`abi`), memory that all processes
//! share (`memory`), links to siblings on other hosts
//! (`network`), those to all siblings and to the launcher (`link`), what the launcher says at the
//! start (`told`), the one state of a replica (`state`), the stack on which it is used (`stack`),
//! its spare buffers (`spare`) and how it waits (`wait`), comparing in full (`full`), what is sent
//! written down (`sends`), calls that only the environment answers (`env`), communicators (`comm`),
//! what a process says to make one (`given`) and where all come together before (`gate`), what the
//! program does wrong (`errors`) and the codes of that (`codes`), communicators that MPI does not
//! know (`made`), their topologies (`topology`), graphs whose edges any process may name (`edges`),
//! what a program keeps with them (`attributes`), contents in the order of their types (`pack`),
//! where those stand (`typemap`), bytes of them that are no value's (`padding`), messages (`p2p`),
//! those that come in (`receives`) and that are compared together (`batch`), that a probe found
//! (`matched`), requests (`request`), messages in parts (`partitioned`), requests that the program
//! completes (`generalized`), what a process frees while requests need it (`held`), what it gives
//! to a collective and gets (`parts`), where MPI makes one (`room`), collectives (`collective`),
//! those whose sums hang on an order (`sums`), or on how many MPI has counted (`counted`), calls
//! with counts of 64 bits (`large`), questions about failures (`failures`), looks at clocks that
//! are CPython's own (`python`), what the C library is asked for that differs between replicas
//! (`clock`, `cores`), the cycle counter (`cycles`), which libraries that come later may read
//! (`loads`), signals (`signals`), and what it is asked to change in the world, under
//! names that are each replica's own (`own_names`) or shared: files (`files`), locks on them
//! (`file_locks`), their descriptors (`descriptors`), what comes in by the first of them (`input`),
//! what folders were opened by (`opened`), those that are none (`devices`), their names (`names`)
//! and folders (`folders`),
//! the C library's own ways of writing them (`streams`, `prints`), commands of the shell
//! (`commands`) and what surrounds them (`environment`), MPI's files (`mpi_files`), how data stand
//! in them (`representation`), what goes wrong
//! with them (`file_errors`), a place that processes share (`pointers`); last, memory that other
//! processes put to and get from (`windows`, in Fortran `fortran`), and when (`epochs`), also where
//! who accesses it says so (`passive`), or nobody does, because it is shared (`shared`).
//!
//! The library never blocks inside MPI: it starts the call that does not block and tests it, or,
//! for calls that have no such form, waits beside a thread that makes it.  A replica whose set has
//! lost a member touches MPI's messages no more and takes what comes in from a twin.
#![deny(unsafe_op_in_unsafe_fn)]

mod heap;

mod program_heap;

mod joined;

mod real;

mod idle;

mod looks;
mod lookup;

mod origin;

mod tools;

mod objects;

mod accelerators;

mod alarms;

mod sleeps;

mod abi;

mod memory;

mod network;

mod link;

mod told;

mod state;

mod steady;
mod telling;

mod spare;

mod stack;

mod wait;

mod full;

mod sends;

mod segments;

mod ends;
mod env;

mod threads;

mod crashes;

mod comm;

mod given;

mod gate;

mod errors;

mod codes;

mod made;

mod topology;

mod edges;

mod attributes;

mod pack;

mod typemap;

mod padding;

mod p2p;

mod receives;

mod batch;

mod matched;

mod request;

mod partitioned;

mod generalized;

mod held;

mod parts;

mod room;

mod collective;

mod sums;

mod counted;

mod large;

mod failures;

mod python;

mod sites;

mod chance;

mod clock;
mod commands;

mod environment;

mod cores;

mod own;

mod cycles;

mod loads;

mod signals;

mod own_names;

mod opened;

mod files;

mod file_locks;

mod descriptors;

mod input;

mod devices;

mod names;

mod folders;

mod streams;

mod prints;

mod mpi_files;

mod file_errors;

mod representation;

mod pointers;

mod windows;

mod fortran;

mod epochs;

mod passive;

mod shared;

use std::sync::atomic::{AtomicBool, Ordering};

use real::Call;
use state::State;

/// No call of MPI has more arguments.
const ARGS_MAX: usize = 13;

/// What may be called when MPI_Finalize is over.
const AFTER_THE_END: [Call; 3] = [calls::INITIALIZED, calls::FINALIZED, calls::ABORT];

/// Calls by which a program begins to be one of MPI.
const BEGINNINGS: [Call; 2] = [calls::INIT, calls::INIT_THREAD];

/// What any thread may ask, also while another is in MPI.
fn is_of_stage(call: Call) -> bool {
    matches!(call, calls::INITIALIZED | calls::FINALIZED)
}

/// Calls of this crate's that only ask.
fn only_asks(call: Call) -> bool {
    matches!(call, calls::INITIALIZED | calls::FINALIZED | calls::COMM_RANK | calls::COMM_SIZE)
}

/// Calls that ask whether something has come, or wait for it, and that only ask.  One replica may
/// ask more often than another, and wait for what another has found: only what came is part of the
/// program's way.
fn is_aside(call: Call) -> bool {
    matches!(
        call,
        calls::WAIT
            | calls::WAITALL
            | calls::WAITANY
            | calls::WAITSOME
            | calls::TEST
            | calls::TESTALL
            | calls::TESTANY
            | calls::TESTSOME
            | calls::REQUEST_GET_STATUS
            | calls::PARRIVED
            | calls::IPROBE
            | calls::IMPROBE
            | calls::GET_PROCESSOR_NAME
    )
}

/// Calls of this crate's that are over at once, and that programs make often.
fn is_short(call: Call) -> bool {
    matches!(call, calls::TYPE_FREE | calls::OP_FREE)
}

/// The places of arguments that a table of calls names by bits, the first by the lowest.
fn places(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        Some(place as usize)
    })
}

/// Calls that the program has made already.
static IS_KNOWN: [AtomicBool; calls::N_CALLS] = [const { AtomicBool::new(false) }; calls::N_CALLS];

/// What is done with a call.
#[derive(Clone, Copy)]
enum Class {
    /// It is safe as it is, but for the communicator of all processes.
    Pass,
    /// The same, and what it returns is no error of the program's.
    Value,
    /// The program stops with its name.
    Refuse,
    /// This crate does it.
    Own(fn(&mut State, Call, &[usize]) -> usize),
    /// It is done as the call with counts of 32 bits; the letters of its arguments are with it.
    Large(Call, &'static [u8]),
}

mod calls {
    #![allow(missing_docs, non_snake_case, unreachable_pub)]
    use super::{Call, Class};

    include!(concat!(env!("OUT_DIR"), "/calls.rs"));
}

/// Every exported function of MPI comes here.  Its frame is on the program's stack: it is small,
/// and what it calls there is no part of it.
unsafe fn enter(call: Call, args: &[usize]) -> usize {
    if !state::is_replica() || real::is_inside() {
        return enter_from_mpi(call, args);
    }
    let answer = stack::on_own(|| pass(call, args));
    errors::deliver();
    signals::deliver();
    if !IS_KNOWN[call.0].load(Ordering::Relaxed) {
        IS_KNOWN[call.0].store(true, Ordering::Relaxed);
        stack::forget_loader();
        if BEGINNINGS.contains(&call) {
            stack::forget_below();
        }
    }
    answer
}

/// The same by the name that tools stand before.
unsafe fn enter_first(call: Call, args: &[usize]) -> usize {
    match tools::of(call) {
        Some(at) => unsafe { real::call_at(at, args) },
        None => unsafe { enter(call, args) },
    }
}

/// A call that is none of the program's, or of a process that is no replica.
#[inline(never)]
fn enter_from_mpi(call: Call, args: &[usize]) -> usize {
    let known = if state::is_replica() { env::asked_within(call, args) } else { None };
    known.unwrap_or_else(|| real::call(call, args))
}

/// A call of the program's, up to what is delivered behind it.
fn pass(call: Call, args: &[usize]) -> usize {
    if is_of_stage(call) && state::is_beside() {
        return env::stage(call, args);
    }
    threads::note_first_call();
    program_heap::take_back();
    // What only asks is no part of the way that a program takes, and threads may ask at any time.
    let passes = matches!(calls::CLASSES[call.0], Class::Pass | Class::Value);
    let asks = passes || only_asks(call);
    let is_short = asks || is_short(call);
    if !is_short {
        cycles::count_call();
    }
    let _inside = if is_short { real::Inside::enter_shortly() } else { real::Inside::enter() };
    let mut row = [0; ARGS_MAX];
    let row = &mut row[..args.len()];
    row.copy_from_slice(args);
    for place in places(calls::COMMUNICATORS[call.0]) {
        row[place] = abi::cut(row[place]);
    }
    state::with_turn(call, |state| {
        if state::is_ending() && !passes && !AFTER_THE_END.contains(&call) {
            state.refuse_as(call, "after MPI_Finalize");
        }
        state.end_if_shared();
        if !is_short {
            state.send_held_before(|| plain_of(call));
            if !state.windows.pending.is_empty() {
                passive::leave_before(state, plain_of(call));
            }
        }
        if !asks && !is_aside(call) {
            state.mix(&[call.0 as u64]);
        }
        state.doing = call.name();
        state.begin_codes(call, row);
        let answer = make(state, call, row);
        if answer == abi::SUCCESS as usize || !returns_code(call) {
            return answer;
        }
        state.codes.shared(answer as i32) as usize
    })
}

/// The call with counts of 32 bits, of one with counts of 64.
fn plain_of(call: Call) -> Call {
    match calls::CLASSES[call.0] {
        Class::Large(plain, _) => plain,
        _ => call,
    }
}

/// Whether what a call returns is no handle and no number.
fn returns_code(call: Call) -> bool {
    let others = ["_c2f", "_f2c", "_toint", "_fromint"];
    let is_value = matches!(calls::CLASSES[call.0], Class::Value);
    !is_value && !others.iter().any(|it| call.name().ends_with(it))
}

/// Does what calls.txt says.
fn make(state: &mut State, call: Call, args: &[usize]) -> usize {
    if let Some(answer) = errors::refusal(state, call, args) {
        return answer;
    }
    if let Some(answer) = codes::text(state, call, args) {
        return answer;
    }
    accelerators::check(state, call, args);
    match calls::CLASSES[call.0] {
        Class::Value => comm::pass(state, call, args),
        Class::Pass => {
            let code = comm::pass(state, call, args) as i32;
            if state.handles.is_none() {
                code as usize
            } else {
                comm::told_of(state, call, args, code)
            }
        }
        Class::Refuse => state.refuse(call),
        Class::Own(own) => own(state, call, args),
        Class::Large(plain, letters) => match large::narrow(state, plain, letters, args) {
            Some(args) => make(state, plain, &args),
            None => state.refuse_as(call, pack::TOO_MANY),
        },
    }
}

/// The program's clock is the meta's, so that all replicas read the same.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtime() -> f64 {
    clock::looking(env::wtime)
}

/// See [`MPI_Wtime`].
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Wtime() -> f64 {
    clock::looking(env::wtime)
}

/// The clock's step.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtick() -> f64 {
    1e-9
}

/// See [`MPI_Wtick`].
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Wtick() -> f64 {
    1e-9
}

//! Calls that the surroundings answer: start, end, time.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use selvedge_stmr::numbers::{self, Place};
use selvedge_stmr::report::Report;

use crate::abi::{self, Handles};
use crate::attributes;
use crate::calls;
use crate::clock;
use crate::crashes;
use crate::objects;
use crate::origin;
use crate::program_heap;
use crate::real::{self, Call};
use crate::state::{self, State};
use crate::told::Told;

pub(crate) fn init(state: &mut State, call: Call, args: &[usize]) -> usize {
    start(state, || real::code(call, args)) as usize
}

/// Threads that all call MPI have no order that replicas could share, so that level is lowered.
pub(crate) fn init_thread(state: &mut State, call: Call, args: &[usize]) -> usize {
    let wanted = (args[2] as i32).min(abi::table().thread_serialized);
    state.asked.may_take_turns = wanted == abi::table().thread_serialized;
    if wanted < args[2] as i32 && state.told.set == 0 && state.told.rank == 0 {
        state.note("MPI_THREAD_MULTIPLE is lowered to MPI_THREAD_SERIALIZED");
    }
    let code = start(state, || real::code(call, &[args[0], args[1], wanted as usize, args[3]]));
    let provided = args[3] as *mut i32;
    unsafe { *provided = (*provided).min(abi::table().thread_serialized) };
    code as usize
}

fn start(state: &mut State, init: impl FnOnce() -> i32) -> i32 {
    let told = state.told;
    if state.handles.is_some() {
        state.refuse_in_words("MPI_Init, a second time,");
    }
    origin::begin();
    state.say(Report::Entering);
    // Nobody is heard while it is in MPI_Init: who has come another way is found before.
    state.compare(Vec::new());
    launchers_numbers();
    let (code, entered) = state.while_telling(|| enter_mpi(told, init));
    let Some((handles, [world, hidden])) = entered else { return code };
    state.handles = Some(handles);
    let (rank, size) = crate::comm::rank_and_size(world);
    if (rank, size) != (told.rank as i32, told.ranks as i32) {
        real::fail(&format!(
            "rank {} of {} was started as {rank} of {size}: the launcher numbers its processes in \
             another order than by 0, 1, 2 …",
            told.rank, told.ranks
        ));
    }
    (state.world, state.hidden) = (world, hidden);
    real::call(calls::COMM_SET_NAME, &[world, c"MPI_COMM_WORLD".as_ptr() as usize]);
    let _ = WORLD.set((abi::cut(handles.world), world, [rank, size]));
    own_numbers(told);
    program_heap::mend_mmap();
    objects::begin();
    if !program_heap::begin() {
        state.note("addresses of the program's memory may differ: its heap has no room");
    }
    crashes::begin();
    state.begin_together();
    code
}

/// The program's handle of the communicator of all its processes, what stands behind it, this
/// process's rank in it and how many there are.
static WORLD: OnceLock<(usize, usize, [i32; 2])> = OnceLock::new();

/// What a function of the program's that MPI calls, as that of an operation, is answered about the
/// communicator of all processes, where MPI's has those of all replicas, and about what the program
/// keeps.
pub(crate) fn asked_within(call: Call, args: &[usize]) -> Option<usize> {
    let (world, behind, answers) = WORLD.get()?;
    let comm = || if abi::cut(args[0]) == *world { *behind } else { abi::cut(args[0]) };
    let rank_or_size = [calls::COMM_RANK, calls::COMM_SIZE].iter().position(|it| *it == call);
    match (rank_or_size, call) {
        (Some(idx), _) if comm() == *behind => unsafe { *(args[1] as *mut i32) = answers[idx] },
        (_, calls::COMM_GET_ATTR | calls::ATTR_GET) => {
            let found = attributes::found_within(comm(), args[1] as i32)?;
            unsafe {
                *(args[2] as *mut usize) = found;
                *(args[3] as *mut i32) = 1;
            }
        }
        _ => return None,
    }
    Some(abi::SUCCESS as usize)
}

/// Begins MPI and makes the communicator of this replica's set, and a hidden one: calls that wait
/// for all processes.
fn enter_mpi(told: &Told, init: impl FnOnce() -> i32) -> (i32, Option<(Handles, [usize; 2])>) {
    let code = init();
    if code != abi::SUCCESS {
        return (code, None);
    }
    let handles = Handles::find();
    // Errors come back to this library, which does what the program asked for.
    for comm in [handles.world, handles.own] {
        real::call(calls::COMM_SET_ERRHANDLER, &[comm, handles.errors_return]);
    }
    own_info(told);
    let (mut world, mut hidden) = (0_usize, 0_usize);
    if told.replicas == 1 || told.is_whole_job {
        world = handles.world;
    } else {
        let args = [handles.world, told.set, told.rank, &raw mut world as usize];
        real::call(calls::COMM_SPLIT, &args);
    }
    if told.replicas != 1 {
        real::call(calls::COMM_DUP, &[world, &raw mut hidden as usize]);
    }
    (code, Some((handles, [world, hidden])))
}

/// MPI is told what its launcher said, in whose place the program has found its own numbers.
fn launchers_numbers() {
    for (name, value) in std::env::vars_os() {
        let of = name.to_str().and_then(|it| it.strip_prefix(numbers::LAUNCHERS));
        if let Some(of) = of {
            // The program's thread is the only one that reads them here.
            unsafe { std::env::set_var(of, value) };
        }
    }
}

/// What the launcher told the program of itself, as it would without replicas.
fn own_numbers(told: &Told) {
    let world = Place { rank: told.rank, ranks: told.ranks };
    for (name, own) in numbers::own(world, told.local) {
        if std::env::var_os(name).is_some() {
            // The program's thread is the only one that reads them here.
            unsafe { std::env::set_var(name, own) };
        }
    }
}

/// The same in MPI_INFO_ENV, which Open MPI has filled with what its launcher started; MPICH has
/// there what this process was started with.
fn own_info(told: &Told) {
    let Some(info) = real::symbol(c"ompi_mpi_info_env") else { return };
    let set = |key: &CStr, value: &str| {
        if let Ok(value) = CString::new(value) {
            real::call(calls::INFO_SET, &[info, key.as_ptr() as usize, value.as_ptr() as usize]);
        }
    };
    for key in [c"maxprocs", c"soft", c"ompi_np"].into_iter().filter(|it| text(info, it).is_some())
    {
        set(key, &told.ranks.to_string());
    }
    // The program stands behind the word that makes a replica of it.
    let argv = text(info, c"argv").unwrap_or_default();
    if let Some((_, words)) = argv.split_once(" -- ").filter(|it| it.0 == "mpirun-replica") {
        let (program, rest) = words.split_once(' ').unwrap_or((words, ""));
        let name = program.rsplit('/').next().unwrap_or(program);
        set(c"command", if real::is_open_mpi_5() { program } else { name });
        // A program without arguments has none there, or itself.
        match rest {
            "" if real::is_open_mpi_5() => set(c"argv", program),
            "" => _ = real::call(calls::INFO_DELETE, &[info, c"argv".as_ptr() as usize]),
            _ => set(c"argv", rest),
        }
    }
}

/// What stands there, if it is text.
fn text(info: usize, key: &CStr) -> Option<String> {
    let (mut value, mut found) = ([0_u8; 4096], 0_i32);
    let [to, flag] = [value.as_mut_ptr() as usize, &raw mut found as usize];
    real::call(calls::INFO_GET, &[info, key.as_ptr() as usize, value.len() - 1, to, flag]);
    let value = CStr::from_bytes_until_nul(&value).ok()?;
    (found != 0).then(|| value.to_str().map(str::to_owned).ok())?
}

pub(crate) fn initialized(_state: &mut State, call: Call, args: &[usize]) -> usize {
    stage(call, args)
}

pub(crate) fn finalized(_state: &mut State, call: Call, args: &[usize]) -> usize {
    stage(call, args)
}

/// Whether the program has begun MPI, or ended it.
pub(crate) fn stage(call: Call, args: &[usize]) -> usize {
    if call == calls::INITIALIZED {
        return real::call(call, args);
    }
    unsafe { *(args[0] as *mut i32) = i32::from(state::is_ending()) };
    abi::SUCCESS as usize
}

/// The program's end, without MPI's own: that blocks, and hangs when a process dies in it.
pub(crate) fn finalize(state: &mut State, _call: Call, _args: &[usize]) -> usize {
    state.drop_kept_at_end();
    state.finish_sends();
    state.compare(Vec::new());
    state.end_together();
    abi::SUCCESS as usize
}

pub(crate) fn abort(state: &mut State, _call: Call, args: &[usize]) -> usize {
    state.abort(args[1] as i32)
}

pub(crate) fn query_thread(_state: &mut State, call: Call, args: &[usize]) -> usize {
    let code = real::call(call, args);
    let provided = args[0] as *mut i32;
    unsafe { *provided = (*provided).min(abi::table().thread_serialized) };
    code
}

/// Memory that the program asks MPI for is its own, and lies alike in all replicas.
pub(crate) fn alloc_mem(_state: &mut State, call: Call, args: &[usize]) -> usize {
    let (size, to) = (args[0] as isize, args[2] as *mut usize);
    let at =
        if size < 0 { 0 } else { program_heap::zeros(size as usize, program_heap::LINE) as usize };
    if at == 0 {
        return real::call(call, args);
    }
    unsafe { *to = at };
    abi::SUCCESS as usize
}

pub(crate) fn free_mem(_state: &mut State, call: Call, args: &[usize]) -> usize {
    let at = args[0] as *mut std::ffi::c_void;
    if !program_heap::is_here(at) {
        return real::call(call, args);
    }
    unsafe { program_heap::release(at) };
    abi::SUCCESS as usize
}

/// The meta's host: a program that names its hosts sees one program.
pub(crate) fn get_processor_name(state: &mut State, call: Call, args: &[usize]) -> usize {
    let name = state.look_or_recall(clock::PROCESSOR, || {
        let (mut name, mut length) = ([0_u8; 256], 0_i32);
        real::call(call, &[name.as_mut_ptr() as usize, &raw mut length as usize]);
        name[..length as usize].to_vec()
    });
    unsafe {
        let to = args[0] as *mut u8;
        std::ptr::copy_nonoverlapping(name.as_ptr(), to, name.len());
        *to.add(name.len()) = 0;
        *(args[1] as *mut i32) = name.len() as i32;
    }
    abi::SUCCESS as usize
}

/// The meta's clock, in seconds.
pub(crate) fn wtime() -> f64 {
    let now = clock::now(libc::CLOCK_MONOTONIC);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

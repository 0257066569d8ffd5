//! Windows of memory that processes share (MPI 4.1 §12.2.3).
//!
//! What one stores there others load without a call, so that nothing of it is compared.  Each set
//! has memory of its own: what its processes compute from it is compared when it leaves them.  Who
//! goes on when a process of the set is gone would find there what that one stored until then, and
//! no more; so all of the set end that share memory, and their replicas go on.

use crate::abi;
use crate::calls;
use crate::collective;
use crate::ends;
use crate::memory::PAGE;
use crate::program_heap;
use crate::real::{self, Call};
use crate::state::State;
use crate::windows::{self, Shown, Window};

/// At the end of what is shared, by whoever is first of the group.
const SIGN: u64 = 0x5e1f_ed9e_5a4e_d0cc;

/// Memory that the processes of a window share, as this one has it.
pub(crate) struct Shared {
    /// The block of the program's heap in whose place it lies.
    block: usize,
    /// Its first page, and bytes up to the end of the last one.
    at: usize,
    length: usize,
    /// Where it is in the memory of all processes.
    offset: u64,
}

impl Shared {
    /// Maps memory for `size` bytes, in place of the program's own, so that it is at the same
    /// address in all replicas.
    fn map(state: &State, size: usize, offset: u64) -> Self {
        let length = size.next_multiple_of(PAGE) + PAGE;
        let block = program_heap::zeros(length + PAGE, PAGE) as usize;
        if block == 0 {
            real::fail(&format!("MPI_Win_allocate_shared of {size} bytes, which are not there"));
        }
        let at = block.next_multiple_of(PAGE);
        state.memory.map_shared(state.told, at, length, offset);
        Self { block, at, length, offset }
    }

    fn sign(&self) -> *mut u64 {
        (self.at + self.length - PAGE) as *mut u64
    }

    /// What was in its place is there again, and the program's heap's.
    fn unmap(self) {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        unsafe {
            libc::mmap(self.at as *mut _, self.length, rights, kind, -1, 0);
            program_heap::release(self.block as *mut _);
        }
    }
}

/// MPI_Win_allocate_shared.
pub(crate) fn allocate(state: &mut State, call: Call, args: &[usize]) -> usize {
    if let Some(limit) = state.memory.limit_of_files(state.told) {
        let kilobytes = limit / 1024;
        state.refuse_as(call, &format!("with a limit of {kilobytes} KiB for files (ulimit -f)"));
    }
    let (size, unit) = (args[0] as isize, args[1] as i32);
    let (flavor, model) = (abi::table().flavors[3], abi::table().unified);
    let shown = || Shown { base: 0, size, unit, flavor, model };
    let code = windows::open(state, [args[2], args[3], args[5]], shown);
    if code as i32 != abi::SUCCESS {
        return code;
    }
    let handle = unsafe { abi::handle_at(args[5], 0) };
    let window = state.window(handle).expect("it was opened above");
    let (comm, rank) = (window.comm, window.rank as usize);
    let all: usize = window.sizes.iter().map(|it| it[0]).sum();
    let before: usize = window.sizes[..rank].iter().map(|it| it[0]).sum();
    let root = state.comm(comm).ranks[0] as usize;
    // Where the first of them has not had such memory yet.
    let mut offset = state.windows.shared_bytes;
    let (to, byte) = (&raw mut offset as usize, state.handles().byte);
    collective::blocking(state, calls::BCAST, &[to, size_of::<u64>(), byte, 0, comm]);
    let region = state.memory.region(state.told, root);
    let shared = Shared::map(state, all, region + offset);
    if rank == 0 {
        state.windows.shared_bytes += shared.length as u64;
        // A run that was begun again finds what was there before.
        state.memory.forget_shared(state.told, shared.offset, shared.length);
        unsafe { shared.sign().write_volatile(SIGN) };
    }
    state.meet(comm);
    let is_there = unsafe { shared.sign().read_volatile() } == SIGN;
    if !is_there && !state.replica.has_left() {
        state.refuse_as(call, "of processes on different hosts");
    }
    let base = shared.at + before;
    let window = state.window(handle).expect("it was opened above");
    window.shown.base = base;
    window.shared = Some(shared);
    unsafe { *(args[4] as *mut usize) = base };
    abi::SUCCESS as usize
}

/// MPI_Win_shared_query: of nobody, the first that has some.
pub(crate) fn query(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (handle, rank) = (abi::cut(args[0]), args[1] as i32);
    let window = match state.known_window(handle, call) {
        Ok(window) => window,
        Err(code) => return code,
    };
    let Some(shared) = &window.shared else {
        return state.window_error(handle, abi::table().err_rma_flavor, call);
    };
    let member = match rank {
        _ if rank == abi::table().proc_null => window.sizes.iter().position(|it| it[0] != 0),
        _ => usize::try_from(rank).ok().filter(|it| *it < window.sizes.len()),
    };
    let (size, unit, base) = match member {
        Some(member) => {
            let [size, unit] = window.sizes[member];
            let before: usize = window.sizes[..member].iter().map(|it| it[0]).sum();
            (size, unit as i32, shared.at + before)
        }
        None if rank == abi::table().proc_null => (0, 0, 0),
        None => return state.window_error(handle, abi::ERR_RANK, call),
    };
    unsafe {
        *(args[2] as *mut usize) = size;
        *(args[3] as *mut i32) = unit;
        *(args[4] as *mut usize) = base;
    }
    abi::SUCCESS as usize
}

/// A window is gone.
pub(crate) fn free(state: &State, window: &mut Window) {
    if let Some(shared) = window.shared.take() {
        if window.rank == 0 {
            state.memory.forget_shared(state.told, shared.offset, shared.length);
        }
        shared.unmap();
    }
}

impl State {
    /// Ends this replica if it shares memory with a process that may be gone.
    pub(crate) fn end_if_shared(&mut self) {
        let shares = |it: &Window| it.shared.is_some() && 1 < it.sizes.len();
        if self.replica.has_left() && self.windows.open.iter().flatten().any(shares) {
            let (rank, set) = (self.told.rank, self.told.set);
            self.note(&format!(
                "rank {rank}: set{set} ends: it shares memory with one that is gone"
            ));
            ends::leave(0);
        }
    }
}

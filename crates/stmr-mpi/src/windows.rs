//! Windows: memory of a process that others put to and get from (MPI 4.1 §12).
//!
//! MPI's own windows are not used: memory that another process writes at any time is not the same
//! in all replicas at any place of the program.  Accesses are kept until their epoch ends, and then
//! are messages of this library like any others (`epochs`): compared before they leave, sealed, and
//! told to twins.  Each process carries out what came in itself: in the order of who sent it where
//! whose memory it is says when, and in that of locks where it does not (`passive`).

use std::collections::{BTreeMap, BTreeSet};

use selvedge_stmr::access::{Access, Outside, Piece};

use crate::abi::{self, Own};
use crate::calls;
use crate::collective;
use crate::comm;
use crate::errors;
use crate::pack::Part;
use crate::passive::{self, Passive};
use crate::program_heap;
use crate::real::{self, Call};
use crate::shared::{self, Shared};
use crate::state::State;

/// Windows of the program, and what it gave to be called about them.
#[derive(Default)]
pub(crate) struct Windows {
    pub(crate) open: Vec<Option<Window>>,
    /// What is called when an attribute goes, and what it is told beside.
    keyvals: BTreeMap<i32, [usize; 2]>,
    n_opened: u64,
    /// Windows for which accesses wait that are to leave at the next call.
    pub(crate) pending: BTreeSet<usize>,
    /// Of shared memory that this process was the first of a group to have, in all.
    pub(crate) shared_bytes: u64,
}

impl Windows {
    /// A key is Fortran's, whose functions are not called as C's are.
    pub(crate) fn forget_key(&mut self, key: i32) {
        self.keyvals.remove(&key);
    }

    /// Whether something that waits is brought into this type.
    pub(crate) fn use_type(&self, datatype: usize) -> bool {
        let wanted = |it: &Wanted| it.part.datatype == datatype;
        self.open.iter().flatten().any(|window| {
            window.results.values().flatten().any(wanted)
                || window.passive.iter().flat_map(Passive::wanted).any(wanted)
        })
    }
}

pub(crate) struct Window {
    /// Its number among all that this process opened.
    pub(crate) number: u64,
    /// A duplicate of the program's communicator.
    pub(crate) comm: usize,
    pub(crate) rank: i32,
    /// What attributes point to.
    pub(crate) shown: Box<Shown>,
    /// Bytes of each member's window, and how many of them one step of its displacements is.
    pub(crate) sizes: Vec<[usize; 2]>,
    name: Vec<u8>,
    attributes: BTreeMap<i32, usize>,
    on_error: OnError,
    /// What is to be done to each member's window, and where its answers go.
    pub(crate) waiting: BTreeMap<i32, Vec<u8>>,
    pub(crate) results: BTreeMap<i32, Vec<Wanted>>,
    /// The group whose windows are accessed, and the one to whose accesses this one is open.
    pub(crate) started: Option<Vec<i32>>,
    pub(crate) posted: Option<Vec<Guest>>,
    /// What it takes to lock it, unless the program has said that it does not.
    pub(crate) passive: Option<Passive>,
    /// Memory of a window that begins with none: where each piece begins, and its bytes.
    attached: BTreeMap<usize, usize>,
    /// Memory that its processes share.
    pub(crate) shared: Option<Shared>,
}

impl Window {
    /// Where an access's bytes are in this process's window.
    pub(crate) fn pieces(&self, access: &Access) -> Result<Vec<Piece>, Outside> {
        let is_dynamic = self.shown.flavor == abi::table().flavors[2];
        let size = if is_dynamic { ALL } else { self.shown.size.max(0) as usize };
        let pieces = access.pieces(size)?;
        let is_there = |it: &Piece| {
            // They may lie side by side.
            let mut at = it.at;
            while at < it.at + it.length {
                match self.attached.range(..=at).next_back() {
                    Some((begin, size)) if at < begin + size => at = begin + size,
                    _ => return false,
                }
            }
            true
        };
        match pieces.iter().find(|it| is_dynamic && !is_there(it)) {
            Some(it) => Err(Outside { at: it.at as i64, length: it.length as u64, size: 0 }),
            None => Ok(pieces),
        }
    }
}

/// The size of a window in which places are addresses.
const ALL: usize = isize::MAX as usize;

/// What MPI_Win_get_attr gives the addresses of.
#[repr(C)]
pub(crate) struct Shown {
    pub(crate) base: usize,
    pub(crate) size: isize,
    pub(crate) unit: i32,
    pub(crate) flavor: i32,
    pub(crate) model: i32,
}

/// Where the answer to an access goes.
pub(crate) struct Wanted {
    pub(crate) part: Part,
    pub(crate) length: usize,
}

/// A process that this window is open to.
pub(crate) struct Guest {
    pub(crate) member: i32,
    /// The receive that says how much it does, and where that is said.
    pub(crate) lengths: Option<u64>,
    pub(crate) to: Box<[u8; 8]>,
    pub(crate) is_served: bool,
}

/// What is done about the program's errors.
#[derive(Clone, Copy)]
pub(crate) struct OnError {
    handler: usize,
    /// What the program gave to be called, if it did.
    calls: Option<usize>,
}

fn slot(handle: usize) -> usize {
    Own::Window.idx(handle)
}

impl State {
    pub(crate) fn window(&mut self, handle: usize) -> Option<&mut Window> {
        self.windows.open.get_mut(slot(handle)).and_then(Option::as_mut)
    }

    /// The window behind a handle, or the answer to a call of none.
    pub(crate) fn known_window(&mut self, handle: usize, call: Call) -> Result<&mut Window, usize> {
        if self.window(handle).is_none() {
            return Err(self.error_of_none(abi::table().err_win, call));
        }
        Ok(self.window(handle).expect("it was looked at above"))
    }

    /// Does what the program wants done about an error of a window; returns the code.
    pub(crate) fn window_error(&mut self, handle: usize, code: i32, call: Call) -> usize {
        let Some(on_error) = self.window(handle).map(|it| it.on_error) else {
            return self.error_of_none(code, call);
        };
        let handles = self.handles();
        match on_error {
            _ if code == abi::SUCCESS => {}
            OnError { handler, .. } if handler == handles.errors_return => {}
            OnError { calls: Some(function), .. } => {
                self.tell_of_own(handle, function, code);
                return errors::answered(code);
            }
            OnError { .. } => self.die_of(code, call),
        }
        code as usize
    }

    /// Takes a window in hand, so that what it needs of this library can be called.
    pub(crate) fn take_window(&mut self, handle: usize) -> Window {
        self.windows.open[slot(handle)].take().expect("it is known")
    }

    pub(crate) fn put_window(&mut self, handle: usize, window: Window) {
        self.windows.open[slot(handle)] = Some(window);
    }
}

/// MPI_Win_create.
pub(crate) fn create(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let (base, size, unit) = (args[0], args[1] as isize, args[2] as i32);
    open(state, [args[3], args[4], args[5]], || Shown {
        base,
        size,
        unit,
        flavor: abi::table().flavors[0],
        model: abi::table().unified,
    })
}

/// MPI_Win_allocate; the memory is the program's, at the same address in all replicas.
pub(crate) fn allocate(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let (size, unit, to) = (args[0] as isize, args[1] as i32, args[4] as *mut usize);
    open(state, [args[2], args[3], args[5]], || {
        let length = size.max(1) as usize;
        let base = program_heap::zeros(length, program_heap::LINE) as usize;
        if base == 0 {
            real::fail(&format!("MPI_Win_allocate of {size} bytes, which are not there"));
        }
        unsafe { *to = base };
        Shown { base, size, unit, flavor: abi::table().flavors[1], model: abi::table().unified }
    })
}

/// Opens a window of a communicator, and puts its handle there; `make` gets its memory when all is
/// well.
pub(crate) fn open(
    state: &mut State,
    [info, parent, to]: [usize; 3],
    make: impl FnOnce() -> Shown,
) -> usize {
    let mut comm = 0_usize;
    // The program may free its own while the window is open.
    let code = crate::make(state, calls::COMM_DUP, &[parent, &raw mut comm as usize]);
    if code as i32 != abi::SUCCESS {
        return code;
    }
    comm = abi::cut(comm);
    let shown = make();
    let known = state.comm(comm);
    let mut sizes = vec![[0_usize; 2]; known.size as usize];
    let is_dynamic = shown.flavor == abi::table().flavors[2];
    state.comm(parent).owed.add_window(shown.flavor);
    let size = if is_dynamic { ALL } else { shown.size.max(0) as usize };
    let own = [size, shown.unit as u32 as usize];
    let byte = state.handles().byte;
    let (from, into) = (own.as_ptr() as usize, sizes.as_mut_ptr() as usize);
    let length = size_of_val(&own);
    collective::blocking(state, calls::ALLGATHER, &[from, length, byte, into, length, byte, comm]);
    let passive = (!is_never_locked(info)).then(|| Passive::open(state, comm));
    state.windows.n_opened += 1;
    let window = Window {
        number: state.windows.n_opened,
        comm,
        rank: known.rank,
        shown: Box::new(shown),
        sizes,
        name: Vec::new(),
        attributes: BTreeMap::new(),
        on_error: OnError { handler: state.handles().errors_fatal, calls: None },
        waiting: BTreeMap::new(),
        results: BTreeMap::new(),
        started: None,
        posted: None,
        passive,
        attached: BTreeMap::new(),
        shared: None,
    };
    let slot = abi::keep_in(&mut state.windows.open, window);
    unsafe { abi::put_handle(to, 0, Own::Window.handle(slot)) };
    abi::SUCCESS as usize
}

/// Whether the program says of a window that it is never locked (MPI 4.1 §12.2.1).
fn is_never_locked(info: usize) -> bool {
    const LENGTH: usize = 8;
    let (mut text, mut found) = ([0_u8; LENGTH + 1], 0_i32);
    let (key, to) = (c"no_locks".as_ptr() as usize, text.as_mut_ptr() as usize);
    // Of no info at all MPI says that it is none.
    let args = [abi::cut(info), key, LENGTH, to, &raw mut found as usize];
    real::code(calls::INFO_GET, &args) == abi::SUCCESS && found != 0 && text.starts_with(b"true\0")
}

/// MPI_Win_create_dynamic: places in it are addresses, of what is attached.
pub(crate) fn create_dynamic(state: &mut State, _call: Call, args: &[usize]) -> usize {
    open(state, [args[0], args[1], args[2]], || Shown {
        base: 0,
        size: 0,
        unit: 1,
        flavor: abi::table().flavors[2],
        model: abi::table().unified,
    })
}

/// A window to which memory is attached, or the answer to a call about another.
fn dynamic_window(state: &mut State, handle: usize, call: Call) -> Result<&mut Window, usize> {
    if state.known_window(handle, call)?.shown.flavor != abi::table().flavors[2] {
        return Err(state.window_error(handle, abi::table().err_rma_flavor, call));
    }
    state.known_window(handle, call)
}

/// MPI_Win_attach.
pub(crate) fn attach(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (handle, at, size) = (abi::cut(args[0]), args[1], args[2]);
    let window = match dynamic_window(state, handle, call) {
        Ok(window) => window,
        Err(code) => return code,
    };
    let overlaps = |it: (&usize, &usize)| *it.0 < at + size && at < it.0 + it.1;
    if (size as isize) < 0 || window.attached.iter().any(overlaps) {
        return state.window_error(handle, abi::table().err_rma_attach, call);
    }
    window.attached.entry(at).or_insert(size);
    abi::SUCCESS as usize
}

/// MPI_Win_detach.
pub(crate) fn detach(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    match dynamic_window(state, handle, call).map(|it| it.attached.remove(&args[1])) {
        Ok(Some(_)) => abi::SUCCESS as usize,
        Ok(None) => state.window_error(handle, abi::table().err_rma_attach, call),
        Err(code) => code,
    }
}

/// MPI_Win_free.
pub(crate) fn free(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = unsafe { abi::handle_at(args[0], 0) };
    let keyvals: Vec<i32> = match state.known_window(handle, call) {
        Ok(window) if window.passive.as_ref().is_some_and(Passive::is_locked) => {
            return state.window_error(handle, abi::table().err_rma_sync, call);
        }
        Ok(window) => window.attributes.keys().copied().collect(),
        Err(code) => return code,
    };
    for keyval in keyvals {
        let code = forget_attribute(state, handle, keyval);
        if code != abi::SUCCESS {
            return state.window_error(handle, code, call);
        }
    }
    let mut comm = state.window(handle).expect("it is known").comm;
    state.meet(comm);
    passive::close(state, handle);
    let mut window = state.take_window(handle);
    shared::free(state, &mut window);
    crate::make(state, calls::COMM_FREE, &[&raw mut comm as usize]);
    if window.shown.flavor == abi::table().flavors[1] {
        unsafe { program_heap::release(window.shown.base as *mut libc::c_void) };
    }
    unsafe { abi::put_handle(args[0], 0, state.handles().win_null) };
    abi::SUCCESS as usize
}

/// What is known of a window, and what the program keeps with it.
pub(crate) fn about(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    let window = match state.known_window(handle, call) {
        Ok(window) => window,
        Err(code) => return code,
    };
    match call {
        calls::WIN_GET_GROUP => {
            let comm = window.comm;
            crate::make(state, calls::COMM_GROUP, &[comm, args[1]])
        }
        calls::WIN_SET_NAME => {
            let text = unsafe { std::ffi::CStr::from_ptr(args[1] as *const libc::c_char) };
            window.name = text.to_bytes().to_vec();
            abi::SUCCESS as usize
        }
        calls::WIN_GET_NAME => {
            let (from, to) = (&window.name, args[1] as *mut u8);
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
                *to.add(from.len()) = 0;
                *(args[2] as *mut i32) = from.len() as i32;
            }
            abi::SUCCESS as usize
        }
        calls::WIN_SET_INFO => abi::SUCCESS as usize,
        calls::WIN_GET_INFO => real::call(calls::INFO_CREATE, &[args[1]]),
        _ => state.refuse(call),
    }
}

/// MPI_Win_get_attr.
pub(crate) fn get_attribute(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (handle, keyval) = (abi::cut(args[0]), args[1] as i32);
    if let Err(code) = state.known_window(handle, call) {
        return code;
    }
    if keyval == abi::table().keyval_invalid {
        // MPI says of communicators which error that is.
        let world = state.world;
        let code = real::code(calls::COMM_GET_ATTR, &[&[world], &args[1..]].concat());
        return state.window_error(handle, code, call);
    }
    let window = match state.known_window(handle, call) {
        Ok(window) => window,
        Err(code) => return code,
    };
    let shown = &window.shown;
    let addresses = [
        shown.base,
        &raw const shown.size as usize,
        &raw const shown.unit as usize,
        &raw const shown.flavor as usize,
        &raw const shown.model as usize,
    ];
    let own = abi::table().win_keyvals.iter().position(|it| *it == keyval);
    let found = own.map(|it| addresses[it]).or_else(|| window.attributes.get(&keyval).copied());
    unsafe {
        if let Some(value) = found {
            *(args[2] as *mut usize) = value;
        }
        *(args[3] as *mut i32) = i32::from(found.is_some());
    }
    abi::SUCCESS as usize
}

/// How wide the number is that an attribute of MPI's own is the address of, in bytes.
pub(crate) fn width_of(keyval: usize) -> Option<usize> {
    let own = abi::table().win_keyvals.iter().position(|it| *it as u32 as usize == keyval);
    own.and_then(|it| [None, Some(8), Some(4), Some(4), Some(4)][it])
}

/// MPI_Win_set_attr and MPI_Win_delete_attr.
pub(crate) fn set_attribute(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (handle, keyval) = (abi::cut(args[0]), args[1] as i32);
    if let Err(code) = state.known_window(handle, call) {
        return code;
    }
    let code = forget_attribute(state, handle, keyval);
    if code != abi::SUCCESS {
        return state.window_error(handle, code, call);
    }
    if let (calls::WIN_SET_ATTR, Some(window)) = (call, state.window(handle)) {
        window.attributes.insert(keyval, args[2]);
    }
    abi::SUCCESS as usize
}

/// An attribute goes: what the program gave for that is called.
fn forget_attribute(state: &mut State, handle: usize, keyval: i32) -> i32 {
    type Forget = unsafe extern "C" fn(usize, i32, usize, usize) -> i32;
    let value = state.window(handle).and_then(|it| it.attributes.remove(&keyval));
    match (value, state.windows.keyvals.get(&keyval).copied()) {
        (Some(value), Some([function, extra])) if function != 0 => {
            let forget = unsafe { std::mem::transmute::<usize, Forget>(function) };
            state.code_in_program(|| unsafe { forget(handle, keyval, value, extra) })
        }
        _ => abi::SUCCESS,
    }
}

/// MPI_Win_create_keyval.
pub(crate) fn create_keyval(state: &mut State, call: Call, args: &[usize]) -> usize {
    let code = real::code(call, args);
    if code == abi::SUCCESS {
        let keyval = unsafe { *(args[2] as *const i32) };
        state.windows.keyvals.insert(keyval, [args[1], args[3]]);
    }
    state.error_of_none(code, call)
}

/// What is to be done about errors of a window.
pub(crate) fn errhandler(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    let own = match state.known_window(handle, call) {
        Ok(window) => window.on_error,
        Err(code) => return code,
    };
    match call {
        calls::WIN_SET_ERRHANDLER => {
            let handler = abi::cut(args[1]);
            let on_error =
                OnError { handler, calls: state.handlers_of_errors.get(&handler).copied() };
            if let Some(window) = state.window(handle) {
                window.on_error = on_error;
            }
        }
        // The program frees what it gets, and may have freed what it gave.
        calls::WIN_GET_ERRHANDLER => match own.calls {
            Some(function) => {
                return errors::create_handler(
                    state,
                    calls::WIN_CREATE_ERRHANDLER,
                    &[function, args[1]],
                );
            }
            None => {
                let handler = comm::held(state, own.handler).unwrap_or(own.handler);
                unsafe { abi::put_handle(args[1], 0, handler) };
            }
        },
        _ => {
            state.window_error(handle, args[1] as i32, call);
        }
    }
    abi::SUCCESS as usize
}

pub(crate) fn to_fortran(_state: &mut State, call: Call, args: &[usize]) -> usize {
    let slot = slot(abi::cut(args[0]));
    if slot < 1 << 20 { Own::Window.to_fortran(slot) as usize } else { real::call(call, args) }
}

pub(crate) fn of_fortran(_state: &mut State, call: Call, args: &[usize]) -> usize {
    Own::Window.of_fortran(args[0] as i32).unwrap_or_else(|| real::call(call, args))
}

//! Handles, constants and statuses, by the table of the MPI that the program is linked with.
//!
//! Open MPI's handles are addresses, those of MPICH and its kin are 32-bit numbers, and those of
//! the standard ABI (MPI 5.0 §20) are as wide as addresses, with small numbers for what is
//! predefined.

use std::ffi::CStr;
use std::sync::OnceLock;

use crate::real;

pub(crate) const UNDEFINED: i32 = -32766;
pub(crate) const SUCCESS: i32 = 0;
pub(crate) const ERR_TYPE: i32 = 3;
pub(crate) const ERR_RANK: i32 = 6;

/// Whose handles, constants and statuses a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    OpenMpi,
    /// MPICH, and what keeps its ABI: Intel MPI, MVAPICH, Cray's.
    Mpich,
    Standard,
}

/// Where a status holds what.
struct StatusForm {
    size: usize,
    source: usize,
    tag: usize,
    error: usize,
    /// Open MPI has one word of 64 bits; the others have the lower 32 bits here, and above the
    /// lowest bit of the next word, which says that it was cancelled, the rest.
    count: usize,
    /// Open MPI's own word for that.
    cancelled: Option<usize>,
}

/// The constants of a family, by the standard's names.
pub(crate) struct Table {
    pub(crate) family: Family,
    pub(crate) any_source: i32,
    pub(crate) any_tag: i32,
    pub(crate) proc_null: i32,
    /// Says in a collective of two sides that what it brings, or gives, is this process's.
    pub(crate) root: i32,
    pub(crate) in_place: usize,
    /// Where a status is not wanted.
    status_ignore: usize,
    pub(crate) err_request: i32,
    pub(crate) err_truncate: i32,
    pub(crate) err_in_status: i32,
    pub(crate) err_win: i32,
    pub(crate) err_rma_sync: i32,
    pub(crate) err_rma_range: i32,
    pub(crate) err_rma_attach: i32,
    pub(crate) err_rma_flavor: i32,
    pub(crate) err_locktype: i32,
    pub(crate) thread_serialized: i32,
    pub(crate) combiner_named: i32,
    pub(crate) cart: i32,
    pub(crate) graph: i32,
    pub(crate) dist_graph: i32,
    /// Identical, congruent, similar, unequal.
    pub(crate) comparisons: [i32; 4],
    /// The number of processes that the launcher could start, among attributes.
    pub(crate) universe_size: i32,
    /// What is no key of attributes.
    pub(crate) keyval_invalid: i32,
    /// Attributes of windows: base, size, unit, how it was made, which model it has.
    pub(crate) win_keyvals: [i32; 5],
    /// A window of the program's memory, one of memory that MPI gave, one that begins with none,
    /// and one of memory that processes share.
    pub(crate) flavors: [i32; 4],
    /// Windows are locked for one alone, or shared.
    pub(crate) locks: [i32; 2],
    /// The program says that nobody locks a window otherwise at the same time.
    pub(crate) mode_nocheck: i32,
    /// What is put to a window is there for its process too.
    pub(crate) unified: i32,
    /// MPI's own attributes; all hang on the communicator of all processes.
    keyvals_own: std::ops::Range<i32>,
    status: StatusForm,
}

static OPEN_MPI: Table = Table {
    family: Family::OpenMpi,
    any_source: -1,
    any_tag: -1,
    proc_null: -2,
    root: -4,
    in_place: 1,
    status_ignore: 0,
    err_request: 7,
    err_truncate: 15,
    err_in_status: 18,
    err_win: 53,
    err_rma_sync: 47,
    err_rma_range: 68,
    err_rma_attach: 69,
    err_rma_flavor: 70,
    err_locktype: 37,
    thread_serialized: 2,
    combiner_named: 0,
    cart: 1,
    graph: 2,
    dist_graph: 3,
    comparisons: [0, 1, 2, 3],
    universe_size: 6,
    keyval_invalid: -1,
    win_keyvals: [7, 8, 9, 10, 11],
    flavors: [1, 2, 3, 4],
    locks: [1, 2],
    mode_nocheck: 1,
    unified: 0,
    keyvals_own: 0..7,
    status: StatusForm { size: 24, source: 0, tag: 4, error: 8, count: 16, cancelled: Some(12) },
};

static MPICH: Table = Table {
    family: Family::Mpich,
    any_source: -2,
    any_tag: -1,
    proc_null: -1,
    root: -3,
    in_place: usize::MAX,
    status_ignore: 1,
    err_request: 19,
    err_truncate: 14,
    err_in_status: 17,
    err_win: 45,
    err_rma_sync: 50,
    err_rma_range: 55,
    err_rma_attach: 56,
    err_rma_flavor: 58,
    err_locktype: 47,
    thread_serialized: 2,
    combiner_named: 1,
    cart: 2,
    graph: 1,
    dist_graph: 3,
    comparisons: [0, 1, 2, 3],
    universe_size: 0x6440_0009,
    keyval_invalid: 0x2400_0000,
    win_keyvals: [0x6600_0001, 0x6600_0003, 0x6600_0005, 0x6600_0007, 0x6600_0009],
    flavors: [1, 2, 3, 4],
    locks: [234, 235],
    mode_nocheck: 1024,
    unified: 2,
    keyvals_own: 0x6440_0001..0x6440_000f,
    status: StatusForm { size: 20, source: 8, tag: 12, error: 16, count: 0, cancelled: None },
};

static STANDARD: Table = Table {
    family: Family::Standard,
    any_source: -1,
    any_tag: -2,
    proc_null: -3,
    root: -4,
    in_place: 1,
    status_ignore: 0,
    err_request: 7,
    err_truncate: 15,
    err_in_status: 19,
    err_win: 56,
    err_rma_sync: 50,
    err_rma_range: 48,
    err_rma_attach: 46,
    err_rma_flavor: 57,
    err_locktype: 37,
    thread_serialized: 2048,
    combiner_named: 101,
    cart: 211,
    graph: 212,
    dist_graph: 213,
    comparisons: [201, 202, 203, 204],
    universe_size: 507,
    keyval_invalid: 0,
    win_keyvals: [601, 603, 602, 604, 605],
    flavors: [311, 312, 313, 314],
    locks: [301, 302],
    mode_nocheck: 1024,
    unified: 321,
    keyvals_own: 501..508,
    status: StatusForm { size: 32, source: 0, tag: 4, error: 8, count: 12, cancelled: None },
};

/// The table of this program's MPI.
pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<&'static Table> = OnceLock::new();
    TABLE.get_or_init(|| match real::family() {
        Family::OpenMpi => &OPEN_MPI,
        Family::Mpich => &MPICH,
        Family::Standard => &STANDARD,
    })
}

impl Table {
    /// Whether a call's code says that a message was longer than its receive.  MPICH's codes hold
    /// their class in the lowest bits and say more above.
    pub(crate) fn is_truncated(&self, code: i32) -> bool {
        let class = if self.family == Family::OpenMpi { code } else { code & 0x7f };
        class == self.err_truncate
    }

    /// The attribute that says which is the largest tag: the first in all families.
    pub(crate) fn tag_ub(&self) -> i32 {
        self.keyvals_own.start
    }

    pub(crate) fn is_own_keyval(&self, keyval: i32) -> bool {
        self.keyvals_own.contains(&keyval)
    }
}

/// In place of the address of a status that is not wanted.
pub(crate) fn status_ignore() -> usize {
    table().status_ignore
}

/// Whether handles are 32-bit numbers.
fn is_narrow() -> bool {
    table().family == Family::Mpich
}

/// Words of 32 bits that a handle takes in a row of them.
pub(crate) fn handle_words() -> usize {
    if is_narrow() { 1 } else { 2 }
}

/// A handle that was passed by value: the upper half of a narrow one is anything.
pub(crate) fn cut(handle: usize) -> usize {
    if is_narrow() { handle as u32 as usize } else { handle }
}

/// The handle that lies there, in a row of handles.
pub(crate) unsafe fn handle_at(row: usize, idx: usize) -> usize {
    unsafe {
        if is_narrow() {
            *(row as *const u32).add(idx) as usize
        } else {
            *(row as *const usize).add(idx)
        }
    }
}

/// Puts a handle there.
pub(crate) unsafe fn put_handle(row: usize, idx: usize, handle: usize) {
    unsafe {
        if is_narrow() {
            *(row as *mut u32).add(idx) = handle as u32;
        } else {
            *(row as *mut usize).add(idx) = handle;
        }
    }
}

/// Keeps something in the first free slot; returns which that is.
pub(crate) fn keep_in<T>(slots: &mut Vec<Option<T>>, it: T) -> usize {
    let slot = slots.iter().position(Option::is_none).unwrap_or(slots.len());
    if slot == slots.len() {
        slots.push(None);
    }
    slots[slot] = Some(it);
    slot
}

/// What this library gives the program handles of.  MPI never sees them.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    Request,
    Communicator,
    Message,
    Window,
}

impl Own {
    /// Addresses where nothing of the program's lies, or numbers that MPICH calls invalid and uses
    /// for none of its null handles.
    fn base(self) -> usize {
        let at: usize = match self {
            Self::Request => 0,
            Self::Communicator => 1,
            Self::Message => 2,
            Self::Window => 3,
        };
        if is_narrow() { 0x3c00_0000 + (at << 24) } else { (0x5e1f + at) << 32 }
    }

    /// From one to the next: what lies at an Open MPI request is looked at by its Fortran layer.
    pub(crate) fn step(self) -> usize {
        match self {
            _ if is_narrow() => 1,
            Self::Request => 256,
            Self::Communicator | Self::Message | Self::Window => 16,
        }
    }

    /// Fortran's numbers of them; those of narrow handles are the handles.
    fn fortran_base(self) -> i32 {
        match self {
            _ if is_narrow() => self.base() as i32,
            Self::Request => 1 << 24,
            Self::Communicator => 1 << 25,
            Self::Message => 1 << 26,
            Self::Window => 1 << 28,
        }
    }

    pub(crate) fn handle(self, idx: usize) -> usize {
        self.base() + idx * self.step()
    }

    /// Which one it is, if it is one; the highest numbers are none.
    pub(crate) fn idx(self, handle: usize) -> usize {
        handle.wrapping_sub(self.base()) / self.step()
    }

    pub(crate) fn to_fortran(self, idx: usize) -> i32 {
        self.fortran_base() + idx as i32
    }

    /// The handle behind Fortran's number, if that is one of these.
    pub(crate) fn of_fortran(self, number: i32) -> Option<usize> {
        let idx = number.checked_sub(self.fortran_base())?;
        (0..1 << 24).contains(&idx).then(|| self.handle(idx as usize))
    }
}

/// The predefined handles that this library uses.
#[derive(Clone, Copy)]
pub(crate) struct Handles {
    pub(crate) world: usize,
    pub(crate) own: usize,
    pub(crate) comm_null: usize,
    pub(crate) request_null: usize,
    pub(crate) message_null: usize,
    /// A message from nobody.
    pub(crate) message_no_proc: usize,
    pub(crate) byte: usize,
    pub(crate) int: usize,
    pub(crate) bits_and: usize,
    pub(crate) datatype_null: usize,
    pub(crate) op_null: usize,
    pub(crate) replace: usize,
    pub(crate) no_op: usize,
    pub(crate) win_null: usize,
    pub(crate) errors_return: usize,
    pub(crate) errors_fatal: usize,
    /// The same, where MPI has none that ends less than all.
    errors_abort: usize,
}

impl Handles {
    pub(crate) fn find() -> Self {
        match table().family {
            Family::OpenMpi => Self::of_open_mpi(),
            Family::Mpich => Self {
                world: 0x4400_0000,
                own: 0x4400_0001,
                comm_null: 0x0400_0000,
                request_null: 0x2c00_0000,
                message_null: 0x2c00_0000,
                message_no_proc: 0x6c00_0000,
                byte: 0x4c00_010d,
                int: 0x4c00_0405,
                bits_and: 0x5800_0006,
                datatype_null: 0x0c00_0000,
                op_null: 0x1800_0000,
                replace: 0x5800_000d,
                no_op: 0x5800_000e,
                win_null: 0x2000_0000,
                errors_return: 0x5400_0001,
                errors_fatal: 0x5400_0000,
                errors_abort: 0x5400_0003,
            },
            Family::Standard => Self {
                world: 0x101,
                own: 0x102,
                comm_null: 0x100,
                request_null: 0x180,
                message_null: 0x128,
                message_no_proc: 0x129,
                byte: 0x247,
                int: 0x209,
                bits_and: 0x28,
                datatype_null: 0x200,
                op_null: 0x20,
                replace: 0x3c,
                no_op: 0x3d,
                win_null: 0x110,
                errors_return: 0x143,
                errors_fatal: 0x141,
                errors_abort: 0x142,
            },
        }
    }

    fn of_open_mpi() -> Self {
        let handle = |name: &CStr| {
            real::symbol(name).unwrap_or_else(|| {
                real::fail(&format!("this program's MPI library has no {name:?}, as Open MPI has"))
            })
        };
        Self {
            world: handle(c"ompi_mpi_comm_world"),
            own: handle(c"ompi_mpi_comm_self"),
            comm_null: handle(c"ompi_mpi_comm_null"),
            request_null: handle(c"ompi_request_null"),
            message_null: handle(c"ompi_message_null"),
            message_no_proc: handle(c"ompi_message_no_proc"),
            byte: handle(c"ompi_mpi_byte"),
            int: handle(c"ompi_mpi_int"),
            bits_and: handle(c"ompi_mpi_op_band"),
            datatype_null: handle(c"ompi_mpi_datatype_null"),
            op_null: handle(c"ompi_mpi_op_null"),
            replace: handle(c"ompi_mpi_op_replace"),
            no_op: handle(c"ompi_mpi_op_no_op"),
            win_null: handle(c"ompi_mpi_win_null"),
            errors_return: handle(c"ompi_mpi_errors_return"),
            errors_fatal: handle(c"ompi_mpi_errors_are_fatal"),
            errors_abort: real::symbol(c"ompi_mpi_errors_abort")
                .unwrap_or_else(|| handle(c"ompi_mpi_errors_are_fatal")),
        }
    }

    /// Whether a handler of errors ends the program: a job ends whole, whichever it is.
    pub(crate) fn are_final(&self, handler: usize) -> bool {
        [self.errors_fatal, self.errors_abort].contains(&handler)
    }
}

/// Memory for a status that MPI writes, whatever its form.
#[repr(C, align(8))]
#[derive(Default)]
pub(crate) struct RawStatus([u8; 32]);

impl RawStatus {
    pub(crate) fn at(&mut self) -> usize {
        self.0.as_mut_ptr() as usize
    }

    pub(crate) fn read(&self) -> Status {
        let form = &table().status;
        let word = |at: usize| {
            i32::from_le_bytes(*self.0[at..].first_chunk().expect("its words are within it"))
        };
        let (low, high) = (word(form.count) as u32, word(form.count + 4) as u32);
        let (high, cancelled) = match form.cancelled {
            Some(at) => (high, word(at)),
            None => (high >> 1, (high & 1) as i32),
        };
        Status {
            source: word(form.source),
            tag: word(form.tag),
            error: word(form.error),
            cancelled,
            count: u64::from(low) | u64::from(high) << 32,
        }
    }
}

/// What a status says, whatever its form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) source: i32,
    pub(crate) tag: i32,
    pub(crate) error: i32,
    pub(crate) cancelled: i32,
    /// In bytes.
    pub(crate) count: u64,
}

impl Status {
    /// What a call that waited for nothing says.
    pub(crate) fn empty() -> Self {
        let (source, tag) = (table().any_source, table().any_tag);
        Self { source, tag, error: SUCCESS, cancelled: 0, count: 0 }
    }

    /// What comes from nobody says.
    pub(crate) fn nobody() -> Self {
        Self { source: table().proc_null, ..Self::empty() }
    }

    pub(crate) fn to_bytes(self) -> [u8; 20] {
        let mut row = [0; 20];
        row[..4].copy_from_slice(&self.source.to_le_bytes());
        row[4..8].copy_from_slice(&self.tag.to_le_bytes());
        row[8..12].copy_from_slice(&self.error.to_le_bytes());
        row[12..].copy_from_slice(&self.count.to_le_bytes());
        row
    }

    pub(crate) fn from_bytes(row: &[u8]) -> Self {
        let word = |at: usize| i32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        let count = u64::from(word(12) as u32) | u64::from(word(16) as u32) << 32;
        Self { source: word(0), tag: word(4), error: word(8), cancelled: 0, count }
    }

    /// Writes it where the program wants it, if it wants it.  Only calls with many statuses write
    /// errors into them.
    pub(crate) unsafe fn write(self, at: usize, with_error: bool) {
        if at == table().status_ignore {
            return;
        }
        let form = &table().status;
        let put = |offset: usize, word: i32| unsafe {
            ((at + offset) as *mut i32).write_unaligned(word);
        };
        put(form.source, self.source);
        put(form.tag, self.tag);
        if with_error {
            put(form.error, self.error);
        }
        let high = (self.count >> 32) as i32;
        put(form.count, self.count as u32 as i32);
        match form.cancelled {
            Some(at) => {
                put(form.count + 4, high);
                put(at, self.cancelled);
            }
            None => put(form.count + 4, high << 1 | (self.cancelled & 1)),
        }
    }

    /// Where the status of row `idx` is to be written, in a row of statuses.
    pub(crate) fn place(statuses: usize, idx: usize) -> usize {
        if statuses == table().status_ignore {
            statuses
        } else {
            statuses + idx * table().status.size
        }
    }
}

//! Handles, constants and statuses of Open MPI 4 and 5.

use std::ffi::CStr;

use crate::real;

pub(crate) const ANY_SOURCE: i32 = -1;
pub(crate) const ANY_TAG: i32 = -1;
pub(crate) const PROC_NULL: i32 = -2;
pub(crate) const UNDEFINED: i32 = -32766;
pub(crate) const IN_PLACE: usize = 1;
pub(crate) const SUCCESS: i32 = 0;
pub(crate) const ERR_TRUNCATE: i32 = 15;
pub(crate) const ERR_IN_STATUS: i32 = 18;
pub(crate) const THREAD_SERIALIZED: i32 = 2;
pub(crate) const COMBINER_NAMED: i32 = 0;
/// A grid, among the kinds of topology.
pub(crate) const CART: i32 = 1;
/// Edges by number, among them.
pub(crate) const GRAPH: i32 = 2;
/// The number of processes that the launcher could start, among attributes.
pub(crate) const UNIVERSE_SIZE: i32 = 6;
/// Attributes below this are MPI's own of communicators; all hang on that of all processes.
pub(crate) const KEYVALS_OWN: i32 = 7;

/// The handles that are addresses.
#[derive(Clone, Copy)]
pub(crate) struct Handles {
    pub(crate) world: usize,
    pub(crate) own: usize,
    pub(crate) comm_null: usize,
    pub(crate) request_null: usize,
    pub(crate) message_null: usize,
    pub(crate) byte: usize,
    pub(crate) errors_return: usize,
    pub(crate) errors_fatal: usize,
}

impl Handles {
    pub(crate) fn find() -> Self {
        let handle = |name: &CStr| {
            real::symbol(name).unwrap_or_else(|| {
                real::fail(&format!(
                    "this program's MPI library has no {name:?}: it is none that is served, which \
                     are Open MPI 4 and 5"
                ))
            })
        };
        Self {
            world: handle(c"ompi_mpi_comm_world"),
            own: handle(c"ompi_mpi_comm_self"),
            comm_null: handle(c"ompi_mpi_comm_null"),
            request_null: handle(c"ompi_request_null"),
            message_null: handle(c"ompi_message_null"),
            byte: handle(c"ompi_mpi_byte"),
            errors_return: handle(c"ompi_mpi_errors_return"),
            errors_fatal: handle(c"ompi_mpi_errors_are_fatal"),
        }
    }
}

/// What a status says, whatever its form.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
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
    pub(crate) const EMPTY: Self =
        Self { source: ANY_SOURCE, tag: ANY_TAG, error: SUCCESS, cancelled: 0, count: 0 };

    /// What comes from nobody says.
    pub(crate) const NOBODY: Self = Self { source: PROC_NULL, ..Self::EMPTY };

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
        if at == 0 {
            return;
        }
        let status = at as *mut Self;
        unsafe {
            let error = if with_error { self.error } else { (*status).error };
            *status = Self { error, ..self };
        }
    }
}

//! How data stand in a file of MPI's (MPI 4.1 §14.5).
//!
//! What `external32` makes of them is MPI's own doing.  Types of a view keep the extents that they
//! have in memory, as in Open MPI and MPICH.

use crate::abi;
use crate::calls;
use crate::file_errors::{Done, Wrong};
use crate::pack::{self, Part};
use crate::real;
use crate::state::State;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// As in memory.
    Native,
    /// As in memory, to be read by the same MPI.
    Internal,
    /// The same on all machines: the highest byte first.
    External32,
}

impl Representation {
    const ALL: [Self; 3] = [Self::Native, Self::Internal, Self::External32];

    pub(crate) fn of(name: &[u8]) -> Done<Self> {
        let found = Self::ALL.into_iter().find(|it| it.name().to_bytes() == name);
        found.ok_or(Wrong::Representation)
    }

    pub(crate) fn name(self) -> &'static std::ffi::CStr {
        match self {
            Self::Native => c"native",
            Self::Internal => c"internal",
            Self::External32 => c"external32",
        }
    }

    /// Bytes in a file of one of a type.
    fn size_of(self, datatype: usize) -> Done<usize> {
        if self != Self::External32 {
            return Ok(pack::size_of(datatype));
        }
        let mut size = 0_isize;
        let args = [self.name().as_ptr() as usize, 1, datatype, &raw mut size as usize];
        said(real::code(calls::PACK_EXTERNAL_SIZE, &args))?;
        Ok(size as usize)
    }

    /// Bytes in a file of a part.
    pub(crate) fn length(self, part: Part) -> Done<usize> {
        Ok(part.count * self.size_of(part.datatype)?)
    }

    /// A part's contents as they stand in a file.
    pub(crate) fn pack(self, state: &State, part: Part) -> Done<Vec<u8>> {
        let mut bytes = Vec::new();
        if self != Self::External32 {
            pack::pack(state, part, &mut bytes);
            return Ok(bytes);
        }
        bytes.resize(self.length(part)?, 0);
        let (name, mut position) = (self.name().as_ptr() as usize, 0_isize);
        let (to, length) = (bytes.as_mut_ptr() as usize, bytes.len());
        let position = &raw mut position as usize;
        said(pack::with_address(part, |it| {
            let args = [name, it.at, it.count, it.datatype, to, length, position];
            real::code(calls::PACK_EXTERNAL, &args)
        }))?;
        Ok(bytes)
    }

    /// Puts what stood in a file into a part, which may be longer; returns the bytes of the part
    /// that came.
    pub(crate) fn unpack(self, state: &State, bytes: &[u8], part: Part) -> Done<u64> {
        if self != Self::External32 {
            pack::unpack(state, bytes, part);
            return Ok(bytes.len() as u64);
        }
        let count = bytes.len() / self.size_of(part.datatype)?.max(1);
        let (name, mut position) = (self.name().as_ptr() as usize, 0_isize);
        let (from, position) = (bytes.as_ptr() as usize, &raw mut position as usize);
        said(pack::with_address(Part { count, ..part }, |it| {
            let args = [name, from, bytes.len(), position, it.at, it.count, it.datatype];
            real::code(calls::UNPACK_EXTERNAL, &args)
        }))?;
        Ok((count * pack::size_of(part.datatype)) as u64)
    }
}

/// What MPI says itself.
fn said(code: i32) -> Done<()> {
    if code == abi::SUCCESS { Ok(()) } else { Err(Wrong::Said(code)) }
}

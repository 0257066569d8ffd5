//! Contents in the order of their types, without the holes.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::{self, Family};
use crate::calls;
use crate::padding;
use crate::real;
use crate::state::State;
use crate::typemap;

/// What is said of a count that no call serves.
pub(crate) const TOO_MANY: &str = "of more than 2147483647 elements";

/// Some of the program's memory: so many of a type, from an address.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) at: usize,
    pub(crate) count: usize,
    pub(crate) datatype: usize,
}

/// Types of MPI's own without holes that were looked at, each with its size in the lowest bits: MPI
/// would be asked of a type several times for each message.
static KNOWN: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
const SIZE_BITS: u32 = 8;

fn known(datatype: usize) -> &'static AtomicUsize {
    // Handles are addresses of structures, or numbers whose lowest byte differs.
    &KNOWN[(datatype ^ datatype >> 9) % KNOWN.len()]
}

/// The size of a type of MPI's own without holes, if it was looked at before.
pub(crate) fn known_size(datatype: usize) -> Option<usize> {
    let found = known(datatype).load(Ordering::Relaxed);
    (found >> SIZE_BITS == datatype && found != 0).then_some(found & ((1 << SIZE_BITS) - 1))
}

fn keep_size(datatype: usize, size: usize) {
    if 0 < size && size < 1 << SIZE_BITS && datatype >> (usize::BITS - SIZE_BITS) == 0 {
        known(datatype).store(datatype << SIZE_BITS | size, Ordering::Relaxed);
    }
}

/// Bytes of one of a type, without its holes.
pub(crate) fn size_of(datatype: usize) -> usize {
    if let Some(size) = known_size(datatype) {
        return size;
    }
    let mut size = 0_i32;
    real::call(calls::TYPE_SIZE, &[datatype, &raw mut size as usize]);
    usize::try_from(size)
        .unwrap_or_else(|_| real::fail("a datatype of more than 2 GiB is not served"))
}

/// Bytes from one of a type to the next.
pub(crate) fn extent_of(datatype: usize) -> isize {
    if let Some(size) = known_size(datatype) {
        return size as isize;
    }
    let (mut low, mut extent) = (0_isize, 0_isize);
    let args = [datatype, &raw mut low as usize, &raw mut extent as usize];
    real::call(calls::TYPE_GET_EXTENT, &args);
    extent
}

/// Where the first byte of one of a type is, and how far its last is from there.
pub(crate) fn true_extent(datatype: usize) -> (isize, isize) {
    let (mut low, mut extent) = (0_isize, 0_isize);
    let args = [datatype, &raw mut low as usize, &raw mut extent as usize];
    real::call(calls::TYPE_GET_TRUE_EXTENT, &args);
    (low, extent)
}

/// Whether memory holds it in the order in which it is sent, without holes.
pub(crate) fn is_plain(datatype: usize, size: usize) -> bool {
    if known_size(datatype).is_some() {
        return true;
    }
    let is_plain = typemap::is_named(datatype) && extent_of(datatype) == size as isize;
    if is_plain {
        keep_size(datatype, size);
    }
    is_plain
}

/// The contents of a part whose type is plain, where they lie.
///
/// # Safety
/// They lie there as long as the answer is used.
pub(crate) unsafe fn contents<'a>(part: Part) -> &'a [u8] {
    let length = size_of(part.datatype) * part.count;
    if length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(part.at as *const u8, length) }
}

/// Parts of one type of which each lies right behind the one before, as a single part.
pub(crate) fn joined(parts: &[Part]) -> Option<Part> {
    if let [one] = parts {
        return Some(*one);
    }
    let mut filled = parts.iter().filter(|it| it.count != 0);
    let mut all = *filled.next()?;
    let extent = extent_of(all.datatype);
    for next in filled {
        let end = all.at.wrapping_add_signed(extent * all.count as isize);
        if next.datatype != all.datatype || next.at != end {
            return None;
        }
        all.count += next.count;
    }
    Some(all)
}

/// Has MPI begin something with so many bytes, which it is told as a count and a type; returns its
/// code.  It counts no further than 2 GiB, but of a larger type.
pub(crate) fn of_bytes(
    state: &State,
    length: usize,
    begin: impl FnOnce(usize, usize) -> i32,
) -> i32 {
    const PIECE: usize = 1 << 20;
    let byte = state.handles().byte;
    if i32::try_from(length).is_ok() {
        return begin(length, byte);
    }
    let (mut piece, mut all) = (0_usize, 0_usize);
    let (piece_at, all_at) = (&raw mut piece as usize, &raw mut all as usize);
    real::call(calls::TYPE_CONTIGUOUS, &[PIECE, byte, piece_at]);
    let counts = [(length / PIECE) as i32, (length % PIECE) as i32];
    let places = [0, (length / PIECE * PIECE) as isize];
    let mut types = [0_usize; 2];
    let types_at = types.as_mut_ptr() as usize;
    unsafe {
        abi::put_handle(types_at, 0, abi::handle_at(piece_at, 0));
        abi::put_handle(types_at, 1, byte);
    }
    let [counts, places] = [counts.as_ptr() as usize, places.as_ptr() as usize];
    real::call(calls::TYPE_CREATE_STRUCT, &[2, counts, places, types_at, all_at]);
    real::call(calls::TYPE_COMMIT, &[all_at]);
    let code = begin(1, unsafe { abi::handle_at(all_at, 0) });
    // MPI keeps them for as long as it needs them.
    real::call(calls::TYPE_FREE, &[all_at]);
    real::call(calls::TYPE_FREE, &[piece_at]);
    code
}

/// Stops the program where MPI would have to put values together that are more than it counts.
pub(crate) fn check_length(state: &mut State, part: Part) {
    let size = size_of(part.datatype);
    if i32::try_from(part.count * size).is_err() && !is_plain(part.datatype, size) {
        state.refuse_in_words("a message of more than 2 GiB of a type that is none of MPI's own");
    }
}

/// Appends a part's contents to `out`.
pub(crate) fn pack(state: &State, part: Part, out: &mut Vec<u8>) {
    let (size, start) = (size_of(part.datatype), out.len());
    pack_as_it_is(state, part, out);
    padding::clear((part.datatype, size), &mut out[start..]);
}

/// The same with what stands in bytes that are no part of a value.
pub(crate) fn pack_as_it_is(state: &State, part: Part, out: &mut Vec<u8>) {
    let size = size_of(part.datatype);
    let length = size * part.count;
    if length == 0 {
        return;
    }
    let start = out.len();
    if is_plain(part.datatype, size) {
        out.extend(unsafe { std::slice::from_raw_parts(part.at as *const u8, length) });
        return;
    }
    out.resize(start + length, 0);
    let mut position = 0_i32;
    let to = out[start..].as_mut_ptr() as usize;
    let position_at = &raw mut position as usize;
    let code = with_address(part, |it| {
        let args = [it.at, it.count, it.datatype, to, length, position_at, state.world];
        real::code(calls::PACK, &args)
    });
    if code != abi::SUCCESS || position as usize != length {
        real::fail(&format!("contents of {length} bytes could not be packed (code {code})"));
    }
}

/// Puts contents into a part, which may be longer than they are.
pub(crate) fn unpack(state: &State, bytes: &[u8], part: Part) {
    let size = size_of(part.datatype);
    if size == 0 || bytes.is_empty() {
        return;
    }
    if is_plain(part.datatype, size) {
        let to = part.at as *mut u8;
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        return;
    }
    let whole = bytes.len() / size;
    unpack_whole(state, &bytes[..whole * size], Part { count: whole, ..part });
    let rest = &bytes[whole * size..];
    if !rest.is_empty() {
        // The last one is there in part: what the message does not reach stays as it is.
        let at = part.at.wrapping_add_signed(extent_of(part.datatype) * whole as isize);
        let last = Part { at, count: 1, datatype: part.datatype };
        let mut one = Vec::new();
        pack(state, last, &mut one);
        one[..rest.len()].copy_from_slice(rest);
        unpack_whole(state, &one, last);
    }
}

fn unpack_whole(state: &State, bytes: &[u8], part: Part) {
    if bytes.is_empty() {
        return;
    }
    let mut position = 0_i32;
    let from = bytes.as_ptr() as usize;
    let position_at = &raw mut position as usize;
    let code = with_address(part, |it| {
        let args = [from, bytes.len(), position_at, it.at, it.count, it.datatype, state.world];
        real::code(calls::UNPACK, &args)
    });
    if code != abi::SUCCESS {
        real::fail(&format!("{} bytes could not be unpacked (code {code})", bytes.len()));
    }
}

/// Does something with a part that has an address.  Where its type has all addresses itself
/// (MPI_BOTTOM), MPICH refuses to pack it: it is told of the same memory by another address.
pub(crate) fn with_address(part: Part, what: impl FnOnce(Part) -> i32) -> i32 {
    const AWAY: usize = 4096;
    if part.at != 0 || abi::table().family == Family::OpenMpi {
        return what(part);
    }
    let (count, back, mut datatype) = (part.count as i32, -(AWAY as isize), 0_usize);
    let [count, back] = [&raw const count as usize, &raw const back as usize];
    let at = &raw mut datatype as usize;
    real::call(calls::TYPE_CREATE_HINDEXED, &[1, count, back, part.datatype, at]);
    real::call(calls::TYPE_COMMIT, &[at]);
    let code = what(Part { at: AWAY, count: 1, datatype: unsafe { abi::handle_at(at, 0) } });
    real::call(calls::TYPE_FREE, &[at]);
    code
}

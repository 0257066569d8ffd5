//! Buffers that were used and are used again: new ones of the size of messages come from the kernel
//! page by page, which takes longer than copying into them.

use std::sync::Arc;

/// Buffers of fewer bytes are the C library's to keep.
const LEAST: usize = 4 << 10;

/// So many are kept, and so many bytes in all.
const BUFFERS_MAX: usize = 32;
const BYTES_MAX: usize = 64 << 20;

/// Lengths that differ little have one capacity, so that the next buffer of a program whose
/// messages are each a little longer than the last is the last one.
fn rounded(length: usize) -> usize {
    let step = (length.next_power_of_two() / 8).max(1);
    if length < LEAST { length } else { length.next_multiple_of(step) }
}

/// What is kept.
#[derive(Default)]
pub(crate) struct Spare {
    free: Vec<Vec<u8>>,
    bytes: usize,
    /// Kept for siblings until the next compare.
    lent: Vec<Arc<Vec<u8>>>,
}

impl Spare {
    /// An empty buffer for at least so many bytes.
    pub(crate) fn room(&mut self, length: usize) -> Vec<u8> {
        let fits = |it: &Vec<u8>| (length..=4 * length).contains(&it.capacity());
        let found = if length < LEAST { None } else { self.free.iter().position(fits) };
        match found {
            Some(idx) => {
                let it = self.free.swap_remove(idx);
                self.bytes -= it.capacity();
                it
            }
            None => Vec::with_capacity(rounded(length)),
        }
    }

    /// A buffer that nobody uses any more.
    pub(crate) fn keep(&mut self, mut it: Vec<u8>) {
        let bytes = self.bytes + it.capacity();
        if LEAST <= it.capacity() && self.free.len() < BUFFERS_MAX && bytes <= BYTES_MAX {
            it.clear();
            self.bytes = bytes;
            self.free.push(it);
        }
    }

    /// A buffer that siblings may ask for until the next compare.
    pub(crate) fn lend(&mut self, it: &Arc<Vec<u8>>) {
        if LEAST <= it.capacity() {
            self.lent.push(it.clone());
        }
    }

    /// A compare is over: what nobody else holds is free.
    pub(crate) fn take_back(&mut self) {
        for it in std::mem::take(&mut self.lent) {
            if let Some(it) = Arc::into_inner(it) {
                self.keep(it);
            }
        }
    }
}

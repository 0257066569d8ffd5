//! Bytes of a type that are no part of its values: of the 16 of x86-64's `long double`, 10 are.
//!
//! What stands in the others is left over from before, and may be something else in each replica.
//! It is sent and compared as zeros.  Types are looked through down to what they are made of; of
//! one that mixes such numbers with others nothing is known here, and its padding is compared as it
//! is.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::calls;
use crate::real;
use crate::typemap;

/// Where in a number the bytes stand that are none of its value.
const PADDING: std::ops::Range<usize> = 10..16;

/// Bytes of a `long double`, and of one with an int behind it.
const ALONE: usize = 16;
const WITH_INT: usize = 20;

/// How far apart such numbers are in the contents of types that were looked through; 0 if there are
/// none.
static KNOWN: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Clears the padding in packed contents of this type, of which one has so many bytes.
pub(crate) fn clear((datatype, size): (usize, usize), contents: &mut [u8]) {
    clear_each(step_of(datatype, size), contents);
}

/// The same of numbers that are so far apart.
pub(crate) fn clear_each(step: usize, contents: &mut [u8]) {
    if PADDING.end <= step {
        contents.chunks_exact_mut(step).for_each(|it| it[PADDING].fill(0));
    }
}

/// Whether a type, of which one has so many bytes, has padding.
pub(crate) fn is_in(datatype: usize, size: usize) -> bool {
    step_of(datatype, size) != 0
}

/// Types are freed, and their handles are given to others.
pub(crate) fn forget_all() {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// How far apart numbers with padding are in contents of this type; 0 if it has none.
pub(crate) fn step_of(datatype: usize, size: usize) -> usize {
    let may_have = size.is_multiple_of(ALONE) || size.is_multiple_of(WITH_INT);
    if size == 0 || !may_have {
        return 0;
    }
    let known = |it: &BTreeMap<usize, usize>| it.get(&datatype).copied();
    let found = known(&KNOWN.lock().unwrap_or_else(PoisonError::into_inner));
    found.unwrap_or_else(|| {
        let step = look(datatype);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(datatype, step);
        step
    })
}

fn look(datatype: usize) -> usize {
    if typemap::is_named(datatype) {
        let (mut name, mut length) = ([0_u8; 512], 0_i32);
        let to = [name.as_mut_ptr() as usize, &raw mut length as usize];
        real::call(calls::TYPE_GET_NAME, &[&[datatype], &to[..]].concat());
        return match &name[..length.max(0) as usize] {
            b"MPI_LONG_DOUBLE" | b"MPI_C_LONG_DOUBLE_COMPLEX" | b"MPI_CXX_LONG_DOUBLE_COMPLEX" => {
                ALONE
            }
            b"MPI_LONG_DOUBLE_INT" => WITH_INT,
            _ => 0,
        };
    }
    let mut step = None;
    for found in typemap::of_inner(datatype, look) {
        step = Some(if step.is_some_and(|it| it != found) { 0 } else { found });
    }
    step.unwrap_or(0)
}

//! The library that is preloaded, with no function that the program's MPI has not.
//!
//! Programs ask which functions their MPI has by looking for the symbols (mpi4py's packages do, for
//! those of MPI 4 and 5), and the library exports all that any MPI has.

use std::collections::BTreeSet;
use std::ops::Range;

/// What every function's name begins with, in the form that each MPI has; those of the second kind
/// are not in the standard.
const PREFIXES: [&[u8]; 2] = [b"PMPI_", b"PMPIX_"];

/// `library` without the functions that `mpi`, the file of another library, does not name.
///
/// A symbol whose name no longer fits its place in the table of hashes is found by nobody.
pub(super) fn keep_shared(library: &[u8], mpi: &[u8]) -> Vec<u8> {
    let shared: BTreeSet<&[u8]> = names(mpi).collect();
    let mut kept = library.to_vec();
    // Elsewhere stand texts of the library's own, which may look like names.
    let table = symbol_names(library).and_then(|it| kept.get_mut(it));
    if let (Some(table), false) = (table, shared.is_empty()) {
        strike(table, &shared);
    }
    kept
}

/// Where the names of a library's symbols stand in its file.
fn symbol_names(elf: &[u8]) -> Option<Range<usize>> {
    const DYNAMIC_SYMBOLS: u64 = 11;
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let at = |number: u64| usize::try_from(number).ok();
    let (start, size, n) = (number(40, 8)?, number(58, 2)?, number(60, 2)?);
    let section = |idx: u64| at(start.checked_add(idx.checked_mul(size)?)?);
    let is_symbols = |it: &usize| number(it + 4, 4) == Some(DYNAMIC_SYMBOLS);
    let symbols = (0..n).filter_map(section).find(is_symbols)?;
    let names = section(number(symbols + 40, 4)?)?;
    let (start, length) = (at(number(names + 24, 8)?)?, at(number(names + 32, 8)?)?);
    Some(start..start.checked_add(length)?)
}

/// Makes names that are not shared into others.
fn strike(table: &mut [u8], shared: &BTreeSet<&[u8]>) {
    for name in table.split_mut(|it| *it == 0) {
        // The linker lets MPI_X be the end of PMPI_X where it can.
        let plain = if is_prefixed(name) { name.to_vec() } else { [b"P", &*name].concat() };
        if is_prefixed(&plain) && is_name(&plain) && !shared.contains(&plain[..]) {
            let at = name.len() - (plain.len() - 1);
            name[at] = b'_';
        }
    }
}

fn names(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    file.split(|it| *it == 0).filter(|it| is_prefixed(it) && is_name(it))
}

fn is_prefixed(name: &[u8]) -> bool {
    PREFIXES.iter().any(|it| name.starts_with(it))
}

fn is_name(text: &[u8]) -> bool {
    text.iter().all(|it| it.is_ascii_alphanumeric() || *it == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_the_mpi_has_not_are_found_no_more() {
        let mut table = b"\0PMPI_Send\0PMPI_Send_c\0MPI_Recv\0MPI_Recv_c\0PMPI_ is text\0".to_vec();
        let mpi = b"\x7fELF\0PMPI_Send\0PMPI_Recv\0";
        strike(&mut table, &names(mpi).collect());
        let wanted = b"\0PMPI_Send\0P_PI_Send_c\0MPI_Recv\0_PI_Recv_c\0PMPI_ is text\0";
        assert_eq!(table.escape_ascii().to_string(), wanted.escape_ascii().to_string());
    }

    /// Goal: texts of the library stay.  Method: a text that looks like a name stands behind the
    /// names of the symbols.
    #[test]
    fn only_names_of_symbols_are_changed() {
        let mut elf = vec![0_u8; 64 + 3 * 64];
        let mut put = |at: usize, value: u64, length: usize| {
            elf[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        };
        for (at, value, length) in [(40, 64, 8), (58, 64, 2), (60, 3, 2)] {
            put(at, value, length);
        }
        let names = b"\0MPI_Recv\0MPI_Recv_c\0";
        let (symbols, table) = (64 + 64, 64 + 2 * 64);
        put(symbols + 4, 11, 4);
        put(symbols + 40, 2, 4);
        put(table + 24, 256, 8);
        put(table + 32, names.len() as u64, 8);
        let text = b"\0MPI_Recv_cMPI_Recv\0";
        let library = [&elf[..], names, text].concat();
        let mpi = b"\0PMPI_Recv\0";
        let wanted = [&elf[..], b"\0MPI_Recv\0_PI_Recv_c\0", text].concat();
        assert_eq!(keep_shared(&library, mpi), wanted);
        assert_eq!(keep_shared(&library, b"no names"), library);
        for length in 0..library.len() {
            // What is no library stays as it is.
            keep_shared(&library[..length], mpi);
        }
    }
}

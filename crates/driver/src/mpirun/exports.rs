//! The library that is preloaded, with no function that the program's MPI has not.
//!
//! Programs ask which functions their MPI has by looking for the symbols (mpi4py's packages do, for
//! those of MPI 4 and 5), and the library exports all that any MPI has.

use std::collections::BTreeSet;

/// What every function's name begins with, in the form that each MPI has.
const PREFIX: &[u8] = b"PMPI_";

/// `library` without the functions that `mpi`, the file of another library, does not name.
///
/// A symbol whose name no longer fits its place in the table of hashes is found by nobody.
pub(super) fn keep_shared(library: &[u8], mpi: &[u8]) -> Vec<u8> {
    let shared: BTreeSet<&[u8]> = names(mpi).collect();
    let mut kept = library.to_vec();
    if shared.is_empty() {
        return kept;
    }
    let mut start = 0;
    for name in library.split(|it| *it == 0) {
        // The linker lets MPI_X be the end of PMPI_X where it can.
        let plain = if name.starts_with(PREFIX) { name } else { &[b"P", name].concat()[..] };
        if plain.starts_with(PREFIX) && is_name(plain) && !shared.contains(plain) {
            let at = start + name.len() - (plain.len() - 1);
            kept[at] = b'_';
        }
        start += name.len() + 1;
    }
    kept
}

fn names(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    file.split(|it| *it == 0).filter(|it| it.starts_with(PREFIX) && is_name(it))
}

fn is_name(text: &[u8]) -> bool {
    text.iter().all(|it| it.is_ascii_alphanumeric() || *it == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_the_mpi_has_not_are_found_no_more() {
        let library = b"\0PMPI_Send\0PMPI_Send_c\0MPI_Recv\0MPI_Recv_c\0PMPI_ is text\0";
        let mpi = b"\x7fELF\0PMPI_Send\0PMPI_Recv\0";
        let kept = keep_shared(library, mpi);
        let wanted = b"\0PMPI_Send\0P_PI_Send_c\0MPI_Recv\0_PI_Recv_c\0PMPI_ is text\0";
        assert_eq!(kept.escape_ascii().to_string(), wanted.escape_ascii().to_string());
        assert_eq!(keep_shared(library, b"no names"), library);
    }
}

//! Reductions whose result depends on the order in which MPI adds.
//!
//! Collectives are made in the form that does not block, and MPIs add in another order there than
//! in the one that does.  The program's sums are to be those of a run without replicas to the last
//! bit.

use std::ffi::CStr;
use std::sync::OnceLock;

use crate::abi::{self, Family};
use crate::calls;
use crate::real::{self, Call};

/// Operations that come to the same in any order, of whole numbers: sum, product, the greatest and
/// the least, and those of bits and truths; as Open MPI's.
const OPERATIONS: [&CStr; 10] = [
    c"ompi_mpi_op_sum",
    c"ompi_mpi_op_prod",
    c"ompi_mpi_op_max",
    c"ompi_mpi_op_min",
    c"ompi_mpi_op_land",
    c"ompi_mpi_op_lor",
    c"ompi_mpi_op_lxor",
    c"ompi_mpi_op_band",
    c"ompi_mpi_op_bor",
    c"ompi_mpi_op_bxor",
];

/// Types of whole numbers, as Open MPI's.  Those of 8 and of 16 bits are not among them: Open MPI
/// cuts sums of theirs off at the greatest, where the processor does so for many at once.
const INTEGERS: [&CStr; 17] = [
    c"ompi_mpi_int",
    c"ompi_mpi_unsigned",
    c"ompi_mpi_long",
    c"ompi_mpi_unsigned_long",
    c"ompi_mpi_long_long_int",
    c"ompi_mpi_unsigned_long_long",
    c"ompi_mpi_int32_t",
    c"ompi_mpi_uint32_t",
    c"ompi_mpi_int64_t",
    c"ompi_mpi_uint64_t",
    c"ompi_mpi_aint",
    c"ompi_mpi_offset",
    c"ompi_mpi_count",
    c"ompi_mpi_integer",
    c"ompi_mpi_integer4",
    c"ompi_mpi_integer8",
    c"ompi_mpi_byte",
];

/// The same of MPICH and its kin, in that order.
const MPICH_INTEGERS: [usize; 17] = [
    0x4c00_0405,
    0x4c00_0406,
    0x4c00_0807,
    0x4c00_0808,
    0x4c00_0809,
    0x4c00_0819,
    0x4c00_0439,
    0x4c00_043d,
    0x4c00_083a,
    0x4c00_083e,
    0x4c00_0843,
    0x4c00_0844,
    0x4c00_0845,
    0x4c00_041b,
    0x4c00_0430,
    0x4c00_0831,
    0x4c00_010d,
];

/// The same of the standard ABI (MPI 5.0, section 20.3), in that order.
const STANDARD_INTEGERS: [usize; 17] = [
    0x209, 0x20d, 0x20a, 0x20e, 0x20b, 0x20f, 0x250, 0x251, 0x258, 0x259, 0x201, 0x203, 0x202,
    0x219, 0x2d1, 0x2d9, 0x247,
];

/// Types of fractions, as Open MPI's.
const FRACTIONS: [&CStr; 14] = [
    c"ompi_mpi_float",
    c"ompi_mpi_double",
    c"ompi_mpi_long_double",
    c"ompi_mpi_real",
    c"ompi_mpi_real4",
    c"ompi_mpi_real8",
    c"ompi_mpi_dblprec",
    c"ompi_mpi_c_float_complex",
    c"ompi_mpi_c_double_complex",
    c"ompi_mpi_cplex",
    c"ompi_mpi_dblcplex",
    c"ompi_mpi_complex8",
    c"ompi_mpi_complex16",
    c"ompi_mpi_complex32",
];

/// Whether a reduction that blocks may come to another result in the form that does not.
///
/// MPICH 5 and Intel MPI add otherwise in all.  Open MPI 4.1.4 and 5.0.11 do in `MPI_Reduce` and
/// `MPI_Reduce_scatter`, and, of processes that are no power of two, in `MPI_Allreduce`; elsewhere
/// they add in the same order, but may give an operation its two sides the other way round, which
/// makes no difference to a sum.
pub(crate) fn are_otherwise(call: Call, args: &[usize], size: i32) -> bool {
    let is_open_mpi = abi::table().family == Family::OpenMpi;
    let size = size.unsigned_abs();
    let is_shuffled = match call {
        calls::SCAN | calls::EXSCAN => return !is_open_mpi && !is_exact(args[3], args[4]),
        calls::ALLREDUCE => !size.is_power_of_two(),
        calls::REDUCE | calls::REDUCE_SCATTER | calls::REDUCE_SCATTER_BLOCK => 2 < size,
        _ => return false,
    };
    let is_sum = || is_open_mpi && !is_shuffled && is_sum_of_fractions(args[3], args[4]);
    !is_exact(args[3], args[4]) && !is_sum()
}

/// Open MPI's handles of these names; not every version has all.
fn handles(names: &[&CStr]) -> Vec<usize> {
    names.iter().filter_map(|it| real::symbol(it)).collect()
}

/// Whether this is a sum of fractions of Open MPI's types: with two sides the same either way.
fn is_sum_of_fractions(datatype: usize, op: usize) -> bool {
    static HANDLES: OnceLock<[Vec<usize>; 2]> = OnceLock::new();
    let [sum, fractions] = HANDLES.get_or_init(|| [handles(&OPERATIONS[..1]), handles(&FRACTIONS)]);
    sum.contains(&abi::cut(op)) && fractions.contains(&abi::cut(datatype))
}

/// Whether the result is the same in any order.  Of fractions not even the greatest is: of two
/// zeros, or of a number and what is none, it is whichever comes first.
fn is_exact(datatype: usize, op: usize) -> bool {
    static HANDLES: OnceLock<[Vec<usize>; 2]> = OnceLock::new();
    let (datatype, op) = (abi::cut(datatype), abi::cut(op));
    match abi::table().family {
        Family::OpenMpi => {
            let [operations, integers] =
                HANDLES.get_or_init(|| [handles(&OPERATIONS), handles(&INTEGERS)]);
            operations.contains(&op) && integers.contains(&datatype)
        }
        Family::Mpich => {
            (0x5800_0001..=0x5800_000a).contains(&op) && MPICH_INTEGERS.contains(&datatype)
        }
        Family::Standard => {
            matches!(op, 0x21..=0x24 | 0x28..=0x2a | 0x30..=0x32)
                && STANDARD_INTEGERS.contains(&datatype)
        }
    }
}

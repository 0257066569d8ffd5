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

/// Operations of Open MPI's that come to the same in any order.
const ORDERLESS: [&CStr; 10] = [
    c"ompi_mpi_op_max",
    c"ompi_mpi_op_min",
    c"ompi_mpi_op_maxloc",
    c"ompi_mpi_op_minloc",
    c"ompi_mpi_op_land",
    c"ompi_mpi_op_lor",
    c"ompi_mpi_op_lxor",
    c"ompi_mpi_op_band",
    c"ompi_mpi_op_bor",
    c"ompi_mpi_op_bxor",
];

/// Those that do so for whole numbers.
const WITHOUT_FRACTIONS: [&CStr; 2] = [c"ompi_mpi_op_sum", c"ompi_mpi_op_prod"];

/// Types of whole numbers.
const INTEGERS: [&CStr; 25] = [
    c"ompi_mpi_signed_char",
    c"ompi_mpi_unsigned_char",
    c"ompi_mpi_short",
    c"ompi_mpi_unsigned_short",
    c"ompi_mpi_int",
    c"ompi_mpi_unsigned",
    c"ompi_mpi_long",
    c"ompi_mpi_unsigned_long",
    c"ompi_mpi_long_long_int",
    c"ompi_mpi_unsigned_long_long",
    c"ompi_mpi_int8_t",
    c"ompi_mpi_uint8_t",
    c"ompi_mpi_int16_t",
    c"ompi_mpi_uint16_t",
    c"ompi_mpi_int32_t",
    c"ompi_mpi_uint32_t",
    c"ompi_mpi_int64_t",
    c"ompi_mpi_uint64_t",
    c"ompi_mpi_aint",
    c"ompi_mpi_offset",
    c"ompi_mpi_count",
    c"ompi_mpi_integer",
    c"ompi_mpi_integer2",
    c"ompi_mpi_integer4",
    c"ompi_mpi_integer8",
];

/// Whether a reduction that blocks may come to another result in the form that does not.
///
/// MPICH 5 and Intel MPI add otherwise in all.  Open MPI 4.1.4 and 5.0.11 do in `MPI_Reduce` and
/// `MPI_Reduce_scatter`, and, of processes that are no power of two, in `MPI_Allreduce`.
pub(crate) fn are_otherwise(call: Call, args: &[usize], size: i32) -> bool {
    let is_open_mpi = abi::table().family == Family::OpenMpi;
    let size = size.unsigned_abs();
    match call {
        calls::REDUCE
        | calls::ALLREDUCE
        | calls::REDUCE_SCATTER
        | calls::REDUCE_SCATTER_BLOCK
        | calls::SCAN
        | calls::EXSCAN
            if !is_open_mpi =>
        {
            true
        }
        calls::ALLREDUCE => !size.is_power_of_two() && !is_exact(args[3], args[4]),
        calls::REDUCE | calls::REDUCE_SCATTER | calls::REDUCE_SCATTER_BLOCK => {
            2 < size && !is_exact(args[3], args[4])
        }
        _ => false,
    }
}

/// Whether Open MPI's result is the same in any order.
fn is_exact(datatype: usize, op: usize) -> bool {
    static HANDLES: OnceLock<[Vec<usize>; 3]> = OnceLock::new();
    let find = |names: &[&CStr]| names.iter().filter_map(|it| real::symbol(it)).collect();
    let [orderless, without_fractions, integers] =
        HANDLES.get_or_init(|| [find(&ORDERLESS), find(&WITHOUT_FRACTIONS), find(&INTEGERS)]);
    let (datatype, op) = (abi::cut(datatype), abi::cut(op));
    orderless.contains(&op) || (without_fractions.contains(&op) && integers.contains(&datatype))
}

//! Calls with counts of 64 bits (MPI 4.0), done as those with counts of 32: messages of more than 2
//! GiB are not served either way.

use crate::abi;
use crate::calls;
use crate::parts::degrees;
use crate::real::Call;
use crate::state::State;

/// The arguments that `plain` takes for these, or nothing if a number does not fit.
///
/// Arrays that are narrowed live in the state until the call has taken them.
pub(crate) fn narrow(
    state: &mut State,
    plain: Call,
    letters: &[u8],
    args: &[usize],
) -> Option<Vec<usize>> {
    state.arrays.clear();
    let mut narrowed = args.to_vec();
    for (idx, letter) in letters.iter().enumerate() {
        match letter {
            b'n' => {
                i32::try_from(args[idx] as i64).ok()?;
            }
            b'N' | b'D' => {
                let n = length(state, plain, letters, args, idx);
                let row: Option<Vec<i32>> = (0..n)
                    .map(|it| i32::try_from(unsafe { *(args[idx] as *const i64).add(it) }).ok())
                    .collect();
                state.arrays.push(row?);
                let row = state.arrays.last().expect("it was put there");
                narrowed[idx] = row.as_ptr() as usize;
            }
            _ => {}
        }
    }
    Some(narrowed)
}

/// How many entries of an array the call looks at.
fn length(state: &mut State, plain: Call, letters: &[u8], args: &[usize], idx: usize) -> usize {
    let at = letters.iter().position(|it| *it == b'c').expect("each of these has a communicator");
    let known = state.comm(args[at]);
    let is_sent = idx < 3;
    match plain {
        calls::GATHERV
        | calls::IGATHERV
        | calls::GATHERV_INIT
        | calls::SCATTERV
        | calls::ISCATTERV
        | calls::SCATTERV_INIT => {
            let is_root = match known.remote {
                Some(_) => args[7] as i32 == abi::table().root,
                None => args[7] as i32 == known.rank,
            };
            if is_root { known.peers().len() } else { 0 }
        }
        calls::NEIGHBOR_ALLGATHERV
        | calls::INEIGHBOR_ALLGATHERV
        | calls::NEIGHBOR_ALLGATHERV_INIT
        | calls::NEIGHBOR_ALLTOALLV
        | calls::INEIGHBOR_ALLTOALLV
        | calls::NEIGHBOR_ALLTOALLV_INIT
        | calls::NEIGHBOR_ALLTOALLW
        | calls::INEIGHBOR_ALLTOALLW
        | calls::NEIGHBOR_ALLTOALLW_INIT => {
            let behind = state.behind(args[at]);
            let degrees = degrees(behind, &known);
            if is_sent { degrees.targets } else { degrees.sources }
        }
        // What is sent in place has no counts of its own.
        _ if is_sent && args[0] == abi::table().in_place && plain_sends_by_array(plain) => 0,
        calls::REDUCE_SCATTER | calls::IREDUCE_SCATTER | calls::REDUCE_SCATTER_INIT => {
            known.size as usize
        }
        _ => known.peers().len(),
    }
}

fn plain_sends_by_array(plain: Call) -> bool {
    [
        calls::ALLTOALLV,
        calls::IALLTOALLV,
        calls::ALLTOALLV_INIT,
        calls::ALLTOALLW,
        calls::IALLTOALLW,
        calls::ALLTOALLW_INIT,
    ]
    .contains(&plain)
}

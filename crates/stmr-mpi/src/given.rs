//! What a process says to make a communicator, in numbers that are the same in each replica: it
//! leaves the process, and is compared before.

use crate::calls;
use crate::comm::{Comm, ranks_of};
use crate::real::{self, Call};
use crate::state::State;
use crate::topology::{ints, unweighted};

/// The arguments of a call that makes a communicator of one of which this is `known`.
pub(crate) fn given(state: &State, call: Call, args: &[usize], known: &Comm) -> Vec<u64> {
    let mut given = Vec::new();
    let mut say = |numbers: &[i32]| {
        given.push(numbers.len() as u64);
        given.extend(numbers.iter().map(|it| u64::from(*it as u32)));
    };
    match call {
        calls::COMM_SPLIT | calls::COMM_SPLIT_TYPE => say(&[args[1] as i32, args[2] as i32]),
        // Leaders and a tag.
        calls::INTERCOMM_CREATE => say(&[args[1] as i32, args[3] as i32, args[4] as i32]),
        // Who comes first.
        calls::INTERCOMM_MERGE => say(&[args[1] as i32]),
        calls::COMM_CREATE => say(&ranks_of(state, args[1])),
        calls::COMM_CREATE_GROUP => {
            say(&ranks_of(state, args[1]));
            say(&[args[2] as i32]);
        }
        // Extents, whether they close, whether ranks may be others.
        calls::CART_CREATE => {
            say(row(args[2], args[1]));
            say(row(args[3], args[1]));
            say(&[args[4] as i32]);
        }
        calls::CART_SUB => say(row(args[1], dimensions(args[0], known))),
        // Where the neighbours of each process end, all of them, whether ranks may be others.
        calls::GRAPH_CREATE => {
            let ends = row(args[2], args[1]);
            say(ends);
            say(row(args[3], ends.last().copied().unwrap_or(0) as usize));
            say(&[args[4] as i32]);
        }
        // From whom, to whom, and the weights of both.
        calls::DIST_GRAPH_CREATE_ADJACENT => {
            for [ranks, weights, n] in [[args[2], args[3], args[1]], [args[5], args[6], args[4]]] {
                say(row(ranks, n));
                say(if weights == unweighted() { &[] } else { row(weights, n) });
            }
            say(&[args[8] as i32]);
        }
        _ => {}
    }
    given
}

/// The program's array of so many numbers; what is no array or no count is none.
fn row<'a>(at: usize, n: usize) -> &'a [i32] {
    match usize::try_from(n as i32) {
        Ok(n) if at != 0 && 0 < n => unsafe { ints(at, n) },
        _ => &[],
    }
}

/// How many a grid has.
fn dimensions(comm: usize, known: &Comm) -> usize {
    if let Some(made) = &known.made {
        return made.topology.dimensions();
    }
    let mut n = 0_i32;
    real::call(calls::CARTDIM_GET, &[comm, &raw mut n as usize]);
    n as usize
}

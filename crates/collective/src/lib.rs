//! Collective operations on any graph of chips and links, without IO.
//!
//! [`bound`] is what no schedule can beat: of all-gather the fewest links of a chip, of all-reduce
//! the strength of the graph, both as exact fractions with the set of chips that proves them.
//! [`share`] is what several get where they meet.
#![warn(missing_docs)]

pub mod bound;

pub mod share;

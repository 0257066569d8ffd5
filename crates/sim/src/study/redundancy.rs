//! What redundancy costs as machines grow (seed 003, §1, §2.4 and §4).
//!
//! In reading order: the formulas and their constants ([`speedup`]), in which order of P they grow
//! and what class that is ([`class`]), the panels of figure 13 and what the paper says of them
//! ([`figure`]), how long a job runs until it must start again and what of its nodes' time is of
//! use ([`restart`]), and what speed-up that leaves beside checkpoint and restart ([`recovery`]).

pub mod speedup;

pub mod class;

pub mod figure;

pub mod restart;

pub mod recovery;

#[cfg(test)]
mod tests;

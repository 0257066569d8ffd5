//! What exists: the vocabulary of every other crate.
//!
//! In reading order: quantities ([`unit`]), names ([`id`], [`table`]), the hardware as a graph
//! ([`fabric`]), what can be wrong with it ([`fault`]), and what is asked of it ([`job`]).
//! Nothing here does IO, reads a clock or throws dice.
#![warn(missing_docs)]

pub mod unit;

pub mod id;

pub mod table;

pub mod limits;

pub mod fault;

pub mod fabric;

pub mod job;

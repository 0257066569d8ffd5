//! What exists: the vocabulary of every other crate.
//!
//! In reading order: quantities ([`mod@unit`]), tables ([`table`]) and what names their rows
//! ([`id`]), what can be wrong ([`fault`]), the hardware as a graph ([`fabric`]), what is asked of
//! it ([`job`]), and how a plant is written down ([`spec`]).
//! Nothing here does IO, reads a clock or throws dice.
#![warn(missing_docs)]

pub mod unit;

pub mod table;

pub mod id;

pub mod limits;

pub mod hardware;

pub mod fault;

pub mod fabric;

pub mod job;

pub mod spec;

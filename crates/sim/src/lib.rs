//! A world for the control core: everything that a real one would have, under virtual time.
//!
//! In reading order: seeded [`dice`]; what can go wrong ([`fault`]); what runs ([`task`]) and who
//! repairs ([`crew`]); the [`device`]s as they really are.
//! The same seed gives the same world, event by event.
#![warn(missing_docs)]

pub mod limits;

pub mod dice;

pub mod fault;

pub mod task;

pub mod crew;

pub mod device;

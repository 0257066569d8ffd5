//! A world for the control core: everything that a real one would have, under virtual time.
//!
//! In reading order: seeded [`dice`]; what can go wrong ([`fault`]); what runs ([`task`]) and who
//! repairs ([`crew`]); the [`device`]s as they really are; jobs to submit ([`trace`]); a journal
//! that loses what was not synced ([`store`]); what must never be ([`rule`]), what people
//! [`order`] and what is counted ([`tally`]); the [`world`] that drives them all; its
//! [`summary`]; a [`scenario`] is how people ask for one; the [`judge`] draws worlds from seeds
//! and tries to break them; a [`study`] runs the scheduler alone.
//!
//! The same seed gives the same world, event by event.
#![warn(missing_docs)]

pub mod limits;

pub mod dice;

pub mod fault;

pub mod task;

pub mod crew;

pub mod device;

pub mod trace;

pub mod store;

pub mod rule;

pub mod order;

pub mod tally;

pub mod world;

pub mod summary;

pub mod scenario;

pub mod judge;

pub mod study;

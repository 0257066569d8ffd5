//! The outside world, as the server meets it.
//!
//! In reading order: what is bounded ([`limits`]), files that are whole or absent ([`files`]),
//! the one owner of a data directory ([`lock`]), and the journal on disk ([`store`]).
//! Rows of the journal are opaque text here: nothing in this crate knows what they mean.
#![warn(missing_docs)]

pub mod limits;

pub mod files;

pub mod lock;

pub mod store;

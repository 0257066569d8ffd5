//! The outside world, as the server meets it.
//!
//! In reading order: what is bounded ([`limits`]), files that are whole or absent ([`files`]),
//! trees that somebody else has made ([`tree`]),
//! the one owner of a data directory ([`lock`]), the journal on disk ([`store`]), processes by
//! number and start time ([`process`]), the accounts that tasks run under ([`account`]), real tasks
//! under supervisors ([`task`]), a plant's
//! devices behind a local socket ([`plant`]), and MPI programs in replicas ([`mpirun`]).
//! [`probe`] asks the machine itself what it is.
//! Rows of the journal are opaque text here: nothing in this crate knows what they mean.
#![warn(missing_docs)]

pub mod limits;

pub mod files;

pub mod lock;

pub mod store;

pub mod process;

mod kin;

pub mod tree;

pub mod account;

pub mod task;

pub mod plant;

pub mod probe;

pub mod mpirun;

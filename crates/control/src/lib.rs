//! The control core, without IO.
//!
//! In the order of a job's life; a module uses only those before it.  Begin with
//! [`input`], [`output`] and [`note`], which are all that the core exchanges with a world.
#![warn(missing_docs)]

pub mod limits;

pub mod planted;

pub mod settings;

pub mod input;

pub mod note;

pub mod output;

pub mod state;

pub mod partition;

pub mod capacity;

pub mod preflight;

pub mod family;

pub mod schedule;

pub mod wire;

pub mod health;

pub mod check;

pub mod core;

pub mod commit;

//! Servers with accelerators and network ports.
//!
//! [`nccl`] decides as NCCL does.  Around it: [`place`] names the parts, [`level`] what numbers
//! mean in each version, [`change`] what can be asked and changed, [`decision`] what came of it
//! and how two outcomes differ, [`explain`] why, [`message`] what a line of NCCL's log says.

pub mod hardware;

pub mod nccl;

pub mod place;

pub mod level;

pub mod change;

pub mod decision;

pub mod explain;

pub mod message;

pub(crate) mod build;

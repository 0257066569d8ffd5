//! Servers with accelerators and network ports.
//!
//! [`nccl`] decides as NCCL does.  Around it: [`place`] names the parts, [`level`] what numbers
//! mean in each version, [`change`] what can be asked and changed, [`decision`] what came of it
//! and how two outcomes differ, [`views`] what each rank sees, [`explain`] why, [`message`] what
//! a line of NCCL's log says, [`log`] what a whole one says of a server.  [`matrix`] and
//! [`picture`] show a server, [`lint`] says what is wrong with its file, [`widest`] what it could
//! carry, [`fleet`] which of many is odd.  Files are made too: [`vm`] for a guest from its
//! server's and what [`lspci`] shows, and by [`machine`] from [`sysfs`] or [`hwloc`].  [`inside`]
//! makes a file a host of a plant, [`rings`] follows a job's rings through hosts and the network
//! between them, [`predict`] says how fast NCCL takes itself to be.

mod attribute;

pub mod hardware;

pub mod nccl;

pub mod place;

pub mod level;

pub mod change;

pub mod decision;

pub mod views;

pub mod explain;

pub mod message;

pub mod matrix;

pub mod log;

pub mod widest;

pub mod diff;

pub mod lint;

pub mod fleet;

pub mod lspci;

pub mod vm;

pub mod machine;

pub mod sysfs;

pub mod hwloc;

pub mod inside;

pub mod rings;

pub mod predict;

pub mod picture;

pub(crate) mod build;

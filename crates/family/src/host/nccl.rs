//! A server as NCCL sees it, version by version: what it reads, which paths it finds, what it
//! decides.  Facts and constants: notes/nccl.md and seed 002.
//!
//! [`xml`] reads the file, [`graph`] is what is built from it, [`path`] finds the ways, [`view`]
//! takes the decisions under [`settings`], [`verdict`] holds the two that are asked about most,
//! [`dump`] writes them down.

mod build;

pub mod connect;

pub mod dump;

mod flatten;

pub mod graph;

pub mod graph_xml;

mod limits;

pub(crate) mod number;

pub mod path;

pub mod profile;

pub mod rack;

mod room;

pub mod search;

pub mod settings;

mod summary;

pub mod transfer;

pub mod verdict;

pub mod view;

pub mod width;

pub mod xml;

pub use build::TopoError;
pub(crate) use build::build as graph_of;
pub use limits::XML_BYTES;

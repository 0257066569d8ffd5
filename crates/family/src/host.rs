//! Servers with accelerators and network ports.

pub mod hardware;

pub(crate) mod build;

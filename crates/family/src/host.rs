//! Servers with accelerators and network ports.

pub mod hardware;

pub mod nccl;

pub(crate) mod build;

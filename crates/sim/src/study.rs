//! Studies: many decisions of the production scheduler under a workload, without devices.
//!
//! [`workload`] draws the tasks, [`allocation`] holds the rules of placement on a grid of boards
//! against one another, [`pods`] a static pod against a switched one.  The decisions are those of
//! `selvedge_control::schedule`, on a layout that production would have.  [`redundancy`] is a model
//! of what replicas cost.

pub mod workload;

pub mod allocation;

pub mod pods;

pub mod redundancy;

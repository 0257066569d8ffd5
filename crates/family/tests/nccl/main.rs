//! What NCCL decides on a server, and what Selvedge makes of it: recorded decisions, rules that no
//! record exercises, and everything that is shown of them.

mod decisions;
mod explain;
mod fixture;
mod graphs;
mod host_readers;
mod lint;
mod log;
mod look;
mod mutations;
mod recorded;
mod refusals;
mod rings;
mod searches;
mod show;
mod variables;
mod views;
mod xml;

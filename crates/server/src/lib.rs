//! The only event loop: the control core, its journal and its plant behind HTTP, and a dashboard.
//!
//! In reading order: the loop (`shell`) with what it owns (`clock`, `plant`, `journal`, `feed`,
//! `meter`) and real tasks (`slice`, `runner`), and what is planned beside it
//! (`planner`); how it begins (`start`, `up`) and how others find
//! it (`runtime`, `tls`); who may come in (`users`, `secret`,
//! `api::guard`); the routes (`house`, `api`) and pages
//! (`page`).  No other crate knows HTTP.
#![warn(missing_docs)]
// The server owns the clock; everybody else is told the time.
#![allow(clippy::disallowed_methods, reason = "the only event loop reads the clock and waits")]

pub mod inert;

pub mod limits;

pub mod clock;

pub mod users;

pub mod secret;

pub mod runtime;

pub mod tls;

mod words;

mod example;

mod feed;

mod journal;

pub mod plant;

mod meter;

pub mod start;

mod slice;

mod runner;

mod planner;

mod shell;

mod tally;

mod share;

mod seat;

mod house;

pub mod api;

mod page;

mod listen;

pub mod up;

pub use example::Example;
pub use page::first_page;
pub use plant::Parting;
pub use runner::end_left as end_left_tasks;
pub use tls::TlsFiles;
pub use up::{PlantFile, Running, Stopper, UpError, UpOptions, up};

#[cfg(test)]
mod tests;

//! Scalable triple modular redundancy, without IO (seed 003).
//!
//! A *cluster* is one process of an MPI program and its replicas: they compute the same, send the
//! same and receive the same (definition 3).  The replica that leads is the *meta*, the others are
//! *shadows*.  Replica `s` of every cluster together are *set* `s`: a whole copy of the program.
//!
//! In reading order: what identifies the contents of a send ([`digest`]), who is right when
//! contents differ ([`verdict`]), what replicas of one cluster tell each other ([`message`]), how
//! that goes through memory that they share ([`pipe`]) or, between hosts, through a network
//! ([`limits`], [`greet`], [`frame`]), what a process does ([`usage`]), one replica's view of its
//! cluster ([`replica`]) and its receives ([`receives`]), what the launcher knows of all ([`job`])
//! and follows where another thread ends them ([`quits`]), whether the program then starts again
//! ([`restarts`]), what they report to the launcher ([`report`]),
//! which of what they print is let out ([`output`]), what they write to files and has not gone
//! there ([`writes`]), what they see of files of MPI's ([`view`]) and how they share a place in one
//! ([`mod@pointer`]), what they do to each other's windows ([`access`]) and how they lock them
//! ([`locks`]), on which hosts they start ([`launch`]) and which numbers they find there
//! ([`numbers`]).
//! Nothing here names a socket, a clock or MPI: a shell feeds [`replica::Replica`] what came and
//! carries out what it returns.
#![warn(missing_docs)]

pub mod digest;

pub mod verdict;

pub mod message;

pub mod pipe;

pub mod limits;

pub mod greet;

pub mod frame;

pub mod usage;

pub mod replica;

pub mod receives;

pub mod job;

pub mod quits;

pub mod restarts;

pub mod report;

pub mod output;

pub mod writes;

pub mod view;

pub mod pointer;

pub mod access;

pub mod locks;

pub mod launch;

pub mod numbers;

#[cfg(test)]
mod explore;

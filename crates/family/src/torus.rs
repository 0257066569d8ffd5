//! Pods of 4x4x4 cubes joined by optical circuit switches (seed 000).
//!
//! In reading order: what a pod is made of ([`hardware`], [`build`]), what a job asks for
//! ([`lattice`], [`shape`]), where it goes ([`place`]), how that is wired ([`wiring`]) and what
//! its chips then see and how they forward ([`path`]).

pub mod hardware;

pub mod build;

pub mod lattice;

pub mod shape;

pub mod place;

pub mod wiring;

pub mod path;

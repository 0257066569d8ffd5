//! Every limit of links between hosts, in one place.

/// How long a host is silent before one of its kernel's heartbeats is asked for, and how long
/// between two, in seconds.
pub const HEARTBEAT_EVERY_S: u32 = 1;

/// So many unanswered heartbeats end a link.
pub const HEARTBEATS_MAX: u32 = 9;

/// A host from whose kernel nothing has come for so long is lost, in milliseconds: a heartbeat's
/// time for each that may be unanswered, and for the silence before the first.
pub const SILENCE_MAX_MS: u64 = 1000 * HEARTBEAT_EVERY_S as u64 * (HEARTBEATS_MAX as u64 + 1);

/// Who has called and not proven within this time who it is, is a stranger; in milliseconds.
pub const GREETING_MAX_MS: u64 = 5_000;

/// So many callers may be about to prove who they are; another is refused.
pub const CALLERS_MAX: usize = 32;

/// Strangers that are told of one by one.
pub const STRANGERS_TOLD_MAX: usize = 8;

/// Addresses of one host that are told and tried.
pub const ADDRESSES_MAX: usize = 8;

/// How long one address is tried, in milliseconds.
pub const CALL_MAX_MS: u64 = 3_000;

/// How long all addresses are tried, again and again, in milliseconds.
pub const REACH_MAX_MS: u64 = 60_000;

/// The longest piece of a stream that has one check, in bytes.
pub const FRAME_MAX: usize = 1 << 20;

//! Every limit of the model, in one place.

/// Seats of one part: a job's hold on a part is a 64-bit mask.
pub const SEATS_MAX: usize = 64;

/// Nodes, ports or directed links of one fabric: ids are 32 bits, and one is kept for "none".
pub const TABLE_MAX: usize = 1 << 30;

/// The longest name of a job, an owner or a project, in bytes.
pub const NAME_MAX: usize = 128;

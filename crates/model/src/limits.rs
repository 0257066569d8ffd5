//! Every limit of the model, in one place.

/// Seats of one part: a job's hold on a part is a 64-bit mask.
pub const SEATS_MAX: usize = 64;

/// Nodes, ports or directed links of one fabric: ids are 32 bits, and one is kept for "none".
pub const TABLE_MAX: usize = 1 << 30;

/// The longest name of a job, an owner or a project, in bytes.
pub const NAME_MAX: usize = 128;

/// The longest command of a job and the most that its variables take, in bytes.
pub const COMMAND_BYTES_MAX: usize = 64 << 10;

/// Words of one command, and texts of its variables.
pub const COMMAND_WORDS_MAX: usize = 4096;

/// The newest format of plant files that this version reads, and the one that it writes.
pub const PLANT_FORMAT: u64 = 1;

/// Topology files of one plant.
pub const TOPOLOGIES_MAX: usize = 256;

/// The longest plant file, in bytes.
pub const PLANT_TEXT_MAX: usize = 64 << 20;

/// Generators of one plant.
pub const PODS_MAX: usize = 256;

/// Hosts of one plant that a generator makes.
pub const HOSTS_MAX: u32 = 100_000;

/// Boards of one plant that generators make.
pub const BOARDS_MAX: u64 = 1 << 18;

/// Ports of one plant: a table of them must fit into memory.
pub const PLANT_PORTS_MAX: usize = 1 << 26;

/// Chips along one side of a fixed grid.
pub const GRID_SIDE_MAX: u16 = 512;

/// Chips along the shorter side of a fixed grid: its boards are one word of 64 bits.
pub const GRID_NARROW_MAX: u16 = 128;

/// Groups along one side of a hyper-square machine.
pub const GROUPS_SIDE_MAX: u16 = 64;

/// The longest wire of a hyper-square machine, in millimetres.
pub const WIRE_MM_MAX: u32 = 1_000_000;

/// Faults of one plant file that are reported at once.
pub const PLANT_ERRORS_MAX: usize = 50;

//! What people may order, for counting.

use selvedge_control::input::{Ask, JobOrder};

/// One kind of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderKind {
    /// Run a job.
    Submit,
    /// End a job.
    Cancel,
    /// Do not start a job.
    Hold,
    /// Let a held job start.
    Release,
    /// Stop a job and put it back into the queue.
    Requeue,
    /// Take a thing out of use.
    Drain,
    /// Take one's own drain back.
    Undrain,
    /// Take a repair upon oneself.
    TakeRepair,
    /// Say that it is done.
    FinishRepair,
    /// Re-patch a fibre.
    MovePort,
    /// Work on many things in waves.
    Maintain,
    /// Accept proposed moves.
    Defragment,
    /// Change the plant.
    ApplyPlant,
    /// Change what may be done without being asked.
    SetLevel,
}

impl OrderKind {
    /// All kinds.
    pub const ALL: [OrderKind; 14] = [
        OrderKind::Submit,
        OrderKind::Cancel,
        OrderKind::Hold,
        OrderKind::Release,
        OrderKind::Requeue,
        OrderKind::Drain,
        OrderKind::Undrain,
        OrderKind::TakeRepair,
        OrderKind::FinishRepair,
        OrderKind::MovePort,
        OrderKind::Maintain,
        OrderKind::Defragment,
        OrderKind::ApplyPlant,
        OrderKind::SetLevel,
    ];

    /// The kind of what somebody asks for.
    pub const fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Submit { .. } => OrderKind::Submit,
            Ask::Job { order: JobOrder::Cancel, .. } => OrderKind::Cancel,
            Ask::Job { order: JobOrder::Hold, .. } => OrderKind::Hold,
            Ask::Job { order: JobOrder::Release, .. } => OrderKind::Release,
            Ask::Job { order: JobOrder::Requeue, .. } => OrderKind::Requeue,
            Ask::Drain { .. } => OrderKind::Drain,
            Ask::Undrain { .. } | Ask::UndrainRetired { .. } => OrderKind::Undrain,
            Ask::TakeRepair { .. } => OrderKind::TakeRepair,
            Ask::FinishRepair { .. } => OrderKind::FinishRepair,
            Ask::MovePort { .. } => OrderKind::MovePort,
            Ask::Maintain { .. } => OrderKind::Maintain,
            Ask::Defragment { .. } => OrderKind::Defragment,
            Ask::ApplyPlant { .. } => OrderKind::ApplyPlant,
            Ask::SetLevel { .. } => OrderKind::SetLevel,
        }
    }

    /// As people write it.
    pub const fn word(self) -> &'static str {
        match self {
            OrderKind::Submit => "submit",
            OrderKind::Cancel => "cancel",
            OrderKind::Hold => "hold",
            OrderKind::Release => "release",
            OrderKind::Requeue => "requeue",
            OrderKind::Drain => "drain",
            OrderKind::Undrain => "undrain",
            OrderKind::TakeRepair => "take_repair",
            OrderKind::FinishRepair => "finish_repair",
            OrderKind::MovePort => "move_port",
            OrderKind::Maintain => "maintain",
            OrderKind::Defragment => "defragment",
            OrderKind::ApplyPlant => "apply_plant",
            OrderKind::SetLevel => "set_level",
        }
    }
}

impl std::fmt::Display for OrderKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_where_they_are_counted() {
        for (idx, kind) in OrderKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, idx, "{kind}");
        }
    }
}

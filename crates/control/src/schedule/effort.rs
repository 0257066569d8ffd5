//! How long a question may be thought about, counted so that it is the same on every machine.

use std::cell::Cell;

/// What is left of it.
#[derive(Debug)]
pub(super) struct Effort {
    left: Cell<u64>,
}

impl Effort {
    /// So many rows of the queue, busy jobs and parts may be looked at.
    pub(super) fn new(n: u64) -> Self {
        Self { left: Cell::new(n) }
    }

    /// So many were looked at.
    pub(super) fn spend(&self, n: usize) {
        self.left.set(self.left.get().saturating_sub(n as u64));
    }

    /// Whether nothing is left: what is found from here on is no answer.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

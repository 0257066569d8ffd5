//! Disjoint sets of numbered things, put together one after the other.

/// Each thing's way to the first of its set.
pub(crate) struct Sets(Vec<u32>);

impl Sets {
    /// Each of `n` things for itself.
    pub(crate) fn single(n: usize) -> Self {
        Self((0..n as u32).collect())
    }

    /// The first thing of the set that `thing` is in.
    pub(crate) fn of(&mut self, thing: u32) -> u32 {
        let mut root = thing;
        while self.0[root as usize] != root {
            self.0[root as usize] = self.0[self.0[root as usize] as usize];
            root = self.0[root as usize];
        }
        root
    }

    /// Puts the sets of `a` and `b` together; whether they were two.
    pub(crate) fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b) as usize] = a.min(b);
        a != b
    }
}

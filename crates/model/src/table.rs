//! A vector that is indexed by an id of its own kind.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// What may index an [`IdVec`].
pub trait Id: Copy {
    /// The id at `idx`.
    fn from_idx(idx: usize) -> Self;
    /// The place of this id.
    fn to_idx(self) -> usize;
}

/// A table of `T`, one for each id from 0 on.  Entries are never removed: an index, once given,
/// never names another thing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    #[serde(skip)]
    id: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    /// A table of `n` copies of `item`.
    pub fn filled(item: T, n: usize) -> Self
    where
        T: Clone,
    {
        Self { items: vec![item; n], id: PhantomData }
    }

    /// Adds `item` and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_idx(self.items.len() - 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The id that the next [`IdVec::push`] returns.
    pub fn next_id(&self) -> I {
        I::from_idx(self.items.len())
    }

    /// The item of `id`, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.to_idx())
    }

    /// The item of `id` to change, if there is one.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.to_idx())
    }

    /// All items in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All items to change, in the order of their ids.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// All ids with their items.
    pub fn pairs(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(idx, item)| (I::from_idx(idx), item))
    }

    /// All ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_idx)
    }

    /// Makes the table `n` long, filling with copies of `item`.
    pub fn grow(&mut self, n: usize, item: T)
    where
        T: Clone,
    {
        if self.items.len() < n {
            self.items.resize(n, item);
        }
    }

    /// The items as a slice.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.to_idx()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.to_idx()]
    }
}

impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(iter: It) -> Self {
        Self { items: iter.into_iter().collect(), id: PhantomData }
    }
}

impl<I, T: std::fmt::Debug> std::fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.items.fmt(f)
    }
}

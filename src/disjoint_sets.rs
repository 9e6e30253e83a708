//! Leaf: disjoint sets of numbers (union-find with path halving).

/// Sets of the numbers below a bound. At first each is alone.
pub(crate) struct DisjointSets {
    parents: Vec<usize>,
}

impl DisjointSets {
    /// `count` sets of one number each.
    pub(crate) fn new(count: usize) -> DisjointSets {
        DisjointSets { parents: (0..count).collect() }
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.parents.len()
    }

    /// The smallest number of the set with this one.
    pub(crate) fn root(&mut self, mut number: usize) -> usize {
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    /// Makes one set of two.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}

//! Values by group in two flat arrays, and what that is mostly for: which states can reach others.

/// Values by group, by counting sort.
#[derive(Debug)]
pub(crate) struct Grouped {
    /// Where each group begins, and the end.
    begins: Vec<u32>,
    values: Vec<u32>,
}

impl Grouped {
    /// From `(group, value)` pairs, groups `0..groups`. The pairs are asked for twice. Linear.
    pub(crate) fn new<I: Iterator<Item = (u32, u32)>>(
        groups: usize,
        pairs: impl Fn() -> I,
    ) -> Grouped {
        let mut begins = vec![0u32; groups + 1];
        pairs().for_each(|(group, _)| begins[group as usize] += 1);
        let mut sum = 0;
        for slot in &mut begins {
            sum += *slot;
            *slot = sum;
        }
        let mut values = vec![0u32; sum as usize];
        for (group, value) in pairs() {
            let at = &mut begins[group as usize];
            *at -= 1;
            values[*at as usize] = value;
        }
        Grouped { begins, values }
    }

    /// All values, group by group.
    pub(crate) fn into_values(self) -> Vec<u32> {
        self.values
    }

    /// The values of a group, in no order.
    pub(crate) fn of(&self, group: u32) -> &[u32] {
        let group = group as usize;
        &self.values[self.begins[group] as usize..self.begins[group + 1] as usize]
    }

    /// Marks everything that can be reached from `from`, each group's values being where it leads.
    pub(crate) fn reached(&self, from: impl IntoIterator<Item = u32>) -> Vec<bool> {
        let mut seen = vec![false; self.begins.len() - 1];
        let mut stack: Vec<u32> = from.into_iter().collect();
        stack.iter().for_each(|&s| seen[s as usize] = true);
        while let Some(s) = stack.pop() {
            for &to in self.of(s) {
                if !std::mem::replace(&mut seen[to as usize], true) {
                    stack.push(to);
                }
            }
        }
        seen
    }
}

//! Compressed sparse rows: lists of values by row in two flat arrays, and reachability over them.

/// Rows of values.
#[derive(Debug)]
pub(crate) struct Csr {
    /// Where each row begins in `values`, and the end.
    offsets: Vec<u32>,
    values: Vec<u32>,
}

impl Csr {
    /// From `(row, value)` pairs with rows `0..rows`, by counting sort. `pairs` is called twice.
    /// Cost: linear.
    pub(crate) fn new<I: Iterator<Item = (u32, u32)>>(rows: usize, pairs: impl Fn() -> I) -> Csr {
        let mut offsets = vec![0u32; rows + 1];
        pairs().for_each(|(row, _)| offsets[row as usize] += 1);
        let mut sum = 0;
        for slot in &mut offsets {
            sum += *slot;
            *slot = sum;
        }
        let mut values = vec![0u32; sum as usize];
        for (row, value) in pairs() {
            let slot = &mut offsets[row as usize];
            *slot -= 1;
            values[*slot as usize] = value;
        }
        Csr { offsets, values }
    }

    /// From rows in order. `append` appends the values of an item's row, which keep their order.
    pub(crate) fn from_rows<T>(
        items: impl IntoIterator<Item = T>,
        append: impl Fn(T, &mut Vec<u32>),
    ) -> Csr {
        let (mut offsets, mut values) = (vec![0], Vec::new());
        for item in items {
            append(item, &mut values);
            offsets.push(values.len() as u32);
        }
        Csr { offsets, values }
    }

    /// All values, row by row.
    pub(crate) fn into_values(self) -> Vec<u32> {
        self.values
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The values of a row; of rows from pairs, in no particular order.
    pub(crate) fn row(&self, row: u32) -> &[u32] {
        let row = row as usize;
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Marks every row that can be reached from `from`, a row's values being its successors.
    pub(crate) fn reached(&self, from: impl IntoIterator<Item = u32>) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        let mut stack: Vec<u32> = from.into_iter().collect();
        stack.iter().for_each(|&s| seen[s as usize] = true);
        while let Some(s) = stack.pop() {
            for &to in self.row(s) {
                if !std::mem::replace(&mut seen[to as usize], true) {
                    stack.push(to);
                }
            }
        }
        seen
    }
}

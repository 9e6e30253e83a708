//! Strongly connected components of a graph (Tarjan, 1972).

/// Index of a node that has not been visited.
const NEW: u32 = u32::MAX;

/// Components in reverse topological order: a successor's number is at most its predecessor's.
pub(crate) struct Components {
    /// By component: whether it has a cycle.
    pub(crate) cyclic: Vec<bool>,
    /// Number of components.
    pub(crate) count: u32,
    /// All nodes, grouped by component.
    order: Vec<u32>,
    /// By component: where its nodes begin in `order`.
    begins: Vec<u32>,
}

impl Components {
    /// The nodes of a component.
    pub(crate) fn members(&self, component: u32) -> &[u32] {
        let c = component as usize;
        &self.order[self.begins[c] as usize..self.begins[c + 1] as usize]
    }

    /// Calls `update` for every node, successors first, and for the nodes of a cycle until it
    /// returns for each of them that nothing changed.
    pub(crate) fn fixpoint(&self, mut update: impl FnMut(u32) -> bool) {
        for component in 0..self.count {
            loop {
                let mut changed = false;
                // Most successors of a node were found after it.
                for &node in self.members(component).iter().rev() {
                    changed |= update(node);
                }
                if !changed || !self.cyclic[component as usize] {
                    break;
                }
            }
        }
    }

    /// Tarjan's algorithm, without recursion, for nodes `0..n` and their successors. Cost: linear.
    pub(crate) fn find<'e, N>(n: usize, edges: impl Fn(usize) -> &'e [N]) -> Components
    where
        N: Copy + Into<u32> + 'e,
    {
        let (mut index, mut low, mut open) = (vec![NEW; n], vec![0u32; n], vec![false; n]);
        let (mut stack, mut work): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        let mut out = Components {
            cyclic: Vec::new(),
            count: 0,
            order: Vec::with_capacity(n),
            begins: vec![0],
        };
        let mut next = 0u32;
        for root in 0..n as u32 {
            if index[root as usize] != NEW {
                continue;
            }
            work.push((root, 0));
            while let Some((v, i)) = work.last_mut() {
                let (v, at) = (*v as usize, *i);
                if at == 0 {
                    index[v] = next;
                    low[v] = next;
                    next += 1;
                    stack.push(v as u32);
                    open[v] = true;
                }
                *i += 1;
                if let Some(&w) = edges(v).get(at) {
                    let w: u32 = w.into();
                    if index[w as usize] == NEW {
                        work.push((w, 0));
                    } else if open[w as usize] {
                        low[v] = low[v].min(index[w as usize]);
                    }
                    continue;
                }
                work.pop();
                if let Some(&(parent, _)) = work.last() {
                    low[parent as usize] = low[parent as usize].min(low[v]);
                }
                if low[v] == index[v] {
                    let from = stack.iter().rposition(|&w| w as usize == v).unwrap_or(0);
                    out.cyclic.push(
                        stack.len() - from > 1 || edges(v).iter().any(|&w| w.into() as usize == v),
                    );
                    for m in stack.drain(from..) {
                        open[m as usize] = false;
                        out.order.push(m);
                    }
                    out.begins.push(out.order.len() as u32);
                    out.count += 1;
                }
            }
        }
        out
    }
}

//! The walk along the path, from the end of a request back to its beginning.
//!
//! The child that ended last owns the stretch from its start to its end. Before that it is the child
//! that had ended last when that one began, and so on. What no child owns is the span's own.
//! Children are walked in the same way.

use super::tree::Tree;

/// A stretch of a request that one span owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the span's piece.
    pub piece: usize,
    /// Start, nanoseconds on the root's clock.
    pub from: i64,
    /// End.
    pub to: i64,
}

impl Tree {
    /// The stretches of the request in order of time. Together they are exactly its duration.
    pub fn path(&self) -> Vec<Stretch> {
        let mut path = Vec::new();
        let Some(root) = self.nodes.first() else { return path };
        // A node, and the part of it that is on the path.
        let mut open = vec![(0, root.from, root.to)];
        while let Some((node, low, high)) = open.pop() {
            let node = &self.nodes[node];
            let mut own = |from: i64, to: i64| {
                let (from, to) = (from.max(low), to.min(high));
                if from < to {
                    path.push(Stretch { piece: node.piece, from, to });
                }
            };
            let children = self.children(node);
            let mut at = node.to;
            while let Some(last) = children.partition_point(|child| child.done <= at).checked_sub(1) {
                let latest = children[last].latest;
                let child = &self.nodes[latest];
                let ended = child.to.min(at);
                own(ended, at);
                let within = (child.from.max(low), ended.min(high));
                if within.0 < within.1 {
                    open.push((latest, within.0, within.1));
                }
                at = child.from;
            }
            own(node.from, at);
        }
        path.sort_unstable_by_key(|stretch| stretch.from);
        path
    }
}

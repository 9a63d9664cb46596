//! The spans of one request as a tree of intervals: each lies within its parent.
//!
//! Clocks differ between services. A service's span below the call that it answers is moved until it
//! lies within that call; if it is longer than the call, it is cut. Within one clock a child that
//! ends after its parent was not waited for (a message, a write to a cache), and is left out with
//! all below it. If the parent failed, it did wait, and gave up: then the child is cut.

/// A sibling that overlaps the beginning of the next by less was waited for: exporters round times
/// to microseconds or milliseconds.
const ROUNDING_NS: i64 = 1_000_000;
/// At most this part of the sibling's own length.
const ROUNDING_PART: i64 = 10;

/// One span, as reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece {
    /// Start, nanoseconds.
    pub from: i64,
    /// End, nanoseconds.
    pub to: i64,
    /// Index of its parent.
    pub parent: Option<usize>,
    /// Number of the clock that timed it.
    pub clock: usize,
    /// Whether it is the answering side of a call, in a process of its own.
    pub is_answer: bool,
    /// Whether it began by a message: no other span waits for it.
    pub is_message: bool,
    /// Whether it failed.
    pub has_failed: bool,
}

/// A span within its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub from: i64,
    pub to: i64,
    /// Index of its piece.
    pub piece: usize,
    /// Its children: a range of `Tree::order`.
    pub children: (usize, usize),
}

/// The tree below one span.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Parents before children; the root is the first.
    pub(super) nodes: Vec<Node>,
    /// Children of every node, in the order in which they were done.
    pub(super) order: Vec<Child>,
    /// Spans moved or cut because they stuck out of their parent.
    pub clipped: u64,
    /// Spans left out because their parent did not wait for them.
    pub left_out: u64,
}

/// A child among its siblings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    pub node: usize,
    /// From here on it counts as done, see [`ROUNDING_NS`].
    pub done: i64,
    /// Of the siblings up to here, the one that ended last.
    pub latest: usize,
}

/// When a span counts as done for those that begin next.
fn done(from: i64, to: i64) -> i64 {
    to - ((to - from) / ROUNDING_PART).min(ROUNDING_NS)
}

/// How a piece lies within its parent.
enum Fit {
    Within(i64, i64),
    Clipped(i64, i64),
    NotAwaited,
    Empty,
}

fn fit(piece: &Piece, parent: &Piece, within: &Node, shift: i64) -> (Fit, i64) {
    let is_one_clock = piece.clock == parent.clock && !piece.is_answer;
    let own_shift = if is_one_clock { shift } else { 0 };
    let (from, to) = (piece.from + own_shift, piece.to + own_shift);
    let is_inside = from >= within.from && to <= within.to;
    if is_inside {
        let fit = if to > from { Fit::Within(from, to) } else { Fit::Empty };
        return (fit, own_shift);
    }
    if piece.is_message || is_one_clock && done(from, to) > within.to && !parent.has_failed {
        return (Fit::NotAwaited, own_shift);
    }
    let (earliest, latest) = (within.from - piece.from, within.to - piece.to);
    let shift = match () {
        () if !piece.is_answer => own_shift,
        () if earliest <= latest => own_shift.clamp(earliest, latest),
        // Longer than the call, whose caller gave up: it began within the call.
        () if (within.from..within.to).contains(&from) => own_shift,
        () => earliest,
    };
    let (from, to) = ((piece.from + shift).max(within.from), (piece.to + shift).min(within.to));
    (if to > from { Fit::Clipped(from, to) } else { Fit::NotAwaited }, shift)
}

impl Tree {
    /// The tree below `pieces[root]`. Pieces that do not lead to it do not belong to it.
    pub fn new(pieces: &[Piece], root: usize) -> Self {
        let mut tree = Self::default();
        let Some(top) = pieces.get(root) else { return tree };
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); pieces.len()];
        for (i, piece) in pieces.iter().enumerate().filter(|(i, _)| *i != root) {
            if let Some(mine) = piece.parent.and_then(|parent| below.get_mut(parent)) {
                mine.push(i);
            }
        }
        tree.nodes.push(Node { from: top.from, to: top.to.max(top.from), piece: root, children: (0, 0) });
        let mut shifts = vec![0];
        let mut at = 0;
        while let Some(&parent) = tree.nodes.get(at) {
            let first = tree.nodes.len();
            for &i in &below[parent.piece] {
                let (fit, shift) = fit(&pieces[i], &pieces[parent.piece], &parent, shifts[at]);
                let (from, to) = match fit {
                    Fit::Within(from, to) => (from, to),
                    Fit::Clipped(from, to) => {
                        tree.clipped += 1;
                        (from, to)
                    }
                    Fit::NotAwaited => {
                        tree.left_out += 1;
                        continue;
                    }
                    Fit::Empty => continue,
                };
                tree.nodes.push(Node { from, to, piece: i, children: (0, 0) });
                shifts.push(shift);
            }
            tree.sort_children(at, first);
            at += 1;
        }
        tree
    }

    /// Orders the children of node `at`, which are the nodes from `first` on.
    fn sort_children(&mut self, at: usize, first: usize) {
        let begin = self.order.len();
        let child = |node: usize| Child { node, done: done(self.nodes[node].from, self.nodes[node].to), latest: node };
        let mut children: Vec<Child> = (first..self.nodes.len()).map(child).collect();
        children.sort_unstable_by_key(|child| (child.done, self.nodes[child.node].from, child.node));
        let mut latest: Option<usize> = None;
        for child in &mut children {
            let is_later = latest.is_none_or(|best| self.nodes[child.node].to >= self.nodes[best].to);
            child.latest = if is_later { child.node } else { latest.unwrap_or(child.node) };
            latest = Some(child.latest);
        }
        self.order.extend(children);
        self.nodes[at].children = (begin, self.order.len());
    }

    pub(super) fn children(&self, node: &Node) -> &[Child] {
        &self.order[node.children.0..node.children.1]
    }

    /// Where each of its pieces begins on the root's clock, nanoseconds.
    pub fn places(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.nodes.iter().map(|node| (node.piece, node.from))
    }

    /// How long it took, nanoseconds.
    pub fn duration_ns(&self) -> i64 {
        self.nodes.first().map_or(0, |root| root.to - root.from)
    }
}

//! A request again, with less time in some of its spans.
//!
//! A span begins as long after the last of its earlier siblings as it did, and a parent ends as long
//! after the last of its children. So a parallel sibling becomes the path when the one that it ran
//! beside gets shorter than it is, and then the request gains no more.

use super::tree::Tree;

/// The outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The request's new duration, nanoseconds.
    pub duration_ns: i64,
    /// The time taken away from its spans, nanoseconds, on the path or off it.
    pub shortened_ns: i64,
}

impl Tree {
    /// The request if the own time of every span of which `keep` has a part (0-1) were that part of
    /// it. A span's own time is the time in which no child ran that it went on to wait for.
    pub fn replay(&self, keep: impl Fn(usize) -> Option<f64>) -> Replayed {
        let mut shortened_ns = 0;
        let duration_ns = self.pass(&keep, &mut |piece, ns| {
            shortened_ns += keep(piece).map_or(0, |part| ns - kept(ns, part));
        });
        Replayed { duration_ns, shortened_ns }
    }

    /// The own time of each span, nanoseconds, by its piece; only those that have some.
    pub fn own_ns(&self) -> Vec<(usize, i64)> {
        let mut all: Vec<(usize, i64)> = Vec::new();
        self.pass(&|_| None, &mut |piece, ns| match all.last_mut() {
            Some((last, sum)) if *last == piece => *sum += ns,
            _ => all.push((piece, ns)),
        });
        all
    }

    /// Whether it set off anything that it waited for.
    pub fn has_children(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Plays it from its leaves up, and returns its new duration. `seen` gets each stretch of a
    /// span's own time.
    fn pass(&self, keep: &impl Fn(usize) -> Option<f64>, seen: &mut dyn FnMut(usize, i64)) -> i64 {
        let mut lengths = vec![0; self.nodes.len()];
        // New ends, each in its parent's time.
        let mut ends = vec![0; self.nodes.len()];
        let mut by_start: Vec<usize> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate().rev() {
            let part = keep(node.piece);
            // Children that began together waited for the same time of their parent: it counts once.
            let mut counted = node.from;
            let mut own = |from: i64, to: i64| {
                if to > from.max(counted) {
                    seen(node.piece, to - from.max(counted));
                    counted = to;
                }
                part.map_or(to - from, |part| kept(to - from, part))
            };
            let done = self.children(node);
            by_start.clear();
            by_start.extend(done.iter().map(|child| child.node));
            by_start.sort_unstable_by_key(|child| self.nodes[*child].from);
            // When all that was done up to here ended, then and now.
            let (mut then, mut now) = (node.from, node.from);
            let mut waited = done.iter().peekable();
            for &child in &by_start {
                let from = self.nodes[child].from;
                while let Some(before) = waited.next_if(|before| before.done <= from) {
                    then = then.max(self.nodes[before.node].to);
                    now = now.max(ends[before.node]);
                }
                ends[child] = now + own(then, from) + lengths[child];
            }
            for before in waited {
                then = then.max(self.nodes[before.node].to);
                now = now.max(ends[before.node]);
            }
            lengths[number] = now + own(then, node.to) - node.from;
        }
        lengths.first().copied().unwrap_or(0)
    }
}

/// What is left of a stretch; an overlap stays as it is.
fn kept(ns: i64, part: f64) -> i64 {
    if ns > 0 { (ns as f64 * part).round() as i64 } else { ns }
}

//! Rows of a recording as trees: all that a request set off in any service, or only the outermost
//! waits of the app, which is what the ledger splits.

use std::collections::HashMap;

use holdup_recording::rows::Span;

use super::tree::{Piece, Tree};

/// Most ancestors to follow from a span.
const DEPTH_MAX: usize = 64;

/// A request and all that it set off.
pub struct RequestTree<'a> {
    /// The service's own span of it.
    pub root: &'a Span,
    /// The span of each piece.
    pub spans: Vec<&'a Span>,
    /// The tree below `root`.
    pub tree: Tree,
}

/// A span as a piece, with numbers for services.
struct Pieces<'a> {
    clocks: HashMap<&'a str, usize>,
}

impl<'a> Pieces<'a> {
    fn piece(&mut self, span: &'a Span, parent: Option<usize>) -> Piece {
        let next = self.clocks.len();
        Piece {
            from: span.started_at,
            to: span.started_at + span.duration_ns.max(0),
            parent,
            clock: *self.clocks.entry(span.service.as_str()).or_insert(next),
            is_answer: span.resource == "request" && span.kind == "server",
            is_message: span.kind == "consumer",
            has_failed: span.status == "error",
        }
    }
}

/// The requests of one trace: spans of requests that lie below no other. Messages are not requests.
pub fn roots<'a>(spans: &[&'a Span]) -> Vec<&'a Span> {
    let by_id = index(spans);
    let is_below = |span: &Span| {
        let mut at = parent(span, &by_id, spans);
        let mut steps = 0;
        while let Some(above) = at.filter(|above| steps < DEPTH_MAX && !std::ptr::eq(*above, span)) {
            if above.resource == "request" {
                return true;
            }
            at = parent(above, &by_id, spans);
            steps += 1;
        }
        false
    };
    let is_request = |span: &&&Span| span.resource == "request" && span.kind != "consumer" && span.span_id.is_some();
    spans.iter().filter(is_request).filter(|span| !is_below(span)).copied().collect()
}

fn index<'a>(spans: &[&'a Span]) -> HashMap<&'a str, usize> {
    spans.iter().enumerate().filter_map(|(i, span)| Some((span.span_id.as_deref()?, i))).collect()
}

fn parent<'a>(span: &Span, by_id: &HashMap<&str, usize>, spans: &[&'a Span]) -> Option<&'a Span> {
    spans.get(*by_id.get(span.parent_id.as_deref()?)?).copied()
}

impl<'a> RequestTree<'a> {
    /// The tree below `root`, which is one of `spans`, the spans of its trace.
    pub fn new(root: &'a Span, spans: &[&'a Span]) -> Self {
        // Sums of waits have no position in time.
        let spans: Vec<&Span> = spans.iter().copied().filter(|span| span.span_id.is_some()).collect();
        let by_id = index(&spans);
        let mut made = Pieces { clocks: HashMap::new() };
        let parent_of = |span: &Span| by_id.get(span.parent_id.as_deref()?).copied();
        let pieces: Vec<Piece> = spans.iter().map(|span| made.piece(span, parent_of(span))).collect();
        let top = spans.iter().position(|span| std::ptr::eq(*span, root)).unwrap_or(pieces.len());
        Self { root, tree: Tree::new(&pieces, top), spans }
    }

    /// The spans that the request waited for, and its own.
    pub fn awaited(&self) -> impl Iterator<Item = &'a Span> + '_ {
        self.tree.nodes.iter().filter_map(|node| self.spans.get(node.piece)).copied()
    }
}

/// Time on the path for each of `waits`, nanoseconds: outermost waits of the app with all spans
/// above each of them, nearest first. `request` bounds them; without it they bound themselves.
pub fn waited_ns<'a>(request: Option<&'a Span>, waits: &[(&'a Span, Vec<&'a Span>)]) -> Vec<i64> {
    let mut made = Pieces { clocks: HashMap::new() };
    let end = |span: &Span| span.started_at + span.duration_ns.max(0);
    let mut pieces = vec![match request {
        Some(request) => made.piece(request, None),
        None => Piece {
            from: waits.iter().map(|(wait, _)| wait.started_at).min().unwrap_or(0),
            to: waits.iter().map(|(wait, _)| end(wait)).max().unwrap_or(0),
            clock: usize::MAX,
            ..Piece::default()
        },
    }];
    let mut places: HashMap<*const Span, usize> = HashMap::new();
    places.extend(request.map(|request| (std::ptr::from_ref(request), 0)));
    let mut place_of_wait = Vec::new();
    for (wait, above) in waits {
        // From the request down; what lies beside or above it is not in between.
        let inside = above.iter().position(|span| request.is_some_and(|r| std::ptr::eq(*span, r)));
        let mut parent = 0;
        for span in above[..inside.unwrap_or(above.len())].iter().rev().chain([wait]) {
            parent = *places.entry(std::ptr::from_ref(*span)).or_insert_with(|| {
                pieces.push(made.piece(span, Some(parent)));
                pieces.len() - 1
            });
        }
        place_of_wait.push(parent);
    }
    let mut by_piece = vec![0; pieces.len()];
    for stretch in Tree::new(&pieces, 0).path() {
        by_piece[stretch.piece] += stretch.to - stretch.from;
    }
    place_of_wait.into_iter().map(|place| by_piece[place]).collect()
}

//! Rows of a recording as trees: all that a request set off in any service, or only the outermost
//! waits of the app, which is what the ledger splits.

use std::collections::HashMap;

use holdup_recording::rows::Span;

use super::tree::{Piece, Tree};

/// Most ancestors to follow from a span.
const DEPTH_MAX: usize = 64;

/// In a trace with more spans, those that name no parent have none: each is compared with all others.
const COVERED_MAX: usize = 2_000;

/// A request and all that it set off.
pub struct RequestTree<'a> {
    /// The service's own span of it.
    pub root: &'a Span,
    /// The span of each piece.
    pub spans: Vec<&'a Span>,
    /// Which of them each one lies below.
    pub parents: Vec<Option<usize>>,
    /// The tree below `root`.
    pub tree: Tree,
}

/// A span as a piece, with numbers for services.
struct Pieces<'a> {
    clocks: HashMap<&'a str, usize>,
}

impl<'a> Pieces<'a> {
    /// `caller` is the service of the span above.
    fn piece(&mut self, span: &'a Span, parent: Option<usize>, caller: Option<&str>) -> Piece {
        let next = self.clocks.len();
        Piece {
            from: span.started_at,
            to: span.started_at + span.duration_ns.max(0),
            parent,
            clock: *self.clocks.entry(span.service.as_str()).or_insert(next),
            // Another service than its caller's answers, whatever kind it says it has.
            is_answer: span.resource == "request" && span.kind == "server"
                || span.kind != "consumer" && caller.is_some_and(|caller| caller != span.service),
            is_message: span.kind == "consumer",
            has_failed: span.status == "error",
        }
    }
}

/// The requests of one trace: spans of requests that lie below no other. Messages are not requests.
pub fn roots<'a>(spans: &[&'a Span]) -> Vec<&'a Span> {
    let parents = parents(spans);
    let is_below = |number: usize| {
        let (mut at, mut steps) = (parents[number], 0);
        while let Some(above) = at.filter(|above| steps < DEPTH_MAX && *above != number) {
            if spans[above].resource == "request" {
                return true;
            }
            at = parents[above];
            steps += 1;
        }
        false
    };
    let is_request = |span: &Span| span.resource == "request" && span.kind != "consumer" && span.span_id.is_some();
    let all = spans.iter().enumerate();
    all.filter(|(number, span)| is_request(span) && !is_below(*number)).map(|(_, span)| *span).collect()
}

/// Which of `spans` each one lies below: by its parent's id or, of one that names no parent, the shortest span
/// of its service that covers it.
fn parents(spans: &[&Span]) -> Vec<Option<usize>> {
    let by_id: HashMap<&str, usize> =
        spans.iter().enumerate().filter_map(|(i, span)| Some((span.span_id.as_deref()?, i))).collect();
    let end = |span: &Span| span.started_at.saturating_add(span.duration_ns.max(0));
    let covering = |number: usize, span: &Span| {
        let covers = |(i, above): &(usize, &&Span)| {
            let is_longer =
                above.duration_ns > span.duration_ns || above.duration_ns == span.duration_ns && *i < number;
            is_longer && above.service == span.service && above.started_at <= span.started_at && end(above) >= end(span)
        };
        spans.iter().enumerate().filter(covers).min_by_key(|(_, above)| above.duration_ns).map(|(i, _)| i)
    };
    let parent = |(number, span): (usize, &&Span)| match span.parent_id.as_deref() {
        Some(id) => by_id.get(id).copied(),
        None if span.resource == "request" || span.span_id.is_none() || spans.len() > COVERED_MAX => None,
        None => covering(number, span),
    };
    spans.iter().enumerate().map(parent).collect()
}

impl<'a> RequestTree<'a> {
    /// The tree below `root`, which is one of `spans`, the spans of its trace.
    pub fn new(root: &'a Span, spans: &[&'a Span]) -> Self {
        // Sums of waits have no position in time.
        let spans: Vec<&Span> = spans.iter().copied().filter(|span| span.span_id.is_some()).collect();
        let parents = parents(&spans);
        let mut made = Pieces { clocks: HashMap::new() };
        let caller = |parent: Option<usize>| parent.map(|parent| spans[parent].service.as_str());
        let pieces = spans.iter().zip(&parents).map(|(span, parent)| made.piece(span, *parent, caller(*parent)));
        let pieces: Vec<Piece> = pieces.collect();
        let top = spans.iter().position(|span| std::ptr::eq(*span, root)).unwrap_or(pieces.len());
        Self { root, tree: Tree::new(&pieces, top), spans, parents }
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
        Some(request) => made.piece(request, None, None),
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
                pieces.push(made.piece(span, Some(parent), None));
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

//! One request as a waterfall: its spans below each other, each with its place in the request's time.

use holdup_recording::rows::Span;

use super::critical_path::spans::{RequestTree, roots};

/// Rows at most: the longest spans of a request with more.
const ROWS_MAX: usize = 200;

/// One span of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct WaterfallRow<'a> {
    /// The span.
    pub span: &'a Span,
    /// How many spans lie above it.
    pub depth: usize,
    /// Its start after that of the request, nanoseconds, on the request's clock as far as that is known.
    pub from_ns: i64,
    /// Its duration, nanoseconds.
    pub took_ns: i64,
    /// The part of it that the request waited for and no other span below has, nanoseconds.
    pub own_ns: i64,
}

/// The requests of a trace, parents before what they set off and that in order of time.
pub fn waterfall<'a>(trace: &[&'a Span]) -> Vec<WaterfallRow<'a>> {
    let mut rows = Vec::new();
    for root in roots(trace) {
        of_request(&RequestTree::new(root, trace), &mut rows);
    }
    if rows.len() > ROWS_MAX {
        let mut by_length: Vec<i64> = rows.iter().map(|row: &WaterfallRow<'_>| row.took_ns).collect();
        let (_, least, _) = by_length.select_nth_unstable_by(ROWS_MAX, |a, b| b.cmp(a));
        let least = *least;
        rows.retain(|row| row.took_ns > least);
    }
    rows
}

fn of_request<'a>(request: &RequestTree<'a>, rows: &mut Vec<WaterfallRow<'a>>) {
    let mut own_ns = vec![0; request.spans.len()];
    for stretch in request.tree.path() {
        own_ns[stretch.piece] += stretch.to - stretch.from;
    }
    let Some(top) = request.spans.iter().position(|span| std::ptr::eq(*span, request.root)) else { return };
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); request.spans.len()];
    for (i, parent) in request.parents.iter().enumerate() {
        if let Some(mine) = parent.filter(|_| i != top).and_then(|parent| below.get_mut(parent)) {
            mine.push(i);
        }
    }
    let mut places: Vec<Option<i64>> = vec![None; request.spans.len()];
    for (piece, from) in request.tree.places() {
        places[piece] = Some(from);
    }
    let mut open = vec![(top, 0)];
    while let Some((i, depth)) = open.pop() {
        let span = request.spans[i];
        let from = places[i].unwrap_or(span.started_at) - request.root.started_at;
        rows.push(WaterfallRow { span, depth, from_ns: from, took_ns: span.duration_ns, own_ns: own_ns[i] });
        let mut next = std::mem::take(&mut below[i]);
        next.sort_by_key(|child| std::cmp::Reverse(request.spans[*child].started_at));
        open.extend(next.into_iter().map(|child| (child, depth + 1)));
    }
}

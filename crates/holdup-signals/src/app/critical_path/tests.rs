//! Paths that one can see, and properties of many that one cannot.

use super::{Piece, Stretch, Tree};

/// A span from `from` to `to` milliseconds below `parent`.
fn piece(from: i64, to: i64, parent: Option<usize>) -> Piece {
    Piece { from: from * 1_000_000, to: to * 1_000_000, parent, ..Piece::default() }
}

fn tree(pieces: &[Piece]) -> Tree {
    Tree::new(pieces, 0)
}

/// The path as (piece, from, to) in milliseconds.
fn path(pieces: &[Piece]) -> Vec<(usize, i64, i64)> {
    let ms = |s: &Stretch| (s.piece, s.from / 1_000_000, s.to / 1_000_000);
    tree(pieces).path().iter().map(ms).collect()
}

/// What the request takes in milliseconds if piece `i` takes `part` of its time.
fn with(pieces: &[Piece], i: usize, part: f64) -> i64 {
    tree(pieces).replay(|piece| (piece == i).then_some(part)).duration_ns / 1_000_000
}

#[test]
fn of_two_calls_at_once_the_slower_one_is_the_path() {
    let pieces = [piece(0, 100, None), piece(10, 90, Some(0)), piece(10, 60, Some(0))];
    assert_eq!(path(&pieces), [(0, 0, 10), (1, 10, 90), (0, 90, 100)]);
    // In half the time the slow one ends at 50, and then the other one is the path until 60.
    assert_eq!((with(&pieces, 1, 0.5), with(&pieces, 2, 0.5)), (70, 100));
    assert_eq!((with(&pieces, 1, 0.75), with(&pieces, 0, 0.5)), (80, 90));
}

#[test]
fn a_span_after_two_ended_ones_waited_for_both() {
    // 1 and 2 together, then 3.
    let pieces = [piece(0, 100, None), piece(0, 60, Some(0)), piece(0, 50, Some(0)), piece(62, 100, Some(0))];
    assert_eq!(path(&pieces), [(1, 0, 60), (0, 60, 62), (3, 62, 100)]);
    assert_eq!((with(&pieces, 1, 0.0), with(&pieces, 3, 0.5)), (90, 81));
}

#[test]
fn a_call_that_others_began_beside_is_off_the_path_if_it_ends_first() {
    // Streamed from 0 to 80; the last step began while it ran.
    let pieces = [piece(0, 100, None), piece(0, 80, Some(0)), piece(60, 100, Some(0))];
    assert_eq!(path(&pieces), [(0, 0, 60), (2, 60, 100)]);
    assert_eq!(with(&pieces, 1, 0.0), 100);
}

#[test]
fn the_path_goes_through_other_services() {
    let mut pieces = [piece(0, 100, None), piece(10, 90, Some(0)), piece(512, 588, Some(1)), piece(520, 580, Some(2))];
    // Another clock, half a second ahead: it is moved so that it ends with the call.
    for (piece, clock) in pieces.iter_mut().zip([0, 0, 1, 1]) {
        piece.clock = clock;
    }
    pieces[2].is_answer = true;
    assert_eq!(path(&pieces), [(0, 0, 10), (1, 10, 14), (2, 14, 22), (3, 22, 82), (2, 82, 90), (0, 90, 100)]);
    assert_eq!((tree(&pieces).clipped, with(&pieces, 3, 0.5)), (1, 70));
    // It goes on after the caller has given up: all of the call was a wait for it.
    pieces[2].to = 900 * 1_000_000;
    assert_eq!(path(&pieces)[1..4], [(2, 10, 18), (3, 18, 78), (2, 78, 90)]);
}

#[test]
fn a_child_that_outlasts_its_parent_was_waited_for_only_by_one_that_failed() {
    let mut pieces = [piece(0, 100, None), piece(10, 80, Some(0)), piece(20, 500, Some(0)), piece(30, 95, Some(2))];
    assert_eq!(path(&pieces), [(0, 0, 10), (1, 10, 80), (0, 80, 100)]);
    assert_eq!(tree(&pieces).left_out, 1);
    pieces[0].has_failed = true;
    assert_eq!(path(&pieces), [(0, 0, 20), (2, 20, 30), (3, 30, 95), (2, 95, 100)]);
    assert_eq!(tree(&pieces).clipped, 1);
    pieces[2].is_message = true;
    assert_eq!(path(&pieces), [(0, 0, 10), (1, 10, 80), (0, 80, 100)]);
}

#[test]
fn rounded_times_do_not_make_calls_parallel() {
    let pieces = [piece(0, 100, None), piece(0, 51, Some(0)), piece(50, 100, Some(0))];
    assert_eq!(path(&pieces), [(1, 0, 50), (2, 50, 100)]);
    assert_eq!(tree(&pieces).replay(|_| None).duration_ns, 100_000_000);
    assert_eq!(with(&pieces, 1, 0.5), 74);
}

#[test]
fn of_two_that_end_within_rounding_the_later_one_counts() {
    let half =
        |from: i64, to: i64, parent| Piece { from: from * 500_000, to: to * 500_000, parent, ..Piece::default() };
    let pieces = [half(0, 120, None), half(0, 101, Some(0)), half(98, 100, Some(0))];
    assert_eq!(tree(&pieces).path().first(), Some(&Stretch { piece: 1, from: 0, to: 50_500_000 }));
}

#[test]
fn a_parents_time_before_children_that_begin_together_is_its_own_once() {
    let pieces = [piece(0, 100, None), piece(10, 60, Some(0)), piece(10, 60, Some(0))];
    let own = tree(&pieces).own_ns().into_iter().filter(|(piece, _)| *piece == 0).map(|(_, ns)| ns / 1_000_000);
    assert_eq!(own.sum::<i64>(), 50);
    assert_eq!(tree(&pieces).replay(|piece| (piece == 0).then_some(0.5)).shortened_ns, 25_000_000);
}

#[test]
fn a_circle_of_parents_and_a_missing_root_have_no_path() {
    let pieces = [piece(0, 9, None), piece(1, 5, Some(2)), piece(1, 5, Some(1)), piece(1, 5, Some(77))];
    assert_eq!(path(&pieces), [(0, 0, 9)]);
    assert!(Tree::new(&pieces, 99).path().is_empty());
}

/// Numbers without a pattern (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as i64 % limit.max(1)
    }
}

/// A request of `count` spans, some of them beside each other, some sticking out of their parents. All
/// times are multiples of `unit`.
fn any(numbers: &mut Numbers, count: usize, unit: i64) -> Vec<Piece> {
    let mut pieces = vec![Piece { from: unit, to: 7_920 * unit, ..Piece::default() }];
    for i in 1..count {
        let parent = numbers.below(i as i64) as usize;
        let over = pieces[parent];
        let length = (over.to - over.from) / unit;
        let early = if numbers.below(20) == 0 { length / 3 } else { 0 };
        let late = if numbers.below(10) == 0 { length } else { 0 };
        let begin = numbers.below(length) - early;
        let took = 1 + numbers.below(length - begin + late);
        pieces.push(Piece {
            from: over.from + begin * unit,
            to: over.from + (begin + took) * unit,
            parent: Some(parent),
            clock: numbers.below(3) as usize,
            is_answer: numbers.below(4) == 0,
            is_message: numbers.below(9) == 0,
            has_failed: numbers.below(9) == 0,
        });
    }
    pieces
}

#[test]
fn the_stretches_are_the_request_exactly() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..2_000 {
        let pieces = any(&mut numbers, 2 + round % 40, 1);
        let tree = tree(&pieces);
        let path = tree.path();
        assert_eq!(path.first().map(|s| s.from), Some(pieces[0].from), "{pieces:?}");
        assert_eq!(path.last().map(|s| s.to), Some(pieces[0].to), "{pieces:?}");
        assert!(path.windows(2).all(|two| two[0].to == two[1].from), "{path:?} of {pieces:?}");
        assert_eq!(tree.replay(|_| None).duration_ns, tree.duration_ns(), "nothing changed: {pieces:?}");
    }
}

#[test]
fn a_span_off_the_path_gives_nothing_back_and_none_more_than_it_has_on_it() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let (mut off, mut partly) = (0, 0);
    for round in 0..1_000 {
        // So coarse that no overlap counts as rounding.
        let pieces = any(&mut numbers, 2 + round % 40, 1 << 30);
        let tree = tree(&pieces);
        let path = tree.path();
        for piece in 0..pieces.len() {
            let mine: i64 = path.iter().filter(|s| s.piece == piece).map(|s| s.to - s.from).sum();
            let shorter = tree.replay(|i| (i == piece).then_some(0.5));
            let saved = tree.duration_ns() - shorter.duration_ns;
            assert!(saved >= 0 && saved <= mine / 2, "{piece}: {saved} of {mine} in {pieces:?}");
            assert!(saved <= shorter.shortened_ns, "{piece}: {shorter:?} in {pieces:?}");
            off += u32::from(mine == 0 && shorter.shortened_ns > 0);
            partly += u32::from(saved > 0 && saved < mine / 2);
        }
    }
    assert!(off > 1_000 && partly > 100, "{off}, {partly}");
}

#[test]
fn a_hundred_thousand_calls_take_no_longer_each_than_a_few() {
    // One after another, all at once, and each below the last.
    let count = 100_000;
    let end = count * 10;
    let root = Piece { from: 0, to: end, ..Piece::default() };
    let all =
        |make: &dyn Fn(i64) -> Piece| -> Vec<Piece> { std::iter::once(root).chain((1..count).map(make)).collect() };
    let in_turn = all(&|i| Piece { from: i * 10, to: i * 10 + 9, parent: Some(0), ..Piece::default() });
    let at_once = all(&|i| Piece { from: i % 7, to: end - i, parent: Some(0), ..Piece::default() });
    let nested = all(&|i| Piece { from: i, to: end - i, parent: Some(i as usize - 1), ..Piece::default() });
    for (pieces, stretches) in [(in_turn, 2 * count as usize - 1), (at_once, 3), (nested, 2 * count as usize - 1)] {
        let tree = Tree::new(&pieces, 0);
        assert_eq!(tree.path().len(), stretches);
        assert_eq!(tree.replay(|_| None).duration_ns, end);
    }
}

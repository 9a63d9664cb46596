//! Heads and bodies that are wanted: the same however the bytes came, of the final response alone, and never more
//! than was asked for.

use super::*;

const HEAD: WantedParts =
    WantedParts { location: false, set_cookie: false, server_timing: false, head: true, body_bytes: 0 };

fn body(body_bytes: u32) -> WantedParts {
    WantedParts { body_bytes, ..HEAD }
}

/// What can be looked at: fields, body, and whether it is cut.
type Seen = (Vec<(String, String)>, Vec<u8>, bool);

fn seen(parser: &Parser) -> Seen {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = parser.fields().map(|(name, value)| (text(name), text(value))).collect();
    (fields, parser.body().to_vec(), parser.body_is_cut())
}

/// Takes `responses` one after another on one connection, in pieces that end at `cuts` or where a response does.
fn take(responses: &[&[u8]], wanted: WantedParts, cuts: &[usize], mut memo: Option<&mut HeadMemo>) -> Vec<Seen> {
    let mut parser = Parser::new();
    let mut outcomes = Vec::new();
    for response in responses {
        parser.begin(false, wanted);
        assert_eq!(seen(&parser), (vec![], vec![], false), "nothing is left of the one before");
        let mut from = 0;
        for &to in cuts.iter().filter(|&&cut| cut < response.len()).chain([&response.len()]) {
            assert!(parser.status() != 0 || parser.fields().count() == 0);
            let piece = &response[from..to];
            let progress = match &mut memo {
                Some(memo) => parser.feed_with(piece, memo),
                None => parser.feed(piece),
            };
            let whole = to == response.len() && !parser.closed();
            let done = Progress::Done { used: piece.len() };
            assert_eq!(progress, Ok(if whole { done } else { Progress::More }), "{from}..{to}");
            from = to;
        }
        outcomes.push(seen(&parser));
    }
    outcomes
}

/// The one outcome of `response` however it is cut: in two at every byte, in three, byte by byte; with and without
/// a memory of heads; and after itself.
fn see(response: &str, wanted: WantedParts) -> Seen {
    let bytes = response.as_bytes();
    let whole = take(&[bytes], wanted, &[], None).remove(0);
    let mut memo = HeadMemo::new();
    let all: Vec<usize> = (1..bytes.len()).collect();
    for first in 1..bytes.len() {
        for second in [first + 1, first + 7, bytes.len()] {
            let got = take(&[bytes, bytes], wanted, &[first, second], Some(&mut memo));
            assert_eq!(got, [whole.clone(), whole.clone()], "{response:?} cut at {first} and {second}");
        }
    }
    assert_eq!(take(&[bytes, bytes], wanted, &all, None), [whole.clone(), whole.clone()], "{response:?} by bytes");
    whole
}

fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn fields_are_as_sent() {
    let text = "HTTP/1.1 200 OK\r\nDate: Sun, 1: 2\r\nX-Empty:\r\nx-tabs:\t a b \t\r\nContent-Length: 2\r\nX-Empty: \r\nDate:3\r\n\r\nhi";
    let fields = pairs(&[
        ("Date", "Sun, 1: 2"),
        ("X-Empty", ""),
        ("x-tabs", "a b"),
        ("Content-Length", "2"),
        ("X-Empty", ""),
        ("Date", "3"),
    ]);
    assert_eq!(see(text, HEAD), (fields.clone(), vec![], true));
    assert_eq!(see(text, body(9)), (fields, b"hi".to_vec(), false));
    assert_eq!(see(text, WantedParts { head: false, ..body(1) }), (vec![], b"h".to_vec(), true));
    assert_eq!(see(text, WantedParts::default()), (vec![], vec![], true));
    let text = "HTTP/1.1 200 OK\nA: b\nC:d\nContent-Length: 0\n\n";
    assert_eq!(see(text, HEAD).0, pairs(&[("A", "b"), ("C", "d"), ("Content-Length", "0")]));
    assert_eq!(see("HTTP/1.1 204 \r\n\r\n", body(5)), (vec![], vec![], false));
}

#[test]
fn bodies_of_all_framings() {
    let long: String = ('a'..='z').collect();
    for (head, framed, whole) in [
        ("Content-Length: 26", long.clone(), long.as_str()),
        ("Content-Length: 0", String::new(), ""),
        ("Transfer-Encoding: chunked", format!("1a\r\n{long}\r\n0\r\n\r\n"), &long),
        (
            "Transfer-Encoding: chunked",
            format!("1\r\na\r\n2;x=y\r\nbc\r\n0017\r\n{}\r\n0\r\nTrailer: t\r\n\r\n", &long[3..]),
            &long,
        ),
        ("Transfer-Encoding: chunked", "1\n\n\n0\n\n".to_owned(), "\n"),
        ("Transfer-Encoding: chunked", "4\r\n\r\n\r\n\r\n0\r\n\r\n".to_owned(), "\r\n\r\n"),
        ("Transfer-Encoding: chunked", "0\r\n\r\n".to_owned(), ""),
        ("Connection: close", long.clone(), &long),
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{framed}");
        let name = head.split_once(": ").expect("a field");
        for limit in [1, 2, 3, 25, 26, 27, u32::MAX] {
            let kept = &whole[..whole.len().min(limit as usize)];
            let expected = (pairs(&[name]), kept.as_bytes().to_vec(), kept != whole);
            assert_eq!(see(&text, body(limit)), expected, "{framed:?} up to {limit}");
        }
    }
}

#[test]
fn interim_heads_are_not_seen() {
    let text = "HTTP/1.1 103 Early\r\nLink: x\r\nA: early\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 1\r\n\r\n.";
    assert_eq!(see(text, body(9)), (pairs(&[("A", "b"), ("Content-Length", "1")]), b".".to_vec(), false));
    let mut parser = Parser::new();
    parser.begin(false, HEAD);
    assert_eq!(parser.feed(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"), Ok(Progress::More));
    assert_eq!(parser.fields().count(), 0);
}

#[test]
fn the_answer_to_head_has_fields() {
    let mut parser = Parser::new();
    let mut memo = HeadMemo::new();
    for head in ["HTTP/1.1 200 OK\r\nContent-Length: 9", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"] {
        for _ in 0..2 {
            parser.begin(true, body(9));
            let text = format!("{head}\r\n\r\n");
            assert_eq!(parser.feed_with(text.as_bytes(), &mut memo), Ok(Progress::Done { used: text.len() }));
            assert_eq!((parser.fields().count(), parser.body(), parser.body_is_cut()), (1, &b""[..], false));
        }
    }
}

#[test]
fn a_remembered_head_shows_its_own_values() {
    let mut memo = HeadMemo::new();
    let mut parser = Parser::new();
    for (round, wanted) in
        [WantedParts::default(), HEAD, body(3), HEAD, WantedParts::default(), body(2)].into_iter().enumerate()
    {
        let text = format!("HTTP/1.1 200 OK\r\nDate: {round}\r\nContent-Length: {round}\r\n\r\n{}", "x".repeat(round));
        if round > 0 {
            assert!(memo.recall(text.as_bytes(), wanted).is_some(), "this is what the test is about");
        }
        parser.begin(false, wanted);
        assert_eq!(parser.feed_with(text.as_bytes(), &mut memo), Ok(Progress::Done { used: text.len() }));
        let round_text = round.to_string();
        let fields = pairs(&[("Date", &round_text), ("Content-Length", &round_text)]);
        let kept = round.min(wanted.body_bytes as usize);
        let expected = (if wanted.head { fields } else { vec![] }, vec![b'x'; kept], round > kept);
        assert_eq!(seen(&parser), expected, "{round}");
    }
}

#[test]
fn memory_is_bounded_by_what_is_wanted() {
    let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\nTransfer-Encoding: chunked\r\n\r\n", "a".repeat(60_000));
    let mut response = head.into_bytes();
    for _ in 0..300 {
        response.extend_from_slice(b"400\r\n");
        response.extend_from_slice(&[b'b'; 1_024]);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\n\r\n");
    for size in [1, 777, response.len()] {
        let mut parser = Parser::new();
        parser.begin(false, body(100_000));
        let mut done = false;
        for piece in response.chunks(size) {
            done = parser.feed(piece).expect("fine") != Progress::More;
        }
        assert!(done && parser.body_is_cut());
        assert_eq!((parser.body().len(), parser.body_bytes()), (100_000, 300 * 1_024));
        let (head, body_capacity) = parser.kept.capacities();
        assert!(head <= MAX_HEAD_BYTES && body_capacity <= 100_000, "{head} {body_capacity}");
        // The next one wants as much: the buffer stays. The one after wants little: it goes.
        parser.begin(false, body(100_000));
        assert_eq!(parser.kept.capacities(), (0, body_capacity));
        parser.begin(false, body(10));
        assert_eq!(parser.kept.capacities(), (0, 0));
    }
}

#[test]
fn in_its_stride_nothing_is_allocated() {
    let mut parser = Parser::new();
    let mut memo = HeadMemo::new();
    let mut buffers = None;
    for round in 0..100 {
        let length = 5_000 + round % 7;
        let head = format!("HTTP/1.1 200 OK\r\nDate: {round}\r\nContent-Length: {length}\r\n\r\n");
        parser.begin(false, body(5_000));
        assert_eq!(parser.feed_with(head.as_bytes(), &mut memo), Ok(Progress::More));
        for piece in vec![b'x'; length].chunks(1_000) {
            parser.feed_with(piece, &mut memo).expect("fine");
        }
        assert_eq!(parser.body(), [b'x'; 5_000]);
        let now = (parser.body().as_ptr(), parser.kept.capacities());
        if round > 10 {
            assert_eq!(*buffers.get_or_insert(now), now);
        }
    }
}

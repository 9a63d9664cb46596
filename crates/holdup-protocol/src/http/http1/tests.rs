//! Responses whole, cut, hostile. What comes out must not depend on how they were cut.

use super::*;

const BOTH: WantedParts =
    WantedParts { location: true, set_cookie: true, server_timing: true, head: false, body_bytes: 0 };

/// Feeds `response` in pieces of `size` bytes: what was used in all, if it ended, and the parser.
fn feed_as(head_request: bool, response: &[u8], size: usize) -> (Result<Option<usize>, Malformed>, Parser) {
    let mut parser = Parser::new();
    parser.begin(head_request, BOTH);
    let mut fed = 0;
    for piece in response.chunks(size) {
        match parser.feed(piece) {
            Ok(Progress::Done { used }) => return (Ok(Some(fed + used)), parser),
            Ok(Progress::More) => fed += piece.len(),
            Err(error) => return (Err(error), parser),
        }
    }
    (Ok(None), parser)
}

/// The outcome, which is the same however the response is cut.
fn feed(response: &str) -> (Result<Option<usize>, Malformed>, Parser) {
    let (whole, parser) = feed_as(false, response.as_bytes(), response.len());
    for size in 1..response.len() {
        let (cut, in_pieces) = feed_as(false, response.as_bytes(), size);
        assert_eq!(cut, whole, "{response:?} by {size}");
        if whole.is_ok() {
            assert_eq!(in_pieces.head, parser.head, "{response:?} by {size}");
            assert_eq!(in_pieces.body_bytes(), parser.body_bytes(), "{response:?} by {size}");
            assert_eq!(in_pieces.keep_alive(), parser.keep_alive(), "{response:?} by {size}");
        }
    }
    (whole, parser)
}

#[test]
fn whole_responses_however_they_are_cut() {
    for (text, left_over, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0, 5),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 2", 10, 5),
        ("HTTP/1.1 204 No Content\r\n\r\n", 0, 0),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
            0,
            31,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\nTrailer: x\r\nB: y\r\n\r\nrest", 4, 0),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.", 0, 1),
        ("HTTP/1.1 103 Early\r\nLocation: x\r\n\r\nHTTP/1.1 204 \r\n\r\n", 0, 0),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nrest", 4, 0),
        // Line ends without CR are to be read as well (RFC 9112, section 2.2).
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", 0, 2),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhi\n0\n\n", 0, 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length:  2 \r\n\r\nhi", 0, 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: identity\r\n\r\nhi", 0, 2),
        ("HTTP/1.1 200 OK\r\nX: \u{ff}\u{e9}\r\nContent-Length: 0\r\n\r\n", 0, 0),
    ] {
        let (result, parser) = feed(text);
        assert_eq!(result, Ok(Some(text.len() - left_over)), "{text:?}");
        assert_eq!(parser.body_bytes(), body, "{text:?}");
        assert_eq!(parser.head().location, None, "{text:?}");
        assert!(!parser.closed(), "{text:?}");
    }
}

#[test]
fn wanted_fields_are_kept_and_cleared() {
    let text = "HTTP/1.1 302 Found\r\nSET-COOKIE: a=1\r\nlocation: /b\r\nSet-Cookie: c=2\r\nContent-Length: 0\r\n\r\n";
    let (_, mut parser) = feed(text);
    assert_eq!(parser.status(), 302);
    assert_eq!(parser.head().location.as_deref(), Some(&b"/b"[..]));
    assert_eq!(parser.head().set_cookie.iter().map(|c| &c[..]).collect::<Vec<_>>(), [b"a=1", b"c=2"]);
    parser.begin(false, WantedParts::default());
    assert_eq!(parser.head(), &Head::default());
    let end = Progress::Done { used: text.len() };
    assert_eq!(parser.feed(text.as_bytes()), Ok(end));
    assert_eq!(parser.head(), &Head { status: 302, ..Head::default() });
    // A head that was remembered when nothing was wanted doesn't hide what is wanted now.
    let mut memo = HeadMemo::new();
    for wanted in [WantedParts::default(), BOTH, WantedParts::default(), BOTH] {
        parser.begin(false, wanted);
        assert_eq!(parser.feed_with(text.as_bytes(), &mut memo), Ok(end));
        assert_eq!(parser.head().location.is_some(), wanted.location);
        assert_eq!(parser.head().set_cookie.len(), if wanted.set_cookie { 2 } else { 0 });
    }
}

#[test]
fn a_remembered_head_means_what_it_meant() {
    let mut memo = HeadMemo::new();
    let mut parser = Parser::new();
    let first = b"HTTP/1.1 200 OK\r\nDate: 1\r\nContent-Length: 3\r\n\r\nabc";
    let other = b"HTTP/1.1 500 No\r\nDate: 1\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    for response in [&first[..], first, other, first, other, other] {
        for head_request in [false, true] {
            parser.begin(head_request, WantedParts::default());
            let body = if head_request { 0 } else { if response == first { 3 } else { 1 } };
            let all = response.len() - if head_request { if response == first { 3 } else { 1 } } else { 0 };
            assert_eq!(parser.feed_with(response, &mut memo), Ok(Progress::Done { used: all }));
            assert_eq!(parser.status(), if response == first { 200 } else { 500 });
            assert_eq!(parser.keep_alive(), response == first);
            assert_eq!((parser.expected_body(), parser.body_bytes()), (Some(body), body));
        }
    }
    // An interim head may be remembered too: the real one still follows.
    for _ in 0..2 {
        parser.begin(false, WantedParts::default());
        let both = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
        assert_eq!(parser.feed_with(both, &mut memo), Ok(Progress::Done { used: both.len() }));
        assert_eq!(parser.status(), 204);
        parser.begin(false, WantedParts::default());
        assert_eq!(parser.feed_with(b"HTTP/1.1 100 Continue\r\n\r\n", &mut memo), Ok(Progress::More));
        assert_eq!(parser.status(), 0);
    }
}

#[test]
fn invalid_responses_are_refused() {
    for bad in [
        "SSH-2.0-OpenSSH\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "\0",
        "HTTP/2.0 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n",
        "HTTP/1.1 200 OK\rContent-Length: 0\r\n\r\n",
    ] {
        assert_eq!(feed(bad).0, Err(Malformed::NotHttp), "{bad:?}");
    }
}

#[test]
fn lengths_that_contradict_or_are_none() {
    for bad in [
        "Content-Length: -1",
        "Content-Length: +1",
        "Content-Length: 0x1",
        "Content-Length: 1 1",
        "Content-Length:",
        "Content-Length: 1,",
        "Content-Length: 99999999999999999999",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1, 2",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, gzip",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{bad}\r\n\r\n0\r\n\r\n");
        assert_eq!(feed(&text).0, Err(Malformed::BadFraming), "{bad:?}");
    }
}

#[test]
fn chunks_that_are_none() {
    for bad in [
        "zz\r\n",
        "\r\n",
        ";x\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "-5\r\n",
        "0x5\r\n",
        "ffffffffffffffff\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5\r\nhello5\r\n",
        "5\r\nhello\r\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "0\r\nA: b\rc\r\n\r\n",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{bad}");
        assert_eq!(feed(&text).0, Err(Malformed::BadFraming), "{bad:?}");
    }
}

#[test]
fn two_ways_to_tell_the_end_are_not_trusted_further() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 30",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked",
    ] {
        let (result, parser) = feed(&format!("{head}\r\n\r\n1\r\na\r\n0\r\n\r\nmore"));
        assert_eq!(result, Ok(Some(head.len() + 15)), "the chunks count: {head:?}");
        assert!(!parser.keep_alive(), "{head:?}");
    }
}

#[test]
fn when_the_connection_lives_on() {
    for (head, keep_alive) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0", true),
        ("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0", false),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 0", false),
        ("HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: y ,close\r\nContent-Length: 0", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0", true),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket", false),
    ] {
        let (result, parser) = feed(&format!("{head}\r\n\r\n"));
        assert_eq!(result, Ok(Some(head.len() + 4)), "{head:?}");
        assert_eq!(parser.keep_alive(), keep_alive, "{head:?}");
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    for head in
        ["HTTP/1.0 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1"]
    {
        let (result, parser) = feed(&format!("{head}\r\n\r\nabc"));
        assert_eq!(result, Ok(None));
        assert!(parser.closed() && !parser.keep_alive(), "{head:?}");
        assert_eq!((parser.expected_body(), parser.body_bytes()), (None, 3));
    }
    // One that was cut off is no regular end.
    let (result, parser) = feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!((result, parser.closed()), (Ok(None), false));
    assert_eq!((parser.expected_body(), parser.body_bytes()), (Some(5), 2));
}

#[test]
fn the_answer_to_head_has_no_body() {
    for head in ["HTTP/1.1 200 OK\r\nContent-Length: 9", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"] {
        let text = format!("{head}\r\n\r\n");
        for size in [1, 7, text.len()] {
            let (result, parser) = feed_as(true, text.as_bytes(), size);
            assert_eq!(result, Ok(Some(text.len())));
            assert!(parser.keep_alive());
        }
    }
}

#[test]
fn heads_without_end_are_bounded() {
    let one_line = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(2 * MAX_HEAD_BYTES));
    let lines = format!("HTTP/1.1 200 OK\r\n{}", "a:\r\n".repeat(MAX_HEAD_BYTES / 2));
    let trailers = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}", "a:\r\n".repeat(20_000));
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
    let fields = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a:\r\n".repeat(MAX_HEADERS + 1));
    for text in [one_line, lines, trailers, interim, fields] {
        for size in [1, 4_096, text.len()] {
            let (result, parser) = feed_as(false, text.as_bytes(), size);
            assert_eq!(result, Err(Malformed::HeadTooLarge), "{:?}... by {size}", &text[..40]);
            assert!(parser.pieces.capacity() <= 2 * MAX_HEAD_BYTES);
        }
    }
    let extension = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;{}", "a".repeat(MAX_HEAD_BYTES));
    assert_eq!(feed_as(false, extension.as_bytes(), 1_000).0, Err(Malformed::BadFraming));
}

#[test]
fn the_largest_head_is_the_same_in_one_piece_and_in_many() {
    let around = "HTTP/1.1 204 No\r\nX: \r\n\r\n".len();
    for (length, fine) in [(MAX_HEAD_BYTES, true), (MAX_HEAD_BYTES + 1, false)] {
        let text = format!("HTTP/1.1 204 No\r\nX: {}\r\n\r\n", "a".repeat(length - around));
        let expected = if fine { Ok(Some(length)) } else { Err(Malformed::HeadTooLarge) };
        for size in [1, 1_000, MAX_HEAD_BYTES, length] {
            assert_eq!(feed_as(false, text.as_bytes(), size).0, expected, "{length} by {size}");
        }
    }
}

/// `Server-Timing` is picked out of every final head, a recognised one too, however it is cut; and it is bounded.
#[test]
fn server_timing_is_picked_out() {
    let response = |timing: &str| {
        format!(
            "HTTP/1.1 103 Early\r\nServer-Timing: early\r\n\r\nHTTP/1.1 200 OK\r\n{timing}Content-Length: 0\r\n\r\n"
        )
    };
    let two = response("Server-Timing: db;dur=1\r\nSERVER-TIMING:  app;dur=2 \r\n");
    let (_, parser) = feed(&two);
    assert_eq!(parser.head().server_timing, b"db;dur=1,app;dur=2");
    let (_, parser) = feed(&response(""));
    assert_eq!(parser.head().server_timing, b"");
    let mut memo = HeadMemo::new();
    let mut parser = Parser::new();
    let values = ["1", "22", "", "333"];
    for wanted in [BOTH, WantedParts { server_timing: false, ..BOTH }, BOTH] {
        for value in values {
            let text = format!("HTTP/1.1 200 OK\r\nserver-timing: db;dur={value}\r\nContent-Length: 0\r\n\r\n");
            parser.begin(false, wanted);
            assert_eq!(parser.feed_with(text.as_bytes(), &mut memo), Ok(Progress::Done { used: text.len() }));
            let expected = if wanted.server_timing { format!("db;dur={value}") } else { String::new() };
            assert_eq!(parser.head().server_timing, expected.as_bytes());
        }
    }
    let (_, parser) =
        feed_as(false, response(&format!("Server-Timing: {}\r\n", "a".repeat(1_000)).repeat(5)).as_bytes(), 9_999);
    assert_eq!(parser.head().server_timing.len(), 2_001);
}

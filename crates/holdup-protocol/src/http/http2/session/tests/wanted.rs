//! Heads and bodies that are looked at: every field of a final head, and every byte of a body, however they come.

use super::*;

/// What was handed on of each stream: its fields as lines, and its body.
type Seen = Vec<(u32, Vec<String>, Vec<u8>)>;

/// Feeds `bytes` in pieces that end at `cuts`, all fields being wanted.
fn see_cut(count: u32, bytes: &[u8], cuts: &[usize], head: bool) -> Seen {
    let wanted = WantedParts { head, ..WantedParts::default() };
    let mut session = Session::new(Config { max_streams: 10, wanted });
    session.allowed_streams = u32::MAX;
    let mut seen: Seen = Vec::new();
    for tag in 0..count {
        assert!(session.send(&template(None), tag));
        seen.push((tag, vec![], vec![]));
    }
    let mut from = 0;
    for &to in cuts.iter().chain([&bytes.len()]) {
        let mut sink = |event: Event<'_>| match event {
            Event::Status { tag, status } => seen[tag as usize].1.push(status.to_string()),
            Event::Header { tag, name, value } => {
                let line = [name, b"=", value].concat();
                seen[tag as usize].1.push(String::from_utf8_lossy(&line).into_owned());
            }
            Event::Data { tag, bytes } => seen[tag as usize].2.extend_from_slice(bytes),
            Event::End { tag } => seen[tag as usize].1.push("end".to_owned()),
            other => panic!("{other:?}"),
        };
        session.feed(&bytes[from..to], &mut sink).expect("a good server");
        from = to;
    }
    seen
}

/// The same whole, cut in two at each byte, and byte by byte.
fn see(count: u32, bytes: &[u8], head: bool) -> Seen {
    let whole = see_cut(count, bytes, &[], head);
    for cut in 1..bytes.len() {
        assert_eq!(see_cut(count, bytes, &[cut], head), whole, "cut at {cut}");
    }
    assert_eq!(see_cut(count, bytes, &(1..bytes.len()).collect::<Vec<_>>(), head), whole, "byte by byte");
    whole
}

#[test]
fn every_field_and_every_byte() {
    let fields = [OK, ("date", "1"), ("content-length", "6"), ("x-empty", ""), ("location", "/"), ("set-cookie", "a")];
    let padded = [&[2], &b"cd"[..], &[9, 9]].concat();
    let bytes = settled(&[
        head(1, 0, &[(":status", "103"), ("link", "early")]),
        head(1, 0, &fields),
        frame(kind::DATA, 0, 1, b"ab"),
        // The same block again has to be handed on again, and another body lies between the first one's pieces.
        head(3, 0, &fields),
        frame(kind::DATA, flag::END_STREAM, 3, b"ABCDEF"),
        frame(kind::DATA, flag::PADDED, 1, &padded),
        frame(kind::DATA, 0, 1, b"ef"),
        head(1, flag::END_STREAM, &[("trailer", "t")]),
        head(5, flag::END_STREAM, &[OK]),
        head(7, flag::END_STREAM, &[OK]),
    ]);
    let lines: Vec<String> = ["200", "date=1", "content-length=6", "x-empty=", "location=/", "set-cookie=a", "end"]
        .map(str::to_owned)
        .into();
    let bare = vec!["200".to_owned(), "end".to_owned()];
    let expected = |lines: Vec<String>| {
        vec![
            (0, lines.clone(), b"abcdef".to_vec()),
            (1, lines, b"ABCDEF".to_vec()),
            (2, bare.clone(), vec![]),
            (3, bare.clone(), vec![]),
        ]
    };
    assert_eq!(see(4, &bytes, true), expected(lines));
    assert_eq!(see(4, &bytes, false), expected(bare.clone()), "fields that nobody wants");
}

#[test]
fn a_head_in_pieces_and_the_answer_to_head() {
    let long = block(&[OK, ("x", &"y".repeat(300)), ("content-length", "5")]);
    let bytes = settled(&[
        frame(kind::HEADERS, flag::END_STREAM, 1, &long[..9]),
        frame(kind::CONTINUATION, 0, 1, &long[9..200]),
        frame(kind::CONTINUATION, flag::END_HEADERS, 1, &long[200..]),
    ]);
    let request = Request { method: "HEAD", scheme: "http", authority: "a", path: "/", headers: &[], body: None };
    for cut in 1..bytes.len() {
        let wanted = WantedParts { head: true, ..WantedParts::default() };
        let mut session = Session::new(Config { max_streams: 1, wanted });
        assert!(session.send(&Template::new(&request), 0));
        let mut log = Log::default();
        for piece in [&bytes[..cut], &bytes[cut..]] {
            session.feed(piece, &mut |event| log.add(event)).expect("a good server");
        }
        let x = format!("0 x: {}", "y".repeat(300));
        assert_eq!(log.lines, ["0 200", &x, "0 content-length: 5", "0 end"], "cut at {cut}");
    }
}

//! Bodies in both directions, as the windows allow.

use super::*;

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn feed(session: &mut Session, bytes: &[u8]) {
    session.feed(bytes, &mut |event| panic!("{event:?}")).expect("fine");
}

/// Body bytes of a stream that wait to be written, and whether they are the last; all frames are within bounds.
fn sent(session: &mut Session, stream: u32) -> (usize, bool) {
    let frames = written(session);
    let of: Vec<_> = frames.iter().filter(|(h, _)| h.kind == kind::DATA && h.stream == stream).collect();
    assert!(of.iter().all(|(h, p)| h.length <= MAX_PAYLOAD && p.iter().all(|&byte| byte == b'u')));
    (of.iter().map(|(h, _)| h.length).sum(), of.last().is_some_and(|(h, _)| h.has(flag::END_STREAM)))
}

#[test]
fn a_small_body_goes_with_its_head() {
    let mut session = session(0);
    assert!(session.send(&template(Some(b"uuu")), 1));
    let frames = written(&mut session);
    assert_eq!(frames.len(), 2);
    assert_eq!((frames[0].0.flags, frames[0].0.stream), (flag::END_HEADERS, 1));
    let data = FrameHeader { length: 3, kind: kind::DATA, flags: flag::END_STREAM, stream: 1 };
    assert_eq!(frames[1], (data, b"uuu".to_vec()));
}

#[test]
fn a_large_body_waits_for_the_windows() {
    let mut session = session(0);
    feed(&mut session, &settings(&[]));
    let body = template(Some(&[b'u'; 100_000]));
    assert!(session.send(&body, 1));
    assert_eq!(sent(&mut session, 1), (65_535, false), "both windows are used up");
    feed(&mut session, &window_update(1, 1_000));
    assert_eq!(sent(&mut session, 1), (0, false));
    feed(&mut session, &window_update(0, 500));
    assert_eq!(sent(&mut session, 1), (500, false));
    // Windows that get smaller may be below zero for a while.
    feed(&mut session, &settings(&[(setting::INITIAL_WINDOW_SIZE, 65_535 - 10_000)]));
    feed(&mut session, &window_update(0, 1 << 20));
    assert_eq!(sent(&mut session, 1), (0, false));
    feed(&mut session, &window_update(1, 9_500));
    assert_eq!(sent(&mut session, 1), (0, false), "at zero");
    feed(&mut session, &window_update(1, 7));
    assert_eq!(sent(&mut session, 1), (7, false));
    feed(&mut session, &settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]));
    assert_eq!(sent(&mut session, 1), (100_000 - 65_535 - 500 - 7, true));
    // Several share the connection's window, and a head goes out whatever the windows are.
    assert!(session.send(&body, 2));
    assert_eq!(sent(&mut session, 3), (100_000, true));
}

#[test]
fn bodies_behind_each_other() {
    let mut session = session(0);
    feed(&mut session, &settings(&[(setting::INITIAL_WINDOW_SIZE, 10)]));
    assert!(session.send(&template(Some(&[b'u'; 20])), 1) && session.send(&template(Some(b"uuuuu")), 2));
    let waiting = session.output().to_vec();
    assert_eq!(sent(&mut session, 1), (10, false));
    assert!(waiting.ends_with(&frame(kind::DATA, flag::END_STREAM, 3, b"uuuuu")), "the second isn't held up");
    // Answered before it was asked whole: the rest isn't sent.
    let mut log = Log::default();
    session.feed(&head(1, flag::END_STREAM, &[OK]), &mut |event| log.add(event)).expect("fine");
    assert_eq!(log.lines, ["1 200", "1 end"]);
    feed(&mut session, &window_update(1, 100));
    let frames = written(&mut session);
    assert_eq!(
        frames.iter().filter(|(h, _)| h.stream == 1).map(|(h, _)| h.kind).collect::<Vec<_>>(),
        [kind::RST_STREAM]
    );
}

#[test]
fn a_huge_body_does_not_fill_memory() {
    let mut session = session(0);
    feed(&mut session, &settings(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]));
    feed(&mut session, &window_update(0, (1 << 31) - 1 - 65_535));
    assert!(session.send(&template(Some(&vec![b'u'; 3_000_000])), 1));
    let mut total = 0;
    while !session.output().is_empty() {
        assert!(session.output().len() < 300_000, "{}", session.output().len());
        total += session.output().len().min(10_000);
        session.consumed(10_000);
    }
    assert!(total > 3_000_000);
    session.cancel(1);
    assert!(session.send(&template(Some(b"u")), 2));
}

#[test]
fn a_window_beyond_its_limit() {
    let most = (1 << 31) - 1;
    let mut session = session(0);
    feed(&mut session, &settings(&[]));
    let body = template(Some(&[b'u'; 100_000]));
    assert!(session.send(&body, 1) && session.send(&body, 2));
    // Nothing is left of the connection's window: those of the streams stay as they are made.
    feed(&mut session, &window_update(1, most));
    let mut log = Log::default();
    session.feed(&window_update(1, 1), &mut |event| log.add(event)).expect("the stream's fault");
    assert_eq!(log.lines, ["1 reset 3"]);
    feed(&mut session, &window_update(3, most - 65_535));
    let larger = settings(&[(setting::INITIAL_WINDOW_SIZE, 65_536)]);
    assert_eq!(session.feed(&larger, &mut |_| ()), Err(Error::FlowControl));
}

#[test]
fn the_servers_windows_are_opened_again() {
    let mut session = session(1);
    session.feed(&settled(&[head(1, 0, &[OK])]), &mut |_| ()).expect("fine");
    written(&mut session);
    let piece = data(1, 0, MAX_PAYLOAD);
    let (mut streams, mut connection, mut received) = (0_u64, 0_u64, 0_u64);
    // Twice as much as the windows were to begin with.
    while received < 2 * u64::from(WINDOW) {
        // The bytes themselves make no difference: only headers are read here.
        session.feed(&piece, &mut |_| ()).expect("fine");
        received += MAX_PAYLOAD as u64;
        for (header, payload) in written(&mut session) {
            assert_eq!(header.kind, kind::WINDOW_UPDATE);
            let bytes = u64::from(u32::from_be_bytes(payload.try_into().expect("four")));
            if header.stream == 0 { connection += bytes } else { streams += bytes }
        }
        assert!(received <= u64::from(WINDOW) + streams.min(connection), "never closed");
    }
}

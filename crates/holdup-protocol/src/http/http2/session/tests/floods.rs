//! Servers that send without end, or anything at all.

use super::*;

/// Feeds `bytes` again and again without writing anything: the error it ends in, and that little was kept.
fn flood(count: u32, before: &[u8], bytes: &[u8]) -> Option<Error> {
    let mut session = session(count);
    session.feed(&settled(&[before.to_vec()]), &mut |_| ()).expect("a good beginning");
    for _ in 0..50_000 {
        let result = session.feed(bytes, &mut |_| ());
        let kept = session.output().len() + session.partial.capacity();
        assert!(kept + session.open_head.as_ref().map_or(0, |head| head.block.capacity()) < 300_000);
        if let Err(error) = result {
            return Some(error);
        }
    }
    None
}

#[test]
fn floods_are_ended() {
    let open = head(1, 0, &[OK]);
    for (what, before, bytes) in [
        ("pings", vec![], frame(kind::PING, 0, 0, &[0; 8])),
        ("answers to pings", vec![], frame(kind::PING, flag::ACK, 0, &[0; 8])),
        ("settings", vec![], settings(&[(setting::INITIAL_WINDOW_SIZE, 7)])),
        ("answers to settings", vec![], frame(kind::SETTINGS, flag::ACK, 0, &[])),
        ("empty data", open.clone(), data(1, 0, 0)),
        ("padding", open.clone(), frame(kind::DATA, flag::PADDED, 1, &[2, 0, 0])),
        ("empty data of a stream that is over", head(1, flag::END_STREAM, &[OK]), data(1, 0, 0)),
        ("empty ends of a stream that is over", head(1, flag::END_STREAM, &[OK]), data(1, flag::END_STREAM, 0)),
        ("heads of a stream that is over", head(1, flag::END_STREAM, &[OK]), open.clone()),
        ("resets", head(1, flag::END_STREAM, &[OK]), frame(kind::RST_STREAM, 0, 1, &[0; 4])),
        ("interim heads", vec![], head(1, 0, &[(":status", "103")])),
        ("priorities", vec![], frame(kind::PRIORITY, 0, 1, &[0; 5])),
        ("window updates", vec![], frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        ("extensions", vec![], frame(200, 0, 1, &[0; 5])),
        ("goaway", vec![], frame(kind::GOAWAY, 0, 0, &[0; 8])),
        ("empty parts of a head", frame(kind::HEADERS, 0, 1, &[]), frame(kind::CONTINUATION, 0, 1, &[])),
    ] {
        assert_eq!(flood(1, &before, &bytes), Some(Error::TooManyControlFrames), "{what}");
    }
    let part = frame(kind::CONTINUATION, 0, 1, &[0x88; 10_000]);
    assert_eq!(flood(1, &frame(kind::HEADERS, 0, 1, &[]), &part), Some(Error::HeadTooLarge));
    // Bytes of a body are no flood.
    assert_eq!(flood(1, &open, &data(1, 0, 1)), None);
}

/// Answers that are taken are no flood, as long as requests are made.
#[test]
fn a_server_that_pings_now_and_then() {
    let mut session = session(0);
    session.feed(&settings(&[]), &mut |_| ()).expect("fine");
    for n in 0..20_000 {
        assert!(session.send(&template(None), n));
        let bytes = [frame(kind::PING, 0, 0, &[0; 8]), head(2 * n + 1, flag::END_STREAM, &[OK])].concat();
        session.feed(&bytes, &mut |_| ()).expect("fine");
        written(&mut session);
    }
}

/// A small generator of numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % limit
    }
}

/// Frames of all kinds, some of them bent: nothing panics, and how they are cut makes no difference.
#[test]
fn anything_cut_anyhow() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..3_000 {
        let mut bytes = settings(&[]);
        for _ in 0..random.below(12) {
            let stream = random.below(5) as u32 * 2 + 1;
            let status = ["200", "103", "302", "x"][random.below(4)];
            let last = if random.below(3) == 0 { flag::END_STREAM } else { 0 };
            let fields = [(":status", status), ("location", "/"), ("content-length", "3")];
            let payload: Vec<u8> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
            bytes.extend(match random.below(10) {
                0..3 => head(stream, last, &fields[..1 + random.below(3)]),
                3 => data(stream, last, random.below(20)),
                4 => frame(kind::DATA, last | flag::PADDED, stream, &payload),
                5 => frame(kind::WINDOW_UPDATE, 0, stream - 1, &[0, 0, 1, 1]),
                6 => settings(&[(random.below(8) as u16, random.below(70_000) as u32)]),
                7 => frame(kind::GOAWAY, 0, 0, &[0, 0, 0, stream as u8, 0, 0, 0, 0]),
                8 => frame(kind::PING, 0, 0, &[1; 8]),
                _ => frame(random.below(12) as u8, random.below(256) as u8, stream, &payload),
            });
        }
        if random.below(2) == 0 {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        let begun = || {
            let mut session = session(2);
            assert!(session.send(&template(Some(&[b'u'; 70_000])), 50));
            session
        };
        let whole = feed_cut(begun(), &bytes, std::iter::empty());
        for _ in 0..4 {
            let mut cuts: Vec<usize> = (0..random.below(8)).map(|_| random.below(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            assert_eq!(feed_cut(begun(), &bytes, cuts.iter().copied()), whole, "round {round}, cut at {cuts:?}");
        }
    }
}

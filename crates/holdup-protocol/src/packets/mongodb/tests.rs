//! Conversations of MongoDB, message by message: by the manual where no server here sends them.

use super::*;
use crate::packets::conversation::Reader as _;
use crate::packets::statement::Statements;
use crate::packets::turn::Turn;
use holdup_mongodb::Writer;

const TRACE: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";

/// A message of one kind.
fn frame(number: i32, answers: i32, kind: i32, rest: &[u8]) -> Vec<u8> {
    let head = [rest.len() as i32 + 16, number, answers, kind];
    [&head.map(i32::to_le_bytes).concat()[..], rest].concat()
}

/// An `OP_MSG` with these flags, a document, and lists.
fn message(number: i32, answers: i32, flags: u32, body: Writer, lists: &[(&str, &[Writer])]) -> Vec<u8> {
    let mut rest = [&flags.to_le_bytes()[..], &[0], &body.finish()].concat();
    for (name, items) in lists {
        let items: Vec<u8> = items.iter().flat_map(|item| item.clone().finish()).collect();
        rest.push(1);
        rest.extend((items.len() as u32 + 4 + name.len() as u32 + 1).to_le_bytes());
        rest.extend(name.as_bytes());
        rest.push(0);
        rest.extend(items);
    }
    if flags & 1 != 0 {
        rest.extend([0xab; 4]);
    }
    frame(number, answers, 2013, &rest)
}

fn asked(number: i32, body: Writer) -> Vec<u8> {
    message(number, 0, 0, body.text("$db", "shop"), &[])
}

fn answer(answers: i32, body: Writer) -> Vec<u8> {
    message(1000 + answers, answers, 0, body, &[])
}

fn fine() -> Writer {
    Writer::new().double("ok", 1.0)
}

fn find(number: i32) -> Vec<u8> {
    asked(number, Writer::new().text("find", "orders").document("filter", Writer::new().text("status", "canary")))
}

/// Steps of a conversation: `>` what the client sends, `<` what the server does; a step is a segment,
/// 10 ns apart. Bytes of a step beyond `kept` are not stored.
fn talk(steps: &[(char, Vec<u8>)], kept: usize, in_full: bool) -> Vec<Turn> {
    let mut mongodb = Mongodb::new(true);
    let (mut statements, mut turns) = (Statements { in_full, ..Statements::default() }, Vec::new());
    for (n, (side, bytes)) in steps.iter().enumerate() {
        let at = 10 * (n as i64 + 1);
        let stored = &bytes[..kept.min(bytes.len())];
        let piece = Piece { at, bytes: stored, cut: (bytes.len() - stored.len()) as u32 };
        let mut to = Sinks { statements: &mut statements, turns: &mut turns };
        match side {
            '>' => mongodb.take(true, &piece, &mut to),
            '<' => mongodb.take(false, &piece, &mut to),
            side => mongodb.lost(*side == 'c', at, bytes.len() as u32, &mut to),
        }
    }
    mongodb.talk().pending.finish_all(Outcome::Unfinished, Outcome::Unfinished, None, &mut turns);
    if let Some(opaque) = &mut mongodb.talk().opaque {
        opaque.pending.finish_all(Outcome::Ok, Outcome::Unfinished, None, &mut turns);
    }
    turns
}

fn heard(steps: &[(char, Vec<u8>)]) -> Vec<Turn> {
    talk(steps, usize::MAX, false)
}

fn text(turn: &Turn) -> &str {
    turn.sent.statement.as_ref().map_or("", |statement| &statement.digest_text)
}

#[test]
fn greeting_login_find_and_error() {
    let greeting = Writer::new().int("ismaster", 1).document("client", Writer::new().text("driver", "canary"));
    let query = [&[0; 4][..], b"admin.$cmd\0", &[0; 4], &[0xff; 4], &greeting.finish()].concat();
    let hello = Writer::new().bool("ismaster", true).int("connectionId", 71).double("ok", 1.0);
    let reply = [&[8, 0, 0, 0][..], &[0; 12], &[1, 0, 0, 0], &hello.finish()].concat();
    let traced = format!("traceparent='00-{TRACE}-c532cb4098ac3dd2-01'");
    let filter = Writer::new().text("status", "canary").document("total", Writer::new().int("$gt", 5));
    let traced = Writer::new().text("find", "orders").document("filter", filter).text("comment", &traced);
    let batch = Writer::list(|list| list.document("0", Writer::new()).document("1", Writer::new()));
    let cursor = Writer::new().list_of("firstBatch", batch).long("id", 0).text("ns", "shop.orders");
    let refused = Writer::new().double("ok", 0.0).text("errmsg", "canary").int("code", 18).text("codeName", "x");
    let steps = [
        ('>', frame(1, 0, 2004, &query)),
        ('<', frame(9, 1, 1, &reply)),
        ('>', asked(2, Writer::new().int("saslStart", 1).binary("payload", b"n,,n=canary"))),
        ('<', answer(2, refused)),
        ('>', asked(3, traced)),
        ('<', answer(3, Writer::new().document("cursor", cursor).double("ok", 1.0))),
    ];
    let turns = heard(&steps);
    let [greeting, login, found] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((greeting.kind, greeting.command, greeting.outcome), (Kind::Other, "isMaster", Outcome::Ok));
    assert_eq!((login.kind, login.outcome, login.error.as_deref()), (Kind::Login, Outcome::Error, Some("18")));
    assert_eq!(text(found), "find shop.orders filter { status: ?, total: { $gt: ? } }");
    assert_eq!((found.sent.trace_id.as_deref(), found.session_id), (Some(TRACE), Some(71)));
    assert_eq!((found.request_at, found.first_byte_at, found.done_at), (50, Some(60), 60));
    assert_eq!((found.request_bytes as usize, found.response_bytes as usize), (steps[4].1.len(), steps[5].1.len()));
    assert!(!format!("{turns:?}").contains("canary"));
    // With all that was said, the documents are counted, and that is all.
    let full = talk(&steps, usize::MAX, true);
    assert_eq!((full[2].info.rows, full[2].identity.database.as_slice()), (2, &b"shop"[..]));
    assert_eq!(full[2].sent.sql.as_deref(), Some(text(found).as_bytes()));
    assert!(!format!("{full:?}").contains("canary"));
}

#[test]
fn writes_and_what_is_wrong_with_them() {
    let set = Writer::new().document("$set", Writer::new().text("name", "canary"));
    let update = Writer::new().document("q", Writer::new().int("_id", 5)).document("u", set);
    let body = |name| Writer::new().text(name, "item").text("$db", "shop");
    let failed = |code| Writer::list(|list| list.document("0", Writer::new().int("index", 0).int("code", code)));
    let concern = Writer::new().int("code", 64).text("errmsg", "waiting for replication timed out");
    let results = Writer::list(|list| list.document("0", fine()).document("1", Writer::new().int("code", 11_000)));
    let results = Writer::new().long("id", 0).list_of("firstBatch", results);
    let namespaces = [Writer::new().text("ns", "shop.item")];
    let bulk = Writer::new().int("bulkWrite", 1).text("$db", "admin");
    let turns = heard(&[
        ('>', message(1, 0, 1, body("update"), &[("updates", &[update.clone(), update])])),
        ('<', answer(1, fine().int("n", 2).int("nModified", 1))),
        ('>', message(2, 0, 0, body("insert"), &[("documents", &[Writer::new().text("canary", "x")])])),
        ('<', answer(2, Writer::new().int("n", 0).list_of("writeErrors", failed(11_000)).double("ok", 1.0))),
        ('>', message(3, 0, 0, body("insert"), &[])),
        ('<', answer(3, fine().int("n", 1).document("writeConcernError", concern))),
        ('>', message(4, 0, 0, bulk, &[("ops", &[Writer::new()]), ("nsInfo", &namespaces)])),
        ('<', answer(4, Writer::new().document("cursor", results).int("nErrors", 1).double("ok", 1.0))),
        // No answer is wanted.
        ('>', message(5, 0, 2, body("insert"), &[])),
        ('>', find(6)),
        ('<', answer(6, fine().int("n", 3))),
        ('>', find(7)),
        ('<', answer(7, Writer::new().double("ok", 0.0))),
    ]);
    let told: Vec<_> = turns.iter().map(|turn| (text(turn), turn.outcome, turn.error.as_deref())).collect();
    let update = "update shop.item q { _id: ? } u { $set: { name: ? } }";
    let expected = [
        (update, Outcome::Ok, None),
        ("insert shop.item", Outcome::Error, Some("11000")),
        ("insert shop.item", Outcome::Error, Some("64")),
        ("bulkWrite shop.item", Outcome::Error, Some("11000")),
        ("find shop.orders filter { status: ? }", Outcome::Ok, None),
        ("find shop.orders filter { status: ? }", Outcome::Error, None),
    ];
    assert_eq!(told, expected);
    assert_eq!((turns[0].info.affected, turns[4].info.affected), (1, 0));
}

#[test]
fn answers_that_go_on_are_one_exchange_and_news_are_none() {
    let more = |number, answers, flags| message(number, answers, flags, fine(), &[]);
    let get_more = |number, flags, body: Writer| message(number, 0, flags, body.text("$db", "shop"), &[]);
    let cursor = || Writer::new().long("getMore", 7).text("collection", "orders");
    let turns = heard(&[
        ('>', get_more(1, 1 << 16, cursor())),
        ('<', more(50, 1, 2)),
        ('<', more(51, 50, 2)),
        ('<', more(52, 51, 0)),
        ('>', get_more(2, 0, cursor().int("maxTimeMS", 5_000))),
        ('<', answer(2, fine().document("cursor", Writer::new().long("id", 7)))),
        // What waits for news has no query that others read on.
        ('>', get_more(4, 0, cursor())),
        ('<', answer(4, fine())),
        ('>', get_more(3, 1 << 16, Writer::new().int("hello", 1).int("maxAwaitTimeMS", 10_000))),
        ('<', more(60, 3, 2)),
        ('<', more(61, 60, 2)),
        ('<', more(62, 61, 2)),
    ]);
    let told: Vec<_> = turns.iter().map(|it| (text(it), it.kind, it.command, it.first_byte_at, it.done_at)).collect();
    let expected = [
        ("getMore shop.orders", Kind::Query, "", Some(20), 40),
        ("", Kind::Other, "getMore", Some(60), 60),
        ("getMore shop.orders", Kind::Query, "", Some(80), 80),
        ("", Kind::Other, "hello", Some(100), 100),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_get_more_belongs_to_the_query_behind_its_cursor() {
    let open = 7_777_777_777_777_777_777;
    let documents = |count: i32| {
        // It looks like the end of a cursor.
        let item =
            || Writer::new().text("name", "canary").long("id", 5).text("ns", "shop.orders").text("x", &"y".repeat(90));
        Writer::list(|list| (0..count).fold(list, |list, n| list.document(&n.to_string(), item())))
    };
    let batch = |number, name: &str, count, id: i64| {
        let cursor = Writer::new().list_of(name, documents(count)).long("id", id).text("ns", "shop.orders");
        let time = Writer::new().document("signature", Writer::new().binary("hash", &[7; 20]).long("keyId", 5));
        ('<', answer(number, Writer::new().document("cursor", cursor).double("ok", 1.0).document("$clusterTime", time)))
    };
    let traced = format!("traceparent='00-{TRACE}-c532cb4098ac3dd2-01'");
    let more = |number, id: i64| {
        let more = Writer::new().long("getMore", id).text("collection", "orders").text("comment", &traced);
        ('>', asked(number, more))
    };
    let query = "find shop.orders filter { status: ? }";
    // The first batch is kept whole, or only its beginning and its end.
    for count in [2, 300] {
        let steps = [
            ('>', find(1)),
            batch(1, "firstBatch", count, open),
            more(2, open),
            batch(2, "nextBatch", count, open),
            more(3, open),
            batch(3, "nextBatch", count, 0),
            // It was read to its end, and the next one was never seen.
            more(4, open),
            batch(4, "nextBatch", count, 0),
            more(5, 11),
            batch(5, "nextBatch", count, 0),
        ];
        let turns = heard(&steps);
        let told: Vec<&str> = turns.iter().map(text).collect();
        assert_eq!(told, [query, query, query, "getMore shop.orders", "getMore shop.orders"], "{count}");
        assert!(turns.iter().all(|turn| turn.outcome == Outcome::Ok && turn.kind == Kind::Query));
        assert!(turns[1..].iter().all(|turn| turn.sent.trace_id.as_deref() == Some(TRACE)), "its own trace");
        let full = talk(&steps, usize::MAX, true);
        assert_eq!(full[2].sent.sql.as_deref(), Some(query.as_bytes()));
        // Where a capture keeps only the beginning of each packet, the cursor is unknown.
        let cut = talk(&steps, 200, false);
        assert_eq!(text(&cut[1]), "getMore shop.orders", "{count}");
    }
}

#[test]
fn old_clients_ask_and_read_on_without_commands() {
    let wrapped = Writer::new().document("$query", Writer::new().text("status", "canary")).bool("$explain", false);
    let query = [&[0; 4][..], b"shop.orders\0", &[0; 8], &wrapped.finish()].concat();
    let more = [&[0; 4][..], b"shop.orders\0", &2_i32.to_le_bytes(), &77_i64.to_le_bytes()].concat();
    let reply = |flags: i32, cursor: i64, document: Writer| {
        let (flags, cursor) = (flags.to_le_bytes(), cursor.to_le_bytes());
        [&flags[..], &cursor, &[0; 4], &2_i32.to_le_bytes(), &document.finish(), &Writer::new().finish()].concat()
    };
    let turns = heard(&[
        ('>', frame(1, 0, 2004, &query)),
        ('<', frame(9, 1, 1, &reply(0, 77, Writer::new()))),
        ('>', frame(2, 0, 2005, &more)),
        ('<', frame(10, 2, 1, &reply(2, 0, Writer::new().text("$err", "canary")))),
        ('>', frame(3, 0, 2005, &more)),
        ('<', frame(11, 3, 1, &reply(0, 0, Writer::new()))),
    ]);
    let told: Vec<_> = turns.iter().map(|turn| (text(turn), turn.outcome, turn.info.rows)).collect();
    let query = "query shop.orders query { status: ? }";
    let expected =
        [(query, Outcome::Ok, 2), (query, Outcome::Error, 2), ("getmore shop.orders query ?", Outcome::Ok, 2)];
    assert_eq!(told, expected);
    assert!(!format!("{turns:?}").contains("canary"));
    // An answer is not taken for a request, nor a request for an answer.
    for (message, is_client) in [(find(1), true), (answer(1, fine()), false)] {
        assert!(begins_mongodb(&message, is_client) && !begins_mongodb(&message, !is_client), "{is_client}");
    }
}

#[test]
fn compressed_messages_are_timed_and_named() {
    let compressed = |number, answers, how: u8, rest: &[u8]| {
        frame(number, answers, 2012, &[&2013_i32.to_le_bytes()[..], &[9, 0, 0, 0, how], rest].concat())
    };
    let plain = find(4)[16..].to_vec();
    let turns = heard(&[
        ('>', compressed(1, 0, 1, b"canary")),
        ('<', compressed(2, 1, 1, b"canary")),
        // Perhaps no answer was wanted; the next one is another's.
        ('>', compressed(2, 0, 3, b"")),
        ('>', compressed(3, 0, 3, b"")),
        ('<', compressed(4, 3, 3, b"")),
        ('>', compressed(4, 0, 0, &plain)),
        ('<', compressed(5, 4, 0, &answer(4, fine().text("x", "y"))[16..])),
    ]);
    let told: Vec<_> = turns.iter().map(|it| (it.kind, it.command, text(it), it.outcome, it.is_lost)).collect();
    let expected = [
        (Kind::Opaque, "snappy", "", Outcome::Ok, false),
        (Kind::Opaque, "zstd", "", Outcome::Ok, false),
        (Kind::Query, "", "find shop.orders filter { status: ? }", Outcome::Ok, false),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_gap_costs_only_what_it_touches() {
    let ok = |n| ('<', answer(n, fine()));
    let half = |n: i32, part: std::ops::Range<usize>| find(n)[part].to_vec();
    type Step = (char, Vec<u8>);
    let cases: [(&str, Vec<Step>, &[bool]); 6] = [
        ("a request", vec![('>', find(1)), ok(1), ('c', find(2)), ok(2), ('>', find(3)), ok(3)], &[false, true, false]),
        ("an answer", vec![('>', find(1)), ('s', vec![0; 50]), ('>', find(2)), ok(2)], &[true, false]),
        // The answer to the lost one names a request that was not seen.
        ("of two", vec![('>', find(1)), ('c', find(2)), ok(1), ok(2), ('>', find(3)), ok(3)], &[false, true, false]),
        (
            "both of one",
            vec![('>', find(1)), ok(1), ('c', find(2)), ('s', vec![0; 9]), ('>', find(3)), ok(3)],
            &[false, true, false],
        ),
        (
            "within",
            vec![
                ('>', half(1, 0..40)),
                ('c', vec![0; 10]),
                ('>', find(1)[50..].to_vec()),
                ok(1),
                ('>', find(2)),
                ok(2),
            ],
            &[true, false],
        ),
        ("garbage", vec![('>', vec![7; 90]), ('<', vec![7; 90]), ('>', find(1)), ok(1)], &[false]),
    ];
    for (name, steps, expected) in cases {
        let turns = heard(&steps);
        assert_eq!(turns.iter().map(|turn| turn.is_lost).collect::<Vec<_>>(), expected, "{name}: {turns:?}");
        let last = turns.last().unwrap();
        assert_eq!((text(last), last.outcome), ("find shop.orders filter { status: ? }", Outcome::Ok), "{name}");
    }
}

#[test]
fn cut_and_hostile_messages_are_survived() {
    let documents = Writer::list(|list| (0..50).fold(list, |list, n| list.document("0", Writer::new().int("a", n))));
    let insert = asked(1, Writer::new().text("insert", "item").list_of("documents", documents));
    // Of a large insert the start is stored: it has no database then.
    let turns = talk(&[('>', insert), ('<', answer(1, fine())), ('>', find(2)), ('<', answer(2, fine()))], 150, false);
    let told: Vec<_> = turns.iter().map(|turn| (text(turn), turn.outcome)).collect();
    assert_eq!(told, [("insert item", Outcome::Ok), ("find shop.orders filter { status: ? }", Outcome::Ok)]);
    let good = message(7, 0, 1, Writer::new().text("update", "t"), &[("updates", &[fine(), fine()])]);
    for at in 0..good.len() {
        for byte in [0, 1, 2, 0x7f, 0xff] {
            let mut bad = good.clone();
            bad[at] = byte;
            for kept in [at + 1, usize::MAX] {
                let turns = talk(
                    &[('>', bad.clone()), ('<', bad.clone()), ('>', find(8)), ('<', answer(8, fine()))],
                    kept,
                    true,
                );
                assert!(turns.len() <= 2, "{at}: {turns:?}");
            }
        }
    }
    // TLS from the first byte: by turns.
    let turns = heard(&[('>', b"\x16\x03\x01\0\x05hello".to_vec()), ('<', vec![9; 40]), ('>', vec![9; 4])]);
    assert_eq!(turns.iter().map(|turn| turn.kind).collect::<Vec<_>>(), [Kind::Opaque, Kind::Opaque]);
}

#[test]
fn connections_of_holdups_collector_are_recognised() {
    for (name, is_own) in [("holdup", true), ("holdup load", false)] {
        let client = Writer::new().document("application", Writer::new().text("name", name));
        let hello = asked(1, Writer::new().int("hello", 1).document("client", client));
        let turns = heard(&[('>', hello), ('<', answer(1, fine())), ('>', find(2)), ('<', answer(2, fine()))]);
        assert_eq!(turns.iter().map(|turn| turn.sent.is_own).collect::<Vec<_>>(), [is_own; 2], "{name}");
    }
    let marked = asked(1, Writer::new().int("serverStatus", 1).text("comment", "holdup"));
    assert!(heard(&[('>', marked), ('<', answer(1, fine()))])[0].sent.is_own, "the connection was open before");
}

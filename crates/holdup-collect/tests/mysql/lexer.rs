//! Where comments and strings end: our lexer beside the servers' own.

use holdup_sql::{Dialect, Lexer, TokenKind, digest_text};

use crate::old::mysql_5_6;
use crate::raw::Raw;
use crate::server::{Server, mariadb};

#[test]
fn comments_end_where_mariadb_ends_them() {
    let Some(server) = mariadb(&[]) else { return };
    same(&server);
}

#[test]
fn comments_end_where_mysql_5_6_ends_them() {
    let Some(server) = mysql_5_6(&[]) else { return };
    same(&server);
}

fn same(server: &Server) {
    every_byte_behind_dashes(server);
    every_form(server);
}

/// The statement without what is a comment to us.
fn uncommented(sql: &[u8]) -> Vec<u8> {
    let tokens = Lexer::new(sql, Dialect::MySql).filter(|token| token.kind != TokenKind::Comment);
    tokens.map(|token| token.text).collect::<Vec<_>>().join(&b' ')
}

/// In whichever character set, a byte behind `--` begins a comment for us if and only if it does for the server.
fn every_byte_behind_dashes(server: &Server) {
    let mut begins = Vec::new();
    for set in [8, 33] {
        let mut raw = Raw::connect(server, set);
        for byte in 0..=255_u8 {
            // Nothing but a comment lets the server take it; a line feed ends it at once, as does a zero.
            let is_comment = |raw: &mut Raw, end: &[u8]| {
                raw.run(&[b"SELECT 1 --", &[byte][..], b"(((secret", end].concat()).is_some()
            };
            let ends_it = matches!(byte, b'\n' | 0);
            let theirs =
                is_comment(&mut raw, b"\n") || ends_it && raw.run(&[b"SELECT 1 --", &[byte][..]].concat()).is_some();
            if theirs {
                begins.push(byte);
            }
            assert!(is_comment(&mut raw, b"") == theirs || ends_it, "{byte:#x}");
        }
    }
    let ours =
        |byte: u8| uncommented(&[b"SELECT 1 --", &[byte][..], b" secret"].concat()) == b"SELECT 1" || byte == b'\n';
    let differing: Vec<u8> = (0..=255).filter(|byte| ours(*byte) != begins.contains(byte)).collect();
    assert!(differing.is_empty(), "ours and the server's differ at {differing:x?}; the server's: {begins:x?}");
    // No word of a comment is in a digest.
    for byte in begins.into_iter().filter(|byte| byte.is_ascii() && *byte != b'\n') {
        let text = digest_text(format!("SELECT 1 --{}secret", char::from(byte)), Dialect::MySql);
        assert_eq!(text, "SELECT ?", "{byte:#x}");
    }
}

/// Forms of comments, and what looks like one. What the server makes of each is what it makes of it without what we take for comments.
const FORMS: &[&str] = &[
    "SELECT 1 # a ' b\n + 2",
    "SELECT 1 #\n+ 2",
    "SELECT 1 # a\r + 2",
    "SELECT 1 -- a ' b\n + 2",
    "SELECT 1 -- a\r + 2",
    "SELECT 1 --\t ' a\n + 2",
    "SELECT 1--1",
    "SELECT 1--+1",
    "SELECT 1---1",
    "SELECT 1 --",
    "SELECT 1 --\n+ 2",
    "SELECT 1 --\x7f' a\n + 2",
    "SELECT 1 --\x01' a\n + 2",
    "SELECT 1 /* a ' b */ + 2",
    "SELECT 1 /**/ + 2",
    "SELECT 1 /***/ + 2",
    "SELECT 1 /*/ a */ + 2",
    "SELECT 1 /* a /* b */ + 2",
    "SELECT 1 /* a /* b */ c */ + 2",
    "SELECT 1 /* -- */ + 2",
    "SELECT 1 -- /*\n + 2",
    "SELECT 1 # /*\n + 2 # */",
    "SELECT 1 /* a",
    "SELECT 1 /*",
    "SELECT 1 /*! + 2 */",
    "SELECT 1 /*!50000 + 2 */",
    "SELECT 1 /*!50000 + 2 */ + 3",
    "SELECT 1 /*!50000 /* a */ + 2 */",
    "SELECT 1 /*!50000 + '*/' */",
    "SELECT 1 /*!50000 + 2 -- */\n */",
    "SELECT 1 /*! + 2",
    "SELECT 1 /*!",
    "SELECT 1 /*+ a */ + 2",
    "SELECT /*+ a */ 1 + 2",
    "SELECT '/* a */', 2",
    "SELECT '-- a', 2",
    "SELECT \"# a\", 2",
    "SELECT 'a\\'/*', '*/'",
    "SELECT 1 AS `/* a */`",
    "SELECT 'a' -- b\n 'c'",
    "SELECT 'a' /* b */ 'c'",
    "SELECT N'a' /* b */, X'41' # c",
    "SELECT 1 * /* a */ 3",
    "SELECT 6 / /* a */ 3",
    "SELECT 6 /- 3",
    "SELECT 1 - -- a\n 1",
    "SELECT 1; -- a",
    "SELECT 1 \x7f",
];

fn every_form(server: &Server) {
    let mut raw = Raw::connect(server, 33);
    for sql in FORMS {
        let plain = uncommented(sql.as_bytes());
        let (theirs, ours) = (raw.run(sql.as_bytes()), raw.run(&plain));
        // What the server refuses is nobody's statement, however it is read.
        assert!(
            theirs.is_none() || theirs == ours,
            "{sql:?} is {theirs:?}, {:?} is {ours:?}",
            String::from_utf8_lossy(&plain)
        );
    }
    let mut understood = 0;
    for sql in FORMS {
        understood += usize::from(raw.run(sql.as_bytes()).is_some());
    }
    assert!(understood > FORMS.len() * 2 / 3, "{understood} of {} say nothing", FORMS.len());
}

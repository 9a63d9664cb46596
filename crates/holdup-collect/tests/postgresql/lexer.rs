//! Where comments and strings end: our lexer beside the servers' own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use holdup_sql::{Dialect, Lexer, TokenKind};

use super::{Server, Which};

/// A session that sends any bytes as they are, each a letter of latin1.
struct Raw(TcpStream);

impl Raw {
    fn connect(server: &Server) -> Self {
        let mut raw = Self(TcpStream::connect(("127.0.0.1", server.port)).expect("it listens"));
        raw.send(b"", b"\0\x03\0\0user\0boss\0database\0postgres\0client_encoding\0LATIN1\0\0");
        assert!(raw.answer().is_some(), "boss needs no password");
        raw
    }

    fn send(&mut self, kind: &[u8], body: &[u8]) {
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        self.0.write_all(&[kind, &length, body].concat()).expect("it reads");
    }

    /// All rows until the server is ready again; none if there was an error.
    fn answer(&mut self) -> Option<Vec<Vec<u8>>> {
        let (mut rows, mut failed) = (Vec::new(), false);
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).expect("an answer");
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let mut body = vec![0; length as usize - 4];
            self.0.read_exact(&mut body).expect("all of it");
            match head[0] {
                b'D' => rows.push(body),
                b'E' => failed = true,
                b'Z' => return (!failed).then_some(rows),
                _ => {}
            }
        }
    }

    fn run(&mut self, sql: &[u8]) -> Option<Vec<Vec<u8>>> {
        self.send(b"Q", &[sql, b"\0"].concat());
        self.answer()
    }
}

/// The statement without what is a comment to us: each token in a line of its own, for strings go on in the next.
fn uncommented(sql: &[u8]) -> Vec<u8> {
    let tokens = Lexer::new(sql, Dialect::PostgreSql).filter(|token| token.kind != TokenKind::Comment);
    tokens.map(|token| token.text).collect::<Vec<_>>().join(&b'\n')
}

/// Forms of comments and strings. What the server makes of each is what it makes of it without what we take for comments.
const FORMS: &[&str] = &[
    "SELECT 1 -- a ' b\n + 2",
    "SELECT 1 -- a ' b\r + 2",
    "SELECT 1--1",
    "SELECT 1 --",
    "SELECT 1 - --\n-2",
    "SELECT 1 /* a ' b */ + 2",
    "SELECT 1 /**/ + 2",
    "SELECT 1 /***/ + 2",
    "SELECT 1 /*/ a */ + 2",
    "SELECT 1 /* a /* b */ c ' */ + 2",
    "SELECT 1 /* a /* b /* c */*/*/ + 2",
    "SELECT 1 /* a /*/ b */*/ + 2",
    "SELECT 1 /* -- */ + 2",
    "SELECT 1 /* ' */ + 2 /* ' */",
    "SELECT 1 /*! + 2 */",
    "SELECT 1 /* a /* b */",
    "SELECT 1 /*",
    "SELECT 1 -- /*\n + 2",
    "SELECT 1 +/* a */ 2",
    "SELECT 1 +-- a\n 2",
    "SELECT 1 */* a */ 2",
    "SELECT 5 # 3",
    "SELECT '/* a */', '-- b'",
    "SELECT 'a\\', ' || 'b'",
    "SELECT 'a''b'",
    "SELECT 'a' -- ' b\n 'c'",
    "SELECT 'a' -- ' b\r 'c'",
    "SELECT 'a' /* b */ 'c'",
    "SELECT E'a\\'b', 'c'",
    "SELECT E'a''b\\\\', 'c'",
    "SELECT e'a'\n'b\\'c', 'd'",
    "SELECT e'a' -- ' b\n'c\\'d', 'e'",
    "SELECT e'a' -- ' b\r'c\\', ' || '''d'",
    "SELECT e'a' -- ' b\r\n -- c\r\t'd\\'', ' || 'e'",
    "SELECT e'a' /* b */ 'c'",
    "SELECT U&'\\0061''b', U&'a!0061' UESCAPE '!'",
    "SELECT N'a', B'01', X'1f'",
    "SELECT 1 AS U&\"\\0061\", 2 AS \"a\"\"b\", 3 AS \"/* c */\"",
    "SELECT $$a ' -- b$$, 'c'",
    "SELECT $a$ $b$ ' $$ $a$, 'c'",
    "SELECT $a$ $A$ $a$",
    "SELECT $_1$a$_1$, 'b'",
    "SELECT 1 AS a$$, 2 AS b$$, 'c'",
    "SELECT $$a",
    "SELECT 1 AS a$b, $b$c$b$",
    "SELECT int4$$1$$, 'a'",
    "SELECT \"int4\"$$1$$, 'a'",
    "SELECT 1; -- a",
    "SELECT 1 \u{c}+\u{b} 2",
    "SELECT 1.5e-3, .5, 1., 0",
    "SELECT '{\"a\": 1}'::jsonb ? 'a', '{\"a\": 1}'::jsonb ?| array['a']",
    "SELECT 1::int4, -1 - - 1, @-1, |/ 4",
];

fn same(which: Which) {
    let Some(server) = Server::of(which, &[]) else { return };
    let mut raw = Raw::connect(&server);
    for byte in 1..=255_u8 {
        for (before, behind) in [
            (&b"SELECT 1 --"[..], &b"(((secret"[..]),
            (b"SELECT 1 /*", b"*/"),
            (b"SELECT", b"1"),
            (b"SELECT 1 --a", b"-- b"),
        ] {
            let sql = [before, &[byte], behind].concat();
            let (theirs, ours) = (raw.run(&sql), raw.run(&uncommented(&sql)));
            assert!(theirs.is_none() || theirs == ours, "{byte:#x} in {:?}", String::from_utf8_lossy(&sql));
            // Of one that is not closed the server says so.
            let hides = before.ends_with(b"-") && uncommented(&sql) == b"SELECT\n1";
            assert!(theirs.is_some() || !hides, "{byte:#x} hides what the server reads");
        }
    }
    let mut understood = 0;
    for sql in FORMS {
        let plain = uncommented(sql.as_bytes());
        let (theirs, ours) = (raw.run(sql.as_bytes()), raw.run(&plain));
        understood += usize::from(theirs.is_some());
        assert!(
            theirs.is_none() || theirs == ours,
            "{sql:?} is {theirs:?}, {:?} is {ours:?}",
            String::from_utf8_lossy(&plain)
        );
    }
    assert!(understood > FORMS.len() * 3 / 4, "{understood} of {} say nothing", FORMS.len());
}

#[test]
fn comments_and_strings_end_where_13_ends_them() {
    same(Which::Fetched(13));
}

#[test]
fn comments_and_strings_end_where_the_systems_ends_them() {
    same(Which::System);
}

#[test]
fn comments_and_strings_end_where_18_ends_them() {
    same(Which::Fetched(18));
}

//! The different statements of a mix: the identity of each, and whether it may be sent. A statement
//! that occurred before is recognised without being parsed again.

use std::collections::HashMap;
use std::sync::Arc;

use holdup_sql::{Dialect, digest_of_text, digest_text, key};
use memchr::memchr2;

use crate::replay::judge::{Judgement, judge};

/// Most cached keys of statements; beyond that the cache starts anew.
const MOST_KEYS: usize = 1 << 17;

/// Most bytes kept of a statement's text.
const MOST_TEXT: usize = 4 << 10;

/// A statement apart from its values.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its identity, as in holdup's recordings.
    pub digest: Arc<str>,
    /// Its text, with every value replaced.
    pub text: String,
    /// Number of executions in the log, whether or not they are sent.
    pub calls: u64,
    /// Number of executions that are sent.
    pub sent: u64,
    /// Their total duration in the log, microseconds.
    pub took_us: u64,
}

/// All shapes.
#[derive(Clone, Debug)]
pub struct Shapes {
    dialect: Dialect,
    /// By number.
    pub all: Vec<Shape>,
    by_key: HashMap<u64, (u32, Judgement)>,
    by_digest: HashMap<String, u32>,
}

impl Shapes {
    /// An empty list.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, all: Vec::new(), by_key: HashMap::new(), by_digest: HashMap::new() }
    }

    /// Number of the shape of `sql`, and whether it may be sent.
    pub fn classify(&mut self, sql: &[u8]) -> (u32, Judgement) {
        // The key ignores literals and comments, but these matter to the judgement.
        let key = key(sql, self.dialect).filter(|key| !key.open && memchr2(b'\r', 0, sql).is_none());
        if let Some(known) = key.and_then(|key| self.by_key.get(&key.hash)) {
            return *known;
        }
        let found = (self.by_text(sql), judge(sql, self.dialect));
        if let Some(key) = key {
            if self.by_key.len() >= MOST_KEYS {
                self.by_key.clear();
            }
            self.by_key.insert(key.hash, found);
        }
        found
    }

    fn by_text(&mut self, sql: &[u8]) -> u32 {
        let mut text = digest_text(sql, self.dialect);
        let digest = digest_of_text(&text);
        if let Some(number) = self.by_digest.get(&digest) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        if text.len() > MOST_TEXT {
            let end = (0..=MOST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        self.all.push(Shape { digest: digest.as_str().into(), text, calls: 0, sent: 0, took_us: 0 });
        self.by_digest.insert(digest, number);
        number
    }
}

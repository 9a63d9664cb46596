//! The different statements of a mix: the identity of each, and whether it may be sent. A statement
//! that occurred before is recognised without being parsed again. Statements beyond the memory for
//! them share one shape.

use std::collections::HashMap;
use std::sync::Arc;

use holdup_sql::{Dialect, digest_of_text, digest_text, key};
use memchr::memchr2;

use crate::digest::room::{Key, Rest, Room};
use crate::replay::judge::{Judgement, judge};

/// Most cached keys of statements; beyond that the cache starts anew.
const MOST_KEYS: usize = 1 << 17;

/// Most bytes kept of a statement's text.
const MOST_TEXT: usize = 4 << 10;

/// Memory of a shape without its text, roughly: here, in the facts and in the feed.
const SHAPE_BYTES: u64 = 1 << 10;

/// The digest of the shape that statements without room share.
pub const REST: &str = "rest";

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
    by_key: HashMap<u64, Classified>,
    by_digest: HashMap<String, u32>,
    /// The statements with room; all if none.
    room: Option<Arc<Room>>,
    /// The shape that the others share, once there is one.
    rest_shape: Option<u32>,
    rest: Rest,
}

/// A statement's shape, and whether it may be sent.
#[derive(Clone, Copy, Debug)]
pub struct Classified {
    /// Number of the shape.
    pub shape: u32,
    /// Whether it may be sent.
    pub judgement: Judgement,
    key: Key,
}

/// Statements that are sent and did not fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestCounts {
    /// Number of different statements; at least that many, if they were too many to count.
    pub statements: usize,
    /// Whether there may be more.
    pub is_at_least: bool,
    /// Executions that are sent.
    pub sent: u64,
    /// Their duration in the log, microseconds.
    pub took_us: u128,
    /// Upper bound on the duration of each statement, microseconds.
    pub at_most_us: u64,
}

impl Shapes {
    /// An empty list.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            all: Vec::new(),
            by_key: HashMap::new(),
            by_digest: HashMap::new(),
            room: None,
            rest_shape: None,
            rest: Rest::default(),
        }
    }

    /// An empty list of statements that have room in `room`.
    pub fn within(dialect: Dialect, room: Arc<Room>) -> Self {
        Self { room: Some(room), ..Self::new(dialect) }
    }

    /// A room of `most_bytes` for a first reading.
    pub fn room(most_bytes: u64) -> Arc<Room> {
        Arc::new(Room::new(most_bytes, 1).with_size(SHAPE_BYTES))
    }

    /// A room of the same size for a second reading, for those that took the most time in this one;
    /// none if all had room.
    pub fn room_for_heaviest(&self) -> Option<Arc<Room>> {
        let (room, _) = self.room.as_ref().zip(self.rest_shape)?;
        let time = |number: &u32| self.all.get(*number as usize).map_or(0, |shape| shape.took_us);
        let kept = self.by_digest.iter().map(|(digest, number)| (Key::from_id(digest), time(number)));
        Some(Arc::new(room.with_heaviest(&self.rest.clone().with(kept))))
    }

    /// The statements without room; none if all had some.
    pub fn rest(&self) -> Option<RestCounts> {
        let (room, _) = self.room.as_ref().zip(self.rest_shape)?;
        let (statements, is_at_least) = room.refused();
        let Rest { calls: sent, total_us: took_us, .. } = self.rest;
        Some(RestCounts { statements, is_at_least, sent, took_us, at_most_us: self.rest.at_most_us() })
    }

    /// Counts an execution that is sent and took so long in the log.
    pub fn count_sent(&mut self, found: Classified, took_us: u64) {
        if let Some(shape) = self.all.get_mut(found.shape as usize) {
            shape.sent += 1;
            shape.took_us = shape.took_us.saturating_add(took_us);
        }
        if self.rest_shape == Some(found.shape) {
            self.rest.add(found.key, 1, took_us);
        }
    }

    /// The shape of `sql`, and whether it may be sent.
    pub fn classify(&mut self, sql: &[u8]) -> Classified {
        // The key ignores literals and comments, but these matter to the judgement.
        let key = key(sql, self.dialect).filter(|key| !key.open && memchr2(b'\r', 0, sql).is_none());
        if let Some(known) = key.and_then(|key| self.by_key.get(&key.hash)) {
            return *known;
        }
        let (shape, key_of_digest) = self.by_text(sql);
        let found = Classified { shape, judgement: judge(sql, self.dialect), key: key_of_digest };
        if let Some(key) = key {
            if self.by_key.len() >= MOST_KEYS {
                self.by_key.clear();
            }
            self.by_key.insert(key.hash, found);
        }
        found
    }

    fn by_text(&mut self, sql: &[u8]) -> (u32, Key) {
        let mut text = digest_text(sql, self.dialect);
        let digest = digest_of_text(&text);
        let key = Key::from_id(&digest);
        if let Some(number) = self.by_digest.get(&digest) {
            return (*number, key);
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        if self.room.as_ref().is_some_and(|room| !room.admits(key, text.len().min(MOST_TEXT))) {
            if self.rest_shape.is_none() {
                let text = "(statements beyond --max-memory)".to_owned();
                self.all.push(Shape { digest: REST.into(), text, calls: 0, sent: 0, took_us: 0 });
            }
            return (*self.rest_shape.get_or_insert(number), key);
        }
        if text.len() > MOST_TEXT {
            let end = (0..=MOST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        self.all.push(Shape { digest: digest.as_str().into(), text, calls: 0, sent: 0, took_us: 0 });
        self.by_digest.insert(digest, number);
        (number, key)
    }
}

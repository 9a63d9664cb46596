//! The sums of everything that was read: events in, groups out. Each thread has its own tally.
//! Adding two gives the same result as one, whichever thread read which block.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use holdup_sql::{Dialect, digest_of_text, digest_text, parsed_text, redact};

use crate::digest::attribute::{Attributes, QUERY_TIME};
use crate::digest::block::Lines;
use crate::digest::course::Course;
use crate::digest::event::{Event, Kind, Position};
use crate::digest::listener::Listener;
use crate::digest::loose::LooseEnd;
use crate::digest::measure::ServerSums;
use crate::digest::plan::LoggedPlan;
use crate::digest::problem::Problems;
use crate::digest::room::{Key, Rest, Room};
use crate::digest::select::Select;
use crate::digest::server::Server;
use crate::digest::shape::{Shape, Slowest};

/// Most cached keys of statements; beyond that the cache starts anew.
const MOST_KEYS: usize = 1 << 17;
/// Most bytes kept of a statement's text. Its identity covers the whole text.
const MOST_TEXT: usize = 16 << 10;
/// Most bytes of a sample.
const MOST_SAMPLE: usize = 4 << 10;
/// Most different users, hosts, databases and applications, each.
const MOST_NAMES: usize = 1 << 16;

/// How a statement is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// By holdup's digest, as in its recordings.
    #[default]
    Holdup,
    /// By pt-query-digest's fingerprint and checksum, for users with review tables.
    Pt,
    /// By the statement that a PostgreSQL parser recognises: the order of columns and conditions
    /// makes no difference.
    Parsed,
}

/// Passes a hash on unchanged, and hashes other keys in a simple way.
#[derive(Default)]
pub struct PassThroughHasher(u64);

impl Hasher for PassThroughHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        // Names of users and hosts: short, and few.
        for eight in bytes.chunks(8) {
            let word = eight.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
        }
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(self.0 ^ value as u64);
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

type ByHash<V> = HashMap<u64, V, BuildHasherDefault<PassThroughHasher>>;

/// Users, hosts, databases or applications by number. The first stands for those that came when the
/// list was full.
#[derive(Debug)]
pub struct Names {
    all: Vec<String>,
    by_bytes: HashMap<Vec<u8>, u32, BuildHasherDefault<PassThroughHasher>>,
    last: (Vec<u8>, u32),
}

impl Default for Names {
    fn default() -> Self {
        Self { all: vec!["(others)".to_owned()], by_bytes: HashMap::default(), last: (Vec::new(), 0) }
    }
}

impl Names {
    fn number(&mut self, name: &[u8]) -> u32 {
        if self.last.0 == name {
            return self.last.1;
        }
        let number = match self.by_bytes.get(name) {
            Some(number) => *number,
            None if self.all.len() > MOST_NAMES => 0,
            None => {
                let number = u32::try_from(self.all.len()).unwrap_or(0);
                self.all.push(String::from_utf8_lossy(name).into_owned());
                self.by_bytes.insert(name.to_vec(), number);
                number
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = number;
        number
    }

    /// The name with this number.
    pub fn get(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", String::as_str)
    }
}

/// Observes each execution as it is read.
pub struct Watch(pub Box<Observer>);

/// A function that is called for each execution, and the meaning of its numbers.
pub type Observer = dyn FnMut(&Event, &Attributes) + Send;

impl std::fmt::Debug for Watch {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("Watch")
    }
}

/// The sums so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// The SQL dialect.
    pub dialect: Dialect,
    /// How statements are named.
    pub identity: Identity,
    /// Filters and grouping.
    pub select: Select,
    /// Attributes by number.
    pub attributes: Attributes,
    /// Users, hosts, databases and applications by number.
    pub names: [Names; 4],
    /// Groups of executions.
    pub shapes: Vec<Shape>,
    /// A PostgreSQL server's messages about itself.
    pub server: Server,
    /// Loose ends of blocks, with their places and processes.
    pub loose: Vec<(Position, u64, LooseEnd)>,
    /// Observer of all executions, before any filter.
    pub watch: Option<Watch>,
    /// Nothing is summed up: the executions only go to the observer.
    pub is_only_watched: bool,
    /// Whether groups keep their course over time.
    pub has_course: bool,
    /// Listener to a server's messages about itself.
    pub listener: Option<Listener>,
    /// The statements with room; none if all have.
    pub room: Option<Arc<Room>>,
    /// Totals of those without.
    pub rest: Rest,
    /// Problems.
    pub problems: Problems,
    /// Line numbers, for reporting places.
    pub lines: Lines,
    /// Executions read, including those that the filters left out.
    pub events: u64,
    by_key: ByHash<Result<u32, Key>>,
    by_id: HashMap<String, u32>,
    scratch: String,
}

impl Tally {
    /// An empty one.
    pub fn new(dialect: Dialect, identity: Identity, select: Select) -> Self {
        Self { dialect, identity, select, ..Self::default() }
    }

    /// Reads the next bytes as another language. Cached keys belong to the old one, so they are
    /// dropped.
    pub fn speak(&mut self, dialect: Dialect) {
        if self.dialect != dialect {
            self.dialect = dialect;
            self.by_key.clear();
        }
    }

    /// Whether entries of PostgreSQL's log that continue another one are useful.
    pub(super) fn wants(&self, severity: &[u8]) -> bool {
        self.listener.is_some() || severity == b"DETAIL" && self.watch.is_some()
    }

    /// Counts an execution.
    pub fn add(&mut self, event: &Event) {
        self.events += 1;
        if let Some(Watch(watch)) = &mut self.watch {
            watch(event, &self.attributes);
        }
        if self.is_only_watched || !self.select.takes(event, &self.attributes) {
            return;
        }
        // Where a list of rows was cut, its remaining rows are still rows.
        let head = Event { sql: without_comma(event.sql), key: None, ..*event };
        let event = if event.cut { &head } else { event };
        let index = match self.find_shape(event) {
            Ok(index) => index,
            Err(key) => return self.without_room(event, key),
        };
        self.name_by_first(index, event);
        let Some(shape) = self.shapes.get_mut(index) else { return };
        shape.add(event);
        if matches!(event.kind, Kind::Parse | Kind::Bind) {
            return;
        }
        let who = [event.user, event.host, event.database, event.application];
        for ((name, names), counts) in who.iter().zip(&mut self.names).zip(&mut shape.who) {
            if !name.is_empty() {
                counts.add(names.number(name), 1);
            }
        }
        let time_us = event.measures.iter().find(|(number, _)| *number == QUERY_TIME).map_or(0, |(_, value)| *value);
        if shape.is_slowest(time_us, event.position) {
            let text = match event.kind {
                Kind::Command | Kind::Shaped => shape.text.clone(),
                _ => redact(event.sql, self.dialect, MOST_SAMPLE),
            };
            let who = who.map(|name| String::from_utf8_lossy(name).into_owned());
            shape.slowest = Some(Slowest { time_us, position: event.position, at_us: event.at_us, text, who });
        }
    }

    /// Keeps a plan with its statement.
    pub fn add_plan(&mut self, event: &Event, logged: &LoggedPlan, time_us: u64) {
        if !self.is_only_watched
            && self.select.takes(event, &self.attributes)
            && let Ok(index) = self.find_shape(event)
            && let Some(shape) = self.shapes.get_mut(index)
        {
            shape.plans.add(logged, time_us, event.at_us, event.position);
        }
    }

    /// Adds a server's sums of all executions of a statement, by a user in a database.
    pub fn add_lumps(&mut self, event: &Event, calls: u64, lumps: &[(u16, ServerSums)], seen_us: Option<(i64, i64)>) {
        self.events = self.events.saturating_add(calls);
        if !self.select.takes(event, &self.attributes) {
            return;
        }
        let index = match self.find_shape(event) {
            Ok(index) => index,
            Err(key) => {
                let time = lumps.iter().find(|(number, _)| *number == QUERY_TIME);
                return self.rest.add(key, calls, time.map_or(0, |(_, lump)| lump.sum));
            }
        };
        let Some(shape) = self.shapes.get_mut(index) else { return };
        shape.add_lumps(calls, lumps, seen_us);
        let who = [event.user, event.host, event.database, event.application];
        for ((name, names), counts) in who.iter().zip(&mut self.names).zip(&mut shape.who) {
            if !name.is_empty() {
                counts.add(names.number(name), calls);
            }
        }
    }

    /// Ends all logs: groups that only plans report take those executions.
    pub fn settle(&mut self) {
        self.shapes.iter_mut().for_each(Shape::settle);
    }

    /// Counts an execution of a statement without room.
    fn without_room(&mut self, event: &Event, key: Key) {
        if !matches!(event.kind, Kind::Parse | Kind::Bind) {
            let time = event.measures.iter().find(|(number, _)| *number == QUERY_TIME);
            self.rest.add(key, 1, time.map_or(0, |(_, value)| *value));
        }
    }

    /// Time of each partition of all statements, as [`Room::with_heaviest`] expects it.
    pub fn weights(&self) -> Vec<u64> {
        let time = |index: u32| self.shapes.get(index as usize).and_then(|shape| shape.measure(QUERY_TIME));
        let weight = |index: u32| time(index).map_or(0, |time| u64::try_from(time.sum).unwrap_or(u64::MAX));
        self.rest.clone().with(self.by_id.iter().map(|(id, index)| (Key::from_id(id), weight(*index))))
    }

    /// The group of an execution; its key if the group has no room.
    fn find_shape(&mut self, event: &Event) -> Result<usize, Key> {
        let key = match (event.kind, self.identity) {
            (Kind::Command | Kind::Shaped, _) | (_, Identity::Pt) => None,
            _ => event.key.or_else(|| holdup_sql::key(event.sql, self.dialect)),
        };
        let Some(key) = key else { return self.by_text(event) };
        let hash = self.select.group_hash(key.hash, event);
        if let Some(found) = self.by_key.get(&hash) {
            return found.map(|index| index as usize);
        }
        let found = self.by_text(event);
        if self.by_key.len() >= MOST_KEYS {
            self.by_key.clear();
        }
        self.by_key.insert(hash, found.map(|index| u32::try_from(index).unwrap_or(u32::MAX)));
        found
    }

    /// Statements of one shape may differ in spelling, and threads do not meet them in order. The
    /// first one in the log names the shape.
    fn name_by_first(&mut self, index: usize, event: &Event) {
        if self.shapes.get(index).is_none_or(|shape| event.position >= shape.first) {
            return;
        }
        let text = self.select.by_statement().then(|| shortened(self.identify(event).1));
        if let Some(shape) = self.shapes.get_mut(index) {
            shape.first = event.position;
            shape.text = text.unwrap_or_else(|| std::mem::take(&mut shape.text));
        }
    }

    /// The same, found by the statement's name.
    fn by_text(&mut self, event: &Event) -> Result<usize, Key> {
        let (id, text) = self.identify(event);
        let group: Vec<String> = self.select.group_by.iter().map(|field| field.value(event)).collect();
        self.scratch.clear();
        if self.select.by_statement() {
            self.scratch.push_str(&id);
        }
        for value in &group {
            self.scratch.push('\u{1f}');
            self.scratch.push_str(value);
        }
        if let Some(index) = self.by_id.get(&self.scratch) {
            return Ok(*index as usize);
        }
        if let Some(room) = &self.room {
            let key = Key::from_id(&self.scratch);
            if !room.admits(key, text.len().min(MOST_TEXT)) {
                return Err(key);
            }
        }
        let index = self.shapes.len();
        let (id, text) =
            if self.select.by_statement() { (id, shortened(text)) } else { (String::new(), group.join(" ")) };
        let mut shape = self.empty_shape();
        (shape.id, shape.text, shape.first) = (id, text, event.position);
        shape.group = self.select.shown(&group);
        self.shapes.push(shape);
        self.by_id.insert(self.scratch.clone(), u32::try_from(index).unwrap_or(u32::MAX));
        Ok(index)
    }

    fn empty_shape(&self) -> Shape {
        let mut shape = Shape { course: self.has_course.then(Course::default), ..Shape::default() };
        shape.plans.course.clone_from(&shape.course);
        shape
    }

    fn identify(&self, event: &Event) -> (String, String) {
        if event.kind == Kind::Command {
            let text = format!("administrator command: {}", String::from_utf8_lossy(event.sql));
            return match self.identity {
                Identity::Holdup | Identity::Parsed => (digest_of_text(&text), text),
                Identity::Pt => (crate::digest::pt::checksum(&text), text),
            };
        }
        if event.kind == Kind::Shaped {
            let text = String::from_utf8_lossy(event.sql).into_owned();
            return (digest_of_text(&text), text);
        }
        match self.identity {
            Identity::Holdup => {
                let text = digest_text(event.sql, self.dialect);
                // Drivers ping with an empty statement.
                (digest_of_text(&text), if text.is_empty() { "(empty)".to_owned() } else { text })
            }
            Identity::Parsed => {
                let text = digest_text(event.sql, self.dialect);
                (digest_of_text(&parsed_text(event.sql)), text)
            }
            Identity::Pt => {
                let text = crate::digest::pt::fingerprint(event.sql);
                (crate::digest::pt::checksum(&text), text)
            }
        }
    }

    /// Adds another thread's tally.
    pub fn merge(&mut self, other: Self) {
        let attributes: Vec<Option<u16>> =
            other.attributes.all().iter().map(|attribute| self.attributes.number(attribute.name.as_bytes())).collect();
        let names: Vec<Vec<u32>> = other
            .names
            .iter()
            .zip(&mut self.names)
            .map(|(theirs, mine)| {
                let numbers = theirs.all.iter().skip(1).map(|name| mine.number(name.as_bytes()));
                std::iter::once(0).chain(numbers).collect()
            })
            .collect();
        let attribute = |number: u16| attributes.get(usize::from(number)).copied().flatten();
        let name = |of: usize, number: u32| names.get(of).and_then(|of| of.get(number as usize)).copied().unwrap_or(0);
        let mut by_index: Vec<(u32, String)> = other.by_id.into_iter().map(|(id, index)| (index, id)).collect();
        by_index.sort_unstable();
        for (theirs, (_, id)) in other.shapes.into_iter().zip(by_index) {
            let mut new = self.empty_shape();
            let index = *self.by_id.entry(id).or_insert_with(|| {
                (new.id, new.text, new.first) = (theirs.id.clone(), theirs.text.clone(), theirs.first);
                new.group.clone_from(&theirs.group);
                self.shapes.push(new);
                u32::try_from(self.shapes.len() - 1).unwrap_or(u32::MAX)
            });
            if let Some(mine) = self.shapes.get_mut(index as usize) {
                mine.merge(theirs, &attribute, &name);
            }
        }
        self.rest.merge(&other.rest);
        self.events = self.events.saturating_add(other.events);
        self.loose.extend(other.loose);
        self.server.merge(other.server);
        self.problems.merge(other.problems);
        self.lines.merge(other.lines);
    }
}

/// A statement without the comma behind which it was cut.
fn without_comma(sql: &[u8]) -> &[u8] {
    let sql = sql.trim_ascii_end();
    sql.strip_suffix(b",").unwrap_or(sql)
}

fn shortened(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let end = (0..=MOST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" …");
    }
    text
}

//! The requests that only read, and what their answers mean. A number of an error is 0 without one.

use super::{Reader, Writer};
use crate::database::event::Error;

/// The partition has another leader than the broker that was asked.
pub const NOT_LEADER: i16 = 6;
/// The group has another coordinator than the broker that was asked.
pub const NOT_COORDINATOR: i16 = 16;
/// The account may not do this with topics, groups and the cluster.
pub const DENIED: [i16; 3] = [29, 30, 31];

/// In place of a time in [`offsets`]: the end of the log.
pub const LATEST: i64 = -1;

/// Oldest broker that is read: it answers for many groups at once.
pub const OLDEST: &str = "3.0";

/// A broker as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its number.
    pub id: i32,
    /// Name or address.
    pub host: String,
    /// Its port; 0 if that is impossible.
    pub port: u16,
}

/// A topic.
#[derive(Debug)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Whether it is one of Kafka's own.
    pub is_internal: bool,
    /// Its partitions.
    pub partitions: Vec<Partition>,
}

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub index: i32,
    /// The leading broker; negative without one.
    pub leader: i32,
    /// Copies that it should have.
    pub replicas: usize,
    /// Of them, those that keep up.
    pub in_sync: usize,
}

/// A place in a partition, or what was committed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The partition.
    pub index: i32,
    /// The error's number.
    pub error: i16,
    /// Milliseconds since 1970 of the record there; negative if not known.
    pub time_ms: i64,
    /// Number of the record; negative without one.
    pub offset: i64,
}

/// Offsets by topic.
pub type Offsets = Vec<(String, Vec<Offset>)>;

/// What each group has committed, or the error's number.
pub type Commits = Vec<(String, Result<Offsets, i16>)>;

/// A group.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// `consumer`, empty for one that only commits, or another program's word.
    pub protocol: String,
    /// `Stable`, `Empty`, `PreparingRebalance`, …
    pub state: String,
    /// Its members' ids, each with its assignment.
    pub members: Vec<(String, Vec<u8>)>,
}

/// Whether a broker that answers [`super::API_VERSIONS`] like this speaks the version of every request.
///
/// # Errors
/// As for all answers: if it is not one.
pub fn is_new_enough(answer: &[u8]) -> Result<bool, Error> {
    let mut reader = Reader::new(answer);
    reader.i16()?;
    let known = reader.list(|reader| Ok((reader.i16()?, reader.i16()?, reader.i16()?)))?;
    let speaks = |call: &super::Call| {
        known.iter().any(|(key, from, to)| *key == call.key && (*from..=*to).contains(&call.version))
    };
    Ok([super::LIST_OFFSETS, super::METADATA, super::OFFSET_FETCH, super::DESCRIBE_GROUPS, super::LIST_GROUPS]
        .iter()
        .all(speaks))
}

/// Asks for all brokers and topics; creates none.
#[must_use]
pub fn metadata() -> Writer {
    let mut out = Writer::default();
    out.i32(-1).i8(0);
    out
}

/// Brokers and topics.
///
/// # Errors
/// If it is not an answer.
pub fn cluster(answer: &[u8]) -> Result<(Vec<Broker>, Vec<Topic>), Error> {
    let mut reader = Reader::new(answer);
    reader.i32()?;
    let brokers = reader.list(|reader| {
        let broker =
            Broker { id: reader.i32()?, host: reader.text()?, port: u16::try_from(reader.i32()?).unwrap_or(0) };
        reader.text()?;
        Ok(broker)
    })?;
    reader.text()?;
    reader.i32()?;
    let topics = reader.list(|reader| {
        reader.i16()?;
        let (name, is_internal) = (reader.text()?, reader.i8()? != 0);
        let partitions = reader.list(|reader| {
            reader.i16()?;
            let (index, leader) = (reader.i32()?, reader.i32()?);
            let mut count = || reader.list(Reader::i32).map(|list| list.len());
            let (replicas, in_sync, _offline) = (count()?, count()?, count()?);
            Ok(Partition { index, leader, replicas, in_sync })
        })?;
        Ok(Topic { name, is_internal, partitions })
    })?;
    Ok((brokers, topics))
}

/// Asks for the first record at or after a time (ms since 1970, or [`LATEST`]) in partitions of each topic.
#[must_use]
pub fn offsets(wanted: &[(&str, Vec<(i32, i64)>)]) -> Writer {
    let mut out = Writer::default();
    // A client, and records of transactions that are not over, too.
    out.i32(-1).i8(0).count(wanted.len());
    for (topic, partitions) in wanted {
        out.text(topic).count(partitions.len());
        for (index, time) in partitions {
            out.i32(*index).i64(*time);
        }
    }
    out
}

/// The offsets that were asked for.
///
/// # Errors
/// If it is not an answer.
pub fn listed(answer: &[u8]) -> Result<Offsets, Error> {
    let mut reader = Reader::new(answer);
    reader.i32()?;
    reader.list(|reader| {
        let topic = reader.text()?;
        let offsets = reader.list(|reader| {
            let (index, error, time_ms, offset) = (reader.i32()?, reader.i16()?, reader.i64()?, reader.i64()?);
            Ok(Offset { index, error, time_ms, offset })
        })?;
        Ok((topic, offsets))
    })
}

/// Asks what `groups` have committed of all topics.
#[must_use]
pub fn commits(groups: &[&str]) -> Writer {
    let mut out = Writer::default();
    out.compact_count(groups.len());
    for group in groups {
        out.compact_text(group).compact_none().tags();
    }
    out.i8(0).tags();
    out
}

/// What each group has committed, or the error's number.
///
/// # Errors
/// If it is not an answer.
pub fn committed(answer: &[u8]) -> Result<Commits, Error> {
    let mut reader = Reader::new(answer);
    reader.i32()?;
    reader.compact_list(|reader| {
        let group = reader.compact_text()?;
        let topics = reader.compact_list(|reader| {
            let topic = reader.compact_text()?;
            let offsets = reader.compact_list(|reader| {
                let (index, offset) = (reader.i32()?, reader.i64()?);
                reader.i32()?;
                reader.compact_text()?;
                Ok(Offset { index, error: reader.i16()?, time_ms: -1, offset })
            })?;
            Ok((topic, offsets))
        })?;
        let error = reader.i16()?;
        Ok((group, if error == 0 { Ok(topics) } else { Err(error) }))
    })
}

/// Asks for all groups of a broker.
#[must_use]
pub fn groups() -> Writer {
    let mut out = Writer::default();
    out.compact_count(0).tags();
    out
}

/// The groups that the broker coordinates, without members, or the error's number.
///
/// # Errors
/// If it is not an answer.
pub fn coordinated(answer: &[u8]) -> Result<Result<Vec<Group>, i16>, Error> {
    let mut reader = Reader::new(answer);
    reader.i32()?;
    let error = reader.i16()?;
    let groups = reader.compact_list(|reader| {
        let (name, protocol, state) = (reader.compact_text()?, reader.compact_text()?, reader.compact_text()?);
        Ok(Group { name, protocol, state, members: Vec::new() })
    })?;
    Ok(if error == 0 { Ok(groups) } else { Err(error) })
}

/// Asks for states and members of `groups`.
#[must_use]
pub fn members(groups: &[&str]) -> Writer {
    let mut out = Writer::default();
    out.count(groups.len());
    for group in groups {
        out.text(group);
    }
    out
}

/// The groups with their members; those with an error are left out.
///
/// # Errors
/// If it is not an answer.
pub fn described(answer: &[u8]) -> Result<Vec<Group>, Error> {
    let mut reader = Reader::new(answer);
    reader.i32()?;
    let groups = reader.list(|reader| {
        let error = reader.i16()?;
        let (name, state, protocol) = (reader.text()?, reader.text()?, reader.text()?);
        reader.text()?;
        let members = reader.list(|reader| {
            let id = reader.text()?;
            reader.text()?;
            reader.text()?;
            reader.blob()?;
            Ok((id, reader.blob()?.to_vec()))
        })?;
        Ok((error == 0).then_some(Group { name, protocol, state, members }))
    })?;
    Ok(groups.into_iter().flatten().collect())
}

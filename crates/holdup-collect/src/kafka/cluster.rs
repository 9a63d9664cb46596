//! What is known of a cluster: brokers, partitions with the course of their ends, groups with what they
//! have committed. Each broker is asked at most three things a sample, whatever the number of partitions
//! and groups.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdup_protocol::database::Error;
use holdup_protocol::database::kafka::read::{self, Offset, Offsets};
use holdup_protocol::database::kafka::{self, Call, Writer};
use holdup_recording::clock;

use super::address::Address;
use super::broker::{Broker, Failure};
use super::groups::Groups;
use super::history::{Age, History};

/// How often brokers and topics are read.
const METADATA_EVERY: Duration = Duration::from_secs(30);

/// A partition as it is now.
pub(super) struct Partition {
    leader: i32,
    pub(super) is_short: bool,
    pub(super) is_leaderless: bool,
    /// The end of its log, if it was read in this sample.
    pub(super) end: Option<i64>,
    history: History,
    /// The first offset that some group has not done with.
    needed: Option<i64>,
}

/// A question for the broker's index of time: topic, partition, and ms since 1970.
type Question = (String, i32, i64);

/// Partitions of each topic, with the time to ask for.
type Wanted<'a> = Vec<(&'a str, Vec<(i32, i64)>)>;

/// What a group has left of a topic.
#[derive(Debug, PartialEq)]
pub(super) struct Remainder {
    pub(super) group: String,
    pub(super) topic: String,
    /// Sums over its partitions: offsets, and records.
    pub(super) committed: i64,
    pub(super) backlog: i64,
    /// Seconds, number and backlog of the worst partition; none while the seconds are not known.
    pub(super) worst: Option<(f64, i32, i64)>,
}

pub(super) struct Cluster {
    address: Address,
    /// Those that the address names.
    seeds: Vec<Broker>,
    brokers: BTreeMap<i32, Broker>,
    pub(super) topics: BTreeMap<String, BTreeMap<i32, Partition>>,
    pub(super) groups: Groups,
    /// When brokers and topics are due.
    metadata_due: Option<Instant>,
    /// Whether they were read since that was last taken.
    pub(super) has_news: bool,
    questions: Vec<Question>,
    pub(super) failures: Vec<String>,
}

impl Cluster {
    pub(super) fn new(address: Address) -> Self {
        let seeds = address.brokers.iter().map(|(host, port)| Broker::new(host, *port)).collect();
        Self {
            address,
            seeds,
            brokers: BTreeMap::new(),
            topics: BTreeMap::new(),
            groups: Groups::default(),
            metadata_due: None,
            has_news: false,
            questions: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn forget_failures(&self) {
        self.seeds.iter().chain(self.brokers.values()).for_each(Broker::forget_failures);
    }

    /// Whether brokers and topics should be read again.
    pub(super) fn is_stale(&self) -> bool {
        self.metadata_due.is_none_or(|due| Instant::now() >= due)
    }

    /// Whether something is left to ask the index.
    pub(super) fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Reads brokers and topics, from the first broker that answers.
    pub(super) fn refresh(&mut self) -> Result<(), Failure> {
        let mut answer = None;
        for broker in self.brokers.values_mut().chain(&mut self.seeds) {
            let found = broker.ask(&self.address, kafka::METADATA, &read::metadata(), read::cluster);
            let is_found = found.is_ok();
            answer = Some(found);
            if is_found {
                break;
            }
        }
        let (brokers, topics) = answer.unwrap_or_else(|| Err(Failure::Lost("no broker is named".to_owned())))?;
        self.metadata_due = Some(Instant::now() + METADATA_EVERY);
        self.has_news = true;
        let mut known = std::mem::take(&mut self.brokers);
        for of in brokers {
            let same = known.remove(&of.id).filter(|broker| broker.is_at(&of.host, of.port));
            let seed = || {
                let place = self.seeds.iter().position(|seed| seed.is_at(&of.host, of.port))?;
                Some(std::mem::replace(self.seeds.get_mut(place)?, Broker::new(&of.host, of.port)))
            };
            let broker = same.or_else(seed).unwrap_or_else(|| Broker::new(&of.host, of.port));
            self.brokers.insert(of.id, broker);
        }
        // From now on the brokers are asked by the names that they give themselves.
        self.seeds.iter_mut().for_each(Broker::close);
        let mut before = std::mem::take(&mut self.topics);
        for topic in topics.into_iter().filter(|topic| !topic.is_internal) {
            let mut known = before.remove(&topic.name).unwrap_or_default();
            let partitions = topic.partitions.into_iter().map(|of| {
                let (history, needed) = known.remove(&of.index).map(|it| (it.history, it.needed)).unwrap_or_default();
                let (is_short, is_leaderless) = (of.in_sync < of.replicas, of.leader < 0);
                (of.index, Partition { leader: of.leader, is_short, is_leaderless, end: None, history, needed })
            });
            self.topics.insert(topic.name, partitions.collect());
        }
        Ok(())
    }

    /// Asks every broker, or notes why none came: what it leads may have moved then.
    fn each<T>(
        &mut self,
        call: Call,
        mut body: impl FnMut(i32) -> Option<Writer>,
        read: fn(&[u8]) -> Result<T, Error>,
    ) -> Vec<(i32, T)> {
        let mut answers = Vec::new();
        for (id, broker) in &mut self.brokers {
            let Some(body) = body(*id) else { continue };
            match broker.ask(&self.address, call, &body, read) {
                Ok(answer) => answers.push((*id, answer)),
                Err(failure) => {
                    self.failures.push(failure.to_string());
                    self.metadata_due = None;
                    self.groups.are_stale();
                }
            }
        }
        answers
    }

    /// Asks the leaders of partitions for offsets, each for the time that `time` names.
    fn offsets(&mut self, time: impl Fn(&str, i32) -> Option<i64>) -> Offsets {
        let mut by_leader: BTreeMap<i32, Wanted<'_>> = BTreeMap::new();
        for (topic, partitions) in &self.topics {
            for (index, of) in partitions {
                let Some(time) = time(topic, *index) else { continue };
                let wanted = by_leader.entry(of.leader).or_default();
                if wanted.last().is_none_or(|(last, _)| last != topic) {
                    wanted.push((topic, Vec::new()));
                }
                if let Some((_, indexes)) = wanted.last_mut() {
                    indexes.push((*index, time));
                }
            }
        }
        let mut bodies: BTreeMap<i32, Writer> =
            by_leader.into_iter().map(|(leader, wanted)| (leader, read::offsets(&wanted))).collect();
        let answers = self.each(kafka::LIST_OFFSETS, |id| bodies.remove(&id), read::listed);
        let mut all: Offsets = answers.into_iter().flat_map(|(_, topics)| topics).collect();
        for (_, offsets) in &mut all {
            if offsets.iter().any(|of| of.error == read::NOT_LEADER) {
                self.metadata_due = None;
            }
            offsets.retain(|of| of.error == 0);
        }
        all
    }

    /// Reads where all logs end.
    pub(super) fn read_ends(&mut self) {
        self.topics.values_mut().flat_map(BTreeMap::values_mut).for_each(|of| of.end = None);
        let ends = self.offsets(|_, _| Some(read::LATEST));
        let now_ms = clock::now_ns() / 1_000_000;
        for (topic, offsets) in ends {
            let Some(partitions) = self.topics.get_mut(&topic) else { continue };
            for of in offsets.into_iter().filter(|of| of.offset >= 0) {
                let Some(partition) = partitions.get_mut(&of.index) else { continue };
                partition.end = Some(of.offset);
                // A topic that no group reads needs no history.
                if let Some(needed) = partition.needed {
                    partition.history.add(now_ms, of.offset);
                    partition.history.forget(needed);
                }
            }
        }
    }

    /// Asks the index what was left open, one question for a partition.
    pub(super) fn look_up(&mut self) {
        let mut questions: BTreeMap<String, BTreeMap<i32, i64>> = BTreeMap::new();
        for (topic, index, time) in std::mem::take(&mut self.questions) {
            questions.entry(topic).or_default().insert(index, time);
        }
        for (topic, offsets) in self.offsets(|topic, index| questions.get(topic)?.get(&index).copied()) {
            let Some((asked, partitions)) = questions.get(&topic).zip(self.topics.get_mut(&topic)) else { continue };
            for of in offsets {
                if let (Some(asked), Some(partition)) = (asked.get(&of.index), partitions.get_mut(&of.index))
                    && let Some(end) = partition.end
                {
                    let record = (of.offset >= 0 && of.time_ms >= 0).then_some((of.time_ms, of.offset));
                    partition.history.answer(*asked, record, end);
                }
            }
        }
    }

    /// Reads what all groups have committed.
    fn commits(&mut self) -> Vec<(String, Offsets)> {
        let by_broker = self.groups.by_coordinator();
        let body = |id: i32| {
            let groups: Vec<&str> = by_broker.get(&id)?.iter().map(String::as_str).collect();
            Some(read::commits(&groups))
        };
        let answers = self.each(kafka::OFFSET_FETCH, body, read::committed);
        let mut commits = Vec::new();
        for (group, offsets) in answers.into_iter().flat_map(|(_, groups)| groups) {
            match offsets {
                Ok(offsets) => commits.push((group, offsets)),
                Err(code) => {
                    self.failures.push(Failure::Server(code, format!("offsets of group {group}")).to_string());
                    self.groups.are_stale();
                }
            }
        }
        commits
    }

    /// Reads what groups have committed, and says what each has left of each topic. A topic of which one
    /// partition's end is not known is left out.
    pub(super) fn remainders(&mut self) -> Vec<Remainder> {
        let commits = self.commits();
        self.questions.clear();
        self.topics.values_mut().flat_map(BTreeMap::values_mut).for_each(|of| of.needed = None);
        let now_ms = clock::now_ns() / 1_000_000;
        let mut all = Vec::new();
        for (group, topics) in commits {
            for (topic, offsets) in topics {
                all.extend(self.remainder(&group, topic, &offsets, now_ms));
            }
        }
        all
    }

    fn remainder(&mut self, group: &str, topic: String, offsets: &[Offset], now_ms: i64) -> Option<Remainder> {
        let partitions = self.topics.get_mut(&topic)?;
        let (mut backlog, mut committed, mut count) = (0_i64, 0_i64, 0);
        let (mut is_open, mut is_whole) = (false, true);
        let mut worst: Option<(f64, i32, i64)> = None;
        // A partition may have no commit, and a topic may have been made anew with fewer partitions.
        for Offset { index, offset, .. } in offsets.iter().filter(|of| of.error == 0 && of.offset >= 0) {
            let Some(partition) = partitions.get_mut(index) else { continue };
            partition.needed = Some(partition.needed.map_or(*offset, |needed| needed.min(*offset)));
            count += 1;
            let Some(end) = partition.end else {
                is_whole = false;
                continue;
            };
            let left = end.saturating_sub(*offset).max(0);
            backlog = backlog.saturating_add(left);
            committed = committed.saturating_add(*offset);
            let age = if left == 0 { Age::Known(0.0) } else { partition.history.age(*offset, now_ms) };
            match age {
                Age::Known(age) if worst.is_none_or(|(worst, _, most)| (age, left) > (worst, most)) => {
                    worst = Some((age, *index, left));
                }
                Age::Known(_) => {}
                Age::Ask(time) => {
                    is_open = true;
                    self.questions.push((topic.clone(), *index, time));
                }
            }
        }
        (is_whole && count > 0).then(|| Remainder {
            group: group.to_owned(),
            topic,
            committed,
            backlog,
            worst: worst.filter(|_| !is_open),
        })
    }

    /// Reads which groups there are, and which broker coordinates each.
    pub(super) fn list_groups(&mut self) {
        let answers = self.each(kafka::LIST_GROUPS, |_| Some(read::groups()), read::coordinated);
        let mut lists = Vec::new();
        for (broker, list) in answers {
            match list {
                Ok(list) => lists.push((broker, list)),
                Err(code) => self.failures.push(Failure::Server(code, "groups".to_owned()).to_string()),
            }
        }
        self.groups.listed(lists);
    }

    /// Reads states and members of all groups.
    pub(super) fn describe_groups(&mut self) {
        let by_broker = self.groups.by_coordinator();
        let body = |id: i32| {
            let groups: Vec<&str> = by_broker.get(&id)?.iter().map(String::as_str).collect();
            Some(read::members(&groups))
        };
        let answers = self.each(kafka::DESCRIBE_GROUPS, body, read::described);
        self.groups.described(answers.into_iter().flat_map(|(_, groups)| groups).collect());
    }
}

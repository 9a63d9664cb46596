//! `--watch kafka://HOST:PORT`: a Kafka cluster. Each sample has the ends of logs, and what each consumer
//! group has left of each topic: records, and seconds since the first of them came. Members, rebalances
//! and copies of partitions come at a slower pace.
//!
//! It sends requests that only read, needs the right Describe alone, and reads no record. How old a record
//! is follows from holdup's own samples; what is older than these from the brokers' index of time stamps.

mod address;
mod broker;
mod cluster;
mod groups;
mod history;

use holdup_protocol::database::kafka::Mechanism;
use holdup_recording::metrics::kafka as metric;
use holdup_recording::{Batch, Coverage, Labels, events};

use self::address::{Address, PASSWORD_VARIABLE};
use self::broker::Failure;
use self::cluster::{Cluster, Remainder};
use crate::coverage::{Line as _, part};
use crate::database::login_refused;
use crate::line::Tls;
use crate::options::Options;
use crate::reading::Out;
use crate::{Collector, ProbeError, ReadError};

/// The least that an account needs.
const GRANT: &str = "kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:holdup \
    --operation Describe --topic '*' --group '*' --cluster";

/// Most topics, and most pairs of group and topic, in one sample: those with the largest backlog.
const ROWS_MAX: usize = 1_000;

/// Characters kept of a name: a topic's longest.
const NAME_CHARACTERS_MAX: usize = 249;

/// Most questions for the age of records before the first sample; later it is one a sample.
const QUESTIONS_MAX: usize = 16;

/// Makes the collector for `kafka://…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let address = Address::parse(rest)?;
    Ok(Box::new(Kafka { source: address.source(), cluster: Cluster::new(address.clone()), address }))
}

struct Kafka {
    source: String,
    address: Address,
    cluster: Cluster,
}

impl Collector for Kafka {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.cluster.forget_failures();
        self.cluster.refresh().map_err(|failure| self.unusable(&failure))?;
        self.cluster.list_groups();
        self.cluster.describe_groups();
        for _ in 0..QUESTIONS_MAX {
            self.cluster.read_ends();
            self.cluster.remainders();
            if !self.cluster.has_questions() {
                break;
            }
            self.cluster.look_up();
        }
        self.cluster.failures.clear();
        Ok(self.coverage())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let cluster = &mut self.cluster;
        let mut out = Out::new(batch, &self.source);
        let is_fresh = cluster.is_stale();
        if is_fresh && let Err(failure) = cluster.refresh() {
            return Err(ReadError(failure.to_string()));
        }
        out.begin();
        cluster.read_ends();
        let remainders = cluster.remainders();
        put_topics(cluster, &mut out);
        put_remainders(remainders, &mut out);
        // The third question of a sample.
        match () {
            () if is_fresh => {}
            () if cluster.groups.is_list_due() => cluster.list_groups(),
            () if cluster.groups.are_members_due() => cluster.describe_groups(),
            () if cluster.has_questions() => cluster.look_up(),
            () => {}
        }
        put_groups(cluster, &mut out);
        ReadError::all(std::mem::take(&mut cluster.failures))
    }
}

fn name(name: &str) -> String {
    name.chars().take(NAME_CHARACTERS_MAX).collect()
}

fn put_topics(cluster: &mut Cluster, out: &mut Out) {
    for (topic, partitions) in cluster.topics.iter().take(ROWS_MAX) {
        // A sum without one partition would be another topic's.
        let end = partitions.values().try_fold(0_i64, |sum, partition| Some(sum.saturating_add(partition.end?)));
        if let Some(end) = end.filter(|_| !partitions.is_empty()) {
            out.put(metric::END_OFFSET, Labels::new([("topic", name(topic))]), end as f64);
        }
    }
    if std::mem::take(&mut cluster.has_news) {
        let all = || cluster.topics.values().flat_map(|partitions| partitions.values());
        out.put_plain(metric::PARTITIONS, all().count() as f64);
        out.put_plain(metric::UNDER_REPLICATED_PARTITIONS, all().filter(|it| it.is_short).count() as f64);
        out.put_plain(metric::LEADERLESS_PARTITIONS, all().filter(|it| it.is_leaderless).count() as f64);
    }
}

fn put_remainders(mut remainders: Vec<Remainder>, out: &mut Out) {
    remainders.sort_by_key(|of| std::cmp::Reverse(of.backlog));
    for of in remainders.into_iter().take(ROWS_MAX) {
        let labels = Labels::new([("group", name(&of.group)), ("topic", name(&of.topic))]);
        let worst = of.worst;
        out.put_known(
            &labels,
            [
                (metric::COMMITTED_OFFSET, Some(of.committed as f64)),
                (metric::BACKLOG, Some(of.backlog as f64)),
                (metric::LAG, worst.map(|(seconds, ..)| seconds)),
                (metric::WORST_PARTITION, worst.map(|(_, index, _)| f64::from(index))),
                (metric::WORST_PARTITION_BACKLOG, worst.map(|(.., backlog)| backlog as f64)),
            ],
        );
    }
}

fn put_groups(cluster: &mut Cluster, out: &mut Out) {
    let looks = std::mem::take(&mut cluster.groups.looks);
    if !looks.is_empty() {
        out.begin();
    }
    for look in looks.into_iter().take(ROWS_MAX) {
        let labels = Labels::new([("group", name(&look.group))]);
        out.put(metric::GROUP_MEMBERS, labels.clone(), look.members as f64);
        out.put(metric::GROUP_REBALANCES, labels.clone(), look.rebalances as f64);
        if look.is_rebalanced {
            let text = format!("group {}: its partitions were given out anew, now to {}", look.group, look.members);
            let labels = labels.with("state", name(&look.state)).with("members", look.members.to_string());
            out.say(events::REBALANCE, text, labels);
        }
    }
}

impl Kafka {
    fn coverage(&self) -> Vec<Coverage> {
        let mut parts = Vec::new();
        if self.cluster.topics.is_empty() {
            parts.push(
                part(&self.source, "topics").absent("the account sees no topic, or the cluster has none").enable(GRANT),
            );
        }
        if self.cluster.groups.is_empty() {
            let why = "the account sees no consumer group, or the cluster has none";
            parts.push(part(&self.source, "groups").absent(why).enable(GRANT));
        }
        let mut lines = Coverage::with_parts(&self.source, parts);
        if let (Some((mechanism, _)), Tls::Off, Some(own)) =
            (&self.address.account, &self.address.tls, lines.first_mut())
        {
            let risk = match mechanism {
                Mechanism::Plain => "the password goes over the network unencrypted",
                Mechanism::ScramSha256 => {
                    "the login is not encrypted, and an eavesdropper can guess the password from it"
                }
            };
            let before = own.why.take().map_or_else(String::new, |why| format!("{why}; "));
            own.why = Some(format!("{before}{risk}: use TLS (?tls=verify)"));
        }
        lines
    }

    fn unusable(&self, failure: &Failure) -> ProbeError {
        let Failure::Login(words) = failure else {
            let tls = if self.address.tls == Tls::Off { " without TLS (?tls=verify)" } else { "" };
            let none = if self.address.account.is_none() { ", without an account (kafka://USER@HOST)" } else { "" };
            let why = format!("{failure}; does a broker listen there{tls}{none}?");
            return ProbeError::unreachable(&self.source, why);
        };
        let Some((_, login)) = &self.address.account else { return ProbeError::denied(&self.source, words) };
        let is_given = !login.password.reveal().is_empty();
        ProbeError::denied(&self.source, login_refused(words, &login.user, is_given, PASSWORD_VARIABLE))
    }
}

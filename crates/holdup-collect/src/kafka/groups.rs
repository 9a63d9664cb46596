//! The consumer groups: who coordinates each, its members, and rebalances, which show as other members or
//! as another assignment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use holdup_protocol::database::kafka::read;

/// How often groups and their members are read.
const EVERY: Duration = Duration::from_secs(5);

/// The state of a group that gives its partitions out anew.
const REBALANCING: [&str; 4] = ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"];

/// What a group that the request for members does not know is called: one of the newer protocol.
const DEAD: &str = "Dead";

/// What `protocol` groups of consumers have: none if they only commit.
const CONSUMERS: [&str; 2] = ["consumer", ""];

#[derive(Debug, Default)]
struct Group {
    coordinator: i32,
    /// The assignment of each member, when it last stood still.
    settled: Option<BTreeMap<String, Vec<u8>>>,
    was_rebalancing: bool,
    rebalances: u64,
}

/// What a look at the members of a group showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) group: String,
    pub(super) state: String,
    pub(super) members: usize,
    /// So far.
    pub(super) rebalances: u64,
    /// Whether one was seen now.
    pub(super) is_rebalanced: bool,
}

#[derive(Default)]
pub(super) struct Groups {
    all: BTreeMap<String, Group>,
    /// When lists and members are due.
    list_due: Option<Instant>,
    members_due: Option<Instant>,
    /// Those of this sample.
    pub(super) looks: Vec<Look>,
}

impl Groups {
    /// Whether holdup may see none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Their coordinators may have changed.
    pub(super) fn are_stale(&mut self) {
        self.list_due = None;
    }

    pub(super) fn is_list_due(&self) -> bool {
        self.list_due.is_none_or(|due| Instant::now() >= due)
    }

    pub(super) fn are_members_due(&self) -> bool {
        self.members_due.is_none_or(|due| Instant::now() >= due)
    }

    /// The groups of each broker.
    pub(super) fn by_coordinator(&self) -> BTreeMap<i32, Vec<String>> {
        let mut all: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for (name, group) in &self.all {
            all.entry(group.coordinator).or_default().push(name.clone());
        }
        all
    }

    /// What each broker lists. The groups of one that does not answer stay.
    pub(super) fn listed(&mut self, lists: Vec<(i32, Vec<read::Group>)>) {
        self.list_due = Some(Instant::now() + EVERY);
        let answered: BTreeSet<i32> = lists.iter().map(|(broker, _)| *broker).collect();
        let mut before = std::mem::take(&mut self.all);
        for (broker, list) in lists {
            for of in list.into_iter().filter(|of| CONSUMERS.contains(&of.protocol.as_str())) {
                let known = before.remove(&of.name).unwrap_or_default();
                self.all.insert(of.name, Group { coordinator: broker, ..known });
            }
        }
        before.retain(|_, group| !answered.contains(&group.coordinator));
        self.all.extend(before);
    }

    /// What brokers say of members.
    pub(super) fn described(&mut self, described: Vec<read::Group>) {
        self.members_due = Some(Instant::now() + EVERY);
        for of in described.into_iter().filter(|of| of.state != DEAD) {
            let Some(group) = self.all.get_mut(&of.name) else { continue };
            let members = of.members.len();
            let is_rebalanced = group.look(&of);
            let rebalances = group.rebalances;
            self.looks.push(Look { group: of.name, state: of.state, members, rebalances, is_rebalanced });
        }
    }
}

impl Group {
    /// Whether there was a rebalance since the last look. One that goes on counts when it is over.
    fn look(&mut self, of: &read::Group) -> bool {
        if REBALANCING.contains(&of.state.as_str()) {
            self.was_rebalancing = true;
            return false;
        }
        let now: BTreeMap<String, Vec<u8>> = of.members.iter().cloned().collect();
        let differs = self.settled.as_ref().is_some_and(|before| *before != now);
        let is_rebalanced = differs || self.was_rebalancing;
        self.was_rebalancing = false;
        self.settled = Some(now);
        self.rebalances += u64::from(is_rebalanced);
        is_rebalanced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(state: &str, members: &[(&str, &[u8])]) -> read::Group {
        let members = members.iter().map(|(id, assigned)| ((*id).to_owned(), assigned.to_vec())).collect();
        read::Group { name: "index".to_owned(), protocol: "consumer".to_owned(), state: state.to_owned(), members }
    }

    #[test]
    fn a_rebalance_counts_once_and_when_it_is_over() {
        let mut groups = Groups::default();
        groups.listed(vec![(1, vec![group("Stable", &[])])]);
        let mut look = |of| {
            groups.described(vec![of]);
            let look = groups.looks.pop().unwrap();
            (look.is_rebalanced, look.rebalances, look.members)
        };
        assert_eq!(look(group("Stable", &[("a", b"0,1")])), (false, 0, 1));
        assert_eq!(look(group("Stable", &[("a", b"0,1")])), (false, 0, 1));
        assert_eq!(look(group("PreparingRebalance", &[("a", b"")])), (false, 0, 1));
        assert_eq!(look(group("Stable", &[("a", b"0"), ("b", b"1")])), (true, 1, 2));
        // One between two looks, and one that ended as it began.
        assert_eq!(look(group("Empty", &[])), (true, 2, 0));
        assert_eq!(look(group("CompletingRebalance", &[])), (false, 2, 0));
        assert_eq!(look(group("Empty", &[])), (true, 3, 0));
    }

    #[test]
    fn groups_of_a_silent_broker_stay_and_other_programs_groups_are_left_out() {
        let named = |name: &str, protocol: &str| read::Group {
            name: name.to_owned(),
            protocol: protocol.to_owned(),
            ..group("Stable", &[])
        };
        let mut groups = Groups::default();
        groups.listed(vec![(1, vec![named("a", "consumer"), named("c", "connect")]), (2, vec![named("b", "")])]);
        groups.listed(vec![(1, vec![])]);
        assert_eq!(groups.by_coordinator(), BTreeMap::from([(2, vec!["b".to_owned()])]));
        // The newer protocol's groups are not known to this request.
        groups.described(vec![read::Group { name: "b".to_owned(), ..group("Dead", &[]) }]);
        assert!(groups.looks.is_empty());
    }
}

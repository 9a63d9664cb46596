//! A phase's `mix`: which operations, or kinds of sessions, it sends in which proportion. An entry is
//! a weight, which replaces that of the scenario, or a rate, which the operation has instead of its
//! share. Operations that a mix does not name keep their weights.

use crate::script::program::Script;
use crate::yaml::{Node, YamlError, hint};

use super::{MAX_RATE, Operation, Sessions};

/// Greatest weight.
pub const MAX_WEIGHT: u32 = 1_000_000;

/// A rate as a weight: parts of a request per second. The sum of all rates stays below 2^64.
const PARTS: f64 = 65_536e6;

/// What weights apply to: name and weight of each operation or session.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// `operation` or `session`.
    what: &'static str,
    weights: Vec<(String, u32)>,
}

impl Kinds {
    /// The operations, or the sessions that take turns.
    pub fn new(operations: &[Operation], sessions: Option<&Sessions>) -> Self {
        let flows = |script: &Script, s: &Sessions| {
            let flows = script.flows.iter().skip(s.first as usize).take(s.flows as usize);
            flows.map(|flow| (flow.name.clone(), flow.weight)).collect()
        };
        match sessions {
            Some(sessions) => Self { what: "session", weights: flows(&sessions.script, sessions) },
            None => {
                Self { what: "operation", weights: operations.iter().map(|o| (o.name.clone(), o.weight)).collect() }
            }
        }
    }

    /// Whether one is sent where no mix says otherwise. True if it is not known what is sent.
    pub fn has_weight(&self) -> bool {
        self.weights.is_empty() || self.weights.iter().any(|(_, weight)| *weight > 0)
    }

    /// For tests.
    #[cfg(test)]
    pub fn of(weights: &[(&str, u32)]) -> Self {
        let weights = weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
        Self { what: "operation", weights }
    }

    /// Index of the one called `name`.
    fn index(&self, name: &str, node: &Node) -> Result<usize, YamlError> {
        let what = self.what;
        let mut found = self.weights.iter().enumerate().filter(|(_, (own, _))| own == name).map(|(i, _)| i);
        match (found.next(), found.next()) {
            (Some(index), None) => Ok(index),
            (Some(_), Some(_)) => {
                Err(node.error(format!("several {what}s are called \"{name}\"; give each its own \"name\"")))
            }
            (None, _) => {
                let names: Vec<&str> = self.weights.iter().map(|(own, _)| own.as_str()).collect();
                Err(node.error(format!("no {what} is called \"{name}\"; {}", hint(name, &names))))
            }
        }
    }

    /// # Errors
    /// If one of the nodes `list`, which are these kinds, has weight 0 and no phase sends it.
    pub fn check_used(&self, list: &[Node], mixes: &[Option<Vec<u64>>]) -> Result<(), YamlError> {
        let is_sent = |index: usize| mixes.iter().flatten().any(|mix| mix.get(index).is_some_and(|weight| *weight > 0));
        let unused = self.weights.iter().enumerate().find(|(index, (_, weight))| *weight == 0 && !is_sent(*index));
        match unused.and_then(|(index, (name, _))| Some((list.get(index)?, name))) {
            Some((node, name)) => Err(node.error(format!(
                "\"{name}\" has weight 0 and no phase's mix sends it; name it in a \"mix\", or remove it"
            ))),
            None => Ok(()),
        }
    }
}

/// A parsed `mix`.
pub struct Mix<'a> {
    node: &'a Node,
    weights: Vec<u32>,
    rates: Vec<Option<f64>>,
    /// Whether an entry is a weight.
    has_weights: bool,
}

impl<'a> Mix<'a> {
    /// Reads `{search: 3, report: 50/s}`.
    ///
    /// # Errors
    /// The first mistake, with its line and what would be right.
    pub fn parse(node: &'a Node, kinds: &Kinds) -> Result<Self, YamlError> {
        if kinds.weights.len() < 2 {
            return Err(node.error("a mix needs several \"operations\" or \"sessions\" to choose from; remove \"mix\""));
        }
        let mut mix = Self {
            node,
            weights: kinds.weights.iter().map(|(_, weight)| *weight).collect(),
            rates: vec![None; kinds.weights.len()],
            has_weights: false,
        };
        for (name, entry) in node.entries()? {
            let index = kinds.index(name, entry)?;
            let text = entry.text()?;
            let wrong = || entry.error(format!("expected a weight such as 3 or a rate such as 50/s, found \"{text}\""));
            if let Some(rate) = text.strip_suffix("/s") {
                let rate: f64 = rate.trim().parse().map_err(|_| wrong())?;
                if !(0.0..=MAX_RATE).contains(&rate) {
                    return Err(entry.error(format!("{text} is out of range: from 0/s to {MAX_RATE}/s")));
                }
                mix.rates[index] = Some(rate);
            } else {
                text.parse::<u32>().map_err(|_| wrong())?;
                mix.weights[index] = entry.integer("weight", 0..=MAX_WEIGHT)?;
                mix.has_weights = true;
            }
        }
        Ok(mix)
    }

    /// The weights, in a part of the load where there are no rates of single operations: `why` says
    /// so.
    ///
    /// # Errors
    /// If it has such a rate, or sends nothing.
    pub fn weights(&self, why: &str) -> Result<Vec<u64>, YamlError> {
        if self.rates.iter().any(Option::is_some) {
            return Err(self.node.error(format!("{why}; give weights, without /s")));
        }
        if self.weights.iter().all(|weight| *weight == 0) {
            return Err(self.node.error("every weight is 0, so nothing is sent; give one a weight above 0"));
        }
        Ok(self.weights.iter().copied().map(u64::from).collect())
    }

    /// The rate of all together and the weight of each, where those without their own rate share
    /// `rate`; without it they are not sent.
    ///
    /// # Errors
    /// If nothing has a share of `rate`, a weight has no rate to share, or the sum is out of range.
    pub fn of_rate(&self, rate: Option<f64>) -> Result<(f64, Vec<u64>), YamlError> {
        if self.rates.iter().all(Option::is_none)
            && let Some(rate) = rate
        {
            return Ok((rate, self.weights("")?));
        }
        if rate.is_none() && self.has_weights {
            return Err(self
                .node
                .error("weights share the phase's rate; add \"rate\", or give each a rate such as 50/s"));
        }
        let sum: f64 = self.weights.iter().map(|weight| f64::from(*weight)).sum();
        let share = |weight: u32| rate.map_or(0.0, |rate| rate * f64::from(weight) / sum);
        let shares: Vec<f64> = self.weights.iter().zip(&self.rates).map(|(w, own)| own.unwrap_or(share(*w))).collect();
        let is_shared = self.weights.iter().zip(&self.rates).any(|(weight, own)| own.is_none() && *weight > 0);
        if rate.is_some() && !is_shared {
            return Err(self
                .node
                .error("each operation that is sent has its own rate; remove \"rate\" from the phase"));
        }
        let total: f64 = shares.iter().sum();
        if !(0.001..=MAX_RATE).contains(&total) {
            return Err(self.node.error(format!("{total}/s in all is out of range: from 0.001 to {MAX_RATE}")));
        }
        Ok((total, shares.into_iter().map(|share| (share * PARTS).round() as u64).collect()))
    }
}

//! How the load is generated: nothing here changes which requests are due when.

use crate::yaml::{Node, YamlError};

/// How often a loop wakes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Every 50 us: requests are sent when they are due.
    #[default]
    Precise,
    /// Every 250 us: less CPU at high rates; requests that are due within one wake-up are sent
    /// together.
    Economy,
}

impl Pace {
    /// A loop wakes at most this often, nanoseconds.
    pub fn quantum_ns(self) -> i64 {
        match self {
            Self::Precise => 50_000,
            Self::Economy => 250_000,
        }
    }

    /// Reads `precise` or `economy`.
    ///
    /// # Errors
    /// A message that lists the accepted names.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "precise" => Ok(Self::Precise),
            "economy" => Ok(Self::Economy),
            _ => Err(format!("\"{text}\" is not a pace; use precise or economy")),
        }
    }

    pub(super) fn read(node: &Node) -> Result<Self, YamlError> {
        Self::parse(node.text()?).map_err(|why| node.error(why))
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generator {
    /// How often a loop wakes at most.
    pub pace: Pace,
    /// Open all connections before the first request is due, and use them in turn.
    pub open_all: bool,
    /// Loops, each a thread; if not given, as many as the rate needs.
    pub loops: Option<u32>,
    /// CPUs to pin the loops to, in order; if not given, loops are pinned when there is one for
    /// every CPU.
    pub cpus: Vec<usize>,
    /// Most request rows to keep.
    pub rows: Option<u64>,
    /// Go on when the target can't be reached at first, and count the failures.
    pub keep_going: bool,
}

/// Most requests per second for one loop, where there are CPUs for more loops.
const RATE_OF_ONE_LOOP: f64 = 20_000.0;

impl Generator {
    /// The number of loops for `peak_rate` requests a second (none: as many as possible) in `slots`
    /// slots on `cpus` CPUs. A service on this machine needs some of the CPUs, too.
    pub fn loops(&self, peak_rate: Option<f64>, slots: u32, cpus: usize, is_local: bool) -> u32 {
        if let Some(loops) = self.loops {
            return loops.clamp(1, slots.max(1));
        }
        if !self.cpus.is_empty() {
            return (self.cpus.len() as u32).min(slots.max(1));
        }
        let needed = match peak_rate {
            Some(rate) => (rate / RATE_OF_ONE_LOOP).ceil() as u32,
            None => u32::MAX,
        };
        let available = if is_local { cpus / 2 } else { cpus };
        needed.min(available as u32).clamp(1, slots.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_as_many_as_needed() {
        let auto = Generator::default();
        assert_eq!(auto.loops(Some(500.0), 50, 8, false), 1);
        assert_eq!(auto.loops(Some(65_000.0), 50, 8, false), 4);
        assert_eq!(auto.loops(None, 64, 8, true), 4);
        assert_eq!(auto.loops(None, 1, 8, false), 1);
        assert_eq!(Generator { loops: Some(3), ..auto.clone() }.loops(Some(1.0), 50, 1, true), 3);
        assert_eq!(Generator { cpus: vec![4, 5], ..auto }.loops(Some(1.0), 50, 1, true), 2);
    }
}

//! `--watch tracepoints`: facts that the kernel reports only while traced: how large block requests
//! are, whether they are sequential, and how long calls on files and directories take.
//!
//! It is separate from `host` because it costs the watched system something: a tracepoint on system
//! calls slows every call of every process by some 100 ns while it is on. Nothing outlives holdup:
//! the kernel removes it when holdup's descriptors close. It leaves other tracing alone and mounts
//! nothing.

mod blocks;
mod calls;
mod format;
mod ring;

use holdup_recording::{Batch, Coverage, Labels, metrics};

use self::blocks::Blocks;
use self::calls::{Calls, Edge};
use self::format::Format;
use self::ring::Ring;
use crate::coverage::{Line as _, part};
use crate::options::Options;
use crate::proc::{Proc, cpus};
use crate::reading::Out;
use crate::{Collector, ProbeError, ReadError};

const SOURCE: &str = "tracepoints";

/// Largest number of traced CPUs: each takes three rings.
const CPUS_MAX: usize = 128;

/// How to permit tracing.
const ENABLE: &str = "run holdup as root, or give it CAP_PERFMON and let it read /sys/kernel/tracing";

/// The rings of one tracepoint, one per CPU.
struct Traced {
    format: Format,
    rings: Vec<Ring>,
    lost: u64,
}

impl Traced {
    /// Starts recording `name` on all `cpus`.
    fn open(root: &std::path::Path, name: &str, cpus: &[usize], filter: Option<&str>) -> Result<Self, String> {
        let format = Format::read(root, name)?;
        let open = |cpu: &usize| Ring::open(format.id, *cpu, filter);
        let rings: Result<Vec<Ring>, _> = cpus.iter().map(open).collect();
        let rings = rings.map_err(|e| format!("tracepoint {name}: {e}"))?;
        Ok(Self { format, rings, lost: 0 })
    }

    fn drain(&mut self, mut take: impl FnMut(&Format, ring::Record<'_>)) {
        let Self { format, rings, lost } = self;
        for ring in rings {
            *lost += ring.drain(|record| take(format, record));
        }
    }
}

/// The kernel's tracepoints as a source.
struct Tracepoints {
    proc: Proc,
    issued: Option<Traced>,
    entered: Option<Traced>,
    left: Option<Traced>,
    blocks: Blocks,
    calls: Calls,
}

/// Makes the collector for `tracepoints`; `probe` finds out what may be traced.
pub(crate) fn make(_rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Tracepoints {
        proc: Proc::system(),
        issued: None,
        entered: None,
        left: None,
        blocks: Blocks::default(),
        calls: Calls::default(),
    }))
}

impl Collector for Tracepoints {
    fn source(&self) -> String {
        SOURCE.to_owned()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let root = format::root()?;
        let cpus = cpus::online(&self.proc, CPUS_MAX);
        let mut parts = Vec::new();
        let mut missing = |name: &str, why: String| parts.push(part(SOURCE, name).absent(why).enable(ENABLE));
        match Traced::open(&root, "block/block_rq_issue", &cpus, None) {
            Ok(traced) => self.issued = Some(traced),
            Err(why) => missing("block requests", why),
        }
        let filter = calls::filter();
        let edge = |name| Traced::open(&root, name, &cpus, Some(&filter));
        match (edge("raw_syscalls/sys_enter"), edge("raw_syscalls/sys_exit")) {
            (Ok(entered), Ok(left)) => (self.entered, self.left) = (Some(entered), Some(left)),
            (Err(why), _) | (_, Err(why)) => missing("calls", why),
        }
        if self.issued.is_none() && self.entered.is_none() {
            let why = parts.first().and_then(|part| part.why.clone()).unwrap_or_default();
            return Err(ProbeError::unreachable(SOURCE, format!("{why}; {ENABLE}")));
        }
        Ok(Coverage::with_parts(SOURCE, parts))
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut out = Out::new(batch, SOURCE);
        let Self { proc, issued, entered, left, blocks, calls } = self;
        let own = std::process::id();
        if let Some(issued) = issued {
            issued.drain(|format, record| blocks.take(format, &record));
        }
        let mut edges = Vec::new();
        // Exits first: an entry that arrives meanwhile keeps waiting for its exit until the next
        // time.
        for (traced, is_exit) in [(left, true), (entered, false)] {
            if let Some(traced) = traced {
                traced.drain(|format, record| {
                    edges.extend(Edge::parse(format, &record, is_exit).filter(|_| record.pid != own));
                });
            }
        }
        calls.take(proc, edges);
        blocks.put(proc, &mut out);
        calls.put(&mut out);
        let all = [("block_rq_issue", &self.issued), ("sys_enter", &self.entered), ("sys_exit", &self.left)];
        for (name, traced) in all {
            if let Some(traced) = traced {
                let labels = Labels::new([("tracepoint", name)]);
                out.put(metrics::tracepoints::RECORDS_LOST, labels, traced.lost as f64);
            }
        }
        Ok(())
    }
}

//! `diagnostic.data`, which every mongod keeps of itself ("full-time diagnostic data capture"):
//! what the server, its replica set and its machine did, once a second, for days. Files are
//! documents one after the other; a chunk of samples is one whole sample and the differences of
//! those after it. The figures become those of the live source, and those of the machine the
//! host's.
//!
//! Damage ends no import: what cannot be read is counted and named. A file is read as a stream, one
//! chunk in memory.

mod block;
mod chunk;
mod column;
mod columns;
mod machine;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{self, Read};

use holdup_mongodb::{Document, Element, Value};
use holdup_recording::rows::{Sample, Setting};
use holdup_recording::{Batch, Labels, metrics};

use self::block::{Block, Blocks};
use self::chunk::Chunk;
use self::column::Column;
use self::columns::columns;

/// The source of the server's rows.
pub const SOURCE: &str = "mongodb://diagnostic.data";

/// The source of the machine's.
const HOST: &str = "host";

/// Figures without a metric of their own are taken of every so many samples: a minute.
const SELDOM: usize = 60;

/// How the name of a file begins whose samples another may have as well.
const INTERIM: &str = "metrics.interim";

/// Most settings, and most changes of the number of CPUs: a server has some 20 settings.
const SETTINGS_MAX: usize = 2_000;

/// Rows that are passed on at once.
const ROWS_AT_ONCE: usize = 20_000;

/// Whether a file begins like one of `diagnostic.data`: a document with `_id` and `type`.
#[must_use]
pub fn is_one(head: &[u8]) -> bool {
    // Length, the kind and name of `_id`, its date, the kind and name of `type`.
    matches!(head, [_, _, _, _, 0x09, b'_', b'i', b'd', 0, rest @ ..]
        if rest.get(8..).is_some_and(|rest| rest.starts_with(b"\x10type\0")))
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Chunks that were read.
    pub chunks: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples of an interim file that another file has as well.
    pub repeated: u64,
    /// Documents of a kind that holdup does not know.
    pub unknown: u64,
    /// Chunks, or ends of files, that could not be read: each file with its first reason.
    pub broken: Vec<String>,
    /// Number of them.
    pub broken_total: u64,
    /// First and last instant, nanoseconds since 1970.
    pub span: Option<(i64, i64)>,
}

/// Reads files of one server.
#[derive(Debug, Default)]
pub struct Ftdc {
    account: Account,
    /// Settings so far: the server repeats them in each file.
    settings: BTreeSet<(String, String)>,
    /// The CPUs that the server last saw.
    cpus: Option<f64>,
    /// Rows of metadata, which wait for the first samples: without samples nothing is written.
    waiting: Batch,
    /// Whether the file being read is the interim one. A server keeps its newest samples there until a
    /// chunk is full, and writes that chunk to the newest of the others: a copy may have both.
    is_interim: bool,
    /// First and last instants of chunks: of files that stay, and of the interim one.
    spans: [Vec<(i64, i64)>; 2],
}

impl Ftdc {
    /// Reads a file to its end. Rows go to `out`, some thousand at once.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn read(&mut self, name: &str, file: impl Read, out: &mut dyn FnMut(Batch)) -> io::Result<()> {
        let own = name.rsplit(['/', '\\']).next().unwrap_or(name);
        self.is_interim = own.starts_with(INTERIM);
        let mut blocks = Blocks::new(file);
        let mut trouble: Option<String> = None;
        while let Some(block) = blocks.next()? {
            let result = match &block {
                Block::Whole(bytes) => self.document(bytes, out),
                Block::Broken(why) => Err((*why).to_owned()),
            };
            if let Err(why) = result {
                self.account.broken_total += 1;
                trouble.get_or_insert(format!("{name}, byte {}: {why}", blocks.begun));
            }
        }
        self.account.broken.extend(trouble);
        Ok(())
    }

    /// What was read.
    #[must_use]
    pub fn finish(self) -> Account {
        self.account
    }

    fn document(&mut self, bytes: &[u8], out: &mut dyn FnMut(Batch)) -> Result<(), String> {
        let document = Document::read(bytes).map_err(|error| error.to_string())?;
        let at = match document.get("_id") {
            Some(Element::Time(ms)) => ms,
            _ => return Err("a document without its time".to_owned()),
        };
        match (document.get("type"), document.get("data"), document.get("doc")) {
            (Some(Element::Int(1)), Some(Element::Binary(data)), _) => {
                let chunk = Chunk::read(data).map_err(|error| error.to_string())?;
                self.chunk(&chunk, at, out)
            }
            (Some(Element::Int(0)), _, Some(Element::Map(metadata))) => {
                let value = metadata.value().map_err(|error| error.to_string())?;
                self.metadata(&value, instant(at)?);
                Ok(())
            }
            // What changes seldom, as differences to the metadata.
            (Some(Element::Int(2)), ..) => Ok(()),
            (Some(Element::Int(0 | 1)), ..) => Err("a document without its content".to_owned()),
            (Some(Element::Int(_)), ..) => {
                self.account.unknown += 1;
                Ok(())
            }
            _ => Err("a document without its kind".to_owned()),
        }
    }

    fn chunk(&mut self, chunk: &Chunk, at: i64, out: &mut dyn FnMut(Batch)) -> Result<(), String> {
        let plan = columns(chunk.reference()).map_err(|error| error.to_string())?;
        // All times first: a chunk is taken whole or left out.
        let times = (0..chunk.samples()).map(|sample| {
            let by_count = || at.saturating_add(sample as i64 * 1_000);
            instant(plan.time.map_or_else(by_count, |time| chunk.value(time, sample)))
        });
        let times: Vec<i64> = times.collect::<Result<_, _>>()?;
        let (own, other) = (usize::from(self.is_interim), usize::from(!self.is_interim));
        let is_new = |at: &i64| !self.spans[other].iter().any(|(first, last)| (*first..=*last).contains(at));
        let is_new: Vec<bool> = times.iter().map(is_new).collect();
        let span = times.iter().min().zip(times.iter().max());
        self.spans[own].extend(span.map(|(first, last)| (*first, *last)));
        let mut batch = std::mem::take(&mut self.waiting);
        for (sample, observed_at) in times.into_iter().enumerate().filter(|(sample, _)| is_new[*sample]) {
            self.cover(observed_at);
            let is_seldom = sample % SELDOM == 0;
            let columns = plan.columns.iter().filter(|column| is_seldom || column.is_named);
            batch.samples.extend(columns.filter_map(|column| row(column, chunk, sample, observed_at)));
            if batch.samples.len() >= ROWS_AT_ONCE {
                out(std::mem::take(&mut batch));
            }
        }
        self.account.chunks += 1;
        let new = is_new.iter().filter(|is_new| **is_new).count();
        self.account.samples += new as u64;
        self.account.repeated += (is_new.len() - new) as u64;
        out(batch);
        Ok(())
    }

    /// What the server said of itself when the file began.
    fn metadata(&mut self, value: &Value, at: i64) {
        let version = value.at(&["buildInfo", "version"]).and_then(Value::text);
        let mut found: Vec<(String, String)> =
            version.map(|version| ("version".to_owned(), version.to_owned())).into_iter().collect();
        found.extend(value.get("getCmdLineOpts").map(holdup_mongodb::options).unwrap_or_default());
        for (name, value) in found {
            if self.settings.len() < SETTINGS_MAX && self.settings.insert((name.clone(), value.clone())) {
                let source = SOURCE.to_owned();
                self.waiting.settings.push(Setting { observed_at: at, source, name, value });
            }
        }
        let cpus = value.at(&["hostInfo", "system", "numCores"]).and_then(Value::number);
        let Some(cpus) = cpus.filter(|_| self.waiting.samples.len() < SETTINGS_MAX && self.cpus != cpus) else {
            return;
        };
        self.cpus = Some(cpus);
        let metric = metrics::host::CPU_LOGICAL_COUNT.name.to_owned();
        let (source, labels) = (HOST.to_owned(), Labels::none());
        self.waiting.samples.push(Sample { observed_at: at, window_ns: 0, source, metric, labels, value: cpus });
        self.cover(at);
    }

    fn cover(&mut self, at: i64) {
        let (first, last) = self.account.span.unwrap_or((at, at));
        self.account.span = Some((first.min(at), last.max(at)));
    }
}

/// Nanoseconds of an instant in milliseconds.
fn instant(ms: i64) -> Result<i64, String> {
    let nanoseconds = ms.checked_mul(1_000_000).filter(|nanoseconds| (0..i64::MAX / 2).contains(nanoseconds));
    nanoseconds.ok_or_else(|| "a sample of an impossible time".to_owned())
}

/// For the fuzzer: reads `bytes` as one file, and counts its rows.
///
/// # Errors
/// None: bytes in memory can be read.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> io::Result<(Account, usize)> {
    let (mut ftdc, mut rows) = (Ftdc::default(), 0);
    ftdc.read("file", bytes, &mut |batch| rows += batch.len())?;
    Ok((ftdc.finish(), rows))
}

fn row(column: &Column, chunk: &Chunk, sample: usize, observed_at: i64) -> Option<Sample> {
    let value = column.terms.iter().map(|(index, factor)| chunk.value(*index, sample) as f64 * factor).sum();
    // A member that was never reached has the year 1970: the live source leaves it out, too.
    if column.is_time && value <= 0.0 {
        return None;
    }
    Some(Sample {
        observed_at,
        window_ns: 0,
        source: if column.is_host { HOST } else { SOURCE }.to_owned(),
        metric: column.metric.clone(),
        labels: column.labels.clone(),
        value,
    })
}

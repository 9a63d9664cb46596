//! Numbers that may only fall: lines of files that are too long, places that may panic, tests that are ignored, judged beside
//! a witness or run again, the seconds that all tests take, and the lines of the product. A file that is not listed has none: its
//! first is one too many. Lines of the product may also rise, by a line that says why.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result, bail};

use super::{Source, checks, prose, rooms, size};
use crate::tests::cost::Cost;

/// Lines of a file that is not Rust of the product, such as a test: from here on it most likely has a second idea in it.
const LINES: usize = 500;

const HEAD: &str = "\
# What is not yet as it should be, and may only get better: `cargo xtask tidy` lowers these numbers, nothing raises them.
# lines PATH N: a file longer than the house allows. unwraps PATH N: places outside tests that may panic.
# ignored PATH N: tests that an ordinary pass leaves out. witnesses PATH N: tests that a stalled machine excuses.
# retries PATH N: tests that are run again if they fail. room PATH N: lines, without tests, of a cause (235), a resource (300) or
# another file (450) that is too large. functions PATH N: functions over 70 lines. circles PATH N: modules of a crate, or of a
# folder in it, that import one another in a circle. wrong PATH N: verdicts that are known to be wrong. prose AREA N: phrases
# and long sentences that readers stumble over. seconds tests N and cpu tests N: the seconds, and the seconds of CPU time, that
# all tests of a pass may take; lowered by hand. product PATH N: lines of Rust without tests of a crate, or of a folder beside
# the crates. Think in this order: delete, derive, use a library, write. Where it has to grow, add a line by hand:
# grown PATH N REASON: so many lines more than its `product`, and what for. It stays until as many have gone.
";

/// So many times the seconds of the ratchet a pass may take: machines differ.
pub const HEADROOM: f64 = 2.0;

/// The time until all tests are over says something as long as others have at most this share (0-1) of the machine.
const ALONE: f64 = 0.1;

/// The key of the seconds until all tests are over.
const SECONDS: (&str, &str) = ("seconds", "tests");

/// The key of the CPU time of all tests, in seconds.
const CPU: (&str, &str) = ("cpu", "tests");

/// The kind of the lines of the product.
const PRODUCT: &str = "product";

/// What a line begins with that lets the product grow, and the fewest words of its reason.
const GROWN: &str = "grown";
const REASON_WORDS: usize = 4;

const KINDS: [&str; 13] = [
    "lines",
    "room",
    "functions",
    "circles",
    "wrong",
    "prose",
    "unwraps",
    "ignored",
    "witnesses",
    "retries",
    SECONDS.0,
    CPU.0,
    PRODUCT,
];

/// Counts by kind and path.
#[derive(Debug, Default, PartialEq)]
pub struct Ratchet {
    counts: BTreeMap<(String, String), usize>,
    grown: Vec<Grown>,
}

/// Lines by which a part of the product grew, and what for.
#[derive(Clone, Debug, PartialEq)]
struct Grown {
    path: String,
    lines: usize,
    reason: String,
}

impl Ratchet {
    /// Reads `KIND PATH N` a line, and `grown PATH N REASON`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut ratchet = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [kind, path, n, reason @ ..] = &words[..] else { bail!("ratchet: \"{line}\" is not KIND PATH N") };
            let n = n.parse().with_context(|| format!("ratchet: \"{line}\" is not KIND PATH N"))?;
            match *kind {
                GROWN if reason.len() >= REASON_WORDS => {
                    ratchet.grown.push(Grown { path: (*path).to_owned(), lines: n, reason: reason.join(" ") });
                }
                GROWN => bail!("ratchet: \"{line}\" does not say what for, in {REASON_WORDS} words or more"),
                kind if KINDS.contains(&kind) && reason.is_empty() => {
                    ratchet.counts.insert((kind.to_owned(), (*path).to_owned()), n);
                }
                _ => bail!("ratchet: \"{line}\" is not KIND PATH N"),
            }
        }
        Ok(ratchet)
    }

    /// As things are.
    pub fn count(sources: &[Source]) -> Self {
        let circles = rooms::circles(sources).into_iter();
        let mut counts: BTreeMap<_, _> = circles.map(|(name, n)| (("circles".to_owned(), name), n)).collect();
        counts.extend(prose::places(sources).into_iter().map(|(area, n)| (("prose".to_owned(), area), n)));
        counts.extend(size::product(sources).into_iter().map(|(path, n)| ((PRODUCT.to_owned(), path), n)));
        for source in sources {
            let written = [".rs", ".ts", ".tsx", ".mjs", ".py", ".sh"].iter().any(|kind| source.path.ends_with(kind));
            let lines = source.text.lines().count();
            if written && lines > LINES {
                counts.insert(("lines".to_owned(), source.path.clone()), lines);
            }
            for (kind, count) in [
                ("room", rooms::beyond(source).map_or(0, |(lines, _)| lines)),
                ("functions", rooms::long_functions(source)),
                ("wrong", checks::known_wrong(source)),
                ("unwraps", checks::unwraps(source)),
                ("ignored", checks::ignored(source)),
                ("witnesses", checks::witnesses(source)),
                ("retries", checks::retries(source)),
            ] {
                if count > 0 {
                    counts.insert((kind.to_owned(), source.path.clone()), count);
                }
            }
        }
        Self { counts, grown: Vec::new() }
    }

    /// What follows on `kept` from these counts. The seconds that it allows are no property of the sources. A part of the product that
    /// grew keeps its number, and of the lines that let it grow as much as it still needs.
    pub fn after(mut self, kept: &Self) -> Self {
        for (kind, path) in [SECONDS, CPU] {
            let key = (kind.to_owned(), path.to_owned());
            self.counts.extend(kept.counts.get(&key).map(|&seconds| (key, seconds)));
        }
        for Grown { path, lines, reason } in &kept.grown {
            let key = (PRODUCT.to_owned(), path.clone());
            let base = kept.counts.get(&key).copied().unwrap_or(0);
            if let Some(now) = self.counts.get_mut(&key) {
                let lines = now.saturating_sub(base).min(*lines);
                *now -= lines;
                self.grown.push(Grown { path: path.clone(), lines, reason: reason.clone() });
            }
        }
        self.grown.retain(|grown| grown.lines > 0);
        self
    }

    /// What is wrong with what a pass took.
    pub fn pace(&self, cost: Cost) -> Result<(), String> {
        let judged = [
            (CPU, cost.cpu_seconds, "s of CPU time"),
            (SECONDS, if cost.others_ratio <= ALONE { cost.seconds } else { 0.0 }, "s"),
        ];
        for ((kind, path), took, unit) in judged {
            if let Some(&allowed) = self.counts.get(&(kind.to_owned(), path.to_owned()))
                && took > HEADROOM * allowed as f64
            {
                return Err(format!(
                    "the tests took {took:.0} {unit}, {HEADROOM} times the {allowed} of the ratchet: see the slowest above"
                ));
            }
        }
        Ok(())
    }

    /// What is higher here than in `kept`. A list without any lines of the product is one from before they were counted.
    pub fn risen(&self, kept: &Self) -> Vec<String> {
        let is_sized = kept.counts.keys().any(|(kind, _)| kind == PRODUCT);
        let risen = self.counts.iter().filter_map(|(key, &now)| {
            let (kind, path) = key;
            let before = kept.counts.get(key).copied();
            let what = match (kind.as_str(), before) {
                (_, Some(before)) if now <= before => return None,
                (PRODUCT, _) if now == 0 || !is_sized => return None,
                (PRODUCT, before) => {
                    let more = now - before.unwrap_or(0);
                    format!(
                        "{more} lines more of the product than allowed: delete, derive or use a library; if it has to grow, add \
                         \"{GROWN} {path} {more} REASON\" to xtask/ratchet.txt"
                    )
                }
                ("lines", None) => format!("{now} lines, more than {LINES}: look for the second idea in it"),
                ("lines", Some(before)) => format!("{now} lines, and it was to shrink from {before}"),
                ("unwraps", before) => {
                    format!("{now} places that may panic outside tests, allowed are {}", before.unwrap_or(0))
                }
                ("room", before) => {
                    format!(
                        "{now} lines without tests, allowed are {}: look for the second idea in it",
                        before.unwrap_or(0)
                    )
                }
                (kind, before) => format!("{now} {kind}, allowed are {}", before.unwrap_or(0)),
            };
            Some(format!("{path}: {what}"))
        });
        risen.collect()
    }
}

impl fmt::Display for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        self.counts.iter().try_for_each(|((kind, path), n)| writeln!(f, "{kind} {path} {n}"))?;
        self.grown.iter().try_for_each(|Grown { path, lines, reason }| writeln!(f, "{GROWN} {path} {lines} {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> Source {
        Source { path: path.to_owned(), text: "x\n".repeat(lines) }
    }

    #[test]
    fn it_only_turns_one_way() {
        let kept = Ratchet::parse("# why\nlines a.rs 600\nunwraps src/b.rs 1\n").unwrap();
        let risen = |sources: &[Source]| Ratchet::count(sources).risen(&kept);
        assert!(risen(&[file("a.rs", 600), file("c.rs", LINES)]).is_empty());
        assert!(risen(&[file("a.rs", 550)]).is_empty());
        assert_eq!(risen(&[file("a.rs", 601)]), ["a.rs: 601 lines, and it was to shrink from 600"]);
        assert_eq!(risen(&[file("c.rs", LINES + 1)]).len(), 1);
        let unwraps = |n| Source { path: "src/b.rs".to_owned(), text: "a.unwrap()\n".repeat(n) };
        assert!(risen(&[unwraps(1)]).is_empty());
        assert_eq!(risen(&[unwraps(2)]).len(), 1);
    }

    #[test]
    fn what_tests_cost_turns_one_way_as_well() {
        let kept = Ratchet::parse("ignored t.rs 1\nseconds tests 100\ncpu tests 50\n").unwrap();
        let now = |text: &str| {
            let source = Source { path: "t.rs".to_owned(), text: text.to_owned() };
            Ratchet::count(&[source]).after(&kept).risen(&kept)
        };
        let ignored = concat!("#[ig", "nore = \"full: a\"]\n");
        assert!(now(ignored).is_empty());
        assert_eq!(now(&ignored.repeat(2)), ["t.rs: 2 ignored, allowed are 1"]);
        assert_eq!(now(concat!("#[holdup_witness::jud", "ged]\n")), ["t.rs: 1 witnesses, allowed are 0"]);
        let is_paced = |seconds: f64, cpu_seconds: f64, others_ratio: f64| {
            kept.pace(Cost { seconds, cpu_seconds, others_ratio }).is_ok()
        };
        assert!(is_paced(199.0, 99.0, 0.0) && !is_paced(199.0, 101.0, 0.0));
        assert!(!is_paced(201.0, 99.0, 0.0) && is_paced(201.0, 99.0, 0.5), "others had half of the machine");
    }

    #[test]
    fn the_product_grows_by_a_line_that_says_why() {
        let of = |kept: &str, lines: usize| {
            let kept = Ratchet::parse(kept).unwrap();
            let now = Ratchet::count(&[file("crates/a/src/lib.rs", lines)]).after(&kept);
            let written: String =
                now.to_string().lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("; ");
            (now.risen(&kept).len(), written)
        };
        assert_eq!(of("", 90), (0, "product crates/a 90".to_owned()), "counted for the first time");
        assert_eq!(of("product crates/a 90", 80), (0, "product crates/a 80".to_owned()), "lowered");
        assert_eq!(of("product crates/a 90", 91).0, 1);
        assert_eq!(of("product crates/b 90", 91).0, 1, "a new crate");
        let kept = "product crates/a 90\ngrown crates/a 9 reads what Redis says\n";
        assert_eq!(of(kept, 99), (0, "product crates/a 90; grown crates/a 9 reads what Redis says".to_owned()));
        assert_eq!(of(kept, 100).0, 1);
        assert_eq!(of(kept, 92), (0, "product crates/a 90; grown crates/a 2 reads what Redis says".to_owned()));
        assert_eq!(of(kept, 90), (0, "product crates/a 90".to_owned()), "paid back");
        let more = format!("{kept}grown crates/a 5 and what Valkey says beside\n");
        assert_eq!((of(&more, 104).0, of(&more, 105).0), (0, 1), "a second reason");
        assert!(Ratchet::parse("grown crates/a 9 Redis").is_err(), "without a reason");
    }

    #[test]
    fn it_reads_what_it_writes() {
        let kept = Ratchet::parse("grown crates/a 7 reads what Redis says\n").unwrap();
        let counts = Ratchet::count(&[file("a.rs", 700), file("crates/a/src/b.rs", 7)]).after(&kept);
        assert_eq!(Ratchet::parse(&counts.to_string()).unwrap(), counts);
        assert!(Ratchet::parse("lines a.rs many").is_err() && Ratchet::parse("lines a.rs 1 more").is_err());
    }
}

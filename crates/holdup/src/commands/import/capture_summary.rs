//! Summary of a capture for the user: connections, exchanges, statements by their time, losses.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use holdup_protocol::packets::Totals;
use holdup_recording::rows::Exchange;

/// Number of statements that are counted separately; all others are counted as one.
const STATEMENTS_MAX: usize = 100_000;
/// Number of statements that are printed.
const SHOWN: usize = 10;
/// Number of characters of a statement that are printed.
const LETTERS: usize = 100;

/// The sums of one statement, without exchanges that lost packets.
#[derive(Debug, Default)]
struct Sums {
    text: String,
    calls: u64,
    errors: u64,
    total_ns: i64,
    longest_ns: i64,
}

/// The counts so far.
#[derive(Debug)]
pub(super) struct CaptureSummary {
    source: String,
    pub dir: PathBuf,
    statements: HashMap<String, Sums>,
    outcomes: HashMap<String, u64>,
    totals: Totals,
    dropped: u64,
    length_ns: i64,
    trouble: Option<String>,
}

impl CaptureSummary {
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            dir: PathBuf::new(),
            statements: HashMap::new(),
            outcomes: HashMap::new(),
            totals: Totals::default(),
            dropped: 0,
            length_ns: 0,
            trouble: None,
        }
    }

    /// Counts an exchange.
    pub fn add(&mut self, row: &Exchange) {
        match self.outcomes.get_mut(&row.outcome) {
            Some(count) => *count += 1,
            None => {
                self.outcomes.insert(row.outcome.clone(), 1);
            }
        }
        if row.outcome == "lost" {
            return;
        }
        let key = row.digest.as_deref().unwrap_or(row.kind.as_str());
        if !self.statements.contains_key(key) {
            let key = if self.statements.len() < STATEMENTS_MAX { key } else { "other" };
            let text = row.digest_text.clone().unwrap_or_else(|| format!("({key})"));
            self.statements.entry(key.to_owned()).or_insert_with(|| Sums { text, ..Sums::default() });
        }
        if let Some(sums) = self.statements.get_mut(key) {
            let length = row.done_at.saturating_sub(row.request_at).max(0);
            sums.calls += 1;
            sums.errors += u64::from(row.outcome == "error");
            sums.total_ns = sums.total_ns.saturating_add(length);
            sums.longest_ns = sums.longest_ns.max(length);
        }
    }

    /// Adds the totals at the end of the capture.
    pub fn end(&mut self, totals: Totals, dropped: u64, length_ns: i64, trouble: Option<&str>) {
        (self.totals, self.dropped, self.length_ns) = (totals, dropped, length_ns);
        self.trouble = trouble.map(str::to_owned);
    }

    /// The losses in words.
    pub fn losses(&self) -> Vec<String> {
        let Totals { gaps, lost_bytes, lost_exchanges, cut_bytes, fragments, short, given_up, compressed, .. } =
            self.totals;
        let mut losses = Vec::new();
        let mut say = |count: u64, text: String| {
            if count > 0 {
                losses.push(text);
            }
        };
        say(gaps, format!("{lost_bytes} bytes not captured (gaps: {gaps}, exchanges hit: {lost_exchanges})"));
        say(self.dropped, format!("{} packets dropped by the capturing program", self.dropped));
        say(cut_bytes, format!("{cut_bytes} bytes of payload were not stored"));
        say(short, format!("{short} packets stored without their heads"));
        say(
            compressed,
            format!(
                "statements of {compressed} compressed exchanges; leave `compressors` out of MongoDB's URI to see them"
            ),
        );
        say(fragments, format!("{fragments} fragments of IP packets"));
        say(given_up, format!("{given_up} connections dropped for lack of memory"));
        losses.extend(self.trouble.iter().cloned());
        losses
    }

    fn by_time(&self) -> Vec<(&String, &Sums)> {
        let mut all: Vec<_> = self.statements.iter().collect();
        all.sort_by(|(a, x), (b, y)| y.total_ns.cmp(&x.total_ns).then_with(|| a.cmp(b)));
        all.truncate(SHOWN);
        all
    }

    /// The summary as text.
    pub fn text(&self) -> String {
        let Totals { packets, connections, exchanges, retransmitted, .. } = self.totals;
        let mut text = format!(
            "{}: {packets} packets in {:.1} s, {connections} connections, {exchanges} exchanges, {retransmitted} segments retransmitted -> {}\n",
            self.source,
            self.length_ns as f64 / 1e9,
            self.dir.display(),
        );
        let mut outcomes: Vec<_> = self.outcomes.iter().collect();
        outcomes.sort();
        let outcomes: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        text += &format!("outcomes: {}\n", if outcomes.is_empty() { "none".to_owned() } else { outcomes.join(", ") });
        for loss in self.losses() {
            text += &format!("missing: {loss}\n");
        }
        if !self.statements.is_empty() {
            text += &format!(
                "\n{:>12} {:>9} {:>10} {:>10}  statement, by total time\n",
                "total", "calls", "mean", "longest"
            );
        }
        for (_, sums) in self.by_time() {
            let mean = sums.total_ns as f64 / sums.calls.max(1) as f64;
            let shown: String = sums.text.chars().take(LETTERS).collect();
            text += &format!(
                "{:>10.1}ms {:>9} {:>8.3}ms {:>8.3}ms  {shown}{}\n",
                sums.total_ns as f64 / 1e6,
                sums.calls,
                mean / 1e6,
                sums.longest_ns as f64 / 1e6,
                if sums.errors > 0 { format!("  ({} failed)", sums.errors) } else { String::new() },
            );
        }
        text
    }

    /// The summary as JSON.
    pub fn json(&self, dir: &Path) -> serde_json::Value {
        let statements = self.by_time().into_iter().map(|(digest, sums)| {
            serde_json::json!({
                "digest": digest, "digest_text": sums.text, "calls": sums.calls, "errors": sums.errors,
                "total_ns": sums.total_ns, "longest_ns": sums.longest_ns,
            })
        });
        serde_json::json!({
            "source": self.source,
            "recording": dir.display().to_string(),
            "duration_ns": self.length_ns,
            "packets": self.totals.packets,
            "connections": self.totals.connections,
            "exchanges": self.totals.exchanges,
            "outcomes": self.outcomes,
            "retransmitted": self.totals.retransmitted,
            "missing": self.losses(),
            "statements": statements.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(digest: Option<&str>, outcome: &str, length: i64) -> Exchange {
        Exchange {
            kind: "query".to_owned(),
            digest: digest.map(str::to_owned),
            digest_text: digest.map(|digest| format!("SELECT {digest}")),
            outcome: outcome.to_owned(),
            request_at: 5,
            done_at: 5 + length,
            ..Exchange::default()
        }
    }

    #[test]
    fn statements_by_their_time_without_what_was_lost() {
        let mut found = CaptureSummary::new("pcap:x");
        for (digest, outcome, length) in
            [("a", "ok", 3_000_000), ("a", "error", 1_000_000), ("b", "ok", 9_000_000), ("a", "lost", 90_000_000)]
        {
            found.add(&row(Some(digest), outcome, length));
        }
        found.add(&row(None, "ok", 1));
        found.end(Totals { gaps: 1, lost_bytes: 700, lost_exchanges: 1, ..Totals::default() }, 0, 2_000_000_000, None);
        let text = found.text();
        let (b, a) = (text.find("SELECT b").unwrap(), text.find("SELECT a").unwrap());
        assert!(b < a, "{text}");
        assert!(text.contains("4.0ms         2    2.000ms    3.000ms  SELECT a  (1 failed)"), "{text}");
        assert!(
            text.contains("missing: 700 bytes not captured (gaps: 1,") && text.contains("1 error, 1 lost, 3 ok"),
            "{text}"
        );
        assert_eq!(found.json(Path::new("d"))["statements"][0]["digest"], "b");
    }
}

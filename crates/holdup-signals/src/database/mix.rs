//! The mix of statements: each digest's share of the calls, in episodes and outside of them, and
//! the distance between the two compared with that of chance alone. The source is the server's
//! counters by digest, else single executions, else packets.

use std::collections::BTreeMap;

use holdup_recording::Labels;

use crate::Evidence;
use crate::{Missing, View, Window};

/// What to record to tell statements apart.
const ENABLE: &str = "counters by statement (performance_schema, pg_stat_statements), or --watch wire:PORT";

/// Shares of fewer calls than this on either side are not compared.
const LEAST_CALLS: f64 = 100.0;

/// Calls come in bursts, not one by one: chance moves shares by this many times what it would with
/// single calls.
const BURSTS: f64 = 2.0;

/// One statement inside and outside of episodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Identity of the statement.
    pub digest: String,
    /// Its text, literals replaced.
    pub text: String,
    /// Calls in episodes and outside.
    pub calls: (f64, f64),
    /// Their total time in seconds, inside and outside.
    pub seconds: (f64, f64),
}

/// The mix in episodes and the mix outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Statements, most calls first.
    pub statements: Vec<Statement>,
    /// All calls, inside and outside.
    pub calls: (f64, f64),
    /// Seconds recorded, inside and outside.
    pub recorded: (f64, f64),
    /// Half the sum of the differences of shares (0-1): the share of calls that moved to other
    /// statements (total variation distance).
    pub distance: f64,
    /// The distance that chance gives on average, and in at most one case of twenty.
    pub by_chance: (f64, f64),
    /// The table and column it comes from.
    table: (&'static str, &'static str),
}

impl Mix {
    /// Shares (0-1) of a statement's calls, inside and outside.
    pub fn shares(&self, of: &Statement) -> (f64, f64) {
        (of.calls.0 / self.calls.0.max(1.0), of.calls.1 / self.calls.1.max(1.0))
    }

    /// Calls per second of a statement, inside and outside.
    pub fn rates(&self, of: &Statement) -> (f64, f64) {
        (of.calls.0 / self.recorded.0.max(1e-9), of.calls.1 / self.recorded.1.max(1e-9))
    }

    /// Calls per second of all statements, inside and outside.
    pub fn rate(&self) -> (f64, f64) {
        (self.calls.0 / self.recorded.0.max(1e-9), self.calls.1 / self.recorded.1.max(1e-9))
    }

    /// Greatest change of any share (0-1).
    pub fn most_moved(&self) -> f64 {
        self.statements.iter().map(|s| (self.shares(s).0 - self.shares(s).1).abs()).fold(0.0, f64::max)
    }

    /// How many times as frequent a statement is in episodes as outside, by calls per second: the
    /// lower bound that holds in nineteen cases of twenty. Never infinite: a statement that was
    /// never called outside counts as called once.
    pub fn more_often(&self, of: &Statement) -> f64 {
        let (now, before) = (of.calls.0, of.calls.1.max(1.0));
        let log = (now / self.recorded.0.max(1e-9)).ln() - (before / self.recorded.1.max(1e-9)).ln();
        let error = BURSTS.sqrt() * (1.0 / now.max(1.0) + 1.0 / before).sqrt();
        (log - 1.645 * error).exp()
    }

    /// Evidence that points at one statement, or at all.
    pub fn evidence(
        &self,
        window: Window,
        of: Option<&Statement>,
        observed: String,
        expected: String,
        text: String,
    ) -> Evidence {
        let (table, column) = self.table;
        let mut labels = Labels::none();
        if table == "statements" {
            labels = labels.with("kind", column);
            if let Some(of) = of {
                labels = labels.with("digest", of.digest.clone());
            }
        }
        Evidence::new(table, "digest", labels, window, observed, expected, text)
    }
}

/// Receives digest, text, calls and seconds.
type Add<'a> = &'a mut dyn FnMut(&str, &str, f64, f64);

/// Counts the calls in a view.
type Count = fn(&View<'_>, Add<'_>);

/// Table and kind of row with its way to count calls, the most complete first.
const SOURCES: [((&str, &str), Count); 3] = [
    (("statements", "digest_total"), by_counters),
    (("statements", "execution"), by_executions),
    (("exchanges", ""), by_exchanges),
];

impl View<'_> {
    /// The mix within `inside` and within `outside`, the latter in the recording of `baseline`.
    ///
    /// # Errors
    /// If no source tells statements apart, or there are too few calls on either side.
    pub fn mix(&self, inside: &[Window], baseline: &View<'_>, outside: &[Window]) -> Result<Mix, Missing> {
        let mut few = None;
        for (table, counted) in SOURCES {
            let of = |through: &View<'_>, windows: &[Window], add: Add<'_>| {
                windows.iter().for_each(|window| counted(&View { window: *window, ..*through }, add));
            };
            let recorded = (seconds(inside), seconds(outside));
            let mix = Mix::compare(|add| of(self, inside, add), |add| of(baseline, outside, add), recorded, table);
            if mix.calls.0 >= LEAST_CALLS && mix.calls.1 >= LEAST_CALLS {
                return Ok(mix);
            }
            if mix.calls.0 + mix.calls.1 > 0.0 {
                few.get_or_insert(mix.calls);
            }
        }
        Err(match few {
            Some((a, b)) => {
                let what = format!("enough calls to compare (only {a:.0} in the episode and {b:.0} outside)");
                Missing::new(what, "a longer recording that includes a healthy stretch")
            }
            None => Missing::new("calls by statement", ENABLE),
        })
    }
}

fn seconds(windows: &[Window]) -> f64 {
    windows.iter().map(Window::seconds).sum()
}

fn by_counters(view: &View<'_>, add: Add<'_>) {
    for of in view.executed(&["digest_text"]).unwrap_or_default() {
        add(&of.digest, &of.text, of.calls, of.seconds);
    }
}

fn by_executions(view: &View<'_>, add: Add<'_>) {
    for row in view.executions(&["digest", "digest_text", "duration_ns"]).into_iter().flatten() {
        add(row.digest, row.digest_text, 1.0, row.duration_ns as f64 / 1e9);
    }
}

fn by_exchanges(view: &View<'_>, add: Add<'_>) {
    let columns = &["request_at", "done_at", "digest", "digest_text"];
    let rows = view.recording.tables.exchanges.with_columns(columns).unwrap_or_default();
    for row in rows.iter().filter(|r| view.window.contains(r.request_at)) {
        let Some(digest) = &row.digest else { continue };
        add(digest, row.digest_text.as_deref().unwrap_or_default(), 1.0, (row.done_at - row.request_at) as f64 / 1e9);
    }
}

impl Mix {
    fn compare(
        inside: impl Fn(Add<'_>),
        outside: impl Fn(Add<'_>),
        recorded: (f64, f64),
        table: (&'static str, &'static str),
    ) -> Self {
        let mut by_digest: BTreeMap<String, Statement> = BTreeMap::new();
        let mut add = |digest: &str, text: &str, calls: f64, seconds: f64, is_inside: bool| {
            if !by_digest.contains_key(digest) {
                let (digest, text) = (digest.to_owned(), text.to_owned());
                let new = Statement { digest: digest.clone(), text, calls: (0.0, 0.0), seconds: (0.0, 0.0) };
                by_digest.insert(digest, new);
            }
            let Some(of) = by_digest.get_mut(digest) else { return };
            let (to_calls, to_seconds) =
                if is_inside { (&mut of.calls.0, &mut of.seconds.0) } else { (&mut of.calls.1, &mut of.seconds.1) };
            *to_calls += calls;
            *to_seconds += seconds;
        };
        inside(&mut |digest, text, calls, seconds| add(digest, text, calls, seconds, true));
        outside(&mut |digest, text, calls, seconds| add(digest, text, calls, seconds, false));
        let mut statements: Vec<Statement> = by_digest.into_values().collect();
        statements.sort_by(|a, b| (b.calls.0 + b.calls.1).total_cmp(&(a.calls.0 + a.calls.1)));
        let calls = statements.iter().fold((0.0, 0.0), |sum, s| (sum.0 + s.calls.0, sum.1 + s.calls.1));
        let mut mix = Self { statements, calls, recorded, distance: 0.0, by_chance: (0.0, 0.0), table };
        mix.distance = mix.statements.iter().map(|s| (mix.shares(s).0 - mix.shares(s).1).abs()).sum::<f64>() / 2.0;
        mix.by_chance = mix.chance();
        mix
    }

    /// Mean and 95th percentile of the distance between two samples of this size from one mix. The
    /// difference of a share is about normal, its absolute value has the mean of `sqrt(2 / pi)`
    /// deviations; bursts widen it.
    fn chance(&self) -> (f64, f64) {
        let each = 1.0 / self.calls.0.max(1.0) + 1.0 / self.calls.1.max(1.0);
        let all = (self.calls.0 + self.calls.1).max(1.0);
        let (mut mean, mut variance) = (0.0, 0.0);
        for statement in &self.statements {
            let share = (statement.calls.0 + statement.calls.1) / all;
            let of_share = BURSTS * share * (1.0 - share) * each;
            mean += (of_share * 2.0 / std::f64::consts::PI).sqrt() / 2.0;
            variance += of_share * (1.0 - 2.0 / std::f64::consts::PI) / 4.0;
        }
        (mean, mean + 1.645 * variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use crate::Window;
    use crate::testing::SyntheticRecording;

    const S: i64 = 1_000_000_000;
    const IN: [Window; 1] = [Window { from: 20 * S, to: 40 * S }];
    const OUT: [Window; 2] = [Window { from: 0, to: 20 * S }, Window { from: 40 * S, to: 60 * S }];

    /// Two statements at 150 and 100 calls a second, and a third at `more` calls a second from 20 to 40 s.
    fn made(more: i64) -> SyntheticRecording {
        let grown = move |s: i64| more * (s - 20).clamp(0, 20);
        SyntheticRecording::new(60)
            .digest("SELECT 1", |s| (150 * s, s, 0, 0, 0))
            .digest("SELECT 2", |s| (100 * s, s, 0, 0, 0))
            .digest("SELECT 3", move |s| (grown(s), grown(s), 0, 0, 0))
    }

    #[test]
    fn the_same_mix_is_no_further_apart_than_by_chance() {
        let mix = made(0).seen(|view| view.mix(&IN, view, &OUT).unwrap());
        assert!(mix.distance < 1e-9 && mix.by_chance.0 > 0.0 && mix.by_chance.1 < 0.03, "{mix:?}");
        assert_eq!(mix.rate(), (250.0, 250.0));
    }

    #[test]
    fn a_new_statement_is_its_share_apart() {
        let mix = made(250).seen(|view| view.mix(&IN, view, &OUT).unwrap());
        assert!((mix.distance - 0.5).abs() < 1e-9, "{mix:?}");
        let new = mix.statements.iter().find(|s| s.text == "SELECT 3").unwrap();
        assert!(mix.more_often(new) > 100.0, "{}", mix.more_often(new));
        assert!(mix.more_often(&mix.statements[0]) < 1.0);
        assert!(made(0).seen(|view| view.mix(&IN, view, &[]).is_err()), "nothing outside");
        assert!(SyntheticRecording::new(9).seen(|view| view.mix(&IN, view, &OUT).is_err()));
    }
}

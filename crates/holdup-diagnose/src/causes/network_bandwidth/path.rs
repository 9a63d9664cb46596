//! The path from the database to the app, by packets on both ends: this finds a bottleneck anywhere
//! on it, even if no interface of either host is full. It finds or stays silent; clearing is left
//! to the interfaces.

use crate::change::Fix;
use holdup_recording::Labels;
use holdup_recording::rows::Exchange;

use crate::case::Case;
use crate::causes::{CauseFinding, MATTERS, Outcome, Role, bytes, bytes_per_second, ms, percent};
use crate::resources::share;
use crate::strength::{FAIR, STRONG};
use holdup_signals::Window;
use holdup_signals::app::accounts::Owner;
use holdup_signals::evidence::Evidence;

/// Smaller responses arrive in one go, whatever the bandwidth: TCP's first window is ten segments
/// of some 1.4 kB (RFC 6928).
const LARGE_BYTES: i64 = 20_000;

/// Least number of large responses.
const LEAST: usize = 20;

/// On a full path all large responses are equally fast: the quickest tenth is at most this many
/// times as fast as the slowest.
const LEVEL: f64 = 1.5;

/// Share (0-1) of the network's time that must lie between first and last byte. Time before the
/// first byte is distance, or loss.
const IN_TRANSFER: f64 = 0.7;

/// Shortest transfer that can be timed, milliseconds.
const LEAST_MS: f64 = 1.0;

/// Large responses of the database that were timed on the app's machine.
struct LargeResponses {
    count: usize,
    /// Milliseconds from first to last byte, of all together.
    took_ms: f64,
    mean_bytes: f64,
    /// How many segments were sent again.
    retransmits: i64,
    /// Bytes per second of each, the slowest first.
    rates: Vec<f64>,
}

impl LargeResponses {
    /// In the slow window; none if they are too few.
    fn measure(case: &Case<'_>) -> Option<Self> {
        let window = case.slow().window;
        let of_app = case.sources().calls().all().iter().filter(|c| c.server.is_some()).filter_map(|c| c.client);
        let all: Vec<(&Exchange, f64)> = of_app
            .filter(|e| window.contains(e.request_at) && e.response_bytes >= LARGE_BYTES)
            .filter_map(|e| Some((e, (e.done_at - e.first_byte_at?) as f64 / 1e6)))
            .filter(|(_, ms)| *ms >= LEAST_MS)
            .collect();
        let mut rates: Vec<f64> = all.iter().map(|(e, ms)| e.response_bytes as f64 / ms * 1e3).collect();
        rates.sort_by(f64::total_cmp);
        (all.len() >= LEAST).then(|| Self {
            count: all.len(),
            took_ms: all.iter().map(|(_, ms)| ms).sum(),
            mean_bytes: all.iter().map(|(e, _)| e.response_bytes as f64).sum::<f64>() / all.len() as f64,
            retransmits: all.iter().map(|(e, _)| e.retransmits).sum(),
            rates,
        })
    }

    fn middle(&self) -> f64 {
        self.rates[self.rates.len() / 2]
    }

    /// Without a tenth at each end: the slowest and the quickest.
    fn most(&self) -> (f64, f64) {
        let tenth = self.rates.len() / 10;
        (self.rates[tenth], self.rates[self.rates.len() - 1 - tenth])
    }

    fn evidence(&self, window: Window, network_ms: f64) -> Vec<Evidence> {
        let evidence = |value: String, expected: &str, text: String| {
            let labels = Labels::new([("side", "client")]);
            Evidence::new("exchanges", "first_byte_at", labels, window, value, expected, text)
        };
        let ((slowest, quickest), rate) = (self.most(), bytes_per_second(self.middle()));
        let arrived = format!(
            "responses of {} arrived from the database at {rate}, eight of ten of them between {} and {}",
            bytes(self.mean_bytes),
            bytes_per_second(slowest),
            bytes_per_second(quickest)
        );
        let spent = format!(
            "{} of a request were spent between app and database, by packets on both ends; {} of {} large responses had retransmitted segments",
            ms(network_ms),
            percent(self.retransmits.min(self.count as i64) as f64 / self.count as f64),
            self.count
        );
        vec![evidence(rate, "as fast as the server sends", arrived), evidence(ms(network_ms), "a round trip", spent)]
    }

    fn fixes(&self) -> Vec<Fix> {
        let fewer = format!(
            "Fewer bytes from the database: a statement's result is {} on average. Ask for the columns and rows that are used, or compress the connection.",
            bytes(self.mean_bytes)
        );
        let more = format!(
            "More bandwidth between app and database than {}: the limit may be an instance's, a shaper, a VPN or a smaller link on the path.",
            bytes_per_second(self.middle())
        );
        let risk = "Compressing takes CPU on both ends, about 20 to 50 ms for each MiB.".to_owned();
        vec![
            Fix { text: fewer, command: None, keep: None, risk: Some(risk) },
            Fix { text: more, command: None, keep: None, risk: None },
        ]
    }
}

pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    let accounts = case.accounts();
    let network_ms = accounts.mean_ms(Owner::DatabaseNetwork).filter(|_| accounts.has_both_sides())?;
    let baseline_ms =
        case.baseline_accounts().and_then(|baseline| baseline.mean_ms(Owner::DatabaseNetwork)).unwrap_or(0.0);
    let grown_ms = network_ms - baseline_ms;
    if share(case, grown_ms) < MATTERS {
        return None;
    }
    let large = LargeResponses::measure(case)?;
    let window = case.slow().window;
    let completed = case.completed_in(window).ok()?.max(1.0);
    let (slowest, quickest) = large.most();
    if quickest > LEVEL * slowest || large.took_ms / completed < IN_TRANSFER * grown_ms {
        return None;
    }
    Some(Outcome::Found(CauseFinding {
        explains_ms: grown_ms,
        evidence: large.evidence(window, network_ms),
        weights: vec![STRONG, FAIR],
        fixes: large.fixes(),
        prove:
            "Run the same scenario again: the time between first and last byte leaves the ledger's database_network."
                .to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_signals::app::accounts::testing::{ALL, Injected, NONE, made};

    const FAR: Injected = Injected { database_network: 40.0, ..NONE };

    /// Responses of `size` bytes whose first byte comes `share` (0-1) of their time before the last.
    fn large(share: f64, size: impl Fn(usize) -> i64) -> SyntheticRecording {
        made(FAR, ALL).tables(|tables| {
            for (n, e) in tables.exchanges.rows.iter_mut().enumerate() {
                e.response_bytes = size(n);
                if e.side == "client" {
                    e.first_byte_at = Some(e.done_at - ((e.done_at - e.request_at) as f64 * share) as i64);
                }
            }
        })
    }

    #[test]
    fn a_narrow_path_is_named_beside_idle_interfaces() {
        let narrow = large(0.95, |_| 50_000);
        let ms = narrow.explains(&DEFINITION).unwrap();
        assert!((ms - 40.0).abs() < 2.0, "{ms}");
        let diagnosis = narrow.diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::NetworkBandwidth), "{}", diagnosis.headline);
    }

    #[test]
    fn distance_small_responses_and_paces_of_all_kinds_are_not_it() {
        assert_eq!(large(0.1, |_| 50_000).explains(&DEFINITION), None, "before the first byte");
        assert_eq!(large(0.95, |_| 5_000).explains(&DEFINITION), None, "in one go");
        assert_eq!(large(0.95, |n| 30_000 * (1 + n as i64 / 2 % 4)).explains(&DEFINITION), None, "four paces");
    }
}

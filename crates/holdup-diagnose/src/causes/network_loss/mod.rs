//! Packets are lost, and the sender waits 200 ms or more before it resends them.

mod advice;
mod signs;

use holdup_recording::{Labels, metrics};

use self::advice::{dropped, fixes};
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Outcome, Role, Source::Of, Trait, ms, percent, thousands,
};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::database_path::DatabasePath;
use crate::resources::is_too_small;
use crate::strength::{FAIR, NONE, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::service_ms;
use holdup_signals::{Counter, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::OnTheWay, Trait::OnGenerator],
    follows_from: &[
        // A full queue or table drops packets, which are resent by the same timers as lost ones.
        Edge::same_time(&[&[Of(Cause::AcceptQueueOverflow), Of(Cause::NetworkLimit)]]),
    ],
    signs: Some(signs::find),
    ..Definition::new(Cause::NetworkLoss, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Packets are lost and sent again",
    what: "A segment, or its acknowledgement, got lost. If no later packet reveals that, TCP resends it when a timer expires: 200 ms at least, a second for a connection's first segment, twice as long each further time.",
    hurts: "A request that takes a millisecond takes 201 or 1,001, while both sides are idle and neither counts an error.",
    needs: "The host's TCP counters (--watch host): retransmitted segments, expired timers (TCPTimeouts) and loss probes (TCPLossProbes). With requests of the client the rule sees whether delays lie at multiples of the timer.",
    predicts: "Expired timers and loss probes, times their length, make up the excess; response times form two clusters, with hardly any between the fast ones and 200 ms.",
    clears: "Retransmitted segments, at a timer of 200 ms each, are a small share of the delay; or hardly a request was slower by as much as one timer.",
    looks_like: "A full accept queue (the listener drops a SYN, which is resent after 1 s: listen drops are then counted as well). A queue of 200 ms (times form one wide cluster). Delayed acknowledgements of 40 ms (nothing is resent).",
    fix: "Find where they are lost: the interface's errors and drops, the path (mtr), a full queue or a policer, conntrack.",
    prove: "The same load again: tcp_retransmission_timeouts_total does not grow, and the second cluster is gone.",
    references: "RFC 6298 (retransmission timer), RFC 8985 (tail loss probes); Linux: Documentation/networking/snmp_counter.rst (TcpRetransSegs, TcpExtTCPTimeouts, TcpExtTCPSynRetrans), include/net/tcp.h (TCP_RTO_MIN, TCP_TIMEOUT_INIT).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "nstat -az; sleep 10; nstat -az",
    10,
    "whether segments are sent again (TcpRetransSegs, TcpExtTCPTimeouts)",
);

const HOST: &str = "--watch host";

/// Shortest timer of a segment, and of a first segment, ms (TCP_RTO_MIN, TCP_TIMEOUT_INIT).
const TIMER_MS: f64 = 200.0;
const SYN_TIMER_MS: f64 = 1_000.0;

/// A request slower than the median by this may have waited for a timer, milliseconds.
const DELAYED_MS: f64 = 180.0;

/// Start of the gap between the two clusters, milliseconds above the median.
const BETWEEN_MS: f64 = 60.0;

/// Requests between the clusters, as a share (0-1) of delayed ones, that make one wide cluster.
const WIDE: f64 = 0.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let again = view.counter(metrics::tcp::RETRANSMITTED_SEGMENTS.name, &[], HOST)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let on_wire = view.counter(metrics::wire::RETRANSMITTED_SEGMENTS.name, &[], "").ok();
    let seen = again.delta.max(on_wire.as_ref().map_or(0.0, |c| c.delta));
    let most_ms = seen * TIMER_MS / completed;
    let sent = view.counter(metrics::tcp::SENT_SEGMENTS.name, &[], HOST).ok().filter(|c| c.delta > 0.0);
    let of_sent = sent.map_or_else(String::new, |s| format!(" of {}", thousands(s.delta)));
    let counted = again.evidence(
        format!("at most {} per request", ms(most_ms)),
        "near 0 ms",
        format!(
            "{} segments{of_sent} were retransmitted: at a timer of 200 ms each, {} per request",
            thousands(again.delta),
            ms(most_ms)
        ),
    );
    // The timer of a connection's first segment is longer: it is separated below.
    let first = view.counter(metrics::tcp::SYN_RETRANSMITS.name, &[], HOST).ok();
    let first_ms = first.as_ref().map_or(0.0, |c| c.delta * SYN_TIMER_MS / completed);
    if is_too_small(case, most_ms + first_ms)? {
        return Ok(Outcome::Cleared(vec![counted]));
    }
    let timers = view.counter(metrics::tcp::RETRANSMISSION_TIMEOUTS.name, &[], HOST)?;
    let waited = TimerWait::new(&view, &timers, first.as_ref(), &again);
    let heaps = Heaps::new(case);
    // At most the lateness of the requests that were late by a timer. Without these: the host counts
    // everybody's segments, and what the app does not await belongs to others.
    let awaited = || DatabasePath::for_case(case).ok().map(|path| (path.at_most_ms() + path.error_ms()).max(0.0));
    let most = heaps.as_ref().map(|heaps| heaps.late_ms / completed).or_else(awaited);
    let at_most = |timers_ms: f64| (timers_ms / completed).min(most.unwrap_or(f64::INFINITY));
    let explains_ms = at_most(waited.ms);
    let mut evidence = vec![timers.evidence(
        format!("{} a request", ms(explains_ms)),
        "near 0 ms",
        format!(
            "{} timers expired without an acknowledgement{}: {} per request, at 200 ms each and 1 s for a connection's first",
            thousands(timers.delta),
            waited.text,
            ms(waited.ms / completed)
        ),
    )];
    evidence.push(counted);
    evidence.extend(heaps.as_ref().map(|h| h.evidence(case)));
    if is_too_small(case, explains_ms)? {
        // Segments that no timer and no later packet had sent again may have been probes.
        return match waited.uncounted {
            Some((more_ms, missing)) if !is_too_small(case, at_most(waited.ms + more_ms))? => Err(missing),
            _ => Ok(Outcome::Cleared(evidence)),
        };
    }
    let mut weights = vec![FAIR, NONE];
    match &heaps {
        Some(heaps) if heaps.is_one() => return Ok(Outcome::Cleared(evidence)),
        Some(_) => weights.push(STRONG),
        None => {}
    }
    evidence.extend(dropped(&view));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: fixes(&view),
        prove: "Run the same scenario again: tcp_retransmission_timeouts_total does not grow, and no request is late by 200 ms."
            .to_owned(),
        role: Role::Root,
    }))
}

/// Time that senders waited for timers.
struct TimerWait {
    /// The sum, milliseconds.
    ms: f64,
    /// Further facts about the timers.
    text: String,
    /// What they may have waited beyond that if loss probes were not counted, and what is missing.
    uncounted: Option<(f64, Missing)>,
}

impl TimerWait {
    fn new(view: &View<'_>, timers: &Counter, first: Option<&Counter>, again: &Counter) -> Self {
        let first = first.map_or(0.0, |c| c.delta).min(timers.delta);
        // Segments dropped by a full listener are resent, too, but were not lost.
        let listeners = view.counter(metrics::tcp::LISTEN_DROPS.name, &[], HOST).map_or(0.0, |c| c.delta).min(first);
        // A request or response of one segment has no later packet that would reveal its loss. The
        // sender probes after two round trips and the shortest timer (RFC 8985, 7.2: the receiver
        // may delay its acknowledgement). It resends the segment then, before its timer expires.
        let count = |metric: &str| view.counter(metric, &[], HOST).map(|c| c.delta);
        let slow = again.delta - timers.delta - count(metrics::tcp::FAST_RETRANSMITS.name).unwrap_or(0.0);
        let counted = count(metrics::tcp::LOSS_PROBES.name);
        let probes = counted.as_ref().map_or(0.0, |probes| probes.min(slow).max(0.0));
        let others = timers.delta - first + probes;
        let text = if first > 0.0 {
            let full = if listeners > 0.0 {
                format!(", {} of which a full accept queue had dropped", thousands(listeners))
            } else {
                String::new()
            };
            format!(" ({} of connections' first segments{full})", thousands(first))
        } else {
            String::new()
        };
        let probed = format!(", and {} segments were sent again as loss probes", thousands(probes));
        let text = if probes > 0.0 { text + &probed } else { text };
        let uncounted = counted.err().map(|missing| (slow.max(0.0) * TIMER_MS, missing));
        Self { ms: others * TIMER_MS + (first - listeners) * SYN_TIMER_MS, text, uncounted }
    }
}

/// How response times lie around the median.
struct Heaps {
    median_ms: f64,
    /// Requests that were late by a timer or more.
    late: f64,
    /// The sum of their lateness, milliseconds.
    late_ms: f64,
    /// Requests in between.
    between: f64,
}

impl Heaps {
    fn new(case: &Case<'_>) -> Option<Self> {
        let rows = case.slow_requests().ok()?;
        let times: Vec<(f64, f64)> = rows.iter().filter_map(|r| Some((service_ms(r)?, r.count() as f64))).collect();
        let median_ms = holdup_signals::time::requests::distribution(rows.iter().copied(), service_ms).quantile(0.5)?;
        let over = |(time, _): &&(f64, f64)| time - median_ms >= DELAYED_MS;
        let is_between = |(time, _): &&(f64, f64)| (BETWEEN_MS..DELAYED_MS).contains(&(time - median_ms));
        Some(Self {
            median_ms,
            late: times.iter().filter(over).map(|(_, n)| n).sum(),
            late_ms: times.iter().filter(over).map(|(time, n)| (time - median_ms) * n).sum(),
            between: times.iter().filter(is_between).fold(0.0, |sum, (_, n)| sum + n),
        })
    }

    /// Whether it is one wide cluster.
    fn is_one(&self) -> bool {
        self.between > WIDE * self.late
    }

    fn evidence(&self, case: &Case<'_>) -> Evidence {
        let window = case.episode();
        let share = percent(self.between / self.late.max(1.0));
        let text = format!(
            "{} requests were slower than the median of {} by 180 ms or more, with {:.0} in between for each hundred of them",
            thousands(self.late),
            ms(self.median_ms),
            100.0 * self.between / self.late.max(1.0)
        );
        Evidence::new("requests", "done_at", Labels::none(), window, share, "most, if they waited in a queue", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 100 requests a second of 5 ms, of which every fourth takes `late_ms` more; `timers` a second end.
    fn host(timers: f64, late_ms: i64) -> SyntheticRecording {
        SyntheticRecording::new(12)
            .requests(100, 5)
            .each_request(|n, r| r.done_at += if n % 4 == 0 { late_ms * 1_000_000 } else { 0 })
            .counter("host", "tcp_sent_segments_total", &[], 1_000.0)
            .counter("host", "tcp_retransmitted_segments_total", &[], timers)
            .counter("host", "tcp_retransmission_timeouts_total", &[], timers)
            .counter("host", "tcp_syn_retransmits_total", &[], 0.0)
            .counter("host", "tcp_listen_drops_total", &[], 0.0)
    }

    #[test]
    fn timers_that_end_account_for_the_second_heap() {
        let made = host(25.0, 205);
        assert!((made.explains(&DEFINITION).unwrap() - 50.0).abs() < 3.0, "{:?}", made.explains(&DEFINITION));
        assert_eq!(made.diagnose().culprit, Some(Cause::NetworkLoss));
    }

    #[test]
    fn a_loss_probe_waits_as_long_as_a_timer() {
        let probed = |fast: f64| {
            host(25.0, 205)
                .without("tcp_retransmission_timeouts_total")
                .counter("host", "tcp_retransmission_timeouts_total", &[], 0.0)
                .counter("host", "tcp_loss_probes_total", &[], 25.0)
                .counter("host", "tcp_fast_retransmits_total", &[], fast)
        };
        assert!(
            (probed(0.0).explains(&DEFINITION).unwrap() - 50.0).abs() < 3.0,
            "{:?}",
            probed(0.0).explains(&DEFINITION)
        );
        // What later packets revealed was sent again at once.
        assert_eq!(probed(25.0).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn few_timers_others_timers_and_one_wide_heap_clear_it() {
        assert_eq!(host(0.2, 205).explains(&DEFINITION), Some(0.0), "few");
        assert_eq!(host(25.0, 100).explains(&DEFINITION), Some(0.0), "timers of others: nobody was late by as much");
        let wide = host(25.0, 0).each_request(|n, r| r.done_at += n % 50 * 8 * 1_000_000);
        assert_eq!(wide.explains(&DEFINITION), Some(0.0), "a queue");
    }

    #[test]
    fn drops_of_a_full_listener_do_not_count_as_loss() {
        let first = |drops: f64| {
            host(2.0, 1_000)
                .without("tcp_syn_retransmits_total")
                .counter("host", "tcp_syn_retransmits_total", &[], 2.0)
                .without("tcp_listen_drops_total")
                .counter("host", "tcp_listen_drops_total", &[], drops)
        };
        assert_eq!(first(2.0).explains(&DEFINITION), Some(0.0));
        assert!(
            host(25.0, 1_000)
                .without("tcp_syn_retransmits_total")
                .counter("host", "tcp_syn_retransmits_total", &[], 25.0)
                .explains(&DEFINITION)
                .unwrap()
                > 200.0
        );
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        for metric in ["tcp_retransmitted_segments_total", "tcp_retransmission_timeouts_total"] {
            assert_eq!(host(25.0, 205).without(metric).explains(&DEFINITION), None, "{metric}");
        }
        assert_eq!(host(25.0, 205).without_column("samples", "value").explains(&DEFINITION), None);
    }
}

//! Stacks of a program's threads, counted by what they wait for.

use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;

use super::MANY;
use super::facts::Facts;

/// What many threads stand in, of those waits that `is` holds for: their number in a sentence that ends in
/// `what`.
pub(crate) fn many(facts: &Facts<'_>, waits: &[&str], what: &str) -> Option<Evidence> {
    let metric = metrics::process::WAITING_STACKS.name;
    let of = |wait: &&str| facts.view.gauge(metric, &[("wait", *wait)], "").ok();
    let most = waits.iter().filter_map(of).max_by(|a, b| a.max.total_cmp(&b.max))?;
    let text = format!("by their stacks, {:.0} threads {what}", most.max);
    (most.max >= MANY).then(|| most.evidence(format!("{:.0} threads", most.max), "a few", text))
}

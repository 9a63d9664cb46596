//! A full cache evicts keys that requests need, and the database behind it answers instead.

mod misses;
#[cfg(test)]
mod tests;

use self::misses::{Misses, lookups};
use super::parts::one_thread::ENABLE;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, bytes, ms, percent, thousands};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_felt;
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

pub const DEFINITION: Definition =
    Definition { occurs: Occurs::OnRedis, ..Definition::new(Cause::CacheMisses, DOC, Judge::Alone(judge), &NEXT) };

const DOC: Doc = Doc {
    title: "A full cache evicts keys that requests need",
    what: "Redis or Valkey as a cache has reached maxmemory and evicts keys to store others: the data that requests need no longer fits. It grew, another user of the same server writes keys, values became larger, or the limit came down.",
    hurts: "Each evicted key that is asked for again is a miss: the app reads it from the database, and stores it, which evicts the next. The database gets several times as many statements, and may run out of CPU or connections.",
    needs: "The cache's figures (--watch redis://…), the database behind it with its counters by statement (--watch mysql://… or postgresql://…), the rate of requests, and a baseline window.",
    predicts: "More look-ups of a request miss than in the baseline window, about as many keys more are evicted, and the database runs about as many statements more for a request.",
    clears: "As many look-ups miss as in the baseline window, or no key more was evicted, or the database got no more statements.",
    looks_like: "A cache that fills after a restart or FLUSHALL (server_restart), and keys that expire together: look-ups miss, and no key is evicted. A new statement of a release (statement_mix_changed): the cache's look-ups hit as before.",
    fix: "Give the cache the memory that its keys need, or store less: shorter lives, smaller values, a server of its own for each user. Evict what is asked for least (allkeys-lfu). Let only one request refill a key at a time.",
    prove: "The same load again: as few look-ups miss as before, and the database runs as few statements for a request.",
    references: "Redis documentation: Key eviction (maxmemory, maxmemory-policy); INFO (evicted_keys, keyspace_hits, keyspace_misses). R. Nishtala et al., Scaling Memcache at Facebook, NSDI 2013 (thundering herds).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "redis-cli INFO memory | grep maxmemory; redis-cli INFO stats | grep -E 'evicted|expired|keyspace'",
    1,
    "whether the cache is full and evicts keys, and how many look-ups miss",
);

/// Further misses for each look-up (0-1) below which the cache serves as before.
const MORE: f64 = 0.05;

const DATABASE: &str =
    "--watch of the database behind the cache (mysql://… or postgresql://…), with its counters by statement";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let now = lookups(&view, case.completed_in(view.window)?)?;
    let baseline = case.baseline().ok_or_else(|| Missing::baseline(", for the cache's misses to compare with"))?;
    let before = lookups(&baseline, case.completed_in(baseline.window)?)?;
    let pairs = now.iter().filter_map(|now| Some((now, before.iter().find(|before| before.source == now.source)?)));
    let worst = pairs.max_by(|a, b| more(a.0, a.1).total_cmp(&more(b.0, b.1)));
    let (now, before) = worst.ok_or_else(|| Missing::new("look-ups of the cache in the baseline window", ENABLE))?;
    let missed = missed(&view, now, before);
    let evicted = now.evicted - before.evicted;
    if now.ratio() - before.ratio() < MORE || evicted <= 0.0 {
        return Ok(Outcome::Cleared(vec![missed]));
    }
    // An evicted key is missed once: then it is stored anew.
    let of_evictions = more(now, before).min(evicted);
    let further = Further::measure(case, &view, &baseline)?;
    let explains_ms = further.ms * (of_evictions / further.calls.max(1e-9)).min(1.0);
    let told = further.evidence(&view, explains_ms);
    let evidence: Vec<Evidence> = [missed].into_iter().chain(told).collect();
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG, FAIR],
        fixes: fixes(&view),
        prove: "Run the same load again: as few look-ups miss as in the baseline window.".to_owned(),
        role: Role::Root,
    }))
}

/// Misses that a request has more.
fn more(now: &Misses<'_>, before: &Misses<'_>) -> f64 {
    now.missed - before.missed
}

fn missed(view: &View<'_>, now: &Misses<'_>, before: &Misses<'_>) -> Evidence {
    let evicted = match (now.evicted - before.evicted).max(0.0) {
        more if more > 0.0 => format!("; {} keys were evicted for a request more than in it", figure(more)),
        _ => "; no key more was evicted than in it".to_owned(),
    };
    let text = format!(
        "{}: {} of the look-ups missed, {} in the baseline window{evicted}",
        now.source,
        percent(now.ratio()),
        percent(before.ratio())
    );
    let labels = holdup_recording::Labels::new([("metric", metrics::redis::INFO_KEYSPACE_MISSES.name)]);
    let (now, before) = (percent(now.ratio()), percent(before.ratio()));
    Evidence::new("samples", "value", labels, view.window, now, before, text)
}

/// A small mean count.
fn figure(count: f64) -> String {
    if count >= 10.0 { thousands(count) } else { format!("{count:.2}") }
}

/// Statements that the databases run for a request more than in the baseline window.
struct Further {
    calls: f64,
    /// Their time, milliseconds.
    ms: f64,
    /// The one with most of it.
    most: Option<DigestUse>,
}

impl Further {
    fn measure(case: &Case<'_>, view: &View<'_>, baseline: &View<'_>) -> Result<Self, Missing> {
        let missing = || Missing::new("what a miss of the cache costs", DATABASE);
        let executed = |view: &View<'_>| -> Result<Vec<DigestUse>, Missing> {
            let all = view.executed(&["digest_text"]).map_err(|_| missing())?.into_iter();
            Ok(all.filter(|of| !of.source.starts_with("redis:")).collect())
        };
        let (now, before) = (executed(view)?, executed(baseline)?);
        if now.is_empty() {
            return Err(missing());
        }
        let (requests, earlier) =
            (case.completed_in(view.window)?.max(1.0), case.completed_in(baseline.window)?.max(1.0));
        let mut further = Self { calls: 0.0, ms: 0.0, most: None };
        let mut most_ms = 0.0;
        for of in now {
            let same = |b: &&DigestUse| b.digest == of.digest && b.database == of.database && b.source == of.source;
            let was = before.iter().find(same).map_or(0.0, |was| was.calls / earlier);
            let calls = (of.calls / requests - was).max(0.0);
            let each_ms = of.seconds / of.calls.max(1.0) * 1e3;
            further.calls += calls;
            further.ms += calls * each_ms;
            if calls * each_ms > most_ms {
                most_ms = calls * each_ms;
                further.most = Some(of);
            }
        }
        Ok(further)
    }

    fn evidence(&self, view: &View<'_>, explains_ms: f64) -> Option<Evidence> {
        let most = self.most.as_ref()?;
        let text = format!(
            "the database ran {} statements for a request more than in the baseline window, {} in all, {} of it for evicted keys; most of it: {}",
            figure(self.calls),
            ms(self.ms),
            ms(explains_ms),
            most.text
        );
        Some(view.digest_evidence(most, "calls", figure(self.calls), "about 0", text))
    }
}

fn fixes(view: &View<'_>) -> Vec<Fix> {
    let limit = view.gauge(metrics::redis::INFO_MAXMEMORY.name, &[], ENABLE).ok().filter(|limit| limit.max > 0.0);
    let limit = limit.map_or_else(String::new, |limit| format!(", which is {} now", bytes(limit.max)));
    vec![
        Fix::by_command(
            "See which keys take the memory.",
            Some("redis-cli --bigkeys"),
            Some("It reads all keys in steps: run it on a replica if there is one."),
        ),
        Fix::advice(
            format!("Raise maxmemory{limit}, if the machine has the memory."),
            Some("Above the machine's memory the server is killed or swaps; a fork needs room for copies."),
        ),
        Fix::advice("Let only one request refill a key at a time, and give each kind of keys a time to live.", None),
    ]
}

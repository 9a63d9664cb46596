//! Parses objectives: `[operation] METRIC < VALUE [for WINDOW]`, `[operation] rate > N [for
//! WINDOW]`.

use std::time::Duration;

use super::Metric;
use crate::duration;
use crate::threshold::Threshold;

const EXAMPLE: &str = "e.g. p99 < 500ms, search p95 < 1s, errors < 1% for 30s, rate > 100";

/// Longest window: each of its seconds is kept in memory.
const LONGEST_WINDOW: Duration = Duration::from_secs(3_600);

/// Parses `[operation] METRIC < VALUE [for WINDOW]`, e.g. `p99 < 500ms`, `search p95 < 1s for 30s`,
/// `errors < 1%`, `checkout/ rate > 50`, for a scenario with these `operations`.
///
/// # Errors
/// If it is not an objective; the message gives examples.
pub fn parse<S: AsRef<str>>(text: &str, operations: &[S]) -> Result<Threshold, String> {
    let text = text.trim();
    let wrong = || format!("\"{text}\" is not an objective; {EXAMPLE}");
    let (at, sign) = text.char_indices().rfind(|(_, c)| matches!(c, '<' | '>')).ok_or_else(wrong)?;
    let (left, right) = (text[..at].trim(), text[at + 1..].trim());
    let (operation, name) = match left.rsplit_once(char::is_whitespace) {
        Some((operation, metric)) => (Some(operation.trim()), metric),
        None => (None, left),
    };
    let metric = Metric::parse(name)?;
    if (sign == '>') != (metric == Metric::Rate) {
        let (right_sign, why) = if metric == Metric::Rate { ('>', "more is better") } else { ('<', "less is better") };
        return Err(format!("for {name} {why}: write {name} {right_sign} VALUE"));
    }
    let is_group = match operation {
        Some(name) => is_group(name, operations)?,
        None => false,
    };
    let (value, window) = match right.split_once(" for ") {
        Some((value, window)) => (value.trim(), Some(whole_seconds(window.trim())?)),
        None => (right, None),
    };
    Ok(Threshold {
        text: text.to_owned(),
        metric: name.to_owned(),
        below: limit(metric, value)?,
        operation: operation.map(str::to_owned),
        is_group,
        window_ns: window.map(|w| w.as_nanos() as i64),
        ..Threshold::default()
    })
}

/// Whether `name` is a group's rather than an operation's.
fn is_group<S: AsRef<str>>(name: &str, operations: &[S]) -> Result<bool, String> {
    let mut names = operations.iter().map(AsRef::as_ref);
    if names.clone().any(|o: &str| o == name) {
        return Ok(false);
    }
    if name.ends_with('/') && names.clone().any(|o| o.starts_with(name)) {
        return Ok(true);
    }
    let known: Vec<&str> = names.by_ref().collect();
    if known.is_empty() {
        return Err(format!("only a load has operations: leave \"{name}\" out"));
    }
    Err(format!("no operation is called \"{name}\"; known: {}", known.join(", ")))
}

fn limit(metric: Metric, text: &str) -> Result<f64, String> {
    match metric {
        Metric::Errors => {
            let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |n| (n.trim(), 0.01));
            let share = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            share.map(|n| n * scale).ok_or_else(|| format!("\"{text}\" is not a share such as 1% or 0.01"))
        }
        Metric::Rate => {
            let number = text.strip_suffix("/s").unwrap_or(text).trim();
            let rate = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            rate.ok_or_else(|| format!("\"{text}\" is not a rate such as 100 or 0.5, successes per second"))
        }
        _ => Ok(duration::parse(text)?.as_secs_f64() * 1e3),
    }
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let window = duration::parse(text)?;
    if window.subsec_nanos() > 0 || window.is_zero() || window > LONGEST_WINDOW {
        return Err(format!("\"for {text}\": a window is whole seconds, from 1s to 1h"));
    }
    Ok(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: [&str; 5] = ["search", "add to cart", "checkout/pay", "checkout/ship", "/"];

    fn read(text: &str) -> Threshold {
        parse(text, &OPERATIONS).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn objectives() {
        for (text, metric, below, operation, window_s) in [
            ("p99 < 500ms", "p99", 500.0, None, None),
            ("add to cart p75<1s", "p75", 1_000.0, Some("add to cart"), None),
            ("search p99.9 < 2s for 1m30s", "p99.9", 2_000.0, Some("search"), Some(90)),
            ("errors < 5% for 10s", "errors", 0.05, None, Some(10)),
            ("errors < 0.02", "errors", 0.02, None, None),
            ("search rate > 99.5", "rate", 99.5, Some("search"), None),
            ("rate > 100/s for 5s", "rate", 100.0, None, Some(5)),
            ("/ mean < 3ms", "mean", 3.0, Some("/"), None),
        ] {
            let t = read(text);
            assert_eq!((t.text.as_str(), t.metric.as_str(), t.below), (text, metric, below));
            assert_eq!((t.operation.as_deref(), t.is_group), (operation, false));
            assert_eq!(t.window_ns, window_s.map(|s: i64| s * 1_000_000_000));
            assert!(!t.abort && t.abort_after_ns == 0);
        }
        let group = read("checkout/ p95 < 1s for 30s");
        assert!(group.is_group && group.covers("checkout/pay") && !group.covers("search"));
    }

    #[test]
    fn errors_say_the_way_out() {
        for (text, words) in [
            ("fast", "\"fast\" is not an objective; e.g. p99 < 500ms"),
            ("p100 < 1s", "use max"),
            ("p0 < 1s", "a percentile lies between p0 and p100"),
            ("p999999 < 1s", "write it with a point, e.g. p99.99"),
            ("median < 1s", "unknown metric \"median\"; known: p50, p99, p99.9 or any other percentile"),
            ("buy p99 < 1s", "no operation is called \"buy\"; known: search, add to cart"),
            ("buy/ p99 < 1s", "no operation is called \"buy/\""),
            ("p99 > 1s", "less is better: write p99 < VALUE"),
            ("rate < 10", "more is better: write rate > VALUE"),
            ("rate > fast", "\"fast\" is not a rate"),
            ("errors < NaN", "is not a share"),
            ("errors < -1%", "is not a share"),
            ("p99 < 500", "expected a duration"),
            ("p99 < 1s for 1500ms", "a window is whole seconds, from 1s to 1h"),
            ("p99 < 1s for 0s", "a window is whole seconds"),
            ("p99 < 1s for 2h", "a window is whole seconds"),
            ("p99 < 1s for ever", "expected a duration"),
        ] {
            let why = parse(text, &OPERATIONS).err().unwrap_or_else(|| panic!("{text} is accepted"));
            assert!(why.contains(words), "{text}: {why}");
        }
        let why = parse("search p99 < 1s", &[] as &[&str]).unwrap_err();
        assert_eq!(why, "only a load has operations: leave \"search\" out");
    }
}

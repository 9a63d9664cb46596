//! `dmesg`, `journalctl -k` and `/var/log/kern.log`: what the kernel said about tasks that hang,
//! kills for lack of memory, disks, and full queues. Lines of another content are counted as read.
//! Stamps may be seconds since boot, dates, or dates without a year.

use holdup_recording::rows::Thread;
use holdup_recording::{Labels, events, metrics};

use super::kernel_event::KernelEvent;
use super::kernel_events::{frame, parse};
use super::kernel_kill::{KillReport, merge};
use super::{Context, DAY_NS, HOST, Kind, Line, clock};

pub(super) const KIND: Kind = Kind::lines("kernel log", recognises, read);

/// Frames kept of a stack.
const FRAMES_MAX: usize = 24;

/// A time later than any log, to recognise a date without a year.
const ANY_NOW: i64 = 4_000_000_000_000_000_000;

/// Events back to which a line may tell more of a kill.
const SAME_KILL: usize = 3;

/// Events that are kept of one log.
const EVENTS_MAX: usize = 5_000;

/// When a line was logged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stamp {
    At(i64),
    /// Seconds since boot.
    SinceBoot(f64),
    /// Nanoseconds since the line before (`dmesg -H`).
    After(i64),
    Unknown,
}

/// A line's stamp, and its message.
fn stamped(line: &Line, now: i64) -> Option<(Stamp, &str)> {
    let own = line.text.trim_start();
    if let Some(at) = line.stamp {
        let message = of_journal(own).or_else(|| parse(own).map(|_| own))?;
        return Some((Stamp::At(at), without_bracket(message)));
    }
    // `kern  :info  : [12.3]`, `<6>[12.3]`
    let own = match own.find('[') {
        Some(at) if own.starts_with("kern") || own.starts_with('<') && at <= 4 => own.get(at..)?,
        _ => own,
    };
    if let Some((inner, rest)) = own.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let stamp = bracket(inner.trim(), now)?;
        let rest = rest.trim_start();
        if matches!(stamp, Stamp::At(_)) && is_of_apache(rest) {
            return None;
        }
        return Some((stamp, without_bracket(of_journal(rest).unwrap_or(rest))));
    }
    let (stamp, rest) = of_syslog(own, now).or_else(|| of_words(own))?;
    Some((stamp, without_bracket(of_journal(rest)?)))
}

/// Whether a message begins with the module and level of Apache's error log: `[core:error]`.
fn is_of_apache(message: &str) -> bool {
    let inner = message.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(inner, _)| inner);
    inner.is_some_and(|inner| {
        let level = inner.rsplit(':').next().unwrap_or_default();
        matches!(level, "emerg" | "alert" | "crit" | "error" | "warn" | "notice" | "info" | "debug")
    })
}

/// `12345.678901`, `Thu Nov 26 10:11:12 2026`, `Nov26 10:11`, `+0.000123`
fn bracket(inner: &str, now: i64) -> Option<Stamp> {
    if let Some(delta) = inner.strip_prefix('+') {
        let seconds: f64 = delta.trim().parse().ok()?;
        return Some(Stamp::After((seconds * 1e9) as i64));
    }
    let is_number = inner.contains('.') && inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number {
        return inner.parse().ok().filter(|seconds| *seconds < 1e10).map(Stamp::SinceBoot);
    }
    if let (Some(at), _) = clock::leading(inner) {
        return Some(Stamp::At(at));
    }
    let (day, time) = inner.split_once(' ')?;
    let (month, day) = day.split_at_checked(3)?;
    clock::without_year(month, day, time.trim(), now).map(Stamp::At)
}

/// `Nov 26 10:11:12 host kernel: …`
fn of_syslog(line: &str, now: i64) -> Option<(Stamp, &str)> {
    let (month, rest) = line.split_at_checked(3)?;
    let (day, rest) = rest.trim_start().split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(' ')?;
    Some((Stamp::At(clock::without_year(month, day, time, now)?), rest))
}

/// `Thu 2026-11-26 10:11:12 UTC host kernel: …`, `1795687872.123 host kernel: …`
fn of_words(line: &str) -> Option<(Stamp, &str)> {
    let (first, rest) = line.split_once(' ')?;
    if first.len() == 3
        && let (Some(at), rest) = clock::leading(rest)
    {
        return Some((Stamp::At(at), rest));
    }
    let seconds: f64 = first.parse().ok().filter(|seconds| (1e9..4e9).contains(seconds))?;
    Some((Stamp::At((seconds * 1e9) as i64), rest))
}

/// The message after `host kernel:`, or what systemd says of a kill after `host systemd[1]:`.
fn of_journal(text: &str) -> Option<&str> {
    let of_kernel = text.split_once("kernel: ").or_else(|| text.split_once("kernel:"));
    // A host's name, and what a shipper of logs puts between: `host  !WARNING | kernel: `.
    const WORDS: usize = 4;
    let is_host = |head: &str| {
        let words = head.split_whitespace().count();
        head.is_empty() || head.ends_with(' ') && (words == 1 || words <= WORDS && head.contains(" | "))
    };
    if let Some((_, message)) = of_kernel.filter(|(head, _)| is_host(head)) {
        return Some(message);
    }
    let (head, message) = text.split_once("]: ")?;
    let of_systemd = head.find("systemd[").or_else(|| head.find("systemd-oomd[")).and_then(|at| head.get(..at))?;
    let is_kill = || parse(message).is_some_and(|event| event.kind == events::OUT_OF_MEMORY_KILL);
    (is_host(of_systemd) && is_kill()).then_some(message)
}

/// The message without a second stamp or the thread that logged it.
fn without_bracket(message: &str) -> &str {
    let inner = message.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match inner {
        Some((inner, rest)) if inner.bytes().all(|byte| b" .TC0123456789".contains(&byte)) => rest.trim_start(),
        _ => message,
    }
}

fn recognises(lines: &[Line]) -> bool {
    let Some(line) = lines.first() else { return false };
    stamped(line, ANY_NOW).is_some() || parse(line.text.trim()).is_some()
}

/// An event and when it was logged.
struct Entry {
    stamp: Stamp,
    event: KernelEvent,
    stack: Vec<String>,
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let now = context.now();
    let mut entries: Vec<Entry> = Vec::new();
    let (mut used, mut last, mut report, mut is_stack) = (0, Stamp::Unknown, KillReport::default(), false);
    for (place, line) in lines.iter().enumerate() {
        let (stamp, message) = match stamped(line, now) {
            Some(found) => found,
            None if parse(line.text.trim()).is_some() => (last, line.text.trim()),
            None if is_stack && frame(line.text.trim()).is_some() => (last, line.text.trim()),
            None if line.is_blank() => continue,
            None => break,
        };
        used = place + 1;
        last = match (last, stamp) {
            (Stamp::At(at), Stamp::After(delta)) => Stamp::At(at.saturating_add(delta)),
            (last, Stamp::After(_)) => last,
            (_, stamp) => stamp,
        };
        report.take(message);
        if let Some(mut event) = parse(message).filter(|_| entries.len() < EVENTS_MAX) {
            if event.kind == events::OUT_OF_MEMORY_KILL {
                report.complete(&mut event);
                if entries.iter_mut().rev().take(SAME_KILL).any(|entry| merge(&mut entry.event, &event)) {
                    continue;
                }
            }
            is_stack = event.is_hung;
            entries.push(Entry { stamp: last, event, stack: Vec::new() });
        } else if let (true, Some(function)) = (is_stack, frame(message)) {
            if let Some(entry) = entries.last_mut().filter(|entry| entry.stack.len() < FRAMES_MAX) {
                entry.stack.push(function.to_owned());
            }
        } else if entries.last().is_some_and(|entry| !entry.stack.is_empty()) && !message.starts_with(['?', '<']) {
            is_stack = false;
        }
    }
    put_all(entries, last, context);
    used.max(1)
}

fn put_all(entries: Vec<Entry>, last: Stamp, context: &mut Context) {
    if let (Stamp::At(at), false) = (last, context.is_stamped()) {
        context.set_time(at);
    }
    let end = context.instant();
    let has_relative = entries.iter().any(|entry| matches!(entry.stamp, Stamp::SinceBoot(_)));
    if has_relative && context.boot.is_none() {
        context.out.note(
            "kernel log: its times count from boot, which no uptime before it shows; its last line was taken for \
             the time of the paste: dmesg -T gives times",
        );
    }
    let at_of = |stamp: Stamp| match (stamp, last, context.boot) {
        (Stamp::At(at), ..) => at,
        (Stamp::SinceBoot(seconds), _, Some(boot)) => boot.saturating_add((seconds * 1e9) as i64),
        (Stamp::SinceBoot(seconds), Stamp::SinceBoot(last), None) => {
            end.saturating_sub(((last - seconds).max(0.0) * 1e9) as i64)
        }
        _ => end,
    };
    let timed: Vec<(i64, Entry)> = entries.into_iter().map(|entry| (at_of(entry.stamp), entry)).collect();
    let oldest = end.saturating_sub(DAY_NS);
    let left_out = timed.iter().filter(|(at, _)| *at < oldest).count();
    if left_out > 0 {
        context.out.note(format!("kernel log: {left_out} events from more than a day before were left out"));
    }
    let mut kills = 0.0;
    for (at, Entry { event, stack, .. }) in timed.into_iter().filter(|(at, _)| *at >= oldest) {
        if event.kind == events::OUT_OF_MEMORY_KILL {
            put_kill(at, kills, context);
            kills += 1.0;
        }
        if event.is_hung {
            put_hung(at, &event, &stack, context);
        }
        context.out.event(at, event.kind, event.text, Labels::new(event.labels));
    }
}

/// The kernel's counter of kills, a second before and at the kill.
fn put_kill(at: i64, before: f64, context: &mut Context) {
    for (at, value) in [(at.saturating_sub(1_000_000_000), before), (at, before + 1.0)] {
        context.out.host(at, metrics::host::OUT_OF_MEMORY_KILLS, Labels::none(), value);
    }
}

/// A thread that hangs, with its stack.
fn put_hung(at: i64, event: &KernelEvent, stack: &[String], context: &mut Context) {
    let pid = event.label("pid").and_then(|pid| pid.parse::<i64>().ok());
    let Some((name, pid)) = event.label("process").zip(pid) else { return };
    let is_scheduler = |function: &&String| function.contains("schedule");
    context.out.batch.threads.push(Thread {
        observed_at: at,
        source: HOST.to_owned(),
        pid,
        tid: pid,
        process: name.to_owned(),
        thread: name.to_owned(),
        state: "D".to_owned(),
        wchan: stack.iter().find(|function| !is_scheduler(function)).cloned(),
        stack: (!stack.is_empty()).then(|| stack.join(" < ")),
        count: 1,
        ..Thread::default()
    });
}

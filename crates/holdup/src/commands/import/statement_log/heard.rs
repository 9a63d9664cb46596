//! A PostgreSQL server's messages about itself, as the events and plans that the collector of its
//! log makes of them.

use std::sync::{Arc, Mutex, PoisonError};

use holdup_collect::postgres::{Entry, Messages};
use holdup_logs::digest::postgres::heard::{Listener, Message};
use holdup_recording::Batch;

/// Messages that are turned into events at once: errors of one kind among them are one event.
const AT_ONCE: usize = 256;

/// Most events that are kept.
const EVENTS_MAX: usize = 20_000;

/// What was heard.
pub(super) struct Heard {
    /// Events and plans.
    pub batch: Batch,
    /// Events in all.
    pub total: u64,
    /// Events beyond the most.
    pub left_out: u64,
    waiting: Vec<Entry>,
    messages: Option<Messages>,
}

/// A listener to messages of `source`, and what it heard.
pub(super) fn listener(source: &str) -> (Listener, Arc<Mutex<Heard>>) {
    let messages = Some(Messages::new(source));
    let heard = Heard { batch: Batch::default(), total: 0, left_out: 0, waiting: Vec::new(), messages };
    let heard = Arc::new(Mutex::new(heard));
    let hears = Arc::clone(&heard);
    (Listener::new(move |message| hears.lock().unwrap_or_else(PoisonError::into_inner).take(message)), heard)
}

/// All that was heard, when the log has ended.
pub(super) fn finished(heard: &Mutex<Heard>) -> Heard {
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    heard.flush();
    let plans = heard.messages.take().into_iter().flat_map(Messages::plans).collect::<Vec<_>>();
    let mut batch = std::mem::take(&mut heard.batch);
    batch.plans = plans;
    Heard { batch, total: heard.total, left_out: heard.left_out, waiting: Vec::new(), messages: None }
}

impl Heard {
    fn take(&mut self, message: &Message) {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        self.waiting.push(Entry {
            at: message.at_us.map(|at| at.saturating_mul(1_000)),
            pid: i64::try_from(message.pid).ok().filter(|pid| *pid > 0),
            database: some(&message.database),
            severity: message.severity.clone(),
            code: None,
            message: message.text.clone(),
            detail: some(&message.detail),
            statement: some(&message.statement),
        });
        if self.waiting.len() >= AT_ONCE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let mut batch = Batch::default();
        if let Some(messages) = &mut self.messages {
            messages.take(&self.waiting, &mut batch);
        }
        self.waiting.clear();
        self.total += batch.events.len() as u64;
        let room = EVENTS_MAX.saturating_sub(self.batch.events.len());
        self.left_out += batch.events.len().saturating_sub(room) as u64;
        self.batch.events.extend(batch.events.into_iter().take(room));
    }

    /// First and last moment, nanoseconds since 1970.
    pub fn span(&self) -> Option<(i64, i64)> {
        let events = self.batch.events.iter().map(|event| event.observed_at);
        let times = events.chain(self.batch.plans.iter().map(|plan| plan.observed_at));
        times.map(|at| (at, at)).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }
}

/// Whether the first lines are those of a PostgreSQL server: a time, a severity and two blanks, in
/// half of the lines at least that do not continue another.
pub(super) fn is_log(head: &[u8]) -> bool {
    const LINES: usize = 100;
    let text = String::from_utf8_lossy(head);
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['\t', ' '])).take(LINES);
    let (mut own, mut all) = (0_usize, 0_usize);
    for line in lines {
        all += 1;
        let is_one = SEVERITIES.iter().any(|severity| {
            let before = line.split_once(severity).map(|(before, _)| before);
            // A window of a terminal is drawn around lines that were copied from it.
            before.is_some_and(|before| {
                before.len() < 300
                    && before.chars().any(|char| char.is_ascii_digit())
                    && !before.starts_with('\u{2502}')
            })
        });
        own += usize::from(is_one);
    }
    own > 0 && 2 * own >= all
}

const SEVERITIES: [&str; 9] =
    ["LOG:  ", "ERROR:  ", "FATAL:  ", "PANIC:  ", "WARNING:  ", "DETAIL:  ", "STATEMENT:  ", "HINT:  ", "CONTEXT:  "];

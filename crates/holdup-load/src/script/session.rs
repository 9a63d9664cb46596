//! One user's session: its place in the flow, its variables, and its random numbers. It sends
//! nothing and reads no clock: the caller asks what comes next, and passes in the response.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::script::program::{Flow, Form, OnFailure, Op, RequestSpec, Script, Times};
use crate::script::{Condition, Context, Draw, Random, Response, Row, Slot, StepFailure, Template, Value};

/// Most feeders of a scenario: every template gets one row of each.
pub const MAX_FEEDERS: usize = 16;

/// Most steps without a request or a wait; after more, the session counts as an endless loop.
const MOST_STEPS: u32 = 100_000;

/// Largest value of a variable, list or text, bytes.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// What a session does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends [`Script::requests`] at this index.
    Request(u32),
    /// It waits, nanoseconds; then ask again.
    Wait(i64),
    /// It has ended.
    End,
    /// It could not go on: a step failed without a request.
    Failed(StepFailure),
}

/// A time on both clocks, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Of the monotonic clock.
    pub monotonic_ns: i64,
    /// Since the Unix epoch.
    pub unix_ns: i64,
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    flow: u32,
    at: u32,
    number: u64,
    values: Vec<Value>,
    /// Rows that were drawn, by feeder.
    rows: Vec<Option<usize>>,
    counters: Vec<i64>,
    random: Random,
    /// Nested [`Op::Try`] steps that it is in.
    tries: Vec<u32>,
}

impl Session {
    /// A session of `flow`, the `number`-th of the run.
    pub fn new(script: &Script, flow: u32, number: u64) -> Self {
        let mut session = Self {
            flow,
            at: 0,
            number,
            values: Vec::new(),
            rows: Vec::new(),
            counters: Vec::new(),
            random: Random::new(0),
            tries: Vec::new(),
        };
        session.restart(script, flow, number);
        session
    }

    /// Becomes another session, and reuses the memory.
    pub fn restart(&mut self, script: &Script, flow: u32, number: u64) {
        self.flow = flow;
        self.at = 0;
        self.number = number;
        self.values.clear();
        self.values.extend_from_slice(script.initial.get().map_or(&[][..], Vec::as_slice));
        self.values.resize(script.names.variables().len(), Value::None);
        self.rows.clear();
        self.rows.resize(script.sources.len(), None);
        self.counters.clear();
        self.counters.resize(script.flows[flow as usize].counters as usize, 0);
        // Two draws in between: consecutive seeds must not be consecutive in the same sequence.
        self.random = Random::new(Random::new(script.seed ^ number.rotate_left(32)).next() ^ number);
        self.tries.clear();
    }

    /// Index of its flow.
    pub fn flow(&self) -> u32 {
        self.flow
    }

    /// Its number, unique in the run.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its variables by slot.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Runs to the next request, wait or end.
    pub fn next(&mut self, script: &Script, now: Moment) -> Next {
        let Some(flow) = script.flows.get(self.flow as usize) else { return Next::End };
        for _ in 0..MOST_STEPS {
            let Some(op) = flow.ops.get(self.at as usize) else { return Next::End };
            self.at += 1;
            match self.step(script, flow, op, now) {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(failed) => return Next::Failed(failed),
            }
        }
        Next::Failed(StepFailure::Template)
    }

    fn step(&mut self, script: &Script, flow: &Flow, op: &Op, now: Moment) -> Result<Option<Next>, StepFailure> {
        match op {
            Op::Request(request) => return Ok(Some(Next::Request(*request))),
            Op::Think(think) => return Ok(Some(Next::Wait(think.draw(&mut self.random)))),
            Op::Pace { counter, length } => return Ok(self.pace(*counter, *length, now)),
            Op::Set(slot, template) => {
                self.draw_rows(script, template.feeders())?;
                let value = self.with_context(script, now, self.number, |context| template.value(context))?;
                self.put(*slot, value);
            }
            Op::Feed(feeder) => self.draw(script, *feeder)?,
            Op::Jump(to) => self.at = *to,
            Op::Unless(condition, to) => {
                if !self.holds(script, condition, now)? {
                    self.at = *to;
                }
            }
            Op::Reset(counter) => self.counters[*counter as usize] = 0,
            Op::Repeat { counter, times, shown_as, exit } => {
                if !self.begin_round(script, (*counter, times), *shown_as, now)? {
                    self.at = *exit;
                }
            }
            Op::During { counter, length, exit } => {
                let begun = &mut self.counters[*counter as usize];
                if *begun == 0 {
                    *begun = now.monotonic_ns;
                }
                if now.monotonic_ns - *begun >= length.as_nanos() as i64 {
                    self.at = *exit;
                }
            }
            Op::Each { counter, list, item, exit } => {
                if !self.take_item(*counter, *list, *item) {
                    self.at = *exit;
                }
            }
            Op::Try { counter, most, exit } => {
                if !self.try_again(*counter, *most) {
                    self.at = *exit;
                }
            }
            Op::Tried => {
                self.tries.pop();
            }
            Op::Choose(ends, places) => {
                let total = ends.last().copied().unwrap_or(0);
                let point = self.random.below(u64::from(total)) as u32;
                let chosen = ends.partition_point(|end| *end <= point).min(places.len() - 1);
                self.at = places[chosen];
            }
            Op::InTurn(which, places) => {
                let passed = script.turns[*which as usize].fetch_add(1, Ordering::Relaxed);
                self.at = places[(passed % places.len() as u64) as usize];
            }
            Op::End => {
                self.at = flow.ops.len() as u32;
                return Ok(Some(Next::End));
            }
            Op::EndRun => {
                script.end_run("a step ended it (end: run)".to_owned(), false);
                return Ok(Some(Next::End));
            }
        }
        Ok(None)
    }

    /// Waits until `length` after the pace before, if that is not over yet.
    fn pace(&mut self, counter: u32, length: Duration, now: Moment) -> Option<Next> {
        let last = &mut self.counters[counter as usize];
        let due = if *last == 0 { now.monotonic_ns } else { *last + length.as_nanos() as i64 };
        *last = due.max(now.monotonic_ns);
        (due > now.monotonic_ns).then_some(Next::Wait(due - now.monotonic_ns))
    }

    /// Begins the next round of a `repeat`; false after the last. `shown_as` gets its number.
    fn begin_round(
        &mut self,
        script: &Script,
        (counter, times): (u32, &Times),
        shown_as: Option<Slot>,
        now: Moment,
    ) -> Result<bool, StepFailure> {
        let round = self.counters[counter as usize];
        let most = match times {
            Times::Fixed(most) => *most as i64,
            Times::Said(template) => {
                let kept = counter as usize + 1;
                if round == 0 {
                    let text = self.fill(script, template, now, self.number)?;
                    self.counters[kept] = text.trim().parse().map_err(|_| StepFailure::Template)?;
                }
                self.counters[kept]
            }
        };
        if round >= most {
            return Ok(false);
        }
        self.counters[counter as usize] += 1;
        if let Some(slot) = shown_as {
            self.put(slot, Value::Text(round.to_string().into()));
        }
        Ok(true)
    }

    /// Takes the next item of a list; false at its end.
    fn take_item(&mut self, counter: u32, list: Slot, item: Slot) -> bool {
        let at = self.counters[counter as usize] as usize;
        let found = match &self.values[list.0 as usize] {
            Value::List(items) => items.get(at).cloned(),
            Value::Text(text) if at == 0 => Some(text.clone()),
            Value::Text(_) | Value::None => None,
        };
        let Some(text) = found else { return false };
        self.counters[counter as usize] += 1;
        self.put(item, Value::Text(text));
        true
    }

    /// Begins the next try of a `retry`; false after the last.
    fn try_again(&mut self, counter: u32, most: u64) -> bool {
        let place = self.at - 1;
        if self.tries.last() != Some(&place) {
            self.tries.push(place);
        }
        let tries = &mut self.counters[counter as usize];
        if *tries as u64 >= most {
            self.tries.pop();
            return false;
        }
        *tries += 1;
        true
    }

    /// Draws the rows that a request needs and the session does not have yet.
    ///
    /// # Errors
    /// [`StepFailure::FeederDry`].
    pub fn draw_rows(&mut self, script: &Script, feeders: &[u32]) -> Result<(), StepFailure> {
        for feeder in feeders {
            if self.rows[*feeder as usize].is_none() {
                self.draw(script, *feeder)?;
            }
        }
        Ok(())
    }

    fn draw(&mut self, script: &Script, feeder: u32) -> Result<(), StepFailure> {
        let source = &script.sources[feeder as usize];
        let number = source.drawn.fetch_add(1, Ordering::Relaxed);
        match source.drawer.draw(number) {
            Draw::Row(row) => {
                self.rows[feeder as usize] = Some(row);
                Ok(())
            }
            Draw::Dry => Err(StepFailure::FeederDry),
            Draw::StopRun => {
                script.end_run(format!("feeder {} has no row left", source.name), false);
                Err(StepFailure::FeederDry)
            }
        }
    }

    /// Calls `with` with the context for filling in templates of request `number`.
    pub fn with_context<R>(
        &mut self,
        script: &Script,
        now: Moment,
        number: u64,
        with: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let mut rows: [Option<Row<'_>>; MAX_FEEDERS] = [const { None }; MAX_FEEDERS];
        for ((place, row), source) in rows.iter_mut().zip(&self.rows).zip(&script.sources) {
            *place = row.and_then(|row| source.feeder.row(row));
        }
        with(&mut Context {
            values: &self.values,
            rows: &rows[..script.sources.len().min(MAX_FEEDERS)],
            random: &mut self.random,
            now_unix_ns: now.unix_ns,
            number,
            session: self.number,
        })
    }

    fn fill(&mut self, script: &Script, template: &Template, now: Moment, number: u64) -> Result<String, StepFailure> {
        if let Some(text) = template.constant() {
            return Ok(text.to_owned());
        }
        self.draw_rows(script, template.feeders())?;
        let mut bytes = Vec::new();
        self.with_context(script, now, number, |context| template.render(context, &mut bytes))?;
        String::from_utf8(bytes).map_err(|_| StepFailure::Template)
    }

    fn holds(&mut self, script: &Script, condition: &Condition, now: Moment) -> Result<bool, StepFailure> {
        self.draw_rows(script, condition.feeders())?;
        self.with_context(script, now, self.number, |context| condition.holds(context, None))
    }

    /// Checks the response and captures values from it. The caller judges the status, unless a
    /// check does.
    ///
    /// # Errors
    /// The check or capture that failed.
    pub fn take(
        &mut self,
        script: &Script,
        spec: &RequestSpec,
        response: &Response<'_>,
        now: Moment,
        number: u64,
    ) -> Result<(), StepFailure> {
        for check in &spec.checks {
            if !self.with_context(script, now, number, |context| check.holds(context, Some(response)))? {
                return Err(StepFailure::Check);
            }
        }
        for (slot, capture) in &spec.captures {
            let value = capture.take(response, &mut self.random)?;
            self.put(*slot, value);
        }
        Ok(())
    }

    /// A request has ended. Returns whether the session goes on.
    pub fn ended(&mut self, script: &Script, spec: &RequestSpec, is_well: bool) -> bool {
        if is_well {
            return true;
        }
        if let Some(place) = self.tries.last() {
            // Repeat the attempt from its start; the step there decides what follows the last one.
            self.at = *place;
            return true;
        }
        match spec.on_failure {
            OnFailure::GoOn => true,
            OnFailure::EndSession => false,
            OnFailure::Stop => {
                script.end_run(format!("{} failed (on_failure: stop)", spec.name), true);
                false
            }
        }
    }

    fn put(&mut self, slot: Slot, value: Value) {
        let fits = match &value {
            Value::None => true,
            Value::Text(text) => text.len() <= MAX_VALUE_BYTES,
            Value::List(items) => items.iter().map(|item| item.len() + 16).sum::<usize>() <= MAX_VALUE_BYTES,
        };
        self.values[slot.0 as usize] = if fits { value } else { Value::None };
    }
}

impl RequestSpec {
    /// Whether it needs no session: it has no templates, ignores the content of the response, and
    /// ends nothing when it fails.
    pub fn is_plain(&self) -> bool {
        self.form.is_constant()
            && self.captures.is_empty()
            && self.checks.is_empty()
            && matches!(self.form, Form::Http { .. })
            && self.on_failure == OnFailure::GoOn
    }
}

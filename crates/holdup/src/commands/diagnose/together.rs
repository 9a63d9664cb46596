//! `holdup diagnose R1 R2 …`: recordings of several hosts over the same time as one case. An address in
//! a store under which several hosts wrote means all of them. This opens them and measures their
//! clocks; [`holdup_recording::fleet`] joins and `holdup_diagnose` judges them.

use std::path::Path;

use holdup_diagnose::{CHOICE, diagnose_fleet};
use holdup_import::clocks::between_hosts;
use holdup_recording::RunState;
use holdup_recording::fleet::{Clock, Fleet, Input, Plan};
use holdup_recording::tables::Tables;

use super::{Args, add_hardware, one_request};
use crate::commands::slips;
use crate::commands::store::fetched::Fetched;
use crate::failure::Failure;

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.against.is_some() {
        let why = "--against compares one recording with a healthy one; give one recording, or leave --against out";
        return Err(Failure::Unusable(why.to_owned()));
    }
    let (mut inputs, mut fetched) = (Vec::new(), Vec::new());
    for argument in &args.recordings {
        // A time from the start is one of all recordings, so each is fetched whole.
        let of_store = Fetched::of_all_hosts(argument)?;
        if of_store.is_empty() {
            inputs.push(Input { dir: argument.clone(), shown: argument.display().to_string() });
        }
        inputs.extend(of_store.iter().map(|of| Input { dir: of.dir().to_owned(), shown: of.shown().to_owned() }));
        fetched.extend(of_store);
    }
    let plan = Plan::new(inputs).map_err(Failure::unusable)?;
    let range = plan.range();
    let window = args.window.within(range.start, (range.end != i64::MAX).then_some(range.end))?;
    let mut fleet = plan.open(window.map(|w| w.from..w.to), &CHOICE, &measure).map_err(Failure::unusable)?;
    for part in fleet.parts.iter().filter(|part| part.state == RunState::Running) {
        slips::say_running(Path::new(&part.shown));
    }
    prepare(args, &mut fleet)?;
    if let Some(trace_id) = &args.request {
        return one_request(&fleet.recording, window, trace_id, args.json);
    }
    let diagnosis = diagnose_fleet(&mut fleet, window);
    args.say(&fleet.recording, diagnosis)
}

/// Adds what the command line says beside the recordings.
fn prepare(args: &Args, fleet: &mut Fleet) -> Result<(), Failure> {
    args.add_to(&mut fleet.recording.manifest)?;
    if let Some(course) = fleet.recording.course_mut() {
        args.add_to(&mut course.manifest)?;
    }
    add_hardware(&mut fleet.recording, &args.on)
}

/// How far the clock of `other` is off that of `known`.
fn measure(known: &Tables, other: &Tables) -> Option<Clock> {
    let found = between_hosts(known, other)?;
    let by = format!("{} {}", found.count, found.by.words());
    Some(Clock { offset_ns: found.offset_ns, error_ns: found.error_ns, by, against: String::new() })
}

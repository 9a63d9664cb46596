//! What to do about a level: less I/O, stopping and starting an instance that keeps old limits, or a
//! larger class or volume.

use crate::case::Case;
use crate::causes::percent;
use crate::change::Fix;
use crate::resources::volume::level::{AtCeiling, backlog, documented, rate};
use holdup_signals::host::flows::{Flow, FlowSource};
use holdup_signals::host::limits::Place;
use holdup_signals::host::throttle::Unit;

/// Stopping and starting an instance that has run since before its limits were raised; none for
/// others.
pub(super) fn restart(case: &Case<'_>, at: &AtCeiling) -> Option<Fix> {
    let known = case.slow().known_limits();
    let unit = at.binding.unit;
    let earlier = documented(case, at)?;
    let now = known.raised(&earlier)?;
    let name = &at.flow.name;
    let is_rds = known.class.as_ref().is_some_and(|class| class.starts_with("db."));
    let again = if is_rds {
        format!(" Then aws rds start-db-instance --db-instance-identifier {name}.")
    } else {
        String::new()
    };
    Some(Fix {
        text: format!(
            "Stop and start it first (free): it was started before 3 December 2019 and keeps its old limit of {} until then; afterwards it may do {}.{again}",
            rate(unit, earlier.limit),
            rate(unit, now.limit)
        ),
        command: is_rds.then(|| format!("aws rds stop-db-instance --db-instance-identifier {name}")),
        keep: None,
        risk: Some("The database is down for some minutes; a reboot alone does not move it.".to_owned()),
    })
}

/// Less I/O, or more room: the next class up, if the class is known.
pub(crate) fn raise(case: &Case<'_>, at: &AtCeiling) -> Fix {
    let room = sizing(case, &at.flow, at.binding.unit, at.binding.ceiling.level);
    let text =
        format!("Reduce the I/O first (vacuum, unchanged values sent again, missing indexes); then {}.", room.text);
    Fix { text, command: room.command, keep: None, risk: room.risk }
}

/// The room that a load needs, and how to get it.
pub(crate) struct Sizing {
    /// In words.
    pub text: String,
    command: Option<String>,
    risk: Option<String>,
}

/// The room this load needs and the class or volume that provides it: throughput per served request
/// times all due requests. Also what that costs.
pub(crate) fn sizing(case: &Case<'_>, flow: &Flow, unit: Unit, level: f64) -> Sizing {
    let slow = case.slow().window;
    let asked = flow.mean(unit, slow).unwrap_or(level) * backlog(case, slow);
    let needed = asked.max(level);
    let load = if needed > 1.01 * level {
        format!("this load needs {}, including the queue", rate(unit, asked))
    } else {
        format!("this load needs at least {}", rate(unit, level))
    };
    let in_words = |text: String| Sizing { text, command: None, risk: None };
    let known = case.slow().known_limits();
    if flow.counted == FlowSource::Host && !known.is_from_user || known.what.is_none() {
        return in_words(format!("an instance or volume that may do more than {}: {load}", rate(unit, level)));
    }
    let what = known.what.clone().unwrap_or_default();
    let sustained = |place: Place| known.of_unit(unit).filter(move |d| !d.is_burst() && d.place == place);
    let volume = sustained(Place::Volume).map(|d| d.limit).reduce(f64::min);
    let is_volume = known.matching(unit, level).is_some_and(|d| d.place == Place::Volume);
    if let Some(instance) = sustained(Place::Instance).map(|d| d.limit).reduce(f64::max).filter(|_| is_volume) {
        return in_words(format!(
            "more for the volume, up to the {} that the instance {what} sustains: {load}",
            rate(unit, instance)
        ));
    }
    let own = if known.class.is_some() { Place::Instance } else { Place::Volume };
    let Some((class, baseline)) = known.next_up(unit, sustained(own).map(|d| d.limit).fold(needed, f64::max)) else {
        return in_words(format!("more than {what} allows: at least {}, as {load}", rate(unit, needed)));
    };
    let buys = format!(
        "{:.1} times the present limit, of which this load uses {}",
        baseline / level.max(1.0),
        percent((needed / baseline).min(1.0))
    );
    let smaller = volume.filter(|volume| *volume < baseline && own == Place::Instance);
    let beside = smaller.map_or_else(String::new, |volume| {
        format!("; the volume itself allows {}: raise that too", rate(unit, volume))
    });
    let text = format!("the next one up, {class} ({} sustained): {buys}; {load}{beside}", rate(unit, baseline));
    let is_rds = flow.counted == FlowSource::Cloud && class.starts_with("db.");
    let command = is_rds.then(|| {
        format!("aws rds modify-db-instance --db-instance-identifier {} --db-instance-class {class}", flow.name)
    });
    let risk = "A larger one costs more, and changing an instance's class restarts it in its next maintenance window, \
                or at once with --apply-immediately.";
    let risk = if is_rds { risk } else { "A larger one costs more, and changing an instance's class restarts it." };
    Sizing { text, command, risk: Some(risk.to_owned()) }
}

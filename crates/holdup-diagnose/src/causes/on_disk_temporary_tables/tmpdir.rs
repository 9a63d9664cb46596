//! Threads asleep in tmpdir: how many, and how that is known.

use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::{Wait, wait_of};
use holdup_signals::{Asleep, Missing, Mount, Place, View};

use super::{ENABLE, advice};
use crate::case::Case;
use crate::causes::percent;
use crate::resources::is_too_small;
use crate::strength::{CERTAIN, FAIR, Strength, WEAK};

/// What to record to see where threads sleep.
pub(super) const PLACES: &str = "--watch pid:N of the database as root, or with CAP_SYS_PTRACE (files, wait channels) and CAP_SYS_ADMIN (kernel stacks)";

/// Share (0-1) of the counted threads that must have rows, to say where they slept.
const LOCATED: f64 = 0.5;

/// Most places to describe.
const PLACES_TOLD: usize = 3;

/// Innermost functions of a stack to show: the rest is the way in, which is always the same.
const FUNCTIONS_TOLD: usize = 4;

/// How a thread was found to be in tmpdir.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PlaceEvidence {
    File,
    Function,
    Nothing,
}

/// Where the server's temporary files are.
pub(super) struct Tmpdir {
    pub(super) directories: Vec<String>,
    /// The file system of the first.
    pub(super) mount: Option<Mount>,
}

impl Tmpdir {
    pub(super) fn find(view: &View<'_>) -> Result<Self, Missing> {
        let directories = view.server_directories("tmpdir");
        let first = directories.first().ok_or_else(|| Missing::new("setting tmpdir", ENABLE))?;
        Ok(Self { mount: view.mount_of(first), directories })
    }

    /// Whether the file lies directly in it; a data directory may be below it.
    fn holds(&self, place: &Place) -> bool {
        place.directory().is_some_and(|directory| self.directories.iter().any(|own| own == directory))
    }

    /// Which of the sleeping threads are in it.
    pub(super) fn asleep(
        &self,
        case: &Case<'_>,
        view: &View<'_>,
        asleep: &Asleep,
        completed: f64,
    ) -> Result<TmpdirSleep, Missing> {
        let located = asleep.mean_where(|_| true);
        if located < LOCATED * asleep.mean {
            return Err(Missing::new("rows of the threads asleep (threads)", PLACES));
        }
        let by_file = asleep.mean_where(|place| self.holds(place));
        let by_function = asleep.mean_where(|place| place.path.is_none() && wait_of(place) == Wait::Directory);
        if asleep.groups.iter().any(|place| place.path.is_some()) {
            return Ok(TmpdirSleep {
                mean: by_file + by_function,
                by: if by_file >= by_function { PlaceEvidence::File } else { PlaceEvidence::Function },
            });
        }
        if self.mount.as_ref().is_some_and(Mount::is_in_memory) {
            // Its directory locks are held for microseconds: threads do not sleep behind them for
            // long.
            return Ok(TmpdirSleep { mean: 0.0, by: PlaceEvidence::Nothing });
        }
        if asleep.groups.iter().any(|place| place.function().is_some()) {
            return Ok(TmpdirSleep { mean: by_function, by: PlaceEvidence::Function });
        }
        // Their places are unknown. Waits for a disk are in its queue; those for a lock are not.
        let io = view.counter(metrics::host::DISK_OPERATION_TIME.name, &[], "--watch host")?;
        if self.mount.is_none() {
            return Err(Missing::new("where the server's threads sleep (threads.wchan, threads.path)", PLACES));
        }
        let waits_for_io = io.delta / completed * 1e3;
        let beyond = (asleep.per_request_ms(asleep.mean, completed) - waits_for_io).max(0.0);
        if is_too_small(case, beyond)? {
            return Err(Missing::new("where the server's threads sleep (threads.wchan, threads.path)", PLACES));
        }
        Ok(TmpdirSleep { mean: beyond / asleep.per_request_ms(1.0, completed), by: PlaceEvidence::Nothing })
    }

    /// Its file system, and the server's setting.
    pub(super) fn evidence(&self, view: &View<'_>) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let value = self.directories.join(":");
        if let Some(mount) = &self.mount {
            let text = format!("tmpdir is {value}, which lies on {}", mount.describe());
            evidence.push(advice::setting(view, &mount.source, &mount.setting("fstype"), &mount.fstype, "tmpfs", text));
        }
        let source = advice::source_of(view, "tmpdir");
        let text = format!("the server's variable tmpdir is {value}: the files are temporary tables");
        evidence.push(advice::setting(view, &source, "tmpdir", &value, "a directory on a tmpfs", text));
        evidence
    }
}

/// Threads asleep in tmpdir.
pub(super) struct TmpdirSleep {
    /// Threads on average.
    pub(super) mean: f64,
    pub(super) by: PlaceEvidence,
}

impl TmpdirSleep {
    pub(super) fn evidence(&self, asleep: &Asleep, tmpdir: &Tmpdir) -> Vec<Evidence> {
        let share = (self.mean / asleep.mean.max(1e-9)).min(1.0);
        let how = match self.by {
            PlaceEvidence::File => "on files of tmpdir",
            PlaceEvidence::Function => "in calls that change a directory",
            PlaceEvidence::Nothing => "without matching I/O of a disk",
        };
        let mut evidence = vec![asleep.counted(
            format!("{:.1} threads on average", self.mean),
            "0",
            format!(
                "{:.1} threads {} were in uninterruptible sleep on average, {:.0} at most, {} of them {how}",
                asleep.mean,
                whose(asleep),
                asleep.max,
                percent(share)
            ),
        )];
        let told = |p: &&Place| tmpdir.holds(p) || p.path.is_none() && wait_of(p) == Wait::Directory;
        for place in asleep.groups.iter().filter(told).take(PLACES_TOLD) {
            evidence.push(asleep.at(place, format!("{:.1} threads", place.mean), "0", describe(place)));
        }
        evidence
    }

    pub(super) fn worth(&self) -> Strength {
        match self.by {
            PlaceEvidence::File => CERTAIN,
            PlaceEvidence::Function => FAIR,
            PlaceEvidence::Nothing => WEAK,
        }
    }
}

/// `of mariadbd`, or of this machine if no process of the service is watched.
fn whose(asleep: &Asleep) -> String {
    match (asleep.process(), asleep.watched) {
        (Some(process), true) => format!("of {process}"),
        (Some(process), false) => format!("of this machine, most of them {process}'s,"),
        _ => "of this machine".to_owned(),
    }
}

/// `88.0 threads slept in do_unlinkat, on /tmp/x/#sql_? (stack: …)`.
fn describe(place: &Place) -> String {
    let function = place.function().unwrap_or("an unknown function");
    let file = place.path.as_ref().map_or_else(String::new, |path| format!(", on {path}"));
    let functions: Vec<&str> = place.functions().filter(|f| !f.is_empty()).take(FUNCTIONS_TOLD).collect();
    let stack = if functions.is_empty() { String::new() } else { format!(" (stack: {})", functions.join(" < ")) };
    format!("{:.1} threads of {} slept in {function} on average{file}{stack}", place.mean, place.process)
}

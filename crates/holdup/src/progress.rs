//! Progress on stderr: a view that updates itself on a terminal, a line per phase elsewhere,
//! nothing with `--quiet`. [`dashboard`] renders the view; this module puts it onto the terminal
//! and removes it again.

mod dashboard;
mod line;
mod moment;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use holdup_load::model::Load;
use holdup_load::scenario::Scenario;
use holdup_load::stats::Snapshot;

use self::dashboard::{Canvas, Length, View, columns};
pub use self::line::Line;
pub use self::moment::Moment;
use crate::terminal;
use crate::terminal::outlet::{self, Stream};
use crate::terminal::size::columns_and_rows;

/// Shortest time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);

/// Progress on stderr.
pub struct Progress {
    live: bool,
    quiet: bool,
    has_colors: bool,
    has_unicode: bool,
    phase: String,
    length: Option<Length>,
    moments: VecDeque<Moment>,
    /// Requests that ended so far, by operation.
    ended: Vec<u64>,
    /// The view now on the terminal.
    frame: String,
    drawn: Option<Instant>,
}

impl Progress {
    /// For a run of about `length`; silent if `quiet`.
    pub fn new(quiet: bool, length: Option<Duration>) -> Self {
        let stderr = std::io::stderr();
        Self {
            live: !quiet && terminal::can_redraw(),
            quiet,
            has_colors: anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never,
            has_unicode: has_unicode(|name| std::env::var(name).ok()),
            phase: String::new(),
            length: length.map(Length::Of),
            moments: VecDeque::new(),
            ended: Vec::new(),
            frame: String::new(),
            drawn: None,
        }
    }

    /// For a run of `scenario`. A search may end when it has its answer, and users with a number of
    /// iterations when they are through: then only the longest time is known.
    pub fn for_scenario(scenario: &Scenario, quiet: bool) -> Self {
        let length = match (&scenario.search, &scenario.load) {
            (Some(search), _) => Length::AtMost(search.budget),
            (None, Load::Closed(closed)) if closed.iterations.is_some() => Length::AtMost(closed.length),
            (None, load) => Length::Of(load.length()),
        };
        let mut progress = Self::new(quiet, None);
        progress.length = Some(length);
        progress
    }

    /// Prints a line.
    pub fn say(&mut self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints a line that must not be missed, even if quiet.
    pub fn warn(&mut self, text: &str) {
        self.clear();
        errln!("{text}");
    }

    /// Adds a finished second of the load.
    pub fn moment(&mut self, moment: Moment) {
        self.ended.resize(self.ended.len().max(moment.operations.len()), 0);
        self.ended.iter_mut().zip(&moment.operations).for_each(|(all, operation)| *all += operation.ended);
        self.moments.push_back(moment);
        if self.moments.len() > dashboard::SECONDS {
            self.moments.pop_front();
        }
    }

    /// Shows the current state of the load.
    pub fn load(&mut self, s: &Snapshot) {
        if s.phase.is_empty() {
            return;
        }
        if self.live {
            if self.is_time() {
                let view = View { length: self.length, now: s, moments: &self.moments, ended: &self.ended };
                let frame = dashboard::render(&view, self.canvas());
                self.draw(frame);
            }
        } else if s.phase != self.phase {
            self.phase.clone_from(&s.phase);
            self.say(&format!("{:>6.1}s  {}", s.elapsed.as_secs_f64(), s.phase));
        }
    }

    /// Shows how long it has been watching.
    pub fn watching(&mut self, elapsed: Duration, length: Option<Duration>) {
        if self.live && self.is_time() {
            let frame = dashboard::watching(elapsed, length, self.canvas());
            self.draw(frame);
        }
    }

    /// Removes the view; the next run begins with an empty one.
    pub fn end(&mut self) {
        self.clear();
        self.phase.clear();
        self.moments.clear();
        self.ended.clear();
    }

    fn is_time(&self) -> bool {
        self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW)
    }

    fn canvas(&self) -> Canvas {
        let (width, height) = columns_and_rows(libc::STDERR_FILENO);
        Canvas { width, height, has_colors: self.has_colors, has_unicode: self.has_unicode }
    }

    /// Replaces the view by `frame` in one write, so that nothing flickers.
    fn draw(&mut self, frame: String) {
        self.drawn = Some(Instant::now());
        // A terminal that is behind gets the next frame.
        if frame != self.frame && outlet::is_idle(Stream::Err) {
            let text = replacement(&self.frame, &frame, columns_and_rows(libc::STDERR_FILENO).0);
            outlet::send(Stream::Err, text);
            self.frame = frame;
        }
    }

    fn clear(&mut self) {
        if !self.frame.is_empty() {
            let text = replacement(&self.frame, "", columns_and_rows(libc::STDERR_FILENO).0);
            outlet::send(Stream::Err, text);
            self.frame.clear();
        }
        self.drawn = None;
    }
}

/// Dropping it removes the view, however the run ends.
impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The text that moves the cursor from the end of `old` to its beginning and writes `new`, on a
/// terminal of `width` columns. The terminal may have been wider when `old` was drawn, so lines
/// that are too long now have wrapped.
fn replacement(old: &str, new: &str, width: usize) -> String {
    let rows: usize = old.lines().map(|line| columns(line).div_ceil(width.max(1)).max(1)).sum();
    let up = if rows > 1 { format!("\x1b[{}A", rows - 1) } else { String::new() };
    // Each line is erased behind its new end, and finally everything below.
    format!("\r{up}{}\x1b[J", new.lines().collect::<Vec<_>>().join("\x1b[K\r\n"))
}

/// Whether the terminal's character set has more than ASCII (locale(7)).
fn has_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|v| !v.is_empty()));
    locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_lines_are_replaced_line_by_line() {
        assert_eq!(replacement("", "a\nb", 80), "\ra\x1b[K\r\nb\x1b[J");
        assert_eq!(replacement("a\nb\nc", "d", 80), "\r\x1b[2Ad\x1b[J");
        assert_eq!(replacement("a\nb", "", 80), "\r\x1b[1A\x1b[J");
        // Drawn at 10 columns and narrowed to 4: three rows of the first line, one of the second.
        assert_eq!(replacement("\x1b[1m0123456789\x1b[0m\nb", "x", 4), "\r\x1b[3Ax\x1b[J");
    }

    #[test]
    fn the_locale_says_what_can_be_shown() {
        let with = |all: &'static str, lang: &'static str| {
            has_unicode(|name| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            })
        };
        assert!(with("", "en_US.UTF-8") && with("C.utf8", ""));
        assert!(!with("C", "en_US.UTF-8") && !with("", ""));
    }

    #[test]
    fn only_the_last_minute_is_kept() {
        let mut progress = Progress::new(true, None);
        let operation = moment::OperationMoment { ended: 2, ..Default::default() };
        for _ in 0..100 {
            progress.moment(Moment { operations: vec![operation.clone()], ..Moment::default() });
        }
        assert_eq!((progress.moments.len(), &progress.ended[..]), (dashboard::SECONDS, &[200][..]));
        progress.end();
        assert!(progress.moments.is_empty() && progress.ended.is_empty());
    }
}

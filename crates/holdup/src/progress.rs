//! What is shown on stderr while something takes long: one line that renews itself on a terminal, a line a
//! phase elsewhere, nothing with `--quiet`.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use holdup_load::stats::Snapshot;

/// Progress on stderr.
pub struct Progress {
    live: bool,
    quiet: bool,
    shown: bool,
    phase: String,
    length: Option<Duration>,
}

impl Progress {
    /// For a run of about `length`; silent if `quiet`.
    pub fn new(quiet: bool, length: Option<Duration>) -> Self {
        Self { live: std::io::stderr().is_terminal() && !quiet, quiet, shown: false, phase: String::new(), length }
    }

    /// Says a line.
    pub fn say(&mut self, text: &str) {
        if !self.quiet {
            self.clear();
            errln!("{text}");
        }
    }

    /// How the load stands.
    pub fn load(&mut self, s: &Snapshot) {
        if s.phase.is_empty() {
            return;
        }
        if self.live {
            let ms = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"));
            let bar = self.length.map_or_else(String::new, |l| bar(s.elapsed, l));
            let line = format!(
                "{bar} {}  {} in flight, {} waiting  {} done, {} failed  p50 {} ms, p99 {} ms",
                s.phase,
                s.in_flight,
                s.waiting,
                s.completed,
                s.errors,
                ms(s.p50_ms),
                ms(s.p99_ms)
            );
            self.show(&line);
        } else if s.phase != self.phase {
            self.phase.clone_from(&s.phase);
            self.say(&format!("{:>6.1}s  {}", s.elapsed.as_secs_f64(), s.phase));
        }
    }

    /// How long it has been watching.
    pub fn watching(&mut self, elapsed: Duration, length: Option<Duration>) {
        if self.live {
            let line = match length {
                Some(l) => format!("{} watching", bar(elapsed, l)),
                None => {
                    format!("watching for {:.0}s; Ctrl-C ends it and keeps what was recorded", elapsed.as_secs_f64())
                }
            };
            self.show(&line);
        }
    }

    /// Takes the renewed line away.
    pub fn end(&mut self) {
        self.clear();
        self.phase.clear();
    }

    fn show(&mut self, line: &str) {
        let width = terminal_width();
        let line: String = line.chars().take(width.saturating_sub(1)).collect();
        let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
        let _ = std::io::stderr().flush();
        self.shown = true;
    }

    fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}

fn bar(elapsed: Duration, length: Duration) -> String {
    const CELLS: usize = 20;
    let share = (elapsed.as_secs_f64() / length.as_secs_f64().max(1e-9)).min(1.0);
    let full = (share * CELLS as f64) as usize;
    let left = length.saturating_sub(elapsed).as_secs();
    format!("[{}{}] {left:>3}s left ", "=".repeat(full), " ".repeat(CELLS - full))
}

/// Columns of the terminal on stderr; 80 if it does not say.
fn terminal_width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize, which lives through the call.
    let result = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    if result == 0 && size.ws_col > 0 { usize::from(size.ws_col) } else { 80 }
}

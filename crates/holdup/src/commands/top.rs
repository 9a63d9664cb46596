//! `holdup top`: shows a database's true process list, refreshed.

use std::io::IsTerminal as _;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use holdup_collect::ReadError;
use holdup_collect::processes::Look;
use holdup_collect::{mysql, postgres};

use super::duration;
use crate::failure::Failure;
use crate::secret_values::value;
use crate::terminal::outlet::{self, Stream};
use crate::terminal::processes::{Size, View};
use crate::terminal::size::columns_and_rows;
use crate::terminal::visible::sent;

/// How often it checks whether it should end.
const WAKE: Duration = Duration::from_millis(50);

/// Show what a database's sessions really do: queued, waiting for a lock, running
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup top mysql://holdup@127.0.0.1:3306
  holdup top mysql://holdup@127.0.0.1:3306 --once
  holdup top postgresql://holdup@127.0.0.1:5432/shop
  holdup top 'mysql://holdup@127.0.0.1:3306?extra_port=3307' --interval 2s --literals
  holdup top mysql://holdup@127.0.0.1:3306 --json | jq -c .sessions_by_true_state

On MySQL the account needs PROCESS, and SELECT on performance_schema to show the last statement of a session that holds
a lock. On PostgreSQL it needs pg_monitor. Set the password in HOLDUP_MYSQL_PASSWORD or HOLDUP_POSTGRES_PASSWORD.
Ctrl-C ends it.")]
pub struct Args {
    /// Server: mysql://USER@HOST:PORT or postgresql://USER@HOST:PORT/DATABASE, as for --watch; or @FILE
    #[arg(value_name = "ADDRESS", value_parser = value)]
    address: String,

    /// Time between samples
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    interval: Duration,

    /// Print one sample and exit
    #[arg(long)]
    once: bool,

    /// Show statements with their values
    #[arg(long)]
    literals: bool,

    /// Print each sample as a line of JSON
    #[arg(long)]
    json: bool,
}

/// A server whose sessions are shown.
enum Server {
    MySql(mysql::processes::Processes),
    PostgreSql(postgres::processes::Processes),
}

impl Server {
    /// Connects to the server at `address`. Also returns notes on what cannot be shown, and how to enable it.
    fn open(address: &str) -> Result<(Self, Vec<String>), Failure> {
        let opened = if address.starts_with("mysql://") {
            mysql::processes::Processes::open(address).map(|(server, notes)| (Self::MySql(server), notes))
        } else if address.starts_with("postgresql://") || address.starts_with("postgres://") {
            postgres::processes::Processes::open(address).map(|(server, notes)| (Self::PostgreSql(server), notes))
        } else {
            // The argument may hold a password, so the error does not repeat it.
            let addresses = "mysql://USER@HOST:PORT or postgresql://USER@HOST:PORT/DATABASE";
            return Err(Failure::Unusable(format!("top shows a database's sessions: holdup top {addresses}")));
        };
        opened.map_err(|error| Failure::Unusable(error.to_string().replace("--watch ", "")))
    }

    fn source(&self) -> &str {
        match self {
            Self::MySql(server) => server.source(),
            Self::PostgreSql(server) => server.source(),
        }
    }

    fn release(&self) -> String {
        match self {
            Self::MySql(server) => server.release(),
            Self::PostgreSql(server) => server.release(),
        }
    }

    fn look(&mut self) -> Result<Look, ReadError> {
        match self {
            Self::MySql(server) => server.look(),
            Self::PostgreSql(server) => server.look(),
        }
    }
}

/// One sample: the server's name for itself, and its sessions.
type SampleResult = (String, Result<Look, ReadError>);

pub fn run(args: Args) -> Result<(), Failure> {
    let (mut processes, notes) = Server::open(&args.address)?;
    let source = processes.source().to_owned();
    let stop = crate::stop::stop_flag()?;
    // A reader of JSON that is slow gets every sample, later.
    let (sender, looks) = mpsc::sync_channel::<SampleResult>(16);
    let (interval, once) = (args.interval.max(WAKE), args.once);
    // A sample may have to wait for the server; the user who quits does not wait with it.
    std::thread::spawn(move || {
        loop {
            let begun = Instant::now();
            let look = processes.look();
            if sender.send((processes.release(), look)).is_err() || once {
                return;
            }
            std::thread::sleep(interval.saturating_sub(begun.elapsed()));
        }
    });
    let stdout = std::io::stdout();
    let mut screen = (stdout.is_terminal() && !args.once && !args.json).then(Screen::open);
    let mut before: Option<Look> = None;
    while !stop.load(Ordering::Relaxed) {
        let (release, look) = match looks.recv_timeout(WAKE) {
            Ok(seen) => seen,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let look = match look {
            Ok(look) => look,
            Err(error) if args.once => return Err(Failure::Unusable(format!("{source}: {error}"))),
            Err(error) => {
                let text = format!("{source}: {error}; trying again");
                match &mut screen {
                    Some(screen) => screen.draw(&text),
                    None => errln!("{text}"),
                }
                continue;
            }
        };
        let view = View {
            source: &source,
            release: &release,
            look: &look,
            before: before.as_ref(),
            notes: &notes,
            literals: args.literals,
        };
        if args.json {
            outln!("{}", view.json());
        } else if let Some(screen) = &mut screen {
            screen.draw(&view.text(size()));
        } else {
            let width = if stdout.is_terminal() { size().map(|(width, _)| (width, usize::MAX)) } else { None };
            outln!("{}\n", view.text(width));
        }
        before = Some(look);
    }
    Ok(())
}

/// The terminal's alternate screen. It is always left, and the earlier content comes back.
struct Screen;

impl Screen {
    fn open() -> Self {
        print("\x1b[?1049h\x1b[?25l");
        Self
    }

    /// Replaces the content in one write, so that nothing flickers.
    fn draw(&mut self, text: &str) {
        // A terminal that is behind gets the next sample.
        if !outlet::is_idle(Stream::Out) {
            return;
        }
        let text = sent(text);
        let lines: Vec<&str> = text.lines().collect();
        print(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        print("\x1b[?25h\x1b[?1049l");
    }
}

/// Prints to the terminal, without colours where they are unwanted.
fn print(text: &str) {
    let has_colors = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    // Styles are `ESC [ … m`; cursor movements stay.
    outlet::send(Stream::Out, if has_colors { text.to_owned() } else { without_styles(text) });
}

/// `text` without `ESC [ … m`.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        match end.map(|end| part.split_at(end + 1)) {
            Some((escape, rest)) if escape.ends_with('m') => out.push_str(rest),
            _ => {
                out.push_str("\x1b[");
                out.push_str(part);
            }
        }
    }
    out
}

/// The size of the terminal on stdout.
fn size() -> Size {
    Some(columns_and_rows(libc::STDOUT_FILENO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_go_and_the_cursor_still_moves() {
        assert_eq!(
            without_styles("\x1b[H\x1b[1mbold\x1b[0m\x1b[K\r\n\x1b[2mdim\x1b[0m\x1b[J"),
            "\x1b[Hbold\x1b[K\r\ndim\x1b[J"
        );
    }
}

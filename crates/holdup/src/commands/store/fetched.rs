//! Recordings of a store where a command expects directories: each is fetched into a temporary
//! directory, which goes with its value.

use std::path::{Path, PathBuf};

use holdup_diagnose::{CHOICE, UNREAD};
use holdup_recording::{clock, words};
use holdup_store::catalog::{self, Entry, Place};
use holdup_store::pull::Selection;
use holdup_store::{Address, Client};

use super::{connected, failed, meant, watched};
use crate::commands::window::{WindowArgs, range};
use crate::failure::Failure;
use crate::progress::Line;

/// A recording of a store in a directory of its own.
pub struct Fetched {
    /// What holds the directory, and nothing else.
    root: PathBuf,
    dir: PathBuf,
    /// Its address, without the account.
    shown: String,
}

/// What a store has under an address: a recording by one host or by several; nothing if the address names
/// no recording.
struct Listed {
    client: Client,
    address: Address,
    entries: Vec<Entry>,
}

impl Listed {
    /// None for a directory.
    fn under(argument: &Path) -> Result<Option<Self>, Failure> {
        let Some(url) = argument.to_str().filter(|url| Address::is_meant(url)) else { return Ok(None) };
        let (address, client) = connected(url)?;
        let found = address.recording.as_deref().map(|name| catalog::entries(&client, Some(name)));
        let entries = found.transpose().map_err(failed)?.unwrap_or_default();
        Ok(Some(Self { client, address, entries }))
    }
}

impl Fetched {
    /// Fetches the recording that `argument` names, if it is an address and not a directory: what a
    /// judge reads of it, and only the part that `window` names, if any.
    ///
    /// # Errors
    /// If it cannot be fetched.
    pub fn from_argument(argument: &Path, window: Option<&WindowArgs>) -> Result<Option<Self>, Failure> {
        let Some(url) = argument.to_str().filter(|url| Address::is_meant(url)) else { return Ok(None) };
        let (address, client) = connected(url)?;
        let entry = meant(&client, &address, None)?;
        Self::pulled(&client, &address, &entry, window).map(Some)
    }

    /// The hosts that wrote the recording that `argument` names; none for a directory.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn hosts(argument: &Path) -> Result<usize, Failure> {
        Ok(Listed::under(argument)?.map_or(0, |listed| listed.entries.len()))
    }

    /// Fetches the recordings of all hosts under the address `argument`, whole; none for a directory.
    ///
    /// # Errors
    /// If one cannot be fetched.
    pub fn of_all_hosts(argument: &Path) -> Result<Vec<Self>, Failure> {
        let Some(Listed { client, address, entries }) = Listed::under(argument)? else { return Ok(Vec::new()) };
        if entries.len() < 2 {
            return Ok(Self::from_argument(argument, None)?.into_iter().collect());
        }
        entries.iter().map(|entry| Self::pulled(&client, &address, entry, None)).collect()
    }

    fn pulled(client: &Client, address: &Address, entry: &Entry, window: Option<&WindowArgs>) -> Result<Self, Failure> {
        let (mut line, stop) = (Line::new(false), crate::stop::stop_flag()?);
        let part = window.map(|window| window.within(entry.started_at, entry.ended_at)).transpose()?.flatten();
        let selection = Selection { window: part.map(|part| (range(part), CHOICE.limits)), unread: &UNREAD };
        let Place { recording: name, host } = &entry.place;
        let root = new_dir()?;
        let of_host = if host.is_empty() { String::new() } else { format!("/{host}") };
        let shown = format!("{}/{name}{of_host}", address.shown());
        let fetched = Self { dir: root.join(file_name(name)), root, shown };
        let mut seen = watched("fetched", &mut line, &stop);
        let pulled = holdup_store::pull::pull(client, entry, &fetched.dir, &selection, &mut seen);
        drop(seen);
        line.clear();
        let pulled = pulled.map_err(failed)?;
        let (bytes, all) = (words::bytes(pulled.bytes_received as f64), words::count(entry.rows()));
        let rows = match words::count(pulled.rows) {
            rows if pulled.rows == entry.rows() => rows,
            rows => format!("{rows} of {all}"),
        };
        errln!("{}: {rows} rows fetched from {} ({bytes})", pulled.place, client.server());
        Ok(fetched)
    }

    /// Its address, without the account.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The directory. Its name is the recording's, as far as that can be a name.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The recordings of a command line, with directories in place of addresses.
pub struct Inputs {
    /// The arguments.
    pub texts: Vec<String>,
    fetched: Vec<Fetched>,
}

impl Inputs {
    /// Fetches what `[NAME=]PATH[,PATH…]` names by an address, or the part of it that `window` names.
    ///
    /// # Errors
    /// If it cannot be fetched.
    pub fn fetch(arguments: &[String], window: &WindowArgs) -> Result<Self, Failure> {
        let mut inputs = Self { texts: Vec::new(), fetched: Vec::new() };
        for argument in arguments {
            let text = match argument.split_once('=') {
                Some((name, paths)) if Address::is_meant(paths) => {
                    format!("{name}={}", inputs.replaced(paths, window)?)
                }
                _ if Address::is_meant(argument) => inputs.replaced(argument, window)?,
                _ => argument.clone(),
            };
            inputs.texts.push(text);
        }
        Ok(inputs)
    }

    fn replaced(&mut self, paths: &str, window: &WindowArgs) -> Result<String, Failure> {
        let mut replaced = Vec::new();
        for path in paths.split(',') {
            match Fetched::from_argument(Path::new(path), Some(window))? {
                Some(fetched) => {
                    replaced.push(fetched.dir().display().to_string());
                    self.fetched.push(fetched);
                }
                None => replaced.push(path.to_owned()),
            }
        }
        Ok(replaced.join(","))
    }

    /// What the user called the recording in `dir`.
    pub fn shown(&self, dir: &Path) -> String {
        let fetched = self.fetched.iter().find(|fetched| fetched.dir() == dir);
        fetched.map_or_else(|| dir.display().to_string(), |fetched| fetched.shown.clone())
    }
}

/// Longest name of a directory, bytes.
const NAME_BYTES_MAX: usize = 100;

/// A directory's name for a recording's: without characters that a path or a list of paths could
/// take for its own.
fn file_name(recording: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let mut name: String = recording.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    if name.starts_with('.') || name.is_empty() { format!("recording{name}") } else { name }
}

/// A new directory that only this user reads.
fn new_dir() -> Result<PathBuf, Failure> {
    let name = format!("holdup-fetched-{}-{:x}", std::process::id(), clock::now_ns());
    let dir = std::env::temp_dir().join(name);
    let made = holdup_recording::files::create_new_dir(&dir);
    made.map_err(|error| Failure::Unusable(format!("{}: {error}", dir.display())))?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_recording_s_name_leads_nowhere_else() {
        for (name, file) in
            [("a-1.b", "a-1.b"), ("../x", "recording..-x"), ("a/b,c=d\0", "a-b-c-d-"), ("", "recording")]
        {
            assert_eq!(file_name(name), file);
        }
        assert!(file_name(&"\u{e4}".repeat(900)).len() <= 100);
    }
}

//! `ls`, `ls -l`: files of temporary tables in a folder. MySQL and MariaDB name them `#sql…`. Those that were
//! gone before `ls` could read them are made and removed all the time.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::{Context, Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines("ls", recognises, read);

/// What the name of a temporary table's file ends with. `.frm` and others stand beside one of them.
const ENDINGS: [&str; 5] = [".MYD", ".MYI", ".MAD", ".MAI", ".ibd"];

/// Files in a folder, and those that were gone.
#[derive(Default)]
struct Folder {
    files: f64,
    vanished: f64,
}

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    let is_total =
        first.strip_prefix("total ").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    is_total && is_long(text(lines, 1)) || is_long(first) || is_names(first) || is_gone(first)
}

/// `-rw-rw---- 1 mysql mysql 1024 Nov 26 10:11 #sql_8a7_0.MYI`
fn is_long(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mode = words.first().copied().unwrap_or_default().trim_end_matches(['+', '.', '@']);
    let is_mode = mode.len() == 10
        && mode.starts_with(['-', 'd', 'l', 's', 'p', 'c', 'b'])
        && mode.bytes().skip(1).all(|byte| b"rwxsStT-".contains(&byte));
    is_mode && words.len() >= 8 && words.get(1).is_some_and(|links| number(links).is_some())
}

/// Names alone, with one of a temporary table.
fn is_names(line: &str) -> bool {
    let mut words = line.split_whitespace();
    line.contains("#sql") && words.any(is_temporary) && words.all(|word| !word.ends_with(':') || word.starts_with('/'))
}

/// `ls: cannot access '/tmp/#sql_8a7_1.MYD': No such file or directory`
fn is_gone(line: &str) -> bool {
    line.starts_with("ls: ") && line.contains("#sql") && line.contains("No such file")
}

fn is_temporary(word: &str) -> bool {
    let name = word.trim_matches(['\'', '"', ':']).rsplit('/').next().unwrap_or_default();
    name.starts_with("#sql") && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The folder in a name with its path.
fn folder(word: &str) -> Option<&str> {
    let (folder, _) = word.trim_matches(['\'', '"', ':']).rsplit_once('/')?;
    folder.starts_with('/').then_some(folder)
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    // A glob in the command is in the folder, too.
    let asked = context.words().skip(1).find(|word| word.starts_with('/')).unwrap_or_default();
    let asked = asked.split_once("#sql").map_or(asked, |(folder, _)| folder);
    let asked = if asked.len() > 1 { asked.trim_end_matches(['/', '*']) } else { asked }.to_owned();
    let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
    let mut used = 0;
    for line in lines {
        let is_total = used == 0 && line.text.starts_with("total ");
        let is_own = is_total || is_long(&line.text) || is_names(&line.text) || is_gone(&line.text);
        if !is_own {
            break;
        }
        used += 1;
        for word in line.text.split_whitespace().filter(|word| is_temporary(word)) {
            let of = folders.entry(folder(word).unwrap_or(&asked).to_owned()).or_default();
            of.files += 1.0;
            of.vanished += if is_gone(&line.text) { 1.0 } else { 0.0 };
        }
    }
    if !folders.is_empty() {
        let at = context.instant_of("ls");
        for (path, of) in folders {
            let labels = Labels::new([("path", path)]);
            context.out.host(at, metrics::host::TEMPORARY_TABLE_FILES, labels.clone(), of.files);
            context.out.host(at, metrics::host::TEMPORARY_TABLE_FILES_VANISHED, labels, of.vanished);
        }
    }
    used.max(1)
}

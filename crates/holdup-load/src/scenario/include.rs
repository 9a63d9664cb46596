//! `include`: what several scenarios share, in files of its own.

use std::path::Path;

use holdup_recording::files;

use crate::yaml::{Node, YamlError};

/// Files that include files that include files, and so on: more is a mistake.
const DEEPEST: usize = 8;

/// Largest file that is included, bytes.
const LARGEST_BYTES: u64 = 16 << 20;

/// Joins the files that `root` includes into it. Their names, as comments, for the recording.
///
/// # Errors
/// If one can't be read, is no YAML, or includes itself.
pub fn resolve(root: &mut Node) -> Result<String, YamlError> {
    let mut names = String::new();
    let mut open = vec![root.file().to_owned()];
    join(root, &mut open, &mut names)?;
    Ok(names)
}

fn join(node: &mut Node, open: &mut Vec<String>, names: &mut String) -> Result<(), YamlError> {
    let Some(list) = node.take("include") else { return Ok(()) };
    for entry in list.list() {
        let path = beside(node.file(), entry.text()?);
        if open.contains(&path) || open.len() > DEEPEST {
            return Err(entry.error(format!("{path} is being included already: {}", open.join(" includes "))));
        }
        let content = String::from_utf8(read(&path, LARGEST_BYTES).map_err(|why| entry.error(why))?)
            .map_err(|_| entry.error(format!("{path} is not UTF-8")))?;
        let mut included = Node::parse(&content, &path)?;
        if !included.is_map() {
            return Err(entry.error(format!("{path} has no keys; it is to hold some of a scenario's, e.g. define:")));
        }
        names.push_str(&format!("# included: {}\n", entry.text()?));
        open.push(path);
        join(&mut included, open, names)?;
        open.pop();
        node.absorb(included);
    }
    Ok(())
}

/// `name` as seen from the folder of `file`.
pub fn beside(file: &str, name: &str) -> String {
    let folder = Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| name.to_owned(), |folder| folder.join(name).display().to_string())
}

/// All of a regular file that has at most `most` bytes.
///
/// # Errors
/// A message with its name.
pub fn read(path: &str, most: u64) -> Result<Vec<u8>, String> {
    files::read(Path::new(path), most).map_err(|e| format!("{path}: {e}"))
}

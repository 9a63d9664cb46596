//! `include`: parts of scenarios in files that several of them share.

use std::path::Path;

use holdup_recording::files;

use crate::yaml::{Node, YamlError};

/// Deepest nesting of included files: more is a mistake.
const DEEPEST: usize = 8;

/// Largest included file, bytes.
const LARGEST_BYTES: u64 = 16 << 20;

/// Merges the files that `root` includes into it. Returns their names, as comments, for the
/// recording.
///
/// # Errors
/// If one can't be read, is not YAML, or includes itself.
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
            return Err(
                entry.error(format!("{path} has no keys; it must contain some keys of a scenario, e.g. define:"))
            );
        }
        names.push_str(&format!("# included: {}\n", entry.text()?));
        open.push(path);
        join(&mut included, open, names)?;
        open.pop();
        node.absorb(included);
    }
    Ok(())
}

/// `name` relative to the folder of `file`.
pub fn beside(file: &str, name: &str) -> String {
    let folder = Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| name.to_owned(), |folder| folder.join(name).display().to_string())
}

/// Reads all of a regular file of at most `most` bytes.
///
/// # Errors
/// A message with its name.
pub fn read(path: &str, most: u64) -> Result<Vec<u8>, String> {
    files::read(Path::new(path), most).map_err(|e| format!("{path}: {e}"))
}

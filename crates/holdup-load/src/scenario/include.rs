//! `include`: what several scenarios share, in files of its own.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::yaml::{Node, YamlError};

/// Files that include files that include files, and so on: more is a mistake.
const DEEPEST: usize = 8;

/// Largest file that is included, bytes.
const LARGEST_BYTES: u64 = 16 << 20;

/// Joins the files that `root` includes into it. The texts of those files, each as comments, for the recording.
///
/// # Errors
/// If one can't be read, is no YAML, or includes itself.
pub fn resolve(root: &mut Node) -> Result<String, YamlError> {
    let mut texts = String::new();
    let mut open = vec![root.file().to_owned()];
    join(root, &mut open, &mut texts)?;
    Ok(texts)
}

fn join(node: &mut Node, open: &mut Vec<String>, texts: &mut String) -> Result<(), YamlError> {
    let Some(list) = node.take("include") else { return Ok(()) };
    for entry in list.list() {
        let path = beside(node.file(), entry.text()?);
        if open.contains(&path) || open.len() > DEEPEST {
            return Err(entry.error(format!("{path} is being included already: {}", open.join(" includes "))));
        }
        let text = String::from_utf8(read(&path, LARGEST_BYTES).map_err(|why| entry.error(why))?)
            .map_err(|_| entry.error(format!("{path} is not UTF-8")))?;
        let mut included = Node::parse(&text, &path)?;
        if !included.is_map() {
            return Err(entry.error(format!("{path} has no keys; it is to hold some of a scenario's, e.g. define:")));
        }
        texts.push_str(&format!("# included: {}\n", entry.text()?));
        text.lines().for_each(|line| texts.push_str(&format!("#   {line}\n")));
        open.push(path);
        join(&mut included, open, texts)?;
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

/// All of a file that has at most `most` bytes. It may be a pipe or a device, which does not say how much comes.
///
/// # Errors
/// A message with its name.
pub fn read(path: &str, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| format!("{path}: {e}"))?;
    if bytes.len() as u64 > most { Err(format!("{path} has more than {most} bytes")) } else { Ok(bytes) }
}

//! `include`: what several scenarios share, in files of its own.

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
        let size = std::fs::metadata(&path).map_err(|e| entry.error(format!("{path}: {e}")))?.len();
        if size > LARGEST_BYTES {
            return Err(entry.error(format!("{path} has {size} bytes; at most {LARGEST_BYTES}")));
        }
        let text = std::fs::read_to_string(&path).map_err(|e| entry.error(format!("{path}: {e}")))?;
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

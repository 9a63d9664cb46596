//! Finds the labs. A lab is a folder with a `lab.yaml` and has the folder's name; `kit` beside the
//! labs holds their shared files. Only requested labs are read, so a broken lab does not stop
//! another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cannot;
use super::definition::Lab;
use super::placeholder::{instead, is_name};
use crate::failure::Failure;

impl Lab {
    /// Reads the lab `name`: the first of that name in `labs_dir`, the folder in `HOLDUP_LABS`,
    /// `./labs`, or a folder `labs` beside one of this program's parent folders.
    ///
    /// # Errors
    /// If no lab has that name (the message names the nearest, and all labs), or its files are not
    /// valid.
    pub fn find(name: &str, labs_dir: Option<&Path>) -> Result<Self, Failure> {
        let roots = roots(labs_dir)?;
        let labs = labs(&roots);
        let Some(folder) = labs.get(name) else {
            let known: Vec<&str> = labs.keys().map(String::as_str).collect();
            let hint = if known.is_empty() {
                let places: Vec<String> = roots.iter().map(|r| r.display().to_string()).collect();
                let places = if places.is_empty() { "no folder".to_owned() } else { places.join(", ") };
                format!("no labs in {places}; set HOLDUP_LABS to the folder of the labs")
            } else {
                instead(name, &known)
            };
            return Err(Failure::Unusable(format!("no lab is called \"{name}\"; {hint}")));
        };
        Self::read(folder)
    }

    /// The names of the labs that [`Lab::find`] could find.
    pub fn names(labs_dir: Option<&Path>) -> Vec<String> {
        roots(labs_dir).map_or_else(|_| Vec::new(), |roots| labs(&roots).into_keys().collect())
    }

    /// Reads every lab that [`Lab::find`] could find, by name.
    ///
    /// # Errors
    /// If a lab's files are not valid.
    pub fn all(labs_dir: Option<&Path>) -> Result<Vec<Self>, Failure> {
        labs(&roots(labs_dir)?).values().map(|folder| Self::read(folder)).collect()
    }
}

/// The folders that may hold labs, in order of precedence.
fn roots(labs_dir: Option<&Path>) -> Result<Vec<PathBuf>, Failure> {
    let mut roots = Vec::new();
    if let Some(dir) = labs_dir {
        // A named folder must exist; the others are guesses.
        roots.push(dir.canonicalize().map_err(cannot("read", dir))?);
    }
    let mut guesses: Vec<PathBuf> = std::env::var_os("HOLDUP_LABS").map(PathBuf::from).into_iter().collect();
    guesses.push(PathBuf::from("labs"));
    let program = std::env::current_exe().and_then(|p| p.canonicalize()).unwrap_or_default();
    guesses.extend(program.ancestors().skip(1).map(|folder| folder.join("labs")));
    for guess in guesses {
        if let Ok(root) = guess.canonicalize()
            && root.is_dir()
            && !roots.contains(&root)
        {
            roots.push(root);
        }
    }
    Ok(roots)
}

/// Name and folder of each lab. If two share a name, the first folder wins.
fn labs(roots: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for root in roots {
        for entry in root.read_dir().into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string()
                && is_name(&name)
                && entry.path().join("lab.yaml").is_file()
            {
                found.entry(name).or_insert_with(|| entry.path());
            }
        }
    }
    found
}

//! Reads from the command line what to compare: recordings, repeats, or folders of either.
//!
//! `NAME=PATH[,PATH…]`. A path is a recording, or a folder of repeats. Without a name it may also
//! be a folder that `holdup run --interleave` or a `holdup replay` to two servers left, whose
//! `interleave.json` says which recordings belong together; or a folder of recordings to be
//! compared with each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdup_recording::manifest::MANIFEST;

use crate::failure::Failure;
use crate::repeat::interleave::{INTERLEAVE, Interleave};

/// Recordings of one version or setting, not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGroup {
    /// The name in the comparison.
    pub name: String,
    /// The folders of its recordings, each with its round if they were interleaved.
    pub recordings: Vec<(PathBuf, Option<u32>)>,
}

/// Finds the recordings that the arguments name.
///
/// # Errors
/// If a path neither is nor holds a recording, a name occurs twice, or there is nothing to compare.
pub fn read(texts: &[String]) -> Result<Vec<NamedGroup>, Failure> {
    let groups = read_any(texts)?;
    match groups.as_slice() {
        [one] => Err(Failure::Unusable(format!(
            "{} alone cannot be compared: name at least two recordings, the baseline first",
            one.name
        ))),
        _ => Ok(groups),
    }
}

/// The same, where one is enough.
///
/// # Errors
/// If a path neither is nor holds a recording, or a name occurs twice.
pub fn read_any(texts: &[String]) -> Result<Vec<NamedGroup>, Failure> {
    let mut groups: Vec<NamedGroup> = Vec::new();
    for text in texts {
        groups.extend(parse_group(text)?);
    }
    tell_apart(&mut groups);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    groups.iter().for_each(|g| *counts.entry(&g.name).or_default() += 1);
    if let Some((name, _)) = counts.iter().find(|(_, n)| **n > 1) {
        return Err(Failure::Unusable(format!(
            "the name {name} occurs twice: name each, e.g. A=PATH B=PATH; give repeats as one: \
             {name}=PATH,PATH"
        )));
    }
    if groups.is_empty() {
        return Err(Failure::Unusable("nothing to compare: name at least two recordings".to_owned()));
    }
    Ok(groups)
}

fn parse_group(text: &str) -> Result<Vec<NamedGroup>, Failure> {
    let (name, paths) = match text.split_once('=') {
        Some((name, paths)) if !name.is_empty() && !name.contains('/') && !Path::new(text).exists() => {
            (Some(name), paths)
        }
        _ => (None, text),
    };
    // A comma may also be part of a path.
    let paths: Vec<PathBuf> =
        if Path::new(paths).exists() { vec![paths.into()] } else { paths.split(',').map(PathBuf::from).collect() };
    let Some(name) = name else {
        return match paths.as_slice() {
            [folder] if folder.join(INTERLEAVE).is_file() => interleaved(folder),
            [folder] if !is_recording(folder) => {
                let alone = |path: PathBuf| NamedGroup { name: file_name(&path), recordings: vec![(path, None)] };
                Ok(inside(folder)?.into_iter().map(alone).collect())
            }
            [first, ..] => Ok(vec![NamedGroup { name: file_name(first), recordings: all(&paths)? }]),
            [] => Ok(Vec::new()),
        };
    };
    Ok(vec![NamedGroup { name: name.to_owned(), recordings: all(&paths)? }])
}

/// The recordings that `paths` are or contain.
fn all(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Option<u32>)>, Failure> {
    let mut recordings = Vec::new();
    for path in paths {
        if is_recording(path) {
            recordings.push((path.clone(), None));
        } else {
            recordings.extend(inside(path)?.into_iter().map(|path| (path, None)));
        }
    }
    Ok(recordings)
}

fn is_recording(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// The recordings in `folder`, sorted by name.
///
/// # Errors
/// If it has none.
pub fn inside(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Failure::Unusable(format!("{}: {error}; name a recording's folder", folder.display())))?;
    let mut found: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|e| e.path()).filter(|p| is_recording(p)).collect();
    found.sort();
    if found.is_empty() {
        return Err(Failure::Unusable(format!(
            "{}: neither a recording (no {MANIFEST}) nor a folder of recordings",
            folder.display()
        )));
    }
    Ok(found)
}

/// The recordings that `holdup run --interleave`, or `holdup replay` to two servers, left in
/// `folder`.
fn interleaved(folder: &Path) -> Result<Vec<NamedGroup>, Failure> {
    let interleave = Interleave::read(folder)?;
    let mut groups: Vec<NamedGroup> = Vec::new();
    for turn in interleave.order {
        let path = if turn.path.is_absolute() { turn.path } else { folder.join(turn.path) };
        // An aborted run left nothing, or nothing that counts.
        if !is_recording(&path) {
            continue;
        }
        match groups.iter_mut().find(|g| g.name == turn.name) {
            Some(group) => group.recordings.push((path, Some(turn.round))),
            None => groups.push(NamedGroup { name: turn.name, recordings: vec![(path, Some(turn.round))] }),
        }
    }
    let place = |group: &NamedGroup| interleave.versions.iter().position(|name| *name == group.name);
    groups.sort_by_key(|group| place(group).unwrap_or(usize::MAX));
    // Repeats of a single version have rounds, but nothing to be paired with.
    if let [one] = groups.as_mut_slice() {
        one.name = file_name(folder);
        one.recordings.iter_mut().for_each(|(_, round)| *round = None);
    }
    if groups.is_empty() {
        let file = folder.join(INTERLEAVE);
        return Err(Failure::Unusable(format!("{}: none of the recordings it names exists", file.display())));
    }
    Ok(groups)
}

fn file_name(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Gives recordings of the same name the name of their folder as well.
fn tell_apart(groups: &mut [NamedGroup]) {
    let names: Vec<String> = groups.iter().map(|g| g.name.clone()).collect();
    for (i, group) in groups.iter_mut().enumerate() {
        let is_twice = names.iter().filter(|name| **name == names[i]).count() > 1;
        let path = group.recordings.first().map(|(path, _)| path.clone()).unwrap_or_default();
        if is_twice
            && file_name(&path) == group.name
            && let Some(folder) = path.canonicalize().ok().as_deref().and_then(Path::parent)
        {
            group.name = format!("{}/{}", file_name(folder), group.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recordings(dir: &Path, names: &[&str]) {
        for name in names {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            std::fs::write(dir.join(name).join(MANIFEST), "{}").unwrap();
        }
    }

    fn shown(groups: &[NamedGroup]) -> Vec<(String, usize)> {
        groups.iter().map(|g| (g.name.clone(), g.recordings.len())).collect()
    }

    #[test]
    fn recordings_repeats_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        recordings(dir.path(), &["a", "b", "many/1", "many/2", "x/same", "y/same"]);
        let read = |texts: &[String]| read(texts).map(|groups| shown(&groups));
        let pairs = |list: &[(&str, usize)]| list.iter().map(|(n, k)| ((*n).to_owned(), *k)).collect::<Vec<_>>();
        assert_eq!(read(&[at("a"), at("b")]).unwrap(), pairs(&[("a", 1), ("b", 1)]));
        assert_eq!(
            read(&[format!("old={},{}", at("a"), at("b")), format!("new={}", at("many"))]).unwrap(),
            pairs(&[("old", 2), ("new", 2)])
        );
        assert_eq!(read(&[at("many")]).unwrap(), pairs(&[("1", 1), ("2", 1)]));
        assert_eq!(read(&[at("x/same"), at("y/same")]).unwrap(), pairs(&[("x/same", 1), ("y/same", 1)]));
        let refused = |texts: &[String]| match read(texts) {
            Err(Failure::Unusable(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(refused(&[at("a")]).contains("at least two recordings"));
        assert!(refused(&[at("a"), at("nothing")]).contains("nothing"));
        assert!(refused(&[format!("n={}", at("a")), format!("n={}", at("b"))]).contains("the name n occurs twice"));
    }

    #[test]
    fn interleaved_repeats_have_their_rounds() {
        let dir = tempfile::tempdir().unwrap();
        recordings(dir.path(), &["A-1", "B-1", "A-2"]);
        let turn =
            |name: &str, round: u32| format!("{{\"name\":\"{name}\",\"round\":{round},\"path\":\"{name}-{round}\"}}");
        let order = [turn("A", 1), turn("B", 1), turn("B", 2), turn("A", 2)].join(",");
        std::fs::write(dir.path().join(INTERLEAVE), format!("{{\"order\":[{order}],\"more\":1}}")).unwrap();
        let groups = read(&[dir.path().display().to_string()]).unwrap();
        assert_eq!(shown(&groups), [("A".to_owned(), 2), ("B".to_owned(), 1)], "round 2 of B was broken off");
        assert_eq!(groups[0].recordings[1].1, Some(2));
        // The order was drawn, but the baseline is the first named version.
        let named = format!("{{\"order\":[{order}],\"versions\":[\"B\",\"A\"]}}");
        std::fs::write(dir.path().join(INTERLEAVE), named).unwrap();
        let groups = read(&[dir.path().display().to_string()]).unwrap();
        assert_eq!(shown(&groups), [("B".to_owned(), 1), ("A".to_owned(), 2)]);
        std::fs::write(dir.path().join(INTERLEAVE), "{").unwrap();
        assert!(
            matches!(read(&[dir.path().display().to_string()]), Err(Failure::Unusable(why)) if why.contains(INTERLEAVE))
        );
    }
}

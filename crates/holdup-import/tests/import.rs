//! Every file in `tests/data/`, imported: what comes out is kept beside it as `NAME.yaml` and read by holdup's own
//! parser. To accept a change: `HOLDUP_ACCEPT=1 cargo test -p holdup-import --test import`.

use std::path::{Path, PathBuf};

use holdup_import::{Imported, Options, Source, import};
use holdup_load::scenario::Scenario;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn imported(name: &str, options: &Options) -> Imported {
    let bytes = std::fs::read(data().join(name)).unwrap();
    import(&bytes, name, None, options).unwrap_or_else(|e| panic!("{e}"))
}

/// The scenario as holdup reads it. Secrets are not set where tests run, and files of rows are not there: both become
/// plain texts first.
fn parsed(yaml: &str) -> Scenario {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    let mut rows = None;
    for line in yaml.lines() {
        if let Some(list) = line.strip_prefix("secrets: [") {
            names.extend(list.trim_end_matches(']').split(", ").map(str::to_owned));
            continue;
        }
        if let Some(columns) = line.trim().strip_prefix("# its first line has to be: ") {
            rows = Some(columns.split(',').map(|c| format!("{c}: x")).collect::<Vec<_>>().join(", "));
        }
        match (line.find("{csv: "), &rows) {
            (Some(at), Some(rows)) => text.push_str(&format!("{}{{list: [{{{rows}}}]}}\n", &line[..at])),
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    names.iter().for_each(|name| text = text.replace(&format!("secret.{name}"), "uuid()"));
    Scenario::parse(&text, "imported.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn scenarios_are_as_accepted_and_holdup_reads_them() {
    let mut names: Vec<String> = std::fs::read_dir(data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".expected.yaml"))
        .collect();
    names.sort();
    assert!(names.len() >= 6, "files are missing");
    for name in names {
        let imported = imported(&name, &Options::default());
        let scenario = parsed(&imported.yaml);
        assert!(!scenario.operations.is_empty(), "{name}");
        let path = data().join(format!("{name}.expected.yaml"));
        if std::env::var_os("HOLDUP_ACCEPT").is_some() {
            std::fs::write(&path, &imported.yaml).unwrap();
        }
        let accepted = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(imported.yaml, accepted, "{name} differs from what was accepted");
        for note in &imported.notes {
            let start: String = note.element.chars().take(40).collect();
            assert!(imported.yaml.contains(&start), "{name}: {note} is not in the file's comments");
        }
    }
}

//! What is deployed beside the program starts it with options that it has: `packaging/` and `.github/`.

use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser};

const FOLDERS: [&str; 7] = [
    "packaging",
    "packaging/gitlab",
    "packaging/kubernetes",
    ".github",
    ".github/ISSUE_TEMPLATE",
    ".github/actions/holdup-gate",
    ".github/workflows",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files() -> impl Iterator<Item = (PathBuf, String)> {
    let entries = FOLDERS.into_iter().flat_map(|folder| root().join(folder).read_dir().unwrap());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "yaml" || kind == "yml");
    let paths = entries.map(|entry| entry.unwrap().path()).filter(is_yaml);
    paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
}

/// The lists below a key `args` or `command`.
fn commands(yaml: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut lists, mut is_command, mut open) = (Vec::new(), false, false);
    for event in Parser::new_from_str(yaml) {
        match event.map_err(|error| error.to_string())?.0 {
            Event::SequenceStart(..) if is_command => {
                lists.push(Vec::new());
                open = true;
            }
            Event::SequenceEnd => open = false,
            Event::Scalar(text, ..) if open => lists.last_mut().unwrap().push(text.into_owned()),
            Event::Scalar(text, ..) => {
                is_command = matches!(&*text, "args" | "command");
                continue;
            }
            _ => {}
        }
        is_command = false;
    }
    Ok(lists)
}

fn accepted(words: &[&str]) -> Result<(), String> {
    let words = std::iter::once("holdup").chain(words.iter().copied()).map(Into::into);
    crate::parsed(&words.collect::<Vec<_>>()).map(drop).map_err(|error| error.to_string())
}

#[test]
fn each_file_is_yaml_and_its_commands_are_holdups() {
    let mut found = 0;
    for (path, text) in files() {
        let commands = commands(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for command in &commands {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            accepted(&words).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        found += commands.len();
    }
    assert_eq!(found, 3, "the daemon set's, the sidecar's, Compose's");
    assert!(accepted(&["watch", "--no-such"]).is_err() && commands("a: [").is_err());
}

#[test]
fn the_service_starts_what_there_is() {
    let unit = std::fs::read_to_string(root().join("packaging/holdup.service")).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/holdup ")).unwrap();
    let list = root().join("packaging/watch");
    let start = start.replace("/etc/holdup/watch", &list.display().to_string());
    accepted(&start.split(' ').collect::<Vec<_>>()).unwrap();
    // The examples in the list, too.
    let sources = std::fs::read_to_string(list).unwrap();
    let sources = sources.lines().skip(1).map(|line| line.trim_start_matches("# "));
    for source in sources {
        assert!(holdup_collect::watch::is_source(source), "{source}");
    }
}

/// A workflow may read the code; only the job that drafts a release may write.
#[test]
fn workflows_have_the_least_rights() {
    for (path, text) in files().filter(|(path, _)| path.parent().unwrap().ends_with("workflows")) {
        assert!(text.contains("\npermissions:\n  contents: read\n"), "{}", path.display());
        assert!(!text.contains("secrets."), "{}", path.display());
        let writes = text.matches(": write").count();
        assert!(writes == usize::from(path.ends_with("release.yml")), "{}: {writes}", path.display());
    }
}

/// A new version is named in each place that names one.
#[test]
fn every_deployed_file_names_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let images = files().flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>());
    let images: Vec<String> = images.filter(|line| line.trim().starts_with("image: ")).collect();
    assert_eq!(images.len(), 3);
    assert!(images.iter().all(|line| line.ends_with(&format!("image: holdup:{version}"))), "{images:?}");
    let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    for name in [format!("holdup_{version}_amd64.deb"), format!("holdup-{version}-oci.tar")] {
        assert!(page.contains(&name), "docs/install.md: no {name}");
    }
}

/// The gate's flags are in scripts, each with a value.
#[test]
fn pipelines_call_the_gate_with_flags_that_it_has() {
    let mut asked = 0;
    for (path, text) in files().filter(|(_, text)| text.contains("holdup gate \"")) {
        let lines = text.lines().filter(|line| line.contains("set -- ") || line.contains("flags"));
        let flags =
            lines.flat_map(|line| line.split([' ', '(', ';'])).filter(|word| word.len() > 2 && word.starts_with("--"));
        let flags: std::collections::BTreeSet<&str> = flags.collect();
        let words: Vec<&str> =
            ["gate", "recording"].into_iter().chain(flags.iter().flat_map(|flag| [*flag, "60"])).collect();
        accepted(&words).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(flags.len() >= 7, "{}: {flags:?}", path.display());
        asked += 1;
    }
    assert_eq!(asked, 2, "the action and GitLab's template");
}

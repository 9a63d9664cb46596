//! `holdup completion`: a completion script, and the names that it asks the program for: causes, labs, recordings.

use std::path::{Path, PathBuf};

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use holdup_diagnose::explain::pages;
use holdup_recording::manifest::MANIFEST;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::terminal;

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "Example:\n  holdup completion bash > ~/.local/share/bash-completion/completions/holdup")]
pub struct Args {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

/// What can be completed by asking the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Causes that can be explained.
    Causes,
    /// Labs that can be played.
    Labs,
    /// Directories with a recording.
    Recordings,
}

/// The names that a completion script asks for
#[derive(clap::Args)]
pub struct CandidatesArgs {
    kind: Kind,

    /// What has been typed so far
    #[arg(default_value = "", allow_hyphen_values = true)]
    begin: String,
}

/// In bash a function of ours asks first, and leaves the rest to the generated one.
const BASH: &str = include_str!("completion/names.bash");

/// In zsh the generated function is kept under another name, and asked last.
const ZSH: &str = include_str!("completion/names.zsh");

/// What the generated script for zsh ends with: what comes before it is there when it is called.
const ZSH_END: &str = "if [ \"$funcstack[1]\" = \"_holdup\" ]; then";

const FISH: &str = include_str!("completion/names.fish");

pub fn run(args: &Args, mut program: Command) -> Result<(), Failure> {
    terminal::print_document(&script(args.shell, &mut program)?);
    Ok(())
}

fn script(shell: Shell, program: &mut Command) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, program, "holdup", &mut bytes);
    let script = String::from_utf8(bytes).map_err(Failure::unusable)?;
    Ok(match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => script.replacen(ZSH_END, &format!("{ZSH}{ZSH_END}"), 1),
        _ => script,
    })
}

/// Prints the names of a kind that begin as what was typed, a line each.
pub fn candidates(args: &CandidatesArgs) {
    let names = match args.kind {
        Kind::Causes => pages().iter().map(|page| page.cause.slug().to_owned()).collect(),
        Kind::Labs => Lab::names(None),
        Kind::Recordings => recordings(&args.begin),
    };
    for name in names.iter().filter(|name| name.starts_with(args.begin.as_str())) {
        outln!("{name}");
    }
}

/// Folders that are looked into below what was typed: `recordings/first`, `recordings/demo/faulty`.
const DEPTH: u32 = 3;

/// Recordings below the folder that `begin` is in.
fn recordings(begin: &str) -> Vec<String> {
    let typed = begin.rfind('/').map_or("", |slash| &begin[..=slash]);
    let from = if typed.is_empty() { Path::new(".") } else { Path::new(typed) };
    let mut found = Vec::new();
    below(from, typed, DEPTH, &mut found);
    found.sort();
    found
}

fn below(dir: &Path, shown: &str, depth: u32, found: &mut Vec<String>) {
    for entry in dir.read_dir().into_iter().flatten().flatten() {
        let (path, Ok(name)): (PathBuf, _) = (entry.path(), entry.file_name().into_string()) else { continue };
        if name.starts_with('.') || !path.is_dir() {
            continue;
        }
        let shown = format!("{shown}{name}");
        if path.join(MANIFEST).is_file() {
            found.push(shown);
        } else if depth > 1 {
            below(&path, &format!("{shown}/"), depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn recordings_are_folders_with_a_manifest() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["first", "demo/faulty", "demo/fixed", "a/b/c/too-deep", ".hidden"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join(MANIFEST), "{}").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("empty")).unwrap();
        let typed = format!("{}/", dir.path().display());
        let all = recordings(&typed);
        let named = |name: &str| format!("{typed}{name}");
        assert_eq!(all, [named("demo/faulty"), named("demo/fixed"), named("first")]);
        assert_eq!(recordings(&named("demo/fi")), [named("demo/faulty"), named("demo/fixed")]);
    }

    #[test]
    fn each_shell_asks_the_program() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, &mut crate::Cli::command()).unwrap();
            assert!(script.contains("candidates"), "{shell}");
        }
        let zsh = script(Shell::Zsh, &mut crate::Cli::command()).unwrap();
        let (ours, end) = (zsh.find("_holdup_generated").unwrap(), zsh.find(ZSH_END).unwrap());
        assert!(ours < end, "zsh calls the function before it is there");
    }
}

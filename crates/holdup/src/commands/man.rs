//! `holdup man`: the help of every command as man pages.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::terminal;

/// Write a man page for each command
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  holdup man ~/.local/share/man/man1     then: man holdup-run\n  holdup man | man -l -                  the page of holdup itself"
)]
pub struct Args {
    /// Directory to write into [default: print holdup.1]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The pages of `program`, which is holdup with its commands.
pub fn run(args: &Args, program: Command) -> Result<(), Failure> {
    let pages = pages(program)?;
    let Some(dir) = &args.dir else {
        if let Some((_, page)) = pages.first() {
            terminal::print_document(page);
        }
        return Ok(());
    };
    let failed = |path: &Path, error| {
        Failure::Unusable(format!(
            "failed to write {}: {error}; name a directory that you may write to",
            path.display()
        ))
    };
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    for (name, page) in &pages {
        let path = dir.join(name);
        std::fs::write(&path, page).map_err(|error| failed(&path, error))?;
    }
    outln!("{} man pages in {}", pages.len(), dir.display());
    Ok(())
}

/// File names and texts: first the program's own page, then those of its commands, which `man holdup-run` shows.
fn pages(mut program: Command) -> Result<Vec<(String, String)>, Failure> {
    // Only then a command knows that it is called holdup-run on its page.
    program.build();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    std::iter::once(&program).chain(commands).map(page).collect()
}

fn page(command: &Command) -> Result<(String, String), Failure> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text).map_err(Failure::unusable)?;
    String::from_utf8(text).map(|text| (man.get_filename(), text)).map_err(Failure::unusable)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let program = crate::Cli::command();
        let pages = pages(program.clone()).unwrap();
        let shown: Vec<&Command> = program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
        assert_eq!(pages.len(), shown.len() + 1);
        for command in shown {
            let file = format!("holdup-{}.1", command.get_name());
            let (_, text) = pages.iter().find(|(name, _)| *name == file).unwrap_or_else(|| panic!("no {file}"));
            assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{file}: {text}");
            let about = command.get_about().unwrap().to_string();
            let word = about.split_whitespace().next().unwrap();
            assert!(text.contains(word), "{file} does not say what it does: {text}");
        }
        let (name, text) = &pages[0];
        assert_eq!(name, "holdup.1");
        assert!(text.contains("holdup\\-run(1)") && !text.contains("holdup\\-service"), "{text}");
    }
}

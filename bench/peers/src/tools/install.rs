//! Sees to the tools: from Debian (as root), from crates.io, from the Go proxy, from the C compiler. What is built is
//! kept in `target/bench/tools` and built once. What can't be had is said with its reason; a run goes on without it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

use super::Tool;

/// Where built tools are kept, from the root of the checkout.
const KEPT_IN: &str = "target/bench/tools";

/// Where crates are built meanwhile.
const BUILT_IN: &str = "target/bench/build";

/// Names the holdup to measure in place of `target/release/holdup`.
pub const HOLDUP_VARIABLE: &str = "HOLDUP_BENCH_BIN";

/// Where a tool comes from.
#[derive(Debug)]
pub enum Source {
    /// A C program of this crate.
    C {
        /// Its name.
        program: &'static str,
        /// Its text.
        text: &'static str,
    },
    /// holdup, built by whoever starts this.
    Ours,
    /// A package of Debian and Ubuntu.
    Debian {
        /// The package.
        package: &'static str,
        /// Its program.
        program: &'static str,
    },
    /// A crate with a program of the same name.
    Cargo {
        /// Both their name.
        name: &'static str,
    },
    /// A Go module.
    Go {
        /// The module, whose root is the program.
        module: &'static str,
        /// `latest`, or a version.
        version: &'static str,
        /// Its program.
        program: &'static str,
    },
}

/// A tool that is here.
#[derive(Clone, Debug)]
pub struct Found {
    /// As it stands on a command line: a name on the path, or a path from the root of the checkout.
    pub program: String,
    /// Its version, as it or its package says.
    pub version: String,
}

/// Finds the tool, and gets it if it isn't here. The error says why it can't be had.
///
/// # Errors
/// Nothing that builds or installs it is here, or that failed.
pub fn see_to(root: &Path, tool: &Tool) -> Result<Found> {
    fs::create_dir_all(root.join(KEPT_IN))?;
    match &tool.source {
        Source::C { program, text } => c(root, program, text),
        Source::Ours => holdup(root),
        Source::Debian { package, program } => debian(root, package, program),
        Source::Cargo { name } => cargo(root, name),
        Source::Go { module, version, program } => go(root, module, version, program),
    }
}

/// nginx, which is a server and no tool, but comes the same way.
pub fn nginx(root: &Path) -> Result<Found> {
    debian(root, "nginx", "nginx")
}

fn c(root: &Path, program: &str, text: &str) -> Result<Found> {
    let source = root.join(KEPT_IN).join(format!("{program}.c"));
    let built = root.join(KEPT_IN).join(program);
    if !built.exists() || fs::read_to_string(&source).ok().as_deref() != Some(text) {
        fs::write(&source, text)?;
        let words = ["-O2", "-o"].map(Into::into).into_iter().chain([built.clone().into(), source.clone().into()]);
        log(Command::new("cc").args(words.collect::<Vec<std::ffi::OsString>>()), root, program)?;
    }
    let compiler = first_line(Command::new("cc").arg("--version")).unwrap_or_default();
    Ok(Found { program: format!("{KEPT_IN}/{program}"), version: format!("of this checkout, {compiler} -O2") })
}

fn holdup(root: &Path) -> Result<Found> {
    let program = match std::env::var(HOLDUP_VARIABLE) {
        Ok(path) => PathBuf::from(path),
        Err(_) => PathBuf::from("target/release/holdup"),
    };
    let program = program.strip_prefix(root).map_or(program.clone(), Path::to_owned);
    if !root.join(&program).exists() {
        bail!("no {}; build it with: cargo build --release -p holdup", program.display());
    }
    let says = first_line(Command::new(root.join(&program)).arg("--version")).unwrap_or_default();
    let mut git = Command::new("git");
    let commit = first_line(git.args(["describe", "--always", "--dirty"]).current_dir(root)).unwrap_or_default();
    Ok(Found { program: program.display().to_string(), version: format!("{says} ({commit})") })
}

fn debian(root: &Path, package: &str, program: &str) -> Result<Found> {
    let on_path = || find(program);
    if on_path().is_none() {
        let is_root = first_line(Command::new("id").arg("-u")).as_deref() == Some("0");
        if !is_root || find("apt-get").is_none() {
            bail!("install it with: sudo apt-get install {package} (or your system's package of it)");
        }
        // The project's own script: it keeps what is installed from starting as a service, too.
        log(Command::new("sh").args(["labs/kit/need.sh", package]), root, package)
            .or_else(|error| if on_path().is_some() { Ok(()) } else { Err(error) })?;
    }
    let found = on_path().ok_or_else(|| anyhow!("{package} has no {program}"))?;
    let mut query = Command::new("dpkg-query");
    let version = first_line(query.args(["-W", "-f", "${Version}\n", package]));
    Ok(Found { program: found, version: version.map_or("unknown".to_owned(), |version| format!("Debian {version}")) })
}

fn cargo(root: &Path, name: &str) -> Result<Found> {
    let kept = root.join(KEPT_IN);
    let built = kept.join("bin").join(name);
    if !built.exists() {
        println!("   crates.io -> {KEPT_IN}: {name} (some minutes, once)");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut install = Command::new(cargo);
        // --locked: with what its author tested, and with what builds on this compiler.
        install.args(["install", "--locked", name, "--root"]).arg(&kept);
        install.arg("--target-dir").arg(root.join(BUILT_IN));
        log(&mut install, root, name)?;
        // Hundreds of megabytes that nobody needs again.
        let _ = fs::remove_dir_all(root.join(BUILT_IN));
    }
    let version = first_line(Command::new(&built).arg("--version")).unwrap_or_default();
    Ok(Found { program: format!("{KEPT_IN}/bin/{name}"), version })
}

fn go(root: &Path, module: &str, version: &str, program: &str) -> Result<Found> {
    let kept = root.join(KEPT_IN);
    let built = kept.join(program);
    if !built.exists() {
        if find("go").is_none() {
            bail!("it is built with Go, which is not here; install Go (1.24 or later)");
        }
        println!("   Go proxy -> {KEPT_IN}: {module}@{version} (some minutes, once)");
        let mut build = Command::new("go");
        build.env("CGO_ENABLED", "0").env("GOBIN", &kept).args(["install", &format!("{module}@{version}")]);
        log(&mut build, root, program)?;
    }
    let mut about = Command::new("go");
    let output = about.args(["version", "-m"]).arg(&built).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let built_from = text.lines().find_map(|line| line.split_once(&format!("{module}\t"))?.1.split('\t').next());
    Ok(Found { program: format!("{KEPT_IN}/{program}"), version: built_from.unwrap_or("unknown").trim().to_owned() })
}

/// Runs it with its output in `target/bench/tools/NAME.log`; the error holds its last line.
fn log(command: &mut Command, dir: &Path, name: &str) -> Result<()> {
    let root = dir.ancestors().find(|folder| folder.join(KEPT_IN).is_dir()).unwrap_or(dir);
    let path = root.join(KEPT_IN).join(format!("{name}.log"));
    let file = File::create(&path)?;
    command.current_dir(dir).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let shown = command.get_program().display().to_string();
    let status = command.status().with_context(|| format!("failed to start {shown}"))?;
    if !status.success() {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        bail!("{shown} failed: {} (all of it in {KEPT_IN}/{name}.log)", last.trim());
    }
    Ok(())
}

/// Where a program is: its name if it is on the path, else its place in the folders of administrators.
fn find(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return Some(program.to_owned());
    }
    let places = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(|folder| format!("{folder}/{program}"));
    places.into_iter().find(|place| Path::new(place).is_file())
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Some(String::from_utf8_lossy(&text).lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_a_way_out() {
        assert_eq!(find("sh").as_deref(), Some("sh"));
        assert_eq!(find("no-such-program"), None);
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(KEPT_IN)).unwrap();
        let error = c(dir.path(), "broken", "int main(void) { return nothing; }").unwrap_err();
        assert!(error.to_string().contains("broken.log"), "{error}");
        let floor = see_to(dir.path(), super::super::named("floor").unwrap()).unwrap();
        assert!(dir.path().join(floor.program).exists());
    }
}

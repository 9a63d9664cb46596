//! Real servers for tests: each has a folder and a port of its own on loopback, and ends with the value that stands for it,
//! also if the test panics. Where a server is not to be had its tests say so and pass; with `CI` set they fail. It is a
//! dependency of tests alone, panics where something is wrong, and knows nothing of what is tested. The product's labs start
//! their servers by `holdup::lab`, which has to outlive Ctrl-C, asks a lab's file for everything and never panics.

mod certificate;
pub mod client;
pub mod ferretdb;
pub mod kafka;
pub mod lab;
mod mariadb;
mod nginx;
pub mod opensearch;
mod postgres;
mod process;
mod psql;
mod template;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use certificate::certificate;
pub use holdup_witness::skip;
pub use mariadb::MariaDb;
pub use nginx::Nginx;
pub use postgres::{Postgres, Which};
pub use process::{Process, command_of_nobody, folder_of_nobody, give_to_nobody, send};
pub use psql::Running;

/// The password of accounts; nothing that is told may hold it.
pub const PASSWORD: &str = "s3cr3t-canary";

/// How long a server may take to come up, on a machine that stalls.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A port that no server listens on, and that no other test is given.
pub fn free_port() -> u16 {
    holdup_lab::ports::free().expect("a port")
}

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A script of the labs.
pub fn kit(script: &str) -> PathBuf {
    root().join("labs/kit").join(script)
}

/// Where a program is; skips the test where it is not, with the `package` that has it.
pub fn program(name: &str, package: &str) -> Option<PathBuf> {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    if found.is_none() {
        skip(&format!("{name} is not installed; run: cargo xtask setup, or: sudo apt-get install {package}"));
    }
    found
}

/// The output of a command that has to succeed; what it said where it did not.
fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

//! What builds and packs a release: a C compiler and linker for each platform (zig, by cargo-zigbuild, from PyPI), and what
//! writes .deb and .rpm (nfpm, from Go's module proxy). Each has its version here, for the same bytes everywhere.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::PLATFORMS;
use crate::setup;
use crate::steps::{ask, command, run as run_command};

const ZIG: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

const NFPM: &str = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.42.0";

/// Where the tools were found.
pub struct Tools {
    python: PathBuf,
    nfpm: PathBuf,
}

impl Tools {
    /// Sees to all of them.
    pub fn find(root: &Path) -> Result<Self> {
        let python = root.join("target/py-dist");
        let found = Self { nfpm: root.join("target/tools/bin/nfpm"), python };
        if ask(command(root, found.zigbuild(), &["--version"])).is_none() {
            setup::venv(root, &found.python)?;
            println!("   PyPI -> target/py-dist: {}", ZIG.join(", "));
            let arguments = [&["install", "--quiet", "--disable-pip-version-check"][..], &ZIG].concat();
            run_command(command(root, found.python.join("bin/pip"), &arguments))
                .context("could not install zig; pip needs to reach PyPI or a mirror of it")?;
        }
        if ask(command(root, &found.nfpm, &["--version"])).is_none() {
            println!("   Go's module proxy -> target/tools: {NFPM}");
            let mut go = command(root, "go", &["install", NFPM]);
            go.env("GOBIN", root.join("target/tools/bin")).env("CGO_ENABLED", "0");
            run_command(go).context("could not build nfpm; install Go (sudo apt-get install golang)")?;
        }
        // A program writes its own man pages, that for another CPU in QEMU.
        setup::server(root, "qemu-user-static")?;
        let installed = ask(command(root, "rustup", &["target", "list", "--installed"])).unwrap_or_default();
        for platform in PLATFORMS.iter().filter(|platform| !installed.contains(platform.target)) {
            run_command(command(root, "rustup", &["target", "add", platform.target]))
                .context("no standard library for another platform; install Rust by rustup")?;
        }
        Ok(found)
    }

    /// `cargo zigbuild` as a program.
    pub fn zigbuild(&self) -> PathBuf {
        self.python.join("bin/cargo-zigbuild")
    }

    /// What writes packages.
    pub fn nfpm(&self) -> &Path {
        &self.nfpm
    }

    /// PATH on which cargo-zigbuild finds the Python that has zig.
    pub fn path(&self) -> OsString {
        setup::first_on_path(&self.python.join("bin"))
    }
}

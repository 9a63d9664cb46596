//! The files of one platform's artefacts, where they will lie: the table of what is copied, and what the program writes itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};

use super::{Platform, Release};
use crate::steps::{ask, command, run as run_command};

/// From the checkout, and where to.
const COPIED: [(&str, &str); 8] = [
    ("LICENSE", "usr/share/doc/holdup/copyright"),
    ("CHANGELOG.md", "usr/share/doc/holdup/changelog"),
    ("README.md", "usr/share/doc/holdup/README.md"),
    ("packaging/holdup.service", "usr/lib/systemd/system/holdup.service"),
    ("packaging/tmpfiles.conf", "usr/lib/tmpfiles.d/holdup.conf"),
    ("packaging/watch", "etc/holdup/watch"),
    ("packaging/installed.sh", "scripts/installed.sh"),
    ("packaging/remove.sh", "scripts/remove.sh"),
];

/// Shells, and where they look for the program's completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/holdup"),
    ("fish", "usr/share/fish/vendor_completions.d/holdup.fish"),
    ("zsh", "usr/share/zsh/site-functions/_holdup"),
];

/// Manuals are kept packed; so are long documents.
const PACKED: [&str; 3] = ["usr/share/man/man1", "usr/share/doc/holdup/changelog", "usr/share/doc/holdup/third-party"];

/// A folder with the files.
pub struct Stage {
    root: PathBuf,
    pub dir: PathBuf,
    pub platform: &'static Platform,
    epoch: String,
}

impl Stage {
    /// An empty one in `dir` with only the program.
    pub fn new(root: &Path, release: &Release, platform: &'static Platform, dir: &Path, binary: &Path) -> Result<Self> {
        let stage = Self { root: root.to_owned(), dir: dir.to_owned(), platform, epoch: release.epoch.clone() };
        stage.put("usr/bin/holdup", &fs::read(binary)?)?;
        fs::set_permissions(stage.program(), fs::Permissions::from_mode(0o755))?;
        Ok(stage)
    }

    fn program(&self) -> PathBuf {
        self.dir.join("usr/bin/holdup")
    }

    /// All the files, and `notices` of the crates.
    pub fn fill(&self, notices: &str) -> Result<()> {
        for (from, to) in COPIED {
            self.put(to, &fs::read(self.root.join(from)).with_context(|| format!("failed to read {from}"))?)?;
        }
        self.put("usr/share/doc/holdup/third-party", notices.as_bytes())?;
        for (shell, to) in COMPLETIONS {
            self.put(to, format!("{}\n", self.says(&["completion", shell])?).as_bytes())?;
        }
        let manuals = self.dir.join(PACKED[0]);
        self.says(&["man", &manuals.to_string_lossy()])?;
        run_command(command(&self.dir, "gzip", &[&["-n9r"][..], &PACKED].concat()))?;
        self.settle(&self.dir)
    }

    /// What the program prints. One for another CPU runs in QEMU.
    fn says(&self, arguments: &[&str]) -> Result<String> {
        let program = self.program();
        let emulator = format!("qemu-{}-static", self.platform.cpu);
        let mut run = if self.platform.cpu == std::env::consts::ARCH {
            command::<&str>(&self.dir, program, &[])
        } else {
            command(&self.dir, emulator, &[program])
        };
        run.args(arguments);
        ask(run).with_context(|| format!("holdup {} failed; another CPU's needs qemu-user-static", arguments.join(" ")))
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.dir))?;
        fs::write(&path, bytes).with_context(|| format!("failed to write {}", path.display()))
    }

    /// Everything has the time of the commit, and rights that do not depend on the user's.
    fn settle(&self, path: &Path) -> Result<()> {
        let is_dir = path.is_dir();
        for entry in path.read_dir().into_iter().flatten() {
            self.settle(&entry?.path())?;
        }
        let mode = if is_dir || path == self.program() { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.epoch.parse()?);
        Ok(fs::File::open(path)?.set_modified(time)?)
    }
}

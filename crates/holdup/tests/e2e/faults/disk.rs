//! The disk that a recording is on, in a mount namespace of its own: gone with the test, and seen from outside through `/proc`. It can be
//! filled up, and it can fail with EIO.
//!
//! EIO is the kernel's own: an ext2 lies on a loop device, which is cut off behind the last block in use. A write to any block beyond
//! that is refused by the block layer.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::finish;

/// Makes the disk, says so, and holds the namespace until its stdin is closed.
const HOLD: &str = r#"
mount -t tmpfs -o size="$2" tmpfs "$1" && mkdir "$1/disk" || exit 97
if [ "$3" = image ]; then
    truncate -s 32m "$1/image" && mkfs.ext2 -q -F -b 4096 -N 256 "$1/image" || exit 97
    mount -o loop,errors=continue "$1/image" "$1/disk" || exit 97
    # Block after block, so that little is free before the last one in use.
    tune=/sys/fs/ext4/$(basename "$(losetup -n -O NAME -j "$1/image")")
    { echo 1 > "$tune/mb_group_prealloc"; echo 0 > "$tune/mb_stream_req"; } 2>/dev/null
fi
echo ready
exec cat
"#;

/// Cuts the device off behind the last block in use.
const CUT: &str = r#"
fsfreeze -f "$1/disk" || exit 1
trap 'fsfreeze -u "$1/disk"' EXIT
free=$(dumpe2fs "$1/image" 2>/dev/null | sed -n 's/^ *Free blocks:.*[ ,]\([0-9]*\)-[0-9]*$/\1/p')
[ -n "$free" ] && truncate -s $((free * 4096)) "$1/image" && losetup -c "$(losetup -n -O NAME -j "$1/image")"
"#;

/// Gives it its size back.
const WHOLE: &str = r#"truncate -s 32m "$1/image" && losetup -c "$(losetup -n -O NAME -j "$1/image")""#;

pub struct Disk {
    holder: Child,
    dir: tempfile::TempDir,
}

impl Disk {
    /// A disk in memory of `size`; with `breaks` one that can fail. None where this account can't make one.
    pub fn new(size: &str, breaks: bool) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !is_root() {
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", HOLD, "sh"]).arg(dir.path()).args([size, if breaks { "image" } else { "memory" }]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let disk = Self { holder, dir };
        (said.trim() == "ready").then_some(disk)
    }

    /// `program` within the namespace.
    pub fn within(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "--mount"]);
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(program).stdin(Stdio::null());
        command
    }

    /// The recording, as holdup names it.
    pub fn recording(&self) -> PathBuf {
        self.dir.path().join("disk/run")
    }

    /// The same as it is seen from outside.
    pub fn seen(&self) -> PathBuf {
        self.seen_from_outside(&self.recording())
    }

    fn seen_from_outside(&self, path: &Path) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.holder.id())).join(path.strip_prefix("/").unwrap())
    }

    fn filler(&self) -> PathBuf {
        self.seen_from_outside(&self.dir.path().join("fill"))
    }

    pub fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    pub fn cut(&self) {
        self.run(CUT);
    }

    pub fn make_whole(&self) {
        self.run(WHOLE);
    }

    fn run(&self, script: &str) {
        let done = finish(self.within("sh").args(["-e", "-c", script, "sh"]).arg(self.dir.path()), 60);
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn is_root() -> bool {
    // SAFETY: it reads the process's own user id and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

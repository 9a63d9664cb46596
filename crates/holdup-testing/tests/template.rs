//! Data folders of servers, made once and then copied: to make one takes seconds, to copy it a fraction. They are kept
//! below cargo's target folder, by the server's program as it is and the user. It answers for no server and no account.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::is_root;

/// Fills the folder `data`, which is not there yet: with a copy, or with what `make` puts there, of which a copy is kept.
/// Tests that do this at the same time, in one process or several, each make their own, and the first one's is kept.
pub(crate) fn fill(data: &Path, program: &Path, make: impl FnOnce()) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let kept = kept(program);
    if kept.exists() {
        copy(&kept, data);
        return;
    }
    make();
    let own = kept.with_extension(format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir_all(own.parent().expect("a folder")).expect("a folder for copies");
    copy(data, &own);
    // Whole or not at all. It fails where another process was first.
    if fs::rename(&own, &kept).is_err() {
        fs::remove_dir_all(&own).expect("the copy goes");
    }
}

fn kept(program: &Path) -> PathBuf {
    let of = fs::metadata(program).expect("the server's program");
    let name = program.file_name().expect("a name").to_string_lossy();
    let key = format!("{name}-{}-{}-{}-{}", of.len(), of.mtime(), of.mtime_nsec(), is_root());
    // The test's own program is in TARGET/PROFILE/deps.
    let own = std::env::current_exe().expect("the test's own program");
    own.ancestors().nth(3).expect("a folder of a target").join("tmp/servers").join(key)
}

/// With owners and rights as they are.
fn copy(from: &Path, to: &Path) {
    let output = Command::new("cp").arg("-a").arg(from).arg(to).output().expect("cp runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

//! A wall clock that is set while one program runs. The kernel has one wall clock for all, so a library that the program preloads
//! (`wall_clock.c`) adds an offset, which a file holds. Monotonic clocks go on undisturbed, as they do when a real clock is set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{finish, root};

pub struct WallClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WallClock {
    /// A clock that is right until it is set; its two files are in `dir`.
    pub fn new(dir: &Path) -> Self {
        let clock = Self { library: dir.join("wall_clock.so"), offset: dir.join("offset") };
        let source = root().join("crates/holdup/tests/e2e/faults/wall_clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&clock.library).arg(source);
        let built = finish(compiler, 60);
        assert_eq!(built.code(), Some(0), "{}", built.stderr);
        clock.set(0);
        clock
    }

    /// Lets `command` see this clock.
    pub fn show(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("WALL_CLOCK_OFFSET", &self.offset);
    }

    /// Sets it to `offset_s` seconds beside the true time, at once and for all that see it.
    pub fn set(&self, offset_s: i64) {
        use std::os::unix::fs::FileExt as _;
        // Written in place: programs have mapped this very file.
        let file = fs::File::options().create(true).truncate(false).write(true).open(&self.offset).unwrap();
        file.write_all_at(&offset_s.to_ne_bytes(), 0).unwrap();
    }
}

#[test]
fn a_program_sees_the_clock_that_was_set() {
    let dir = tempfile::tempdir().unwrap();
    let clock = WallClock::new(dir.path());
    let seen = || {
        let mut command = Command::new("date");
        clock.show(command.arg("+%s"));
        finish(command, 60).stdout.trim().parse::<i64>().unwrap()
    };
    let before = seen();
    clock.set(-3_600);
    assert!((seen() - before + 3_600).abs() < 600);
}

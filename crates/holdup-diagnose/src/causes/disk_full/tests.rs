//! Full disks with failures, with waits, and without either.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::Answer;

/// 50 requests a second, of which every second one fails from second 8 on.
fn failing() -> SyntheticRecording {
    SyntheticRecording::new(20).requests(50, 30).each_request(|n, r| {
        if n >= 8 * 50 && n % 2 == 0 {
            r.outcome = "error".into();
        }
    })
}

fn room(made: SyntheticRecording, free: &str) -> SyntheticRecording {
    made.setting("host", "mount[/var].size_bytes", "100000000000").setting("host", "mount[/var].free_bytes", free)
}

#[test]
fn requests_that_fail_while_it_is_full_fail_of_it() {
    assert!(room(failing(), "0").fails(&DEFINITION).unwrap() > 0.95);
    assert_eq!(room(failing(), "50000000000").fails(&DEFINITION), Some(0.0));
    assert_eq!(failing().fails(&DEFINITION), None, "nothing is known of any file system");
    let inodes = room(failing(), "50000000000").setting("host", "mount[/var].inodes", "6553600").setting(
        "host",
        "mount[/var].free_inodes",
        "0",
    );
    assert!(inodes.fails(&DEFINITION).unwrap() > 0.95);
    // It was full before, and hurts no one.
    assert_eq!(room(SyntheticRecording::new(20).requests(50, 30), "0").fails(&DEFINITION), Some(0.0));
}

/// Requests of 20 ms, and of 400 ms from second 10 on, while 20 commits wait.
fn waiting() -> SyntheticRecording {
    let slow = SyntheticRecording::new(24).requests(50, 400).each_request(|n, r| {
        if n < 500 {
            r.done_at = r.intended_at + 20_000_000;
        }
    });
    slow.sessions(20, "waiting for handler commit").tables(|tables| {
        tables.sessions.rows.retain(|row| row.observed_at >= 10_000_000_000);
    })
}

#[test]
fn commits_that_wait_for_room_are_its_milliseconds() {
    let found = room(waiting(), "0").explains(&DEFINITION).unwrap();
    assert!(found > 300.0, "{found}");
    assert_eq!(room(waiting(), "50000000000").explains(&DEFINITION), Some(0.0));
    // The server's folders are on another file system.
    let elsewhere = room(waiting(), "0")
        .setting("mysql://db", "datadir", "/data/mysql/")
        .setting("host", "mount[/data].fstype", "ext4")
        .setting("host", "mount[/var].fstype", "ext4");
    assert_eq!(elsewhere.explains(&DEFINITION), Some(0.0));
}

#[test]
fn it_is_the_root_and_its_advice_deletes_nothing() {
    let failed_write = room(waiting(), "0").events(&[(10, "host", "disk_full", &[("server", "mysql")])]);
    let diagnosis = failed_write.diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Found, Some(DEFINITION.cause)));
    let fixes = &diagnosis.findings[0].fixes;
    assert!(fixes[0].text.contains("PURGE BINARY LOGS"), "{fixes:?}");
    let commands = fixes.iter().filter_map(|fix| fix.command.as_deref());
    assert!(commands.clone().count() > 0);
    for command in commands {
        assert!(!command.contains("rm ") && !command.contains("DELETE"), "{command}");
    }
}

#[test]
fn each_kind_of_full_disk_has_its_steps() {
    let steps = |made: SyntheticRecording| -> String {
        let Ok(Outcome::Fails(found, _)) = made.judge(&DEFINITION) else { panic!("not found") };
        found.fixes.into_iter().map(|fix| fix.text + &fix.command.unwrap_or_default()).collect()
    };
    let event = |server: &'static str| failing().events(&[(8, "host", "disk_full", &[("server", server)])]);
    // Labels of the row borrow from the call.
    assert!(steps(event("postgresql")).contains("pg_replication_slots"));
    let cloud = failing().gauge("rds", "aws_free_storage_space_bytes", &[("db_instance", "orders-db")], 0.0);
    assert!(steps(cloud).contains("Add storage to orders-db"));
    let inodes =
        failing().setting("host", "mount[/var].inodes", "1000").setting("host", "mount[/var].free_inodes", "0");
    assert!(steps(inodes).contains("du --inodes -x --max-depth=3 /var"));
}

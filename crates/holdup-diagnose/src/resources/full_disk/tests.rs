//! Full file systems and volumes, and those that are not.

use super::*;
use holdup_signals::testing::SyntheticRecording;

fn mount(path: &str, size: &str, free: &str) -> SyntheticRecording {
    SyntheticRecording::new(20).setting("host", &format!("mount[{path}].size_bytes"), size).setting(
        "host",
        &format!("mount[{path}].free_bytes"),
        free,
    )
}

fn names(made: &SyntheticRecording) -> Vec<(String, ShownBy)> {
    let full = made.seen(|view| room(view).map_or_else(|_| Vec::new(), |room| room.full));
    full.into_iter().map(|disk| (disk.name, disk.shown_by)).collect()
}

#[test]
fn no_bytes_and_no_inodes_leave_no_room() {
    assert_eq!(names(&mount("/", "100000000000", "0")), [("/".to_owned(), ShownBy::Bytes)]);
    assert_eq!(names(&mount("/", "100000000000", "900000000")), []);
    let inodes = mount("/var", "100000000000", "50000000000").setting("host", "mount[/var].inodes", "6553600").setting(
        "host",
        "mount[/var].free_inodes",
        "0",
    );
    assert_eq!(names(&inodes), [("/var".to_owned(), ShownBy::Inodes)]);
    // An image is full by its nature.
    assert_eq!(names(&mount("/snap/core/1", "100000000", "0")), []);
    let image = mount("/cd", "100000000", "0").setting("host", "mount[/cd].fstype", "iso9660");
    assert_eq!(names(&image), []);
    assert!(SyntheticRecording::new(3).seen(|view| room(view).is_err()));
}

#[test]
fn a_failed_write_and_a_clouds_figure_say_it_too() {
    let failed = SyntheticRecording::new(20).events(&[(8, "host", "disk_full", &[("server", "mysql")])]);
    assert_eq!(names(&failed), [("mysql".to_owned(), ShownBy::Write)]);
    let labels = [("db_instance", "db")];
    let fills = |s: i64| if s < 10 { 0.98 } else { 1.0 };
    let cloud = SyntheticRecording::new(20).counted("azure", "aws_storage_utilization_ratio", &labels, fills);
    let since = cloud.seen(|view| room(view).unwrap().full[0].since);
    assert_eq!(since, Some(10_000_000_000));
    let room = SyntheticRecording::new(20).gauge("rds", "aws_free_storage_space_bytes", &labels, 5e9);
    assert_eq!(names(&room), []);
    let none = SyntheticRecording::new(20).gauge("rds", "aws_free_storage_space_bytes", &labels, 0.0);
    assert_eq!(names(&none), [("db".to_owned(), ShownBy::Cloud)]);
}

#[test]
fn a_volume_that_fills_is_seen_coming_and_one_with_little_room_is_not_cleared() {
    let cloud = |free: &dyn Fn(i64) -> f64| {
        let labels = [("db_instance", "db")];
        SyntheticRecording::new(600).counted("rds", "aws_free_storage_space_bytes", &labels, free).seen(|view| {
            let room = room(view).unwrap();
            (room.filling.iter().map(|of| of.left_s).collect::<Vec<_>>(), room.is_open, room.full.len())
        })
    };
    let (left, is_open, full) = cloud(&|s| 1e9 - 1e6 * s as f64);
    assert!((left[0] - 400.0).abs() < 5.0 && !is_open && full == 0, "{left:?}");
    assert_eq!(cloud(&|_| 1e9), (vec![], false, 0), "it stays");
    let once = mount("/data", "100000000000", "900000000");
    assert!(once.seen(|view| room(view).unwrap().is_open), "one reading has no pace");
    let room_left = mount("/data", "100000000000", "60000000000");
    assert!(!room_left.seen(|view| room(view).unwrap().is_open));
}

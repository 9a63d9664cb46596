//! Local servers for `doctor`.

use std::os::unix::fs::symlink;

use holdup_collect::discover::{Kind, local_servers};

use crate::small_tree;

#[test]
fn servers_of_the_small_tree() {
    let (dir, proc) = small_tree();
    let fd = dir.path().join("proc/71/fd");
    symlink("socket:[1609]", fd.join("10")).unwrap();
    symlink("pipe:[5]", fd.join("11")).unwrap();
    // Holds the other listening socket, and shares the database's.
    std::fs::create_dir_all(dir.path().join("proc/1/fd")).unwrap();
    symlink("socket:[1700]", dir.path().join("proc/1/fd/3")).unwrap();
    symlink("socket:[1609]", dir.path().join("proc/1/fd/4")).unwrap();
    let found = local_servers(&proc).unwrap();
    let shown: Vec<_> = found.iter().map(|f| (f.port, f.pid, f.process.as_str(), f.kind, f.watch.as_str())).collect();
    assert_eq!(
        shown,
        [
            (3306, 71, "mariadbd", Kind::Mysql, "mysql://USER@127.0.0.1:3306"),
            (3306, 71, "mariadbd", Kind::Process, "pid:71"),
            (8080, 1, "init", Kind::Process, "pid:1"),
        ]
    );
}

#[test]
fn without_a_socket_list_it_is_an_error() {
    let (dir, proc) = small_tree();
    std::fs::remove_file(dir.path().join("proc/net/tcp")).unwrap();
    assert!(local_servers(&proc).is_err());
}

//! `--watch php-fpm:`: the status page of a real PHP-FPM, over TCP and a Unix socket.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdup_collect::ProbeError;
use holdup_recording::Batch;
use holdup_testing::free_port;

use super::programs::{are_here, launch};
use super::{probed, refused, sum, until};

/// PHP-FPM by the name that it has here, with its version.
fn program() -> Option<PathBuf> {
    let found = std::fs::read_dir("/usr/sbin").ok()?.flatten().map(|entry| entry.path());
    let mut found: Vec<_> = found.filter(|path| path.to_string_lossy().contains("/php-fpm")).collect();
    found.sort();
    found.pop()
}

/// Two children; the page also on a socket that waits for none of them.
fn configuration(folder: &Path, port: u16, page: u16) -> String {
    let folder = folder.display();
    // As root it starts no children without a user, and no user's right is needed.
    format!(
        "[global]\nerror_log = {folder}/log\n[shop]\nlisten = 127.0.0.1:{port}\nlisten.backlog = 8\nuser = nobody\n\
         pm = static\npm.max_children = 2\npm.status_path = /fpm-status\npm.status_listen = 127.0.0.1:{page}\n\
         [side]\nlisten = {folder}/side.sock\nuser = nobody\npm = dynamic\npm.max_children = 3\npm.start_servers = 1\n\
         pm.min_spare_servers = 1\npm.max_spare_servers = 2\npm.status_path = /status\n"
    )
}

#[test]
fn a_pool_that_is_full() {
    let Some(program) = program() else {
        are_here(&["php-fpm"]);
        return;
    };
    let (folder, port, page) = (tempfile::tempdir().unwrap(), free_port(), free_port());
    std::fs::write(folder.path().join("fpm.conf"), configuration(folder.path(), port, page)).unwrap();
    let mut command = Command::new(program);
    command.args(["--nodaemonize", "--fpm-config"]).arg(folder.path().join("fpm.conf"));
    let mut server = launch(folder.path(), &mut command);
    server.wait("socket", || TcpStream::connect(("127.0.0.1", page)).is_ok());

    let mut source = probed(&format!("php-fpm:127.0.0.1:{page}?status=/fpm-status"));
    let shop: &[(&str, &str)] = &[("pool", "shop")];
    let of = |batch: &Batch, metric: &str| sum(batch, metric, shop);
    let idle = until(&mut *source, "idle children", |batch| of(batch, "php_fpm_idle_processes") == Some(2.0));
    assert_eq!((of(&idle, "php_fpm_total_processes"), of(&idle, "php_fpm_active_processes")), (Some(2.0), Some(0.0)));
    assert_eq!((of(&idle, "php_fpm_listen_queue"), of(&idle, "php_fpm_listen_queue_limit")), (Some(0.0), Some(8.0)));
    let mut batch = Batch::default();
    source.settings(&mut batch).unwrap();
    assert!(batch.settings.iter().any(|s| s.name == "pm.max_children" && s.value == "2"));

    // A child is busy with a connection on which the request isn't whole yet.
    let mut held: Vec<_> = (0..5).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    held.iter_mut().for_each(|line| line.write_all(&[1, 1, 0, 1, 0, 8, 0, 0]).unwrap());
    until(&mut *source, "queue", |batch| of(batch, "php_fpm_listen_queue") == Some(3.0));
    // On the pool's own socket it waits with them, and says why.
    let error = refused(&format!("php-fpm:127.0.0.1:{port}?status=/fpm-status"));
    assert!(error.to_string().contains("pm.status_listen"), "{error}");
    drop(held);
    until(&mut *source, "empty queue", |batch| of(batch, "php_fpm_listen_queue") == Some(0.0));
    let before = of(&idle, "php_fpm_accepted_connections_total").unwrap();
    until(&mut *source, "connections", |batch| {
        of(batch, "php_fpm_accepted_connections_total").unwrap() >= before + 5.0
    });

    let mut side = probed(&format!("php-fpm:unix:{}/side.sock", folder.path().display()));
    let batch = until(&mut *side, "page", |batch| sum(batch, "php_fpm_total_processes", &[("pool", "side")]).is_some());
    assert_eq!(sum(&batch, "php_fpm_active_processes", &[("pool", "side")]), Some(1.0), "it counts itself");
    what_is_no_pool(folder.path());
}

fn what_is_no_pool(folder: &Path) {
    let web = free_port_that_answers_html();
    for (address, said) in [
        (format!("php-fpm:unix:{}/side.sock?status=/nothing", folder.display()), "pm.status_path = /nothing"),
        (format!("php-fpm:unix:{}/no.sock", folder.display()), "the socket does not exist"),
        (format!("php-fpm:127.0.0.1:{}", free_port()), "refused"),
        (format!("php-fpm:127.0.0.1:{web}"), "FastCGI"),
        (format!("php-fpm:http://127.0.0.1:{web}/status"), "HTML"),
    ] {
        let error = refused(&address);
        assert!(matches!(error, ProbeError::Unreachable { .. }) && error.to_string().contains(said), "{said}: {error}");
    }
}

fn free_port_that_answers_html() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut line in listener.incoming().flatten() {
            let _ = line.read(&mut [0; 4096]);
            let _ = line.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html></html>");
        }
    });
    port
}

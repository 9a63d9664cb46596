//! TLS against Debian's server itself: with its certificate's authority it works, with another one or another name it does not,
//! and the password is nowhere.

use std::path::{Path, PathBuf};

use super::server::{Kind, Server};
use super::{DATABASE, assert_equal, percent, store, stored};
use crate::mariadb::CANARY;
use crate::program::{free_port, holdup};
use crate::secrets::shows_nothing;
use crate::service::Service;

/// A certificate that signs itself, for these names, as `NAME.pem` and `NAME.key` in `dir`.
fn certificate(dir: &Path, name: &str, names: &[&str]) -> PathBuf {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let key = rcgen::KeyPair::generate().unwrap();
    let made = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let path = dir.join(format!("{name}.pem"));
    std::fs::write(&path, made.pem()).unwrap();
    std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    path
}

/// A server that also answers HTTPS on `port`, with the certificate `own.pem` of its folder.
fn server(names: &[&str], port: u16) -> Option<Server> {
    Server::start_with(Kind::Debian, |dir| {
        certificate(dir, "own", names);
        let [own, key] = ["own.pem", "own.key"].map(|name| dir.join(name).display().to_string());
        let more = format!(
            "<https_port>{port}</https_port><openSSL><server><certificateFile>{own}</certificateFile><privateKeyFile>{key}\
             </privateKeyFile><verificationMode>none</verificationMode><loadDefaultCAFile>false</loadDefaultCAFile>\
             <cacheSessions>true</cacheSessions></server></openSSL>"
        );
        std::fs::write(dir.join("more.xml"), more).unwrap();
        Vec::new()
    })
}

#[test]
fn a_connection_is_encrypted_and_its_certificate_checked() {
    let port = free_port();
    let Some(server) = server(&["127.0.0.1"], port) else { return };
    let dir = tempfile::tempdir().unwrap();
    let url = |host: &str, options: &str| format!("clickhouse://hidden@{host}:{port}/{DATABASE}?{options}");
    let authority = |path: &Path| format!("tls_ca={}", percent(&path.display().to_string()));
    let own = authority(&server.file("own.pem"));
    let word = dir.path().join("word");
    std::fs::write(&word, CANARY).unwrap();
    let by_file = format!("password_file={}", percent(&word.display().to_string()));
    stored(&["init", &url("127.0.0.1", &format!("{own}&{by_file}"))]);
    stored(&["ls", &url("127.0.0.1", &format!("tls=require&{by_file}"))]);

    let other = authority(&certificate(dir.path(), "other", &["127.0.0.1"]));
    for (host, options) in [("127.0.0.1", "tls=verify"), ("127.0.0.1", &other), ("localhost", &own)] {
        let done = store(&["ls", &url(host, &format!("{options}&{by_file}"))]);
        assert_eq!(done.code(), Some(2), "{host} {options}: {}{}", done.stderr, done.stdout);
        assert!(done.stderr.contains("certificate"), "{host} {options}: {}", done.stderr);
        assert!(!done.stderr.contains(CANARY), "{}", done.stderr);
    }
    let clear = format!("clickhouse://hidden@127.0.0.1:{port}/{DATABASE}?{by_file}");
    assert_eq!(store(&["ls", &clear]).code(), Some(2), "HTTP to the port of HTTPS");

    // The password stands in the address: it is not in the process list, in what holdup says, or in the recording.
    let (service, out) = (Service::start(), dir.path().join("out"));
    let url = format!("clickhouse://hidden:{CANARY}@127.0.0.1:{port}/{DATABASE}?{own}");
    let mut run =
        holdup(["run", "--url", &service.url(), "--rate=50", "--duration=3s", "--no-collect", "--store", &url]);
    shows_nothing(run.arg("-o").arg(&out), &out);
    assert_equal(&server, &out, &["out"]);
}

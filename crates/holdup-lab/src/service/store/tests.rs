//! A real store, over real sockets.

use std::thread;
use std::time::{Duration, Instant};

use crate::service::ServiceError;
use crate::service::server::Server;
use crate::service::service_tests::{Client, metric, options, start, try_options};

#[test]
fn documents_come_as_they_were_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("new").display().to_string();
    let arguments = ["--store", &place, "--documents", "5000", "--document-bytes", "3500"];
    let server = start(&arguments);
    let mut client = Client::connect(server.listen);
    for id in [1, 17, 4_096, 4_097, 5_000] {
        let (status, body) = client.get(&format!("/document?id={id}"));
        assert_eq!((status, body.len()), (200, 3_500));
        assert!(body.starts_with(&format!("{{\"id\":{id},\"text\":\"")) && body.ends_with("\"}"), "{body:.60}");
        serde_json::from_str::<serde_json::Value>(&body).expect("JSON");
    }
    let first = client.get("/document?id=1").1;
    assert_ne!(first[30..], client.get("/document?id=2").1[30..], "each has a text of its own");
    for (path, status) in [("/document?id=0", 404), ("/document?id=5001", 404), ("/document?id=x", 400)] {
        assert_eq!(client.get(path).0, status, "{path}");
    }
    assert_eq!(client.ask("POST", "/document", "", "").0, 405);
    // The last two never got to the store.
    let reads = "db_client_operation_duration_seconds_count{db_system_name=\"lmdb\",db_operation_name=\"GET\"}";
    assert_eq!(metric(&server, reads), 9.0);
    let answered = "http_server_request_duration_seconds_count{http_route=\"/document\",http_request_method=\"GET\",http_response_status_code=\"200\"}";
    assert_eq!(metric(&server, answered), 7.0);
    drop(client);
    server.stop();

    // The next one finds it as it was, and does not make it anew.
    let made = std::fs::metadata(folder.path().join("new/data.mdb")).expect("a file").modified().expect("a time");
    let server = start_anew(&arguments);
    assert_eq!(Client::connect(server.listen).get("/document?id=1").1, first);
    let now = std::fs::metadata(folder.path().join("new/data.mdb")).expect("a file").modified().expect("a time");
    assert_eq!(now, made);
    server.stop();
}

/// A store is open once in a process: one that was stopped is closed when the last of its connections' threads ends.
fn start_anew(arguments: &[&str]) -> Server {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match Server::start(&options(arguments)) {
            Ok(server) => return server,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn without_an_id_every_document_is_as_likely() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let server = start(&["--store", &place, "--documents", "8", "--document-bytes", "64"]);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let mut client = Client::connect(server.listen);
            thread::spawn(move || {
                let id = |body: String| body[6..7].parse::<usize>().expect("an id");
                (0..200).map(|_| id(client.get("/document").1)).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut drawn = [0; 8];
    clients.into_iter().flat_map(|c| c.join().expect("answered")).for_each(|id| drawn[id - 1] += 1);
    // 100 each on average, with a standard deviation of 9.
    assert!(drawn.iter().all(|count| (50..=150).contains(count)), "{drawn:?}");
    server.stop();
}

#[test]
fn a_store_of_another_size_is_not_passed_off_as_the_one_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    start(&["--store", &place, "--documents", "5"]).stop();
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let other = Server::start(&options(&["--store", &place, "--documents", "6"]));
        let Err(ServiceError::Store { why, .. }) = other else { panic!("it was taken") };
        if why.contains("it has 5 documents, not 6") {
            break;
        }
        assert!(Instant::now() < deadline, "{why}");
        thread::sleep(Duration::from_millis(10));
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("written");
    let no_folder = file.display().to_string();
    assert!(matches!(Server::start(&options(&["--store", &no_folder])), Err(ServiceError::Store { .. })));
}

#[test]
fn it_is_asked_for_alone() {
    assert!(try_options(&["--documents", "5"]).is_err(), "of what?");
    let queue = ["--store", "/nowhere", "--servers", "2", "--service-time", "5ms"];
    assert!(try_options(&queue).is_err());
    assert!(try_options(&["--store", "/nowhere", "--document-bytes", "10"]).is_err());
}

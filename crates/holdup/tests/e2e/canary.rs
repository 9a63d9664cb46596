//! A secret is planted in every form that holdup takes one in, and looked for in all that it writes, prints and shows.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::mariadb::{self, CANARY};
use crate::program::{Finished, Running, finish, free_port, holdup, manifest};
use crate::secrets::nowhere;
use crate::service::Service;

/// A scenario in which each value that YAML can write in another way has a canary of its own.
const FORMS: &str = r#"
name: forms
# a comment: password c4naryW0rd-comment
target: TARGET
load: {rate: 30, duration: 1s}
vars:
  handle: c4naryW0rd-used-in-a-header
  db_password: >-
    c4naryW0rd-folded
    and-more c4naryW0rd-folded-second
headers:
  Authorization: Digest username="u", realm="r", nonce="c4naryW0rd-nonce", response="c4naryW0rd-response"
operations:
  - name: query
    get: /?sig=c4naryW0rd-sig&pwd=c4naryW0rd-pwd&access_token=c4naryW0rd-token&page=2
    headers:
      X-Api-Key:
        c4naryW0rd-next-line
      X-Session: Bearer c4naryW0rd-bearer
      X-Handle: Bearer ${handle}
      Cookie: >-
        a=c4naryW0rd-cookie,
        b=c4naryW0rd-cookie-second
  - name: text
    post: /
    headers: {Proxy-Authorization: 'Digest a="b", c="c4naryW0rd-flow"', X-Token: "c4naryW0rd, and c4naryW0rd-comma"}
    body: '{"user": "u", "nested": {"passwords": ["c4naryW0rd-a", {"b": "c4naryW0rd-b"}], "n": 1}}'
  - name: block
    post: /
    body: |
      {"password":
         "c4naryW0rd-block",
       "api_key"  :  "quoted \" c4naryW0rd-quote"}
  - name: json
    post: /
    json: {auth: {token: [c4naryW0rd-list, "c4naryW0rd-list-second"]}, secret: {deep: {deeper: c4naryW0rd-deep}}}
  - name: form
    post: /
    form: {user: u, password: "c4naryW0rd, with a comma"}
  - name: markup
    post: /
    body: <login><user>u</user><password>c4naryW0rd-xml</password></login>
"#;

/// Whether all it printed, and all it left in `out`, is without a canary.
fn shows_none(done: &Finished, out: &Path) {
    for (what, text) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
        assert!(!text.contains(CANARY), "{what} shows it: {text}");
    }
    if out.exists() {
        let kept = std::fs::read_to_string(out.join("manifest.json")).unwrap_or_default();
        let forms: Vec<&str> = kept.split(CANARY).skip(1).map(|rest| &rest[..rest.len().min(20)]).collect();
        assert!(forms.is_empty(), "the manifest has {forms:?}");
        nowhere(out, CANARY);
    }
}

#[test]
fn a_scenario_keeps_no_secret_whatever_way_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let (file, out) = (dir.path().join("forms.yaml"), dir.path().join("out"));
    std::fs::write(&file, FORMS.replace("TARGET", service.url().trim_end_matches('/'))).unwrap();
    let mut run = holdup(["run", "--no-collect", "--var"]);
    run.arg(format!("handle={CANARY}-var")).arg("-o").arg(&out).arg(&file);
    let done = finish(&mut run, 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    shows_none(&done, &out);
    let text = manifest(&out)["scenario"].as_str().unwrap().to_owned();
    for kept in ["page=2", "name: markup", "<user>u</user>", "rate: 30", "user: u", "--var handle=***"] {
        assert!(text.contains(kept), "{kept} is no secret: {text}");
    }
    // What is kept is still a scenario.
    let again = dir.path().join("again.yaml");
    std::fs::write(&again, &text).unwrap();
    let checked = finish(holdup(["run", "--check"]).arg(&again), 30);
    assert_eq!(checked.code(), Some(0), "{text}\n{}", checked.stderr);
    for command in ["diagnose", "report"] {
        shows_none(&finish(holdup([command]).arg(&out), 60), &out);
    }
}

/// Each flag that takes a header, a variable, a value or an address, with a secret in it, as it is given on the command line.
#[test]
fn no_flag_leaves_a_secret_behind() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = format!("{}?sig={CANARY}-sig", service.url());
    let out = dir.path().join("out");
    let mut run = holdup(["run", "--url", &url, "--rate=20", "--duration=3s", "--no-collect", "-o"]);
    run.arg(&out).args(["-H", &format!("Authorization: Digest a=\"b\", c=\"{CANARY}\""), "--header"]);
    run.args([format!("X-Thing: {CANARY}"), format!("--body={CANARY} in a body")]);
    let line = command_line_and_end(&mut run, &out);
    assert!(line.contains("--rate=20") && !line.contains(CANARY), "the process list shows it: {line}");
}

/// The command line in the process list, some time after it has begun. It must end well, and show nothing.
fn command_line_and_end(command: &mut Command, out: &Path) -> String {
    let run = Running::start(command);
    std::thread::sleep(Duration::from_millis(1_000));
    let line = std::fs::read(format!("/proc/{}/cmdline", run.pid())).unwrap();
    let done = run.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    shows_none(&done, out);
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// From a file and from the environment: then no moment of the process shows it in the process list.
#[test]
fn files_and_variables_hold_what_the_command_line_need_not() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("@{}", path.display())
    };
    let headers = write("headers", &format!("# two of them\nAuthorization: Bearer {CANARY}\n\nX-Two: {CANARY}\n"));
    let url = write("url", &format!("{}?token={CANARY}\n", service.url()));
    let metrics = format!("prometheus:http://{CANARY}:x@127.0.0.1:{}/metrics?sig={CANARY}", service_metrics());
    let watch = write("watch", &format!("host\n{metrics}\n"));
    let out = dir.path().join("quick");
    let mut quick = holdup(["run", "--rate=20", "--duration=2s", "--url", &url, "--watch", &watch, "-H", &headers]);
    quick.args(["--body", "@env:BODY"]).env("BODY", CANARY).arg("-o").arg(&out);
    let given: Vec<&[u8]> = quick.get_args().map(|argument| argument.as_bytes()).collect();
    assert!(!given.concat().windows(CANARY.len()).any(|window| window == CANARY.as_bytes()));
    let line = command_line_and_end(&mut quick, &out);
    assert!(line.contains("@env:BODY"), "{line}");
    let coverage = manifest(&out)["coverage"].to_string();
    assert!(coverage.contains("\"prometheus:http://127.0.0.1"), "both lines are watched: {coverage}");

    let scenario = dir.path().join("s.yaml");
    let target = service.url();
    let text =
        "vars: {a: x, b: y}\nload: {rate: 20, duration: 2s}\noperations: [{get: '/?a=${a}', headers: {X-B: '${b}'}}]\n";
    std::fs::write(&scenario, format!("target: {}\n{text}", target.trim_end_matches('/'))).unwrap();
    let vars = write("vars", &format!("a={CANARY}\nb={CANARY}=1\n"));
    let out = dir.path().join("vars-out");
    let mut run = holdup(["run", "--no-collect", "--var", &vars]);
    command_line_and_end(run.arg(&scenario).arg("-o").arg(&out), &out);
    let missing = finish(holdup(["watch", "--for=1s", "--watch", "@/no/such/file"]), 30);
    assert!(missing.code() == Some(2) && missing.stderr.contains("/no/such/file"), "{}", missing.stderr);
    let unset = finish(holdup(["watch", "--for=1s", "--watch", "@env:NO_SUCH_VARIABLE"]), 30);
    assert!(unset.code() == Some(2) && unset.stderr.contains("NO_SUCH_VARIABLE"), "{}", unset.stderr);
}

/// The port of an endpoint that shows one metric to all who ask.
fn service_metrics() -> u16 {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut line in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let _ = line.read(&mut bytes);
            let body = "up 1\n";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length:";
            let _ = write!(line, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

/// A password that holds blanks and quotes, of a real server that it opens: on the command line, in a scenario, in a file.
#[test]
fn a_password_with_quotes_and_blanks_is_nowhere() {
    if !mariadb::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = mariadb::start();
    server.run(&format!(
        "CREATE USER 'odd'@'%' IDENTIFIED BY 'a \"b''c {CANARY}, d'; GRANT PROCESS ON *.* TO 'odd'@'%';
         GRANT SELECT ON performance_schema.* TO 'odd'@'%';"
    ));
    let address = server.address("odd", &format!("a \"b'c {CANARY}, d"));
    let service = Service::start();
    let (file, listed) = (dir.path().join("s.yaml"), dir.path().join("watch"));
    let head = format!("target: {}\nload: {{rate: 20, duration: 1s}}", service.url().trim_end_matches('/'));
    let watch = format!("watch:\n  - host\n  - >-\n    {address}\n");
    std::fs::write(&file, format!("{head}\noperations: [get: /]\n{watch}")).unwrap();
    std::fs::write(&listed, format!("{address}\n")).unwrap();
    let of_scenario = holdup(["run".as_ref(), file.as_os_str()]);
    let of_flag = holdup(["watch", "--for=1s", "--watch", &address]);
    let of_file = holdup(["watch", "--for=1s", "--watch", &format!("@{}", listed.display())]);
    for (name, mut command) in [("scenario", of_scenario), ("flag", of_flag), ("file", of_file)] {
        let out = dir.path().join(name);
        let done = finish(command.arg("-o").arg(&out), 60);
        assert_eq!(done.code(), Some(0), "{name}: {}", done.stderr);
        shows_none(&done, &out);
        assert!(manifest(&out)["coverage"].to_string().contains("mysql://127.0.0.1"), "{name}: it is watched");
    }
}

/// What is refused is refused without repeating a secret, the argument that is in a wrong place included.
#[test]
fn errors_repeat_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let odd = format!("mysql://u:a \"b' {CANARY}@127.0.0.1:{port}/shop");
    let pg = format!("postgres://u:a \"b' {CANARY}@127.0.0.1:{port}/shop");
    let user_only = format!("prometheus:https://{CANARY}@127.0.0.1:{port}/metrics");
    let web = format!("http://u:{CANARY}@127.0.0.1:{port}/");
    let quick = ["run", "--url", "http://127.0.0.1:9/", "--rate=1", "--duration=1s"];
    let scenario = |text: &str| {
        let path = dir.path().join("s.yaml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let header = format!("Authorization {CANARY}");
    let bad_name = format!("Bad {CANARY} name: x");
    let bad = |text: &str| holdup(["run", &scenario(text)]);
    let log = dir.path().join("slow.log");
    std::fs::write(&log, "").unwrap();
    let log = log.display().to_string();
    let commands: Vec<Command> = vec![
        holdup(quick.iter().copied().chain(["-H", &header])),
        holdup(quick.iter().copied().chain(["-H", &bad_name])),
        holdup(quick.iter().copied().chain([odd.as_str()])),
        holdup(quick.iter().copied().chain(["--watch", &odd])),
        holdup(quick.iter().copied().chain(["--watch", &user_only])),
        holdup(["run", "--url", &web, "--rate=1"]),
        holdup(["run", "--url", &odd, "--rate=1", "--query", "SELECT 1"]),
        holdup(["run", "s.yaml", "--var", CANARY]),
        holdup(["run", "s.yaml", &odd]),
        holdup(["run", "s.yaml", &format!("--no-such={CANARY}")]),
        holdup(["watch", "--for=1s", "--watch", &pg]),
        holdup(["top", &odd, "--once"]),
        holdup(["top", &pg]),
        holdup(["settle", &pg]),
        holdup(["settle", &odd]),
        holdup(["replay", &log, "--to", &odd]),
        holdup(["advise", &log, "--on", &odd]),
        holdup(["diagnose", &odd]),
        holdup(["capacity", "s.yaml", &odd]),
        bad(&format!("target: http://u:{CANARY}@h\nload: {{rate: 1, duration: 1s}}\noperations: [get: /]\n")),
        bad(&format!(
            "target: 'mysql://u:{CANARY}@${{no}}'\nload: {{rate: 1, duration: 1s}}\noperations: [query: x]\n"
        )),
        bad(&format!(
            "target: http://h\nload: {{rate: 1, duration: 1s}}\noperations: [{{get: /, headers: {{Authorization: '${{no}} {CANARY}'}}}}]\n"
        )),
    ];
    for mut command in commands {
        let given = format!("{:?}", command.get_args());
        let done = finish(command.current_dir(dir.path()), 60);
        assert_eq!(done.code(), Some(2), "{given}: {}{}", done.stdout, done.stderr);
        assert!(!done.stdout.contains(CANARY) && !done.stderr.contains(CANARY), "{given}: {}", done.stderr);
    }
    for address in [&odd, &pg, &user_only] {
        for form in [&["doctor", "--watch", address][..], &["doctor", "--json", "--watch", address]] {
            let done = finish(holdup(form), 60);
            assert!(!done.stdout.contains(CANARY) && !done.stderr.contains(CANARY), "{address}: {}", done.stdout);
        }
    }
}

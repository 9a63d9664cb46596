//! A lab of shell commands, played for real: what is started runs, what fails is said, and nothing is left running.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::definition::Expect;
use super::{Act, Lab};
use crate::failure::Failure;

/// Fields of a lab whose rest is always the same.
const HEAD: &str = "\
name: tiny
title: Nothing much
scenario: scenario.yaml
ports: [web]
secrets: { door: open-sesame }
";

static NO_STOP: AtomicBool = AtomicBool::new(false);

/// A folder of labs with one lab, `tiny`, whose `lab.yaml` is [`HEAD`] and `rest`, with its own path in place of `{here}`.
fn labs(rest: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("tiny");
    std::fs::create_dir(&folder).unwrap();
    // Lab files are copied for the servers' users: what a process writes for a test to see goes to `{here}`.
    let rest = rest.replace("{here}", folder.to_str().unwrap());
    std::fs::write(folder.join("lab.yaml"), format!("{HEAD}{rest}")).unwrap();
    std::fs::write(folder.join("scenario.yaml"), "target: http://127.0.0.1:{port.web}/{id}\n").unwrap();
    root
}

fn find(labs: &TempDir) -> Result<Lab, Failure> {
    Lab::find("tiny", Some(labs.path()))
}

/// Starts variant `a` of a lab and gives what came of it to `then`, with the lab's folder.
fn play(rest: &str, then: impl FnOnce(Result<Act, Failure>, &Path)) {
    let labs = labs(rest);
    let lab = find(&labs).unwrap();
    let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
    then(stage.start("a", &|_| (), &NO_STOP), labs.path());
}

/// The error of a lab that must not start.
fn refusal(rest: &str) -> String {
    let mut text = String::new();
    play(rest, |act, _| text = act.err().unwrap().to_string());
    text
}

const VARIANTS: &str = "variants: { a: { title: A, start: [one], expect: { verdict: healthy } } }\n";

/// One process that runs `script`, and a variant that starts it.
fn one(script: &str, ready: &str) -> String {
    format!("processes:\n  - name: one\n    run: [sh, -c, '{script}']\n    ready: {ready}\n{VARIANTS}")
}

fn alive(pid: i32) -> bool {
    // A zombie has ended too.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn pid_in(file: PathBuf) -> i32 {
    let mut text = String::new();
    assert!(soon(|| {
        text = std::fs::read_to_string(&file).unwrap_or_default();
        text.ends_with('\n')
    }));
    text.trim().parse().unwrap()
}

#[test]
fn a_lab_is_read_and_its_variants_keep_their_order() {
    let labs = labs(
        "processes: [{ name: one, run: [true] }]
variants:
  z:
    title: Z
    start: [one]
    expect:
      { verdict: found, culprit: lock_contention, contributors: [toast_rewrite], symptoms: [cpu_throttled], cleared: [cpu_saturated], by_hand: [disk_saturated] }
  a: { title: A, start: [one], expect: { verdict: healthy, culprit: null, next: table_cache_small } }
  k: { title: K, start: [one], expect: { knee: { above: z } } }
",
    );
    let lab = find(&labs).unwrap();
    assert_eq!((lab.name.as_str(), lab.title.as_str()), ("tiny", "Nothing much"));
    assert_eq!(lab.variants.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["z", "a", "k"]);
    assert_eq!(
        lab.variants[0].expect,
        Expect {
            verdict: Some("found".to_owned()),
            culprit: Some("lock_contention".to_owned()),
            next: None,
            contributors: vec!["toast_rewrite".to_owned()],
            symptoms: vec!["cpu_throttled".to_owned()],
            cleared: vec!["cpu_saturated".to_owned()],
            knee: None,
            recovered: None,
            by_hand: vec!["disk_saturated".to_owned()],
        }
    );
    assert_eq!(lab.variants[1].expect.culprit, None);
    assert_eq!(lab.variants[1].expect.next.as_deref(), Some("table_cache_small"));
    let knee = &lab.variants[2].expect;
    assert_eq!((knee.verdict.as_deref(), knee.knee.as_ref().unwrap().above.as_deref()), (None, Some("z")));
    assert!(Lab::all(Some(labs.path())).unwrap().iter().any(|lab| lab.name == "tiny"));
}

#[test]
fn an_unknown_lab_or_variant_is_told_the_nearest() {
    let labs = labs(&one("exit 0", "{ tcp: 1 }"));
    let error = Lab::find("tinny", Some(labs.path())).err().unwrap().to_string();
    assert!(error.contains("\"tinny\"; did you mean \"tiny\"?"), "{error}");
    assert!(Lab::find("../tiny", Some(labs.path())).is_err());
    let lab = find(&labs).unwrap();
    let error = lab.set_up(&|_| (), &NO_STOP).unwrap().start("beta", &|_| (), &NO_STOP).err().unwrap();
    assert_eq!(error.to_string(), "lab tiny has no variant \"beta\"; there are: a");
}

#[test]
fn mistakes_are_told_with_their_line() {
    let head = HEAD.lines().count();
    let cases = [
        ("procesess: []\n", 1, "did you mean \"processes\"?"),
        ("processes:\n  - name: one\n    run: [a, '{port.wep}']\n", 3, "did you mean \"web\"?"),
        ("processes:\n  - name: one\n    run: [a, '{secret.door}']\n", 3, "only in env and watch"),
        ("processes:\n  - name: one\n    run: [a]\n    stop: { signal: STOP }\n", 4, "unknown signal"),
        ("processes:\n  - { name: one, run: [a] }\n  - { name: one, run: [b] }\n", 3, "twice"),
        (
            "processes: [{ name: one, run: [a] }]\nvariants:\n  a: { title: A, start: [two], expect: { verdict: healthy } }\n",
            3,
            "unknown \"two\"",
        ),
        (
            "processes: [{ name: one, run: [a] }]\nvariants:\n  a: { title: A, start: [one], expect: { verdict: found } }\n",
            3,
            "culprit",
        ),
        ("processes: [{ name: one, run: [a] }]\nsetup: [{ run: [a, '{pid.one}'] }]\n", 2, "no process runs at"),
        ("processes: [{ name: one, run: [a, '{pid.two}'] }]\n", 1, "unknown name \"two\" in processes"),
    ];
    for (rest, line, words) in cases {
        // What a case leaves out is missing last of all: the mistake must be found before.
        let rest = if rest.contains("variants") { rest.to_owned() } else { format!("{rest}{VARIANTS}") };
        let error = find(&labs(&rest)).err().unwrap_or_else(|| panic!("{rest}")).to_string();
        assert!(error.contains(&format!("tiny/lab.yaml:{}: ", head + line)), "{rest}: {error}");
        assert!(error.contains(words), "{rest}: {error}");
    }
}

#[test]
fn a_variant_runs_with_its_arguments_and_is_gone_afterwards() {
    let labs = labs(
        r#"setup:
  - run: [sh, -c, 'echo once >> {dir}/setup.txt']
processes:
  - name: one
    run: [sh, -c, 'echo $$ > {here}/one.pid; sleep 300 & echo $! > {here}/child.pid; echo "door $DOOR"; echo "args $*"; read line; echo "$line"; wait', sh, first]
    env: { DOOR: "{secret.door}" }
    stdin: "{lab}/scenario.yaml"
    ready: { stdout: "args first second" }
    then:
      - run: [sh, -c, 'kill -0 {pid.one} && echo {port.web} >> {here}/then.txt']
  - name: two
    run: [sh, -c, 'sleep 300']
watch: [host, "pid:{pid.one}", "pid:{pid.two}", "x://{secret.door}@"]
watch_if_allowed: ["pid:{pid.two}", "prometheus:http://127.0.0.1:{port.web}/metrics"]
variants:
  a: { title: A, start: [one], watch: ["y://{port.web}"], arguments: { one: [second] }, expect: { verdict: healthy } }
"#,
    );
    let lab = find(&labs).unwrap();
    let said = Mutex::new(Vec::new());
    let say = |words: &str| said.lock().unwrap().push(words.to_owned());
    let stage = lab.set_up(&say, &NO_STOP).unwrap();
    let scratch = stage.scratch.path.clone();
    let port = stage.scope.ports["web"];
    for round in 1..=2 {
        let act = stage.start("a", &say, &NO_STOP).unwrap();
        let folder = labs.path().join("tiny");
        let (pid, child) = (pid_in(folder.join("one.pid")), pid_in(folder.join("child.pid")));
        assert!(alive(pid) && alive(child));
        assert_eq!(act.dead(), None);
        assert_eq!(act.scenario, format!("target: http://127.0.0.1:{port}/{{id}}\n"));
        // Nobody forbids the last; that nobody answers there is for whoever records to say.
        let url = format!("prometheus:http://127.0.0.1:{port}/metrics");
        assert_eq!(act.watch, ["host", &format!("pid:{pid}"), "x://open-sesame@", &format!("y://{port}"), &url]);
        assert_eq!(std::fs::read_to_string(folder.join("then.txt")).unwrap(), format!("{port}\n").repeat(round));
        let log = scratch.join("one.log");
        assert!(soon(|| std::fs::read_to_string(&log).unwrap().matches("target: http").count() == round));
        if round == 1 {
            act.stop()
        } else {
            drop(act)
        }
        assert!(!alive(pid), "the process");
        assert!(soon(|| !alive(child)), "the rest of its group");
    }
    assert_eq!(std::fs::read_to_string(scratch.join("setup.txt")).unwrap(), "once\n");
    drop(stage);
    assert!(!scratch.exists());
    let said = said.into_inner().unwrap().join("\n");
    assert!(said.contains("starting one") && said.contains("one is ready"), "{said}");
    assert!(!said.contains("sesame"));
}

#[test]
fn outputs_of_tools_are_written_only_on_request() {
    let tools = "  - name: tools\n    run: [sh, -c, 'uptime >paste.txt; echo ready; exec sleep 60']\n    ready: { stdout: ready }\n";
    let text = one("echo up; exec sleep 60", "{ stdout: up }");
    let (processes, variants) = text.split_once("variants").unwrap();
    let text =
        format!("{processes}{tools}by_hand: {{ process: tools, paste: '{{dir}}/paste.txt' }}\nvariants{variants}");
    let labs = labs(&text);
    let lab = find(&labs).unwrap();
    let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
    let mut act = stage.start("a", &|_| (), &NO_STOP).unwrap();
    assert!(!stage.scratch.path.join("paste.txt").exists());
    let paste = stage.start_by_hand(&mut act, "a", &|_| (), &NO_STOP).unwrap();
    assert!(std::fs::read_to_string(paste).unwrap().contains("load average"));
    act.stop();

    play(&one("echo up; exec sleep 60", "{ stdout: up }"), |_, labs| {
        let lab = Lab::find("tiny", Some(labs)).unwrap();
        let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
        let mut act = stage.start("a", &|_| (), &NO_STOP).unwrap();
        let error = stage.start_by_hand(&mut act, "a", &|_| (), &NO_STOP).unwrap_err().to_string();
        assert!(error.contains("lab tiny cannot be recorded by hand"), "{error}");
    });
}

#[test]
fn ready_when_a_port_or_a_url_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    play(&one("sleep 300", &format!("{{ tcp: {port} }}")), |act, _| assert!(act.is_ok()));

    let served = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        // The first is the connection of the lab above.
        for status in ["", "503 Not Yet", "200 OK"] {
            let mut stream = listener.accept().unwrap().0;
            let mut request = [0; 64];
            let _ = stream.read(&mut request);
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        }
    });
    play(&one("sleep 300", &format!("{{ http: 'http://127.0.0.1:{port}/health' }}")), |act, _| assert!(act.is_ok()));
    served.join().unwrap();
}

#[test]
fn a_process_that_dies_early_is_quoted_without_secrets() {
    let error = refusal(&format!(
        "processes:
  - name: zero
    run: [sh, -c, 'echo $$ > {{here}}/zero.pid; exec sleep 300']
  - name: one
    run: [sh, -c, 'seq 100; echo \"bad door $DOOR\" >&2; exit 7']
    env: {{ DOOR: '{{secret.door}}' }}
    ready: {{ stdout: never }}
{}",
        VARIANTS.replace("[one]", "[zero, one]")
    ));
    assert!(error.starts_with("one ended with exit status 7 before it was ready; the end of its log:\n"), "{error}");
    assert!(error.contains("bad door ***") && !error.contains("sesame"), "{error}");
    assert_eq!(error.lines().count(), 21, "{error}");
    assert!(error.contains("    82\n") && !error.contains("    81\n"), "{error}");
}

#[test]
fn processes_started_before_a_failure_are_stopped() {
    let rest = format!(
        "processes:
  - name: zero
    run: [sh, -c, 'echo $$ > {{here}}/zero.pid; echo go; exec sleep 300']
    ready: {{ stdout: go }}
  - name: one
    run: [/nowhere/program]
{}",
        VARIANTS.replace("[one]", "[zero, one]")
    );
    play(&rest, |act, labs| {
        let error = act.err().unwrap().to_string();
        assert!(error.starts_with("failed to start one: \"/nowhere/program\": "), "{error}");
        assert!(!alive(pid_in(labs.join("tiny/zero.pid"))));
    });
}

#[test]
fn readiness_that_never_comes_ends_in_time() {
    let began = Instant::now();
    play(&one("echo $$ > {here}/one.pid; exec sleep 300", "{ stdout: never, within: 300ms }"), |act, labs| {
        assert_eq!(
            act.err().unwrap().to_string(),
            "one was not ready within 300ms: it still lacks \"never\" in its output; it wrote nothing"
        );
        assert!(!alive(pid_in(labs.join("tiny/one.pid"))));
    });
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn one_that_heeds_no_signal_is_killed() {
    let script = "trap \"\" TERM; echo $$ > {here}/one.pid; echo go; while :; do sleep 0.1; done";
    let rest = one(script, "{ stdout: go }\n    stop: { signal: TERM, within: 200ms }");
    play(&rest, |act, labs| {
        let pid = pid_in(labs.join("tiny/one.pid"));
        let began = Instant::now();
        act.unwrap().stop();
        assert!(!alive(pid));
        assert!(began.elapsed() >= Duration::from_millis(200));
    });
}

#[test]
fn the_dead_are_named() {
    play(&one("echo go; sleep 0.1; echo \"no $0\"; kill -9 $$", "{ stdout: go }"), |act, _| {
        let act = act.unwrap();
        assert!(soon(|| act.dead().is_some()));
        assert_eq!(act.dead().unwrap(), "one was ended by signal 9 (SIGKILL); its last line: no sh");
    });
}

#[test]
fn an_interruption_ends_every_wait() {
    let cases = [
        one("exec sleep 300", "{ stdout: never }"),
        one("echo go; exec sleep 300", "{ stdout: go }\n    then: [[sleep, 300]]"),
    ];
    for rest in cases {
        let labs = labs(&rest);
        let lab = find(&labs).unwrap();
        let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                stop.store(true, Ordering::SeqCst);
            });
            let began = Instant::now();
            let ended = stage.start("a", &|_| (), &stop).err();
            assert!(matches!(ended, Some(Failure::Interrupted)), "{ended:?}");
            assert!(began.elapsed() < Duration::from_secs(5));
        });
    }
    let labs = labs(&format!("needs: [[sleep, 300]]\n{}", one("exit 0", "{ tcp: 1 }")));
    let lab = find(&labs).unwrap();
    let interrupted = lab.set_up(&|_| (), &AtomicBool::new(true)).err();
    assert!(matches!(interrupted, Some(Failure::Interrupted)));
}

#[test]
fn needs_and_setup_say_what_is_wrong() {
    let set_up = |rest: &str| {
        let labs = labs(&format!("{rest}\n{}", one("exit 0", "{ tcp: 1 }")));
        find(&labs).unwrap().set_up(&|_| (), &NO_STOP).err().unwrap()
    };
    let needs = set_up("needs: [[sh, -c, 'echo missing: sesame-server >&2; exit 3']]");
    assert!(needs.to_string().ends_with("is not installed here:\nmissing: sesame-server"), "{needs}");
    let failed = set_up("setup: [{ run: [sh, -c, 'echo \"no room\"; exit 2'] }]").to_string();
    assert!(failed.starts_with("setup of tiny failed: \"sh -c "), "{failed}");
    assert!(failed.ends_with("ended with exit status 2; the end of its log:\n    no room"), "{failed}");
    let long = set_up("setup: [{ run: [sleep, 300], within: 100ms }]").to_string();
    assert!(long.starts_with("setup of tiny took longer than 100ms"), "{long}");
}

#[test]
fn a_port_that_was_taken_is_noticed() {
    let labs = labs(&one("sleep 300", "{ tcp: '{port.web}' }"));
    let lab = find(&labs).unwrap();
    let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
    let _taken = TcpListener::bind(("127.0.0.1", stage.scope.ports["web"])).unwrap();
    let error = stage.start("a", &|_| (), &NO_STOP).err().unwrap();
    assert!(error.to_string().contains("another program has taken port"), "{error}");
}

#[test]
fn processes_do_not_outlive_the_thread_that_started_them() {
    let labs = labs(&one("echo $$ > {here}/one.pid; echo go; exec sleep 300", "{ stdout: go }"));
    let lab = find(&labs).unwrap();
    let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
    std::thread::scope(|threads| {
        // As if holdup were killed: nothing is dropped.
        threads.spawn(|| std::mem::forget(stage.start("a", &|_| (), &NO_STOP).unwrap()));
    });
    let pid = pid_in(labs.path().join("tiny/one.pid"));
    assert!(soon(|| !alive(pid)));
    // The act that was forgotten would have done it.
    std::fs::remove_dir_all(&stage.scratch.path).unwrap();
}

#[test]
fn nothing_is_left_running_by_a_panic() {
    let mut pid = 0;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        play(&one("echo $$ > {here}/one.pid; echo go; exec sleep 300", "{ stdout: go }"), |act, labs| {
            let _act = act.unwrap();
            pid = pid_in(labs.join("tiny/one.pid"));
            panic!("on purpose");
        });
    }));
    assert!(result.is_err());
    assert!(!alive(pid));
}

/// A server's user may not be able to enter the folder that the clone lies in, as below root's home.
#[test]
fn lab_files_can_be_read_by_every_user() {
    let script = "find {lab} ! -perm -o=r | wc -l > {here}/closed.txt; echo go; exec sleep 300";
    let labs = labs(&one(script, "{ stdout: go }"));
    std::fs::create_dir(labs.path().join("tiny/more")).unwrap();
    std::fs::write(labs.path().join("tiny/more/server.conf"), "port = 1").unwrap();
    for (path, mode) in [("tiny/more/server.conf", 0o600), ("tiny/more", 0o700), ("tiny", 0o700)] {
        std::fs::set_permissions(labs.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let lab = find(&labs).unwrap();
    let stage = lab.set_up(&|_| (), &NO_STOP).unwrap();
    stage.start("a", &|_| (), &NO_STOP).unwrap().stop();
    assert_eq!(std::fs::read_to_string(labs.path().join("tiny/closed.txt")).unwrap().trim(), "0");
}

//! `holdup lab NAME`: incidents on real servers, each faulty, fixed and as a decoy.

use std::path::Path;

use serde_json::Value;

use crate::program::{causes, finish, holdup, root, skip};
use crate::{mariadb, python};

/// Plays these variants of `name`: each got the verdict that the lab expects.
fn play(name: &str, variants: &[&str], out: &Path) -> Value {
    let mut command = holdup(["lab", name, "--json", "--quiet", "-o"]);
    command.arg(out).arg("--labs").arg(root().join("labs"));
    command.args(variants.iter().map(|variant| format!("--variant={variant}")));
    let done = finish(&mut command, 400);
    assert_eq!(done.code(), Some(0), "{}\n{}", done.stderr, done.stdout);
    let all = done.json();
    let json = out.join("lab.json");
    std::fs::write(&json, &done.stdout).unwrap();
    let mut arguments = vec!["lab".to_owned(), json.display().to_string()];
    arguments.extend(variants.iter().map(|variant| format!("{variant}={}", out.join(variant).display())));
    python::check("contract.py", &arguments);
    python::check("tables.py", &variants.iter().map(|variant| out.join(variant)).collect::<Vec<_>>());
    all
}

const ALL: [&str; 3] = ["faulty", "fixed", "decoy"];

/// Of the slow requests nearly all have both accounts, and nearly all of their time has an owner.
fn joined(verdict: &Value) {
    let accounts = &verdict["accounts"];
    let number = |key: &str| accounts[key].as_f64().unwrap();
    assert!(number("requests") >= 20.0 && number("joined") >= 0.95 * number("requests"), "{}", accounts["text"]);
    assert!(number("assigned_ratio") >= 0.95, "{}", accounts["text"]);
}

/// Whether a throttled disk can be made here: FUSE, a loop device, a mount.
fn can_mount() -> bool {
    // SAFETY: geteuid takes nothing and can't fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let can = is_root && Path::new("/dev/fuse").exists() && Path::new("/dev/loop-control").exists();
    if !can {
        skip("the lab's throttled disk needs root, /dev/fuse and loop devices");
    }
    can
}

/// The finding of `cause`.
fn finding<'a>(verdict: &'a Value, cause: &str) -> &'a Value {
    let findings = verdict["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["cause"] == cause);
    found.unwrap_or_else(|| panic!("{cause} is not among {:?}", causes(verdict, "findings")))
}

/// From `cause` upwards to its root.
fn chain<'a>(verdict: &'a Value, cause: &'a str) -> Vec<&'a str> {
    let mut chain = vec![cause];
    while let Some(above) = finding(verdict, chain[chain.len() - 1])["follows_from"].as_str() {
        assert!(!chain.contains(&above), "a chain that is a ring: {chain:?}");
        chain.push(above);
    }
    chain
}

/// Every text of a finding's evidence, as one.
fn evidence(finding: &Value) -> String {
    let all = finding["evidence"].as_array().unwrap();
    all.iter().map(|e| e["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Before and after of the indicator that `name` begins.
fn indicator(all: &Value, name: &str) -> (f64, f64) {
    let rows = all["comparison"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["indicator"].as_str().unwrap().starts_with(name));
    let row = row.unwrap_or_else(|| panic!("no indicator \"{name}\" in {rows:#?}"));
    (row["cells"][0]["value"].as_f64().unwrap(), row["cells"][1]["value"].as_f64().unwrap())
}

/// The lab of the ordinary pass; its fix is played with all the others by `cargo xtask ci --full`.
#[test]
#[holdup_witness::judged(VERDICTS)]
fn a_hidden_queue_is_found_and_told_from_its_decoy() {
    if !mariadb::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = play("hidden-queue", &["faulty", "decoy"], &dir.path().join("lab"));

    let faulty = &all["faulty"];
    assert_eq!(faulty["culprit"], "thread_pool_queue");
    expect_cleared(faulty, &["cpu_saturated", "disk_saturated", "lock_contention", "load_generator_limit"]);
    let evidence = faulty["findings"][0]["evidence"].as_array().unwrap();
    let has = |table: &str, test: &dyn Fn(&Value) -> bool| evidence.iter().any(|e| e["table"] == table && test(e));
    let says = |e: &Value, word: &str| e["text"].as_str().unwrap().to_lowercase().contains(word);
    assert!(has("requests", &|e| says(e, "p99")), "the client's p99: {evidence:#?}");
    assert!(has("statements", &|e| e["column"] == "duration_ns"), "the server's own timing: {evidence:#?}");
    assert!(
        has("samples", &|e| e["labels"]["metric"].as_str().is_some_and(|m| m.contains("queue_length"))),
        "{evidence:#?}"
    );
    assert!(has("sessions", &|e| says(e, "sleep")), "sessions shown as Sleep: {evidence:#?}");
    joined(faulty);

    let decoy = &all["decoy"];
    assert_eq!(decoy["culprit"], "lock_contention");
    expect_cleared(decoy, &["cpu_saturated", "disk_saturated", "thread_pool_queue", "load_generator_limit"]);
}

#[test]
#[holdup_witness::judged(VERDICTS)]
#[ignore = "full: a lab, minutes, wants a quiet machine"]
fn uninterruptible_is_explained_fixed_and_told_from_a_busy_disk() {
    if !mariadb::is_here() || !can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = play("uninterruptible", &ALL, &dir.path().join("lab"));

    let faulty = &all["faulty"];
    assert_eq!(faulty["culprit"], "on_disk_temporary_tables");
    expect_cleared(faulty, &["cpu_saturated", "load_generator_limit"]);
    let up = chain(faulty, "uninterruptible_pileup");
    assert_eq!(up.last(), Some(&"on_disk_temporary_tables"), "{up:?}");
    let said = evidence(finding(faulty, "on_disk_temporary_tables"));
    for word in ["unlink", "tmpdir", "ext4", "dirsync"] {
        assert!(said.contains(word), "no \"{word}\" in {said}");
    }
    let load = &faulty["host_load"];
    assert!(load["uninterruptible"].as_f64().unwrap() > 10.0 * load["runnable"].as_f64().unwrap(), "{load:#}");

    // What the fix is worth, indicator by indicator, at the same offered load.
    let (before, after) = indicator(&all, "statements per second");
    assert!(after >= 3.0 * before, "{before} statements/s before, {after} after");
    let (before, after) = indicator(&all, "threads in uninterruptible sleep");
    assert!(before > 50.0 && after < before / 10.0, "{before} threads in D before, {after} after");
    let (before, after) = indicator(&all, "threads running or in uninterruptible sleep");
    assert!(after < before, "the load average would settle at {after} a CPU after, {before} before");
    for name in ["load average", "idle CPU time"] {
        indicator(&all, name);
    }
    assert_eq!(all["fixed"]["verdict"], "healthy");
    assert_eq!(all["fixed"]["next"]["cause"], "table_cache_small", "{:#}", all["fixed"]["next"]);

    let decoy = &all["decoy"];
    assert_eq!(decoy["culprit"], "backup_or_bulk_load");
    let said = evidence(finding(decoy, "backup_or_bulk_load"));
    assert!(said.contains("dd was running"), "{said}");
    expect_cleared(decoy, &["on_disk_temporary_tables", "cpu_saturated", "load_generator_limit"]);
}

#[test]
#[holdup_witness::judged(VERDICTS)]
#[ignore = "full: a lab, minutes, wants a quiet machine"]
fn readahead_is_named_fixed_and_told_from_a_working_set_too_large() {
    if !can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = play("readahead", &ALL, &dir.path().join("lab"));

    let faulty = &all["faulty"];
    assert_eq!(faulty["culprit"], "readahead_too_large");
    expect_cleared(faulty, &["cpu_saturated", "load_generator_limit"]);
    let found = finding(faulty, "readahead_too_large");
    assert!(found["fixes"][0]["command"].as_str().unwrap().starts_with("blockdev --setra "), "{found:#}");
    assert!(found["fixes"][0]["keep"].is_string(), "{found:#}");

    assert_eq!(all["fixed"]["verdict"], "healthy");
    let of =
        |variant: &str, figure: &str| all[variant]["load"]["operations"][0].pointer(figure).unwrap().as_f64().unwrap();
    let (faster, more) = (
        of("faulty", "/response_ms/p99") / of("fixed", "/response_ms/p99"),
        of("fixed", "/achieved") / of("faulty", "/achieved"),
    );
    assert!(faster >= 10.0 || more >= 3.0, "p99 {faster} times, throughput {more} times better");

    let decoy = &all["decoy"];
    assert_eq!(decoy["culprit"], "working_set_exceeds_memory");
    expect_cleared(decoy, &["readahead_too_large", "cpu_saturated", "load_generator_limit"]);
}

fn expect_cleared(verdict: &Value, wanted: &[&str]) {
    let cleared = causes(verdict, "cleared");
    for cause in wanted {
        assert!(
            cleared.contains(cause),
            "{cause} is not cleared, but {cleared:?}; not judged: {:?}",
            verdict["not_judged"]
        );
    }
}

/// Whether Debian's PostgreSQL is here, whose server is on nobody's path.
fn has_postgresql() -> bool {
    let installed = std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|folders| folders.flatten().next().is_some());
    if !installed {
        skip("the lab needs PostgreSQL: apt-get install postgresql");
    }
    installed
}

/// The incident nobody watched: root and contributors, when the burst ended, a fix and a decoy. The other fix and the other decoy are played by
/// hand: `holdup lab throughput-ceiling`.
#[test]
#[holdup_witness::judged(VERDICTS)]
#[ignore = "full: a lab, minutes, wants a quiet machine"]
fn a_throughput_ceiling_is_the_root_of_what_adds_to_it() {
    if !can_mount() || !has_postgresql() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let switched = dir.path().join("switched");
    let run = |out: &Path, variants: &[&str]| {
        let mut command = holdup(["lab", "throughput-ceiling", "--json", "--quiet"]);
        command.args(variants.iter().map(|variant| format!("--variant={variant}")));
        command.arg("--output").arg(out).arg("--labs").arg(root().join("labs")).env("HOLDUP_LAB_SWITCHED", &switched);
        let done = finish(&mut command, 400);
        assert_eq!(done.code(), Some(0), "{}\n{}", done.stderr, done.stdout);
        done.json()
    };
    let faulty = &run(&first, &["faulty"])["faulty"];
    let ceiling = finding(faulty, "throughput_ceiling");
    // Found in a recording of two samples a second: within two of them.
    let at: f64 = std::fs::read_to_string(&switched).unwrap().trim().parse().unwrap();
    let manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(first.join("faulty/manifest.json")).unwrap()).unwrap();
    let switch_s = at - manifest["started_at"].as_f64().unwrap() / 1e9;
    let before =
        ceiling["evidence"].as_array().unwrap().iter().find(|e| e["text"].as_str().unwrap().contains("before"));
    let ended_s = before.expect("the burst")["window"]["to_s"].as_f64().unwrap();
    assert!((ended_s - switch_s).abs() <= 1.0, "the burst ended at {switch_s:.2} s and was seen until {ended_s:.2} s");
    let said = evidence(finding(faulty, "toast_rewrite"));
    assert!(said.contains("6.0 an update"), "{said}");
    assert!(!faulty["debt"].is_null(), "vacuum is behind");

    let rest = run(&second, &["fixed", "decoy"]);
    assert_eq!(rest["decoy"]["culprit"], "iops_ceiling");
    let folders = ["fixed", "decoy"].map(|variant| second.join(variant));
    python::check("tables.py", &folders);
}

/// Five waits at five known places at once, and each is found again in its own row of the ledger: the lab holds them against `baseline`.
#[test]
#[holdup_witness::judged(VERDICTS)]
#[ignore = "full: a lab, minutes, wants a quiet machine"]
fn waits_are_found_again_where_they_were_put() {
    if !mariadb::is_here() {
        return;
    }
    // SAFETY: geteuid takes nothing and can't fail.
    if unsafe { libc::geteuid() } != 0 {
        skip("the lab's network namespaces need root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("lab");
    let mut command = holdup(["lab", "accounts", "--variant", "calm", "--variant", "all", "--json", "--quiet", "-o"]);
    let done = finish(command.arg(&out).arg("--labs").arg(root().join("labs")), 400);
    assert_eq!(done.code(), Some(0), "{}\n{}", done.stderr, done.stdout);
    let all = done.json();
    assert_eq!((&all["all"]["verdict"], &all["all"]["culprit"]), (&"found".into(), &"downstream_slow".into()));
    python::check("tables.py", &["calm", "all"].map(|variant| out.join(variant)));
}

/// Whether the servers and libraries of the web server's lab are here, and it may make cgroups.
fn has_web_servers() -> bool {
    let mut ruby = std::process::Command::new("ruby");
    let libraries = ruby.args(["-r", "pg", "-r", "async/http", "-r", "puma", "-e", ""]).status();
    let has_them = libraries.is_ok_and(|status| status.success());
    if !has_them {
        skip("the lab needs Ruby's servers: apt-get install puma ruby-async-http ruby-pg");
    }
    // SAFETY: geteuid takes nothing and can't fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        skip("the lab's container needs root");
    }
    has_them && is_root
}

/// The web server that drowned: what it was short of, what followed from that and killed it; not on fibres; and two decoys.
#[test]
#[holdup_witness::judged(VERDICTS)]
#[ignore = "full: a lab, minutes, wants a quiet machine"]
fn a_drowned_web_server_was_short_of_workers() {
    if !has_web_servers() || !has_postgresql() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("lab");
    let variants = ["faulty", "fixed", "decoy", "decoy_auth"];
    let mut command = holdup(["lab", "worker-capacity", "--json", "--quiet"]);
    command.args(variants.map(|variant| format!("--variant={variant}")));
    let done = finish(command.arg("--output").arg(&out).arg("--labs").arg(root().join("labs")), 400);
    assert_eq!(done.code(), Some(0), "{}\n{}", done.stderr, done.stdout);
    let all = done.json();

    let faulty = &all["faulty"];
    let up = chain(faulty, "liveness_probe_kill");
    assert_eq!(up, ["liveness_probe_kill", "accept_queue_overflow", "worker_pool_exhausted"]);
    // Nobody was refused, cut off or given up on where there was a fibre for each.
    let failed = |variant: &str| {
        let operations = all[variant]["load"]["operations"].as_array().unwrap();
        operations.iter().map(|o| o["errors"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(failed("faulty") > 0);
    assert_eq!(failed("fixed"), 0);
    assert_eq!(
        (&all["decoy"]["culprit"], &all["decoy_auth"]["culprit"]),
        (&"cpu_throttled".into(), &"downstream_slow".into())
    );
    python::check("tables.py", &variants.map(|variant| out.join(variant)));
}

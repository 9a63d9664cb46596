//! The published schema of scenarios says what the program says. (That of verdicts is held against every verdict
//! the other tests get.)

use std::path::PathBuf;

use crate::program::{finish, holdup, root};
use crate::python;

const GOOD: [&str; 15] = [
    "target: http://127.0.0.1:80\nload: {rate: 5, duration: 1m30s}\noperations: [get: /]\n",
    "target: http://[::1]:81\nload: {steps: {from: 50, to: 300, step: 50, every: 10s}, connections: 20}\noperations: {post: '/a?b=c', body: x, headers: {A: 1}}\n",
    "name: r\ntarget: http://h\nload: {ramp: {from: 1, to: 10.5}, duration: 250ms, timeout: 2s}\noperations: [{name: s, get: /, weight: 3}]\nthresholds: ['p99 < 500ms', 's p95 < 1s', errors < 1%]\n",
    "target: http://h:8080\nload: {rate: 0.5, duration: 2h}\noperations: [get: /]\nthresholds: p50 < 1ms\nwatch: host\n",
    "target: http://h\nload: {spike: {base: 0, peak: 500, at: 10s, for: 5s}, duration: 20s, arrivals: poisson}\noperations: [get: /]\n",
    "target: http://h\nload: {sine: {mean: 100, amplitude: 100, period: 1m}, duration: 90s, arrivals: poisson, seed: 18446744073709551615}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5, for: 1s}, {pause: 2s}, {name: up, ramp: {from: 0, to: 9}, for: 1s}], warm_up: none}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: {rate: 5, for: 10s}, arrivals: even, warm_up: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 64, think: 200ms, duration: 6s, warm_up: auto}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 1, duration: 6s}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log, speed: 0.5, methods: [GET, post]}}\n",
    "target: http://h\nload: {replay: {file: access.log, format: combined, methods: GET}, duration: 1s}\n",
    "target: http://h\nload: {replay: {file: access.log}, connections: 5}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1m}\noperations: [{name: a/b, get: /}]\nthresholds: [p98 < 1s, a/ p99.9 < 1m30s for 1m, 'a/b rate > 4.5 for 10s', rate > 100/s]\n",
    "target: http://h\nload: {rate: 5, duration: 1m}\noperations: [get: /]\nthresholds: [p99 < 1s, {objective: errors < 5% for 10s, abort: true, after: 20s}, {objective: p50 < 9ms}]\n",
];

const BAD: [&str; 37] = [
    "load: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: 127.0.0.1:80\nload: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: ftp://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: http://h/path\nload: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 20}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 0, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, ramp: {from: 1, to: 2}, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {steps: {from: 1, to: 2, step: 1, every: 1s}, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, durration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: []\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [{get: /, post: /}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: path]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [p100 < 1s]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [p99 < 1s for 30]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [rate < 5]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [{abort: true}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [{objective: p99 < 1s, after: 5s}]\n",
    "target: http://h\nload: {duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, steps: {from: 1, to: 2, step: 1, every: 1s}}\noperations: [get: /]\n",
    "target: http://h\nload: {spike: {base: 1, peak: 5, at: 1s, for: 1s}}\noperations: [get: /]\n",
    "target: http://h\nload: {spike: {base: 1, peak: 5, at: 1s}, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {sine: {mean: 1, amplitude: 1}, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: []}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5, for: 1s}], duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5}]}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5, pause: 1s}]}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, users: 5, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 5, connections: 5, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 5, duration: 5s, arrivals: poisson}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 5s, think: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 5s, seed: 1}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 5s, arrivals: even, seed: 1}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log}, arrivals: poisson}\n",
    "target: http://h\nload: {replay: {file: access.log, methods: GET}}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log, format: xml}}\n",
    "target: http://h\nload: {rate: 5, duration: 5s, warm_up: 5}\noperations: [get: /]\n",
];

/// What the scenarios replay, beside them.
const LOG: &str = "10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.1\" 200 2326\n";

/// Whole scenarios that the documentation shows.
fn documented() -> Vec<String> {
    let pages = ["README.md", "docs/scenario.md"].map(|page| std::fs::read_to_string(root().join(page)));
    let blocks = pages.into_iter().flatten().flat_map(|page| {
        let after: Vec<String> = page.split("```yaml\n").skip(1).map(str::to_owned).collect();
        after.into_iter().filter_map(|text| Some(text.split_once("```")?.0.to_owned()))
    });
    blocks.filter(|text| text.contains("target:") && text.contains("load:") && text.contains("operations:")).collect()
}

#[test]
fn schema_and_program_agree_on_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("access.log"), LOG).unwrap();
    let write = |kind: &str, texts: &[&str]| -> Vec<PathBuf> {
        let paths = (0..texts.len()).map(|i| dir.path().join(format!("{kind}-{i}.yaml")));
        paths.zip(texts).inspect(|(path, text)| std::fs::write(path, text).unwrap()).map(|(path, _)| path).collect()
    };
    let documented = documented();
    assert!(!documented.is_empty(), "the documentation shows a scenario");
    let documented: Vec<&str> = documented.iter().map(String::as_str).collect();
    let (good, bad) = (write("good", &[&GOOD[..], &documented].concat()), write("bad", &BAD));
    for (files, code) in [(&good, Some(0)), (&bad, Some(2))] {
        for file in files {
            let done = finish(holdup(["run", "--check"]).arg(file), 10);
            assert_eq!(done.code(), code, "{}: {}{}", std::fs::read_to_string(file).unwrap(), done.stdout, done.stderr);
        }
    }
    let labs = std::fs::read_dir(root().join("labs")).unwrap();
    let scenarios: Vec<PathBuf> =
        labs.map(|lab| lab.unwrap().path().join("scenario.yaml")).filter(|path| path.exists()).collect();
    assert!(!scenarios.is_empty());
    let arguments = |kind: &str, files: &[PathBuf]| -> Vec<PathBuf> {
        std::iter::once(PathBuf::from(kind)).chain(files.iter().cloned()).collect()
    };
    python::check("scenarios.py", &arguments("good", &[good, scenarios].concat()));
    python::check("scenarios.py", &arguments("bad", &bad));
}

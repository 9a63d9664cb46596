//! Every file in `tests/data/`, imported: what comes out is kept beside it as `NAME.expected.yaml` and read by holdup's
//! own parser. To accept a change: `HOLDUP_ACCEPT=1 cargo test -p holdup-import --test import`.

use std::path::{Path, PathBuf};

use holdup_import::{Imported, Kind, Options, Source, import};
use holdup_load::scenario::Scenario;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(data().join(name)).unwrap()
}

fn imported(name: &str, options: &Options) -> Imported {
    import(text_of(name).as_bytes(), name, None, options).unwrap_or_else(|e| panic!("{e}"))
}

fn sources() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".expected.yaml"))
        .collect();
    names.sort();
    assert!(names.len() >= 8, "files are missing");
    names
}

/// The scenario as holdup reads it. Secrets are not set where tests run, and files of rows are not there: both become
/// plain texts first, as do files of bodies.
fn parsed(yaml: &str) -> Result<Scenario, String> {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    let mut columns = String::new();
    for line in yaml.lines() {
        if let Some(list) = line.strip_prefix("secrets: [") {
            names.extend(list.trim_end_matches(']').split(", ").map(|n| n.trim_matches('\'').to_owned()));
            continue;
        }
        if let Some(list) = line.trim().strip_prefix("# its first line must be: ") {
            columns = list.split(',').map(|c| format!("{c}: x")).collect::<Vec<_>>().join(", ");
        }
        match line.find("{csv: ") {
            Some(at) if !line.contains("get:") => {
                text.push_str(&format!("{}{{list: [{{unnamed: x, {columns}}}]}}\n", &line[..at]));
            }
            _ => text.push_str(&format!("{line}\n").replace("body_file:", "body:")),
        }
    }
    names.iter().for_each(|name| text = text.replace(&format!("secret.{name}"), "uuid()"));
    Scenario::parse(&text, "imported.yaml").map_err(|e| format!("{e}\n{text}"))
}

#[test]
fn scenarios_are_as_accepted_and_holdup_reads_them() {
    for name in sources() {
        let imported = imported(&name, &Options::default());
        let scenario = parsed(&imported.yaml).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!scenario.operations.is_empty(), "{name}");
        let path = data().join(format!("{name}.expected.yaml"));
        if std::env::var_os("HOLDUP_ACCEPT").is_some() {
            std::fs::write(&path, &imported.yaml).unwrap();
        }
        let accepted = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(imported.yaml, accepted, "{name} differs from what was accepted");
        for note in &imported.notes {
            let start: String = note.element.chars().take(40).collect();
            assert!(imported.yaml.contains(&start), "{name}: {note} is not in the file's comments");
        }
    }
}

/// The plan of incident C says what this scenario says.
#[test]
fn incident_c_is_the_scenario_that_a_person_would_write() {
    let by_hand = "
target: http://127.0.0.1:8080
vars: {highest_order: 5000}
load:
  steps: {from: 50, to: 300, step: 50, every: 10s}
  of: requests
  connections: 100
steps:
  - name: auth
    post: /auth
    json: {user: 'buyer-${session()}', password: 'correct horse'}
    capture: {token: json /access_token}
  - repeat: 1000
    steps:
      - name: order
        get: /orders/${random(1, highest_order)}
        headers: {Authorization: 'Bearer ${token}'}
        check: [status == 200]
";
    let by_hand = Scenario::parse(by_hand, "hand.yaml").unwrap();
    let imported = imported("incident-c.jmx", &Options::default());
    let scenario = parsed(&imported.yaml).unwrap();
    assert_eq!(scenario.operations, by_hand.operations);
    assert_eq!(scenario.load.phase_names(), by_hand.load.phase_names());
    assert_eq!(scenario.load.length(), by_hand.load.length());
    assert_eq!((scenario.connections, scenario.rate_of), (by_hand.connections, by_hand.rate_of));
    let keys = imported.yaml.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
    assert!(keys < 40, "{keys} lines");
    assert!(imported.notes.iter().all(|note| note.kind != Kind::LeftOut || note.element == "listeners"));
}

#[test]
fn no_secret_of_a_file_is_in_its_scenario() {
    for name in sources() {
        let yaml = imported(&name, &Options::default()).yaml;
        for secret in ["correct horse", "abc123secret", "hunter2", "k123456", "s3cret", "fixed-value-1", "c2ln"] {
            assert!(!yaml.contains(secret), "{name}: {secret}\n{yaml}");
        }
    }
}

#[test]
fn nothing_is_dropped_without_a_note() {
    // Every element of a plan that is switched on is in the scenario by its name, or its line is in a note.
    let silent = [
        "HeaderManager",
        "Arguments",
        "CSVDataSet",
        "ConfigTestElement",
        "CookieManager",
        "TestPlan",
        "GenericController",
    ];
    let plan = text_of("shop.jmx");
    let imported = imported("shop.jmx", &Options::default());
    let mut seen = 0;
    for (line, text) in (1..).zip(plan.lines()) {
        let attribute = |name: &str| text.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        let (Some(class), Some(name)) = (attribute("testclass"), attribute("testname")) else { continue };
        if attribute("enabled") != Some("true") || silent.contains(&class) || name.starts_with("old") {
            continue;
        }
        seen += 1;
        let is_noted = imported.notes.iter().any(|note| note.line == line);
        let is_there = imported.yaml.lines().any(|l| !l.starts_with("# -") && l.contains(name));
        let acts = class.ends_with("Timer")
            || class.ends_with("Controller")
            || class.ends_with("Control")
            || class.ends_with("Assertion")
            || class == "TestAction";
        assert!(is_noted || is_there || acts, "line {line}: {class} {name} is nowhere");
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn options_choose() {
    let with = |name: &str, options: Options| import(text_of(name).as_bytes(), name, None, &options);
    let base = Options { base_url: Some("http://127.0.0.1:9999/stage".into()), ..Options::default() };
    for name in ["shop.jmx", "browser.har", "petstore.yaml"] {
        let scenario = parsed(&with(name, base.clone()).unwrap().yaml).unwrap();
        assert_eq!(scenario.target.url(), "http://127.0.0.1:9999", "{name}");
        assert!(scenario.operations.iter().all(|o| o.path.starts_with("/stage")), "{name}");
    }
    let writers = Options { thread_group: Some("writers".into()), ..Options::default() };
    let imported = with("two-groups.jmx", writers).unwrap();
    assert!(imported.yaml.contains("iterations: 500") && !imported.yaml.contains("get: /read"));
    let other = Options { host: Some("track.test".into()), ..Options::default() };
    assert!(with("browser.har", other).unwrap().yaml.contains("target: https://track.test"));
    let all = Options { static_files: true, ..Options::default() };
    assert!(with("browser.har", all).unwrap().yaml.contains("get: /style.css"));
}

#[test]
fn an_unusable_file_gives_place_and_remedy() {
    let error = |text: &str, source: Option<Source>| {
        import(text.as_bytes(), "f", source, &Options::default()).unwrap_err().to_string()
    };
    assert!(error("hello", None).contains("--from jmx|har|openapi"));
    assert_eq!(error("<jmeterTestPlan>\n<a></b>", None).split(": ").next(), Some("f:2"));
    assert!(error("<html/>", None).contains("not a JMeter plan"));
    assert!(error("{\"log\": {}}", None).contains("log.entries"));
    assert!(error("{\n\"log\": {\"entries\": [}", None).starts_with("f:2: "));
    assert!(error("swagger: '2.0'\n", None).contains("OpenAPI 3"));
    assert!(error("openapi: 3.0.0\npaths:\n  /a: {get: {}}\n", None).contains("--base-url"));
    assert!(error("openapi: 3.0.0\nservers: [{url: /v1}]\n", None).starts_with("f:2: "));
    let plan = text_of("two-groups.jmx").replace("127.0.0.1", "");
    assert!(error(&plan, None).contains("--base-url"));
    let group = Options { thread_group: Some("nobody".into()), ..Options::default() };
    assert!(
        import(text_of("two-groups.jmx").as_bytes(), "f", None, &group)
            .unwrap_err()
            .message
            .contains("readers, writers")
    );
    assert!(import(b"<a>\n\xff</a>", "f", None, &Options::default()).unwrap_err().to_string().starts_with("f:2: "));
}

/// Texts that have something to say to JMeter, YAML, templates, conditions, paths or headers.
const HARD: [&str; 40] = [
    "",
    " ",
    "${",
    "${}",
    "${x}",
    "$${x}",
    "${a b}",
    "${__Random(9,1)}",
    "${__Random(a,b)}",
    "${__UUID}x",
    "${__x(${token})}",
    "${token",
    "'",
    "\"",
    "it's \"x\"",
    "\\",
    "\\n",
    "a: b",
    "# a",
    "- a",
    "{a}",
    "[1, 2",
    "a\nb",
    "\ta\n b ",
    "äö 日本",
    "\u{1f600}",
    "0",
    "-1",
    "1e9",
    "99999999999999999999",
    "/a b?c=d#e",
    "http://h:1/x",
    "(",
    "(?=a)b",
    "$.a[*].b",
    "not",
    "status",
    "null",
    "${__P(p,${q})}",
    "*",
];

/// What comes of files whose texts were exchanged for others is a scenario, too, or an error.
#[test]
fn whatever_stands_in_a_file_the_scenario_can_be_read() {
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as usize) % below
    };
    let (mut good, mut wrong) = (0, Vec::new());
    for name in sources() {
        let text = text_of(&name);
        // Places where a value stands: between tags, or between quotes behind a colon.
        let is_xml = name.ends_with(".jmx");
        let (open, close) = if is_xml { (">", "<") } else { ("\": \"", "\"") };
        let places: Vec<(usize, usize)> = text
            .match_indices(open)
            .filter_map(|(at, _)| {
                let start = at + open.len();
                let end = start + text[start..].find(close)?;
                (!text[start..end].contains('\n') && (!is_xml || end > start)).then_some((start, end))
            })
            .collect();
        if places.is_empty() {
            continue;
        }
        for _ in 0..150 {
            let (start, end) = places[random(places.len())];
            let hard = HARD[random(HARD.len())];
            let written = if is_xml {
                hard.replace('&', "&amp;").replace('<', "&lt;")
            } else {
                serde_json::Value::from(hard).to_string().trim_matches('"').to_owned()
            };
            let changed = format!("{}{written}{}", &text[..start], &text[end..]);
            let Ok(imported) = import(changed.as_bytes(), &name, None, &Options::default()) else { continue };
            good += 1;
            if let Err(e) = parsed(&imported.yaml) {
                wrong.push(format!(
                    "{name}: {hard:?} instead of {:?}: {}",
                    &text[start..end],
                    e.lines().next().unwrap_or_default()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {good}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(good > 1_000, "{good}");
}

#[test]
fn hostile_files_take_neither_time_nor_memory() {
    let plan = |inner: &str| {
        format!(
            "<jmeterTestPlan><hashTree><TestPlan testname=\"x\"/><hashTree>{inner}</hashTree></hashTree></jmeterTestPlan>"
        )
    };
    let deep = format!("{}{}", "<LoopController/><hashTree>".repeat(100), "</hashTree>".repeat(100));
    let group = |inner: &str| plan(&format!("<ThreadGroup testname=\"g\"/><hashTree>{inner}</hashTree>"));
    let sampler =
        "<HTTPSamplerProxy><stringProp name=\"HTTPSampler.domain\">h</stringProp></HTTPSamplerProxy><hashTree/>";
    let many = format!("{}{}", "<ConstantTimer/><hashTree/>".repeat(5_000), sampler.repeat(5_000));
    for hostile in [
        group(&deep),
        group(&many),
        group(&"<X/>".repeat(50_000)),
        "<a>".repeat(1_000_000),
        "{\"log\":".repeat(100_000),
    ] {
        let started = std::time::Instant::now();
        let _ = import(hostile.as_bytes(), "f", None, &Options::default());
        // Far above what it takes; quadratic work would take minutes.
        assert!(started.elapsed().as_secs() < 60);
    }
}

//! What a slip is answered with: file, line, key, and what would be right. And what a switch comes to.

use crate::script::program::Op;

use crate::scenario::{Inputs, Scenario};

/// The answer to a scenario whose line 3 and those after it are `rest`.
fn answer(rest: &str) -> String {
    let target = if rest.contains("SELECT") { "mysql://u@h" } else { "http://h" };
    answer_of(target, rest)
}

fn answer_of(target: &str, rest: &str) -> String {
    let text = format!("target: {target}\nload: {{rate: 5, duration: 1s}}\n{rest}\n");
    match Scenario::parse(&text, "s.yaml") {
        Ok(_) => panic!("it is accepted: {rest}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_kind_of_slip_is_answered_with_its_place_and_the_way_out() {
    for (rest, expected) in [
        // Keys.
        ("step: [get: /]", "3: unknown key \"step\"; did you mean \"steps\"?"),
        ("steps:\n- get: /\n  chek: status == 200", "5: unknown key \"chek\" in steps[0]; did you mean \"check\"?"),
        ("steps:\n- gte: /", "4: steps[0].gte: unknown step \"gte\"; did you mean \"get\"?"),
        ("steps: [{repeat: 3, stesp: [get: /]}]", "3: unknown key \"stesp\" in steps[0]; did you mean \"steps\"?"),
        ("steps: [{repeat: 3}]", "3: steps[0]: \"steps\" is missing"),
        ("steps: [{think: 1s, get: /}]", "3: unknown key \"get\" in steps[0]; there are: think"),
        ("sessions: [{nam: a, steps: [get: /]}]", "3: unknown key \"nam\" in sessions[0]; did you mean \"name\"?"),
        ("steps: [get]", "3: steps[0]: a step is a key and what belongs to it, e.g. get: /path or think: 2s"),
        ("steps: [{think: 1s}]", "3: steps: no step sends anything; add one, e.g. - get: /path"),
        (
            "steps: [{get: /, capture: {t: {json: /a, pik: all}}}]",
            "3: unknown key \"pik\" in steps[0].capture.t; did you mean \"pick\"?",
        ),
        (
            "operations: [{get: /}]\nsteps: [{get: /}]",
            "4: steps: \"operations\" and \"steps\" exclude each other; keep one",
        ),
        // Names.
        (
            "steps: [{get: '/${tokn}', capture: {token: status}}]",
            "3: steps[0].get: unknown name \"tokn\"; did you mean \"token\"?",
        ),
        (
            "feeders: {rows: {list: [{id: 1, no: 2}]}}\nsteps: [get: '/${rows.idd}']",
            "4: steps[0].get: the feeder rows has no column \"idd\"; did you mean \"id\"?",
        ),
        (
            "feeders: {accounts: {list: [1]}}\nsteps: [{feed: acounts}, {get: /}]",
            "4: steps[0].feed: no feeder is called \"acounts\"; did you mean \"accounts\"?",
        ),
        (
            "define: {login: [get: /]}\nsteps: [call: logn]",
            "4: steps[0].call: no define is called \"logn\"; did you mean \"login\"?",
        ),
        (
            "define:\n  a: [call: b]\n  b: [call: a]\nsteps: [call: a]",
            "5: define.b[0].call: a calls itself: a calls b calls a",
        ),
        (
            "steps: [{set: {list: 1}}, {for_each: lst, as: list, steps: [get: /]}]",
            "3: steps[1].for_each: no variable is called \"lst\"; did you mean \"list\"?",
        ),
        ("steps: [get: '/${randm(1, 2)}']", "3: steps[0].get: unknown function randm(); did you mean random()?"),
        (
            "vars: {a: '${b}', b: '${a}'}\nsteps: [get: '/${a}']",
            "4: steps[0].get: vars a and b use each other (a -> b -> a)",
        ),
        (
            "vars: {a: 1}\nsteps: [{get: /, capture: {a: status}}]",
            "4: steps[0].capture.a: \"a\" is one of vars, which are constant; choose another name",
        ),
        (
            "steps: [get: '/${env.HOLDUP_NOT_SET}']",
            "3: steps[0].get: the environment variable HOLDUP_NOT_SET is not set; set it, or give a default: env.HOLDUP_NOT_SET:-text",
        ),
        // Conditions, captures and values.
        (
            "steps: [{get: /, check: statsu == 200}]",
            "3: steps[0].check: unknown name \"statsu\"; did you mean \"status\"?",
        ),
        (
            "steps: [{get: /, check: [status == 200, status = 200]}]",
            "3: steps[0].check[1]: expected one of == != < <= > >= contains matches in exists, found \"=\"; write ==",
        ),
        (
            "steps: [{if: status == 200, steps: [get: /]}]",
            "3: steps[0].if: status is known only in a check of an HTTP response",
        ),
        (
            "steps: [{get: /, capture: {t: json token}}]",
            "3: steps[0].capture.t: the JSON pointer 'token' does not begin with '/'; write '/token'",
        ),
        (
            "steps: [{get: /, capture: {t: column id}}]",
            "3: steps[0].capture.t: only a statement's result has columns and rows; use json, regex, header, cookie, status or body",
        ),
        (
            "steps: [{think: 3s..1s}, {get: /}]",
            "3: steps[0].think: the first duration of \"3s..1s\" is longer than the second; swap them",
        ),
        (
            "steps: [{get: /, on_failure: stopp}]",
            "3: steps[0].on_failure: unknown on_failure \"stopp\"; there are: go_on, end_session, stop",
        ),
        (
            "steps: [{get: /, body: a, form: {b: c}}]",
            "3: steps[0].form: body, json, form and body_file exclude each other; keep one",
        ),
        (
            "steps: [{switch: k, cases: {}}, {set: {k: 1}}]",
            "3: steps[0].cases: there must be at least one case, e.g. book: [{get: /book}]",
        ),
        (
            "steps: [{switch: '${uuid()}', cases: {a: [get: /]}}]",
            "3: steps[0].switch: a switch needs a variable or a feeder's column, e.g. switch: kind; set one before",
        ),
        // Files.
        (
            "feeders: {f: {csv: nowhere.csv}}\nsteps: [get: /]",
            "3: feeders.f.csv: nowhere.csv: No such file or directory (os error 2)",
        ),
        ("include: nowhere.yaml", "3: include: nowhere.yaml: No such file or directory (os error 2)"),
        // What the other kind of target takes.
        (
            "steps: [{query: 'SELECT 1', capture: {t: json /a}}]",
            "3: steps[0].capture.t: a statement's result has only rows and columns; use column NAME or rows",
        ),
        (
            "steps: [{query: SELECT 1}, {get: /}]",
            "3: steps[1].get: the target is a database; send statements instead: query: SELECT ...",
        ),
    ] {
        assert_eq!(answer(rest), format!("s.yaml:{expected}"), "{rest}");
    }
    assert_eq!(
        answer_of("http://h", "operations: [{query: SELECT 1}]"),
        "s.yaml:3: operations[0].query: statements need a database as target: mysql://user@host/database or postgres://user@host/database"
    );
}

#[test]
fn names_of_cases_and_of_defined_steps_are_no_keys() {
    // `json`, `set` and `capture` would be keys elsewhere, and what is in them is captured all the same.
    let text = "target: http://h\nload: {rate: 5, duration: 1s}\n\
                define: {capture: [{get: /a, capture: {x: status}}]}\n\
                steps:\n\
                - call: capture\n\
                - switch: x\n  cases: {set: [{get: /b, capture: {y: status}}], '20\"0': [get: '/${y}'], 200: []}\n  else: [get: /c]\n\
                - get: '/${y}'\n";
    let scenario = Scenario::parse(text, "s.yaml").unwrap();
    let names: Vec<&str> = scenario.operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["/a", "/b", "/{}", "/c"]);
    let script = &scenario.sessions.unwrap().script;
    let unless: Vec<u32> =
        script.flows[0].ops.iter().filter_map(|op| if let Op::Unless(_, to) = op { Some(*to) } else { None }).collect();
    // Request, three cases with a jump each (one of them empty), the other request, and what follows.
    assert_eq!((unless, script.flows[0].ops.len()), (vec![4, 7, 9], 11));
}

#[test]
fn few_words_that_are_many_steps_are_refused() {
    let defines: String =
        (0..9).map(|i| format!("  a{i}: [{}]\n", vec![format!("call: a{}", i + 1); 10].join(", "))).collect();
    let rest = format!("define:\n{defines}  a9: [get: /]\nsteps: [call: a0]");
    let error = answer(&rest);
    assert!(error.contains("more than 100000 steps in total, counting each call of a define"), "{error}");
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let error = answer("include: /dev/zero\nsteps: [get: /]");
    assert_eq!(error, "s.yaml:3: include: /dev/zero: it is a device, not a regular file; copy it into one");
}

#[test]
fn variables_may_set_target_and_rate() {
    let text = "
vars: {rate: 70, host: 127.0.0.1}
target: http://${host}:8080
load: {rate: \"${rate}\", duration: '${env.HOLDUP_NO_SUCH:-3s}'}
name: at-${rate}
steps: [{get: /}]
";
    let scenario = Scenario::parse(text, "s.yaml").unwrap();
    assert_eq!((scenario.name.as_str(), scenario.target.url().as_str()), ("at-70", "http://127.0.0.1:8080"));
    assert_eq!((scenario.load.length().as_secs(), scenario.load.phase_names()), (3, vec!["70/s".to_owned()]));
    let inputs = Inputs { target: Some("http://localhost:1".to_owned()), luck: 9, ..Inputs::default() };
    let scenario = Scenario::read(text, "s.yaml", &inputs).unwrap();
    assert_eq!(scenario.target.url(), "http://localhost:1");
    let recorded = scenario.text.unwrap();
    assert!(recorded.contains("# --target http://localhost:1\n"), "{recorded}");
    let wrong = text.replace("${rate}\"", "${random(1, 9)}\"");
    let error = Scenario::parse(&wrong, "s.yaml").unwrap_err().to_string();
    assert!(error.starts_with("s.yaml:4: load.rate: \"${random(1, 9)}\" is not known before the run"), "{error}");
}

#[test]
fn luck_is_the_scenarios_or_what_is_given_and_is_written_down() {
    let text = "target: http://h\nload: {rate: 1, duration: 1s}\nsteps: [{get: '/${uuid()}'}]\n";
    let inputs = Inputs { luck: 9, ..Inputs::default() };
    let of = |text: &str| {
        let scenario = Scenario::read(text, "s.yaml", &inputs).unwrap();
        (scenario.sessions.unwrap().script.seed, scenario.text.unwrap())
    };
    let (seed, recorded) = of(text);
    assert!(seed == 9 && recorded.contains("# seed: 9, because none was given"), "{recorded}");
    let (seed, recorded) = of(&format!("seed: 7\n{text}"));
    assert!(seed == 7 && !recorded.contains("nothing else"), "{recorded}");
}

#[test]
fn an_objective_is_for_what_is_part_of_the_load() {
    let text = "
target: http://h
load: {rate: 1, duration: 1s}
setup: [{name: seed, post: /seed}]
steps: [{name: buy, get: /buy}]
thresholds: [seed p99 < 1s]
";
    let error = Scenario::parse(text, "s.yaml").unwrap_err().to_string();
    assert!(error.contains("s.yaml:6") && error.contains("buy"), "{error}");
}

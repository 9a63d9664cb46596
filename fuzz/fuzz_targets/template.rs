//! A text of anybody as a template and as a condition, filled in from a small context in which a variable is that text
//! again, so that `template()` can expand it. It is refused or it ends, in bounded memory; what fails leaves the bytes
//! before it alone; what is said of it holds no secret.
#![no_main]

use std::sync::LazyLock;

use holdup_load::script::{
    Condition, Context, Feeder, Names, Random, Response, StepFailure, Subjects, Template, TemplateError, Value,
};
use libfuzzer_sys::fuzz_target;

/// What functions may make in all, 4 MiB, as often as the bytes that hold it may grow at once.
const MADE_BYTES: usize = 8 << 20;
const SECRET: &str = "hunter2";

struct World {
    names: Names,
    accounts: Feeder,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let row = r#"{"email": "a@example.org", "First Name": "Ann"}"#;
    let accounts = Feeder::jsonl(row.into(), "scenario.yaml").expect("rows");
    let mut names = Names::default();
    for name in ["text", "lines", "none", "tries"] {
        names.variable(name);
    }
    for (name, text) in [
        ("tries", "0"),
        ("base", "/a${tenant}"),
        ("tenant", "${upper(text)}"),
        ("login", "u:${secret.KEY}"),
        ("a", "${b}"),
        ("b", "${a}"),
    ] {
        names.text(name, text);
    }
    names.feeder("accounts", accounts.columns().to_vec());
    names.feeder("words", vec!["value".to_owned()]);
    names.outside("secret.KEY", SECRET);
    names.outside("env.STAGE", "blue");
    World { names, accounts }
});

fn told(error: &TemplateError, text: &str) {
    assert!(error.at <= text.len());
    assert!(!error.message.is_empty() && (text.contains(SECRET) || !format!("{error:?}").contains(SECRET)));
}

fn render(text: &str, ctx: &mut Context<'_>) {
    let template = match Template::parse(text, &WORLD.names) {
        Ok(template) => template,
        Err(error) => return told(&error, text),
    };
    let mut out = b"before".to_vec();
    let result = template.render(ctx, &mut out);
    assert!(out.starts_with(b"before") && std::str::from_utf8(&out).is_ok());
    assert!(out.len() <= 6 + MADE_BYTES + text.len() * text.len().max(64));
    assert!(matches!(result, Ok(()) | Err(StepFailure::Template)));
    assert!(result.is_ok() || out == b"before");
    if let Some(constant) = template.constant() {
        assert_eq!(&out[6..], constant.as_bytes());
    }
    assert!(template.feeders().is_sorted());
    assert!(text.contains(SECRET) || !format!("{template:?}").contains(SECRET));
}

fn judge(text: &str, ctx: &mut Context<'_>) {
    let fields: [(&[u8], &[u8]); 2] = [(b"content-type", b"text/plain"), (b"set-cookie", b"sid=1")];
    let columns: [(&str, Option<&[u8]>); 2] = [("id", Some(b"7")), ("none", None)];
    let body = text.as_bytes();
    let response = Response {
        status: 200,
        fields: &fields,
        body,
        body_is_cut: body.len() % 2 == 1,
        body_bytes: body.len() as u64,
        rows: 1,
        columns: &columns,
    };
    for (subjects, response) in
        [(Subjects::None, None), (Subjects::Http, Some(&response)), (Subjects::Sql, Some(&response))]
    {
        match Condition::parse(text, &WORLD.names, subjects) {
            Ok(condition) => {
                let result = condition.holds(ctx, response);
                assert!(matches!(result, Ok(_) | Err(StepFailure::Template | StepFailure::BadJson)));
                assert!(condition.needs().body || !matches!(result, Err(StepFailure::BadJson)));
            }
            Err(error) => told(&error, text),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines = Value::List(text.lines().map(Box::from).collect());
    let values = [Value::from(text), lines, Value::None, Value::None];
    let rows = [WORLD.accounts.row(0), None];
    let mut random = Random::new(bytes.len() as u64);
    let mut ctx = Context {
        values: &values,
        rows: &rows,
        random: &mut random,
        now_unix_ns: 1_769_849_377_250_000_000,
        number: 7,
        session: 3,
    };
    render(text, &mut ctx);
    judge(text, &mut ctx);
});

//! For tests: names of every kind, with values.

use crate::script::{Context, Feeder, Names, Random, StepFailure, Template, TemplateError, Value};

pub(crate) const SECRET: &str = "hunter2";

pub(crate) struct World {
    pub(crate) names: Names,
    pub(crate) values: Vec<Value>,
    feeder: Feeder,
    random: Random,
}

impl World {
    /// `nothing` and `tries` have no value, `ids` is a list, and no row of `words` was drawn.
    pub(crate) fn new() -> Self {
        let mut names = Names::default();
        for name in ["token", "user-id", "ids", "nothing", "tries", "again", "größe"] {
            names.variable(name);
        }
        for (name, text) in [
            ("tenant", "acme"),
            ("base", "/api/${tenant}"),
            ("tries", "0"),
            ("claims", r#"{"sub":"${user-id}"}"#),
            ("login", "user:${secret.PASSWORD}"),
            ("alias", "${ids}"),
        ] {
            names.text(name, text);
        }
        let row = r#"{"email": "a@example.org", "First Name": "Ann"}"#;
        let feeder = Feeder::jsonl(row.into(), "scenario.yaml").expect("rows");
        names.feeder("accounts", feeder.columns().to_vec());
        names.feeder("words", vec!["value".to_owned()]);
        names.outside("secret.PASSWORD", SECRET);
        names.outside("env.STAGE", "blue");
        names.outside("env.EMPTY", "");
        let ids = Value::List(["a", "b\"", "ü"].map(Box::from).into());
        let again = Value::from("${template(again)}");
        let values = vec!["t0k".into(), "1".into(), ids, Value::None, Value::None, again, "L".into()];
        Self { names, values, feeder, random: Random::new(1) }
    }

    pub(crate) fn parse(&self, text: &str) -> Result<Template, TemplateError> {
        Template::parse(text, &self.names)
    }

    /// At 2026-01-31T08:49:37.250Z, in request 7 of session 3.
    pub(crate) fn with<T>(&mut self, work: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let rows = [self.feeder.row(0), None];
        work(&mut Context {
            values: &self.values,
            rows: &rows,
            random: &mut self.random,
            now_unix_ns: 1_769_849_377_250_000_000,
            number: 7,
            session: 3,
        })
    }

    /// Parses and renders; the bytes before have to stay.
    pub(crate) fn render(&mut self, text: &str) -> Result<String, StepFailure> {
        let template = self.parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut out = b"before ".to_vec();
        let result = self.with(|ctx| template.render(ctx, &mut out));
        let rendered = String::from_utf8(out).expect("text").strip_prefix("before ").expect("kept").to_owned();
        assert!(result.is_ok() || rendered.is_empty(), "{text}: {rendered}");
        result.map(|()| rendered)
    }

    /// The error of a template.
    pub(crate) fn slip(&self, text: &str) -> TemplateError {
        match self.parse(text) {
            Ok(_) => panic!("{text} was parsed"),
            Err(error) => error,
        }
    }
}

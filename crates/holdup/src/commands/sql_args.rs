//! The flags of the quick form that say which statement to put on a database as load. What they mean is the library's: a
//! scenario is made of them and read as any other.

use holdup_load::scenario::{self, Given, Scenario, Target};

use super::given::value;
use super::load_args::LoadArgs;
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(next_help_heading = "Which statement")]
pub struct SqlArgs {
    /// Statement of the quick form, with ? for each --param; may contain templates
    #[arg(long, value_name = "SQL", requires = "url", value_parser = value)]
    query: Option<String>,

    /// Value of the statement's next ?; repeatable; a template, e.g. '${random(1, 5000)}'
    #[arg(long = "param", value_name = "VALUE", requires = "query", allow_hyphen_values = true, value_parser = value)]
    params: Vec<String>,
}

impl SqlArgs {
    /// # Errors
    /// If there is a statement although the target is no database.
    pub fn check_none(&self) -> Result<(), Failure> {
        match self.query {
            None => Ok(()),
            Some(_) => Err(Failure::Unusable(
                "--query is for a database; use --url mysql://USER@HOST/DATABASE or postgres://USER@HOST/DATABASE"
                    .to_owned(),
            )),
        }
    }

    /// The scenario of the quick form.
    ///
    /// # Errors
    /// If there is no statement, or something else is wrong with what was given.
    pub fn scenario(&self, target: Target, load: &LoadArgs, connections: Option<u32>) -> Result<Scenario, Failure> {
        let query = self
            .query
            .as_deref()
            .ok_or_else(|| Failure::Unusable("say what to execute there: --query 'SELECT 1'".to_owned()))?;
        if load.is_replay() {
            return Err(Failure::Unusable(
                "--replay: a log holds requests, and a database takes statements".to_owned(),
            ));
        }
        let demand = load.demand(connections)?;
        // JSON's way of writing a text is one of YAML's.
        let params = match &self.params[..] {
            [] => String::new(),
            params => format!("\n    params: {}", serde_json::Value::from(params)),
        };
        let operation = format!("operations:\n  - query: {}{params}\n", serde_json::Value::from(query));
        let scheme = if target.url().starts_with("mysql") { "mysql" } else { "postgres" };
        let read = format!("target: {scheme}://user@host\n{}{operation}", demand.text);
        let given = Given { share: load.share(), ..Given::default() };
        let scenario = Scenario::read(&read, "the quick form", &given).map_err(Failure::unusable)?;
        let tls = if target.tls { "?tls=on" } else { "" };
        Ok(Scenario {
            text: Some(scenario::kept(&format!("target: {}{tls}\n{}{operation}", target.url(), demand.text))),
            target,
            load: demand.load,
            search: demand.search,
            ..scenario
        })
    }
}

//! The quick form's flags that name the statement to send to a database. They become the text of a
//! scenario, which is read like any other.

use holdup_load::scenario::{self, Inputs, Scenario, Target};

use super::load_args::LoadArgs;
use crate::failure::Failure;
use crate::secret_values::value;

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
    /// If there is a statement although the target is not a database.
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
    /// If the statement is missing, or a flag is wrong.
    pub fn scenario(&self, target: Target, load: &LoadArgs, connections: Option<u32>) -> Result<Scenario, Failure> {
        let query = self
            .query
            .as_deref()
            .ok_or_else(|| Failure::Unusable("no statement to execute: add --query 'SELECT 1'".to_owned()))?;
        if load.is_replay() {
            return Err(Failure::Unusable(
                "--replay: an access log holds HTTP requests, not statements; use holdup replay for a database's log"
                    .to_owned(),
            ));
        }
        let demand = load.demand(connections)?;
        // A JSON string is also a YAML string.
        let params = match &self.params[..] {
            [] => String::new(),
            params => format!("\n    params: {}", serde_json::Value::from(params)),
        };
        let operation = format!("operations:\n  - query: {}{params}\n", serde_json::Value::from(query));
        let scheme = if target.url().starts_with("mysql") { "mysql" } else { "postgres" };
        let read = format!("target: {scheme}://user@host\n{}{operation}", demand.text);
        let given = Inputs { share: load.share(), ..Inputs::default() };
        let scenario = Scenario::read(&read, "the quick form", &given).map_err(Failure::unusable)?;
        let tls = if target.tls { "?tls=on" } else { "" };
        Ok(Scenario {
            text: Some(scenario::mask(&format!("target: {}{tls}\n{}{operation}", target.url(), demand.text))),
            target,
            load: demand.load,
            search: demand.search,
            ..scenario
        })
    }
}

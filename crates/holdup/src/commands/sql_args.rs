//! The quick form's flags that name the statement to send to a database. They become the text of a
//! scenario, which is read like any other.

use holdup_load::scenario::{self, Inputs, Scenario, Target};
use holdup_protocol::database::Dialect;

use super::load_args::LoadArgs;
use crate::failure::Failure;
use crate::secret_values::value;

#[derive(clap::Args)]
#[command(next_help_heading = "Which statement")]
pub struct SqlArgs {
    /// Statement with ? for each --param, or MongoDB's command as JSON; may contain templates
    #[arg(long, value_name = "SQL|JSON", requires = "url", value_parser = value)]
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
                "--query is for a database; use --url mysql://USER@HOST/DATABASE, postgres://… or mongodb://HOST/DATABASE"
                    .to_owned(),
            )),
        }
    }

    /// The scenario of the quick form.
    ///
    /// # Errors
    /// If the statement is missing, or a flag is wrong.
    pub fn scenario(&self, target: Target, load: &LoadArgs, connections: Option<u32>) -> Result<Scenario, Failure> {
        let Some(address) = target.sql.as_deref() else {
            return self.check_none().and(Err(Failure::Unusable("--url: expected a database".to_owned())));
        };
        let operation = self.operation(address.dialect)?;
        if load.is_replay() {
            return Err(Failure::Unusable(
                "--replay: an access log holds HTTP requests, not statements; use holdup replay for a database's log"
                    .to_owned(),
            ));
        }
        let demand = load.demand(connections)?;
        // The mistakes of the operation do not depend on the server.
        let stand_in = match (address.dialect, &address.database) {
            (Dialect::Mysql, _) => "mysql://user@host",
            (Dialect::Postgres, _) => "postgres://user@host",
            (Dialect::Mongodb, Some(_)) => "mongodb://host/database",
            (Dialect::Mongodb, None) => "mongodb://host",
        };
        let read = format!("target: {stand_in}\n{}{operation}", demand.text);
        let given = Inputs { share: load.share(), ..Inputs::default() };
        let scenario = Scenario::read(&read, "the quick form", &given).map_err(Failure::unusable)?;
        Ok(Scenario {
            text: Some(scenario::mask(&format!(
                "target: {}{}\n{}{operation}",
                target.url(),
                address.options(),
                demand.text
            ))),
            target,
            load: demand.load,
            search: demand.search,
            ..scenario
        })
    }

    /// The operation as the text of a scenario.
    fn operation(&self, dialect: Dialect) -> Result<String, Failure> {
        let unusable = |why: &str| Err(Failure::Unusable(why.to_owned()));
        match (dialect, self.query.as_deref()) {
            (Dialect::Mongodb, None) => {
                unusable("no command to execute: add --query '{\"find\": \"orders\", \"filter\": {}, \"limit\": 1}'")
            }
            (_, None) => unusable("no statement to execute: add --query 'SELECT 1'"),
            (Dialect::Mongodb, Some(_)) if !self.params.is_empty() => {
                unusable("--param is for the ? of a statement; write ${...} into the command's values")
            }
            (Dialect::Mongodb, Some(command)) => {
                // In JSON a line break has no meaning, and in YAML it has.
                let command = command.trim().replace(['\n', '\r'], " ");
                if !command.starts_with('{') {
                    return unusable("--query: MongoDB takes a command as JSON, e.g. '{\"ping\": 1}'");
                }
                Ok(format!("operations:\n  - command: {command}\n"))
            }
            (Dialect::Mysql | Dialect::Postgres, Some(query)) => {
                // A JSON string is also a YAML string.
                let params = match &self.params[..] {
                    [] => String::new(),
                    params => format!("\n    params: {}", serde_json::Value::from(params)),
                };
                Ok(format!("operations:\n  - query: {}{params}\n", serde_json::Value::from(query)))
            }
        }
    }
}

//! `describe-db-parameters` and `describe-pending-maintenance-actions`: the settings of an instance
//! that Amazon keeps.

use serde_json::Value;

use super::element::Element;
use super::{Aws, MOST_DESCRIBED};

/// Letters of a value.
const VALUE_LETTERS: usize = 300;

/// The parameter that rules read by the server's own name. A formula is a value, too.
const LIMIT: &str = "max_connections";

/// One of `Parameters`. Those that are as the engine comes say nothing of this instance.
pub(super) fn parameter(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let Some(name) = element.text("ParameterName") else {
        return Err("one of Parameters has no ParameterName; save the whole output of aws rds describe-db-parameters"
            .to_owned());
    };
    let Some(value) = element.text("ParameterValue") else { return Ok(()) };
    if name != LIMIT && element.text("Source") == Some("engine-default") {
        return Ok(());
    }
    if aws.parameters.len() >= MOST_DESCRIBED {
        return Err(format!("there are more than {MOST_DESCRIBED} parameters"));
    }
    let name: String = name.chars().take(100).collect();
    let name = if name == LIMIT { name } else { format!("parameter.{name}") };
    aws.parameters.insert(name, value.chars().take(VALUE_LETTERS).collect());
    Ok(())
}

/// One of `PendingMaintenanceActions`: the actions of one instance, in words.
pub(super) fn maintenance(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let resource = element.text("ResourceIdentifier").unwrap_or_default();
    let name = resource.rsplit(':').next().unwrap_or_default();
    let details = element.facts.get("PendingMaintenanceActionDetails").and_then(Value::as_array);
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for action in details.into_iter().flatten() {
        let when = ["CurrentApplyDate", "AutoAppliedAfterDate", "ForcedApplyDate"];
        let when = when.iter().map(|key| text(action, key)).find(|when| !when.is_empty());
        let when = when.map_or_else(String::new, |when| format!(", due {when}"));
        let words = format!("{}{when}: {}", text(action, "Action"), text(action, "Description"));
        if aws.parameters.len() >= MOST_DESCRIBED {
            return Err(format!("there are more than {MOST_DESCRIBED} pending actions"));
        }
        let key = format!("maintenance.{}.{}", name.chars().take(100).collect::<String>(), text(action, "Action"));
        aws.parameters.insert(key, words.chars().take(VALUE_LETTERS).collect());
    }
    Ok(())
}

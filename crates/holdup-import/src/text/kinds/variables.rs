//! `SHOW GLOBAL STATUS` and `SHOW GLOBAL VARIABLES`, in every form that clients print. The server
//! writes status variables with a capital, settings in lower case. Names of Galera occur in both:
//! for them the command decides.

use holdup_recording::secret::settings::is_secret_in_mysql;
use holdup_recording::{Labels, metrics};

use super::super::context::Context;
use super::super::number::number;
use super::super::paste::Line;
use super::super::result_set;
use super::Kind;
use super::processlist::SOURCE;

pub(super) const KIND: Kind = Kind { name: "SHOW STATUS or VARIABLES", recognises, read };

fn recognises(lines: &[Line]) -> bool {
    result_set::header(lines).is_some_and(|columns| {
        let is = |at: usize, name: &str| columns.get(at).is_some_and(|column| column.eq_ignore_ascii_case(name));
        columns.len() == 2
            && is(0, "Variable_name")
            && (is(1, "Value") || columns.get(1).is_some_and(|name| name.ends_with("VALUE")))
    })
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("SHOW STATUS or VARIABLES");
    let has_status = context.words().any(|word| word.to_ascii_lowercase().starts_with("status"));
    for row in &set.rows {
        let Some(Some(name)) = row.first() else { continue };
        let value = row.get(1).cloned().flatten().unwrap_or_default();
        let is_status = name.starts_with(|c: char| c.is_ascii_uppercase()) || name.starts_with("wsrep_") && has_status;
        let name = name.to_ascii_lowercase();
        if is_status {
            if let Some(value) = number(&value) {
                let metric = metrics::mysql::GLOBAL_STATUS.member(&name);
                context.out.gauge(at, SOURCE, metric.as_str(), Labels::none(), value);
            }
        } else if !is_secret_in_mysql(&name) {
            context.out.setting(at, SOURCE, name, value);
        }
    }
    set.used
}

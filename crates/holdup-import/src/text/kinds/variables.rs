//! `SHOW GLOBAL STATUS` and `SHOW GLOBAL VARIABLES`, in every form that clients print. The server
//! writes status variables with a capital, settings in lower case. Names of Galera occur in both:
//! for them the command decides.

use holdup_recording::secret::settings::is_secret_in_mysql;
use holdup_recording::{Labels, metrics};

use super::processlist::SOURCE;
use super::{Columns, Context, Kind, Table, number};

pub(super) const KIND: Kind = Kind::table("SHOW STATUS or VARIABLES", recognises, read);

fn recognises(columns: &Columns<'_>) -> bool {
    columns.len() == 2
        && columns.place(&["Variable_name"]) == Some(0)
        && (columns.place(&["Value"]) == Some(1) || columns.names[1].ends_with("VALUE"))
}

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of("SHOW STATUS or VARIABLES");
    let has_status = context.words().any(|word| word.to_ascii_lowercase().starts_with("status"));
    for row in table.rows() {
        let mut cells = row.cells().map(|(_, cell)| cell);
        let Some(name) = cells.next().flatten() else { continue };
        let value = cells.next().flatten().unwrap_or_default();
        let is_status = name.starts_with(|c: char| c.is_ascii_uppercase()) || name.starts_with("wsrep_") && has_status;
        let name = name.to_ascii_lowercase();
        if is_status {
            if let Some(value) = number(value) {
                let metric = metrics::mysql::GLOBAL_STATUS.member(&name);
                context.out.gauge(at, SOURCE, metric.as_str(), Labels::none(), value);
            }
        } else if !is_secret_in_mysql(&name) {
            context.out.setting(at, SOURCE, name, value);
        }
    }
}

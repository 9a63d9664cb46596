//! The flags that say how to read a database's log if the log itself does not show it. Every
//! command that reads logs has them.

use holdup_logs::digest::Dialect;
use holdup_logs::digest::format::Format;
use holdup_logs::digest::run::Options;

#[derive(clap::Args)]
pub struct LogArgs {
    /// Kind of log, if its first lines do not show it
    #[arg(long = "type", value_name = "TYPE", value_parser = Format::named)]
    pub format: Option<Format>,

    /// PostgreSQL's log_line_prefix, if the log does not show it
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,

    /// MySQL's sql_mode: ansi_quotes, no_backslash_escapes, or both with a comma
    #[arg(long, value_name = "MODES", value_parser = sql_mode)]
    pub sql_mode: Option<Dialect>,

    /// Memory for statements; beyond it the least slow ones are summed up together
    ///
    /// The others keep exact figures. Files are then read once more, so that the slowest statements
    /// have room.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = holdup_load::scenario::parse_bytes)]
    pub max_memory: u64,
}

impl LogArgs {
    /// How to read the logs: what these flags say, and the defaults.
    pub fn options(&self) -> Options {
        Options {
            format: self.format,
            dialect: self.sql_mode,
            prefix: self.prefix.clone(),
            most_bytes: Some(self.max_memory),
            ..Options::default()
        }
    }
}

/// The dialect of a server with these modes; its other modes make no difference here.
fn sql_mode(text: &str) -> Result<Dialect, String> {
    let has = |name: &str| text.split(',').any(|mode| mode.trim().eq_ignore_ascii_case(name));
    match (has("ansi_quotes") || has("ansi"), has("no_backslash_escapes")) {
        (true, true) => Ok(Dialect::MySqlAnsiQuotesNoBackslashEscapes),
        (true, false) => Ok(Dialect::MySqlAnsiQuotes),
        (false, true) => Ok(Dialect::MySqlNoBackslashEscapes),
        (false, false) => Ok(Dialect::MySql),
    }
}

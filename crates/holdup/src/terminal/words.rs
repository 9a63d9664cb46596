//! Words for the names that the recording gives to metrics, columns and parts of the time. Programs read those names,
//! and JSON has them; a screen shows what they stand for.

use holdup_recording::{metrics, tables};

/// A part of the time: `connection_pool_wait` is a connection pool wait, `app_cpu` the app CPU.
pub fn part(name: &str) -> String {
    name.replace('_', " ").replace(" cpu", " CPU")
}

/// `text` with words in place of names of metrics (`samples of system_cpu_time_seconds_total`) and columns
/// (`statements.no_index`).
pub fn told(text: &str) -> String {
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn word(word: &str) -> String {
    let name = word.trim_matches(['(', ')', ',', ';', ':']);
    metric(name).or_else(|| column(name)).map_or_else(|| word.to_owned(), |told| word.replace(name, &told))
}

fn metric(name: &str) -> Option<String> {
    if let Some(metric) = metrics::all().find(|metric| metric.name == name) {
        let sentence = metric.description.split(['.', ',', ';', '(']).next().unwrap_or_default();
        let mut letters = sentence.trim().chars();
        let first = letters.next()?;
        // A word in capitals, CPU, stays as it is.
        let keeps = letters.as_str().starts_with(char::is_uppercase);
        let first = if keeps { first.to_string() } else { first.to_lowercase().to_string() };
        return Some(first + letters.as_str());
    }
    let families = metrics::SOURCES.iter().flat_map(|source| source.families);
    let rest = families.filter(|family| !family.prefix.is_empty());
    let (rest, source) = rest.filter_map(|family| Some((name.strip_prefix(family.prefix)?, family.source))).next()?;
    Some(format!("\"{}\" of {source}", part(rest)))
}

fn column(name: &str) -> Option<String> {
    let (table, column) = name.split_once('.')?;
    let (_, columns) = tables::schema().into_iter().find(|(known, _)| *known == table)?;
    columns.iter().any(|known| known.name == column).then(|| format!("\"{}\" of {table}", part(column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_recording_become_words_and_other_words_stay() {
        assert_eq!(part("connection_pool_wait"), "connection pool wait");
        assert_eq!(part("app_cpu"), "app CPU");
        assert_eq!(told("statements.no_index"), "\"no index\" of statements");
        assert_eq!(told("samples of mysql_global_status_connections"), "samples of attempts to connect");
        assert_eq!(told("mysql_global_status_no_such"), "\"no such\" of mysql");
        let overflows = told("overflows of accept queues (samples of tcp_listen_overflows_total)");
        assert!(
            overflows.starts_with("overflows of accept queues (samples of ") && !overflows.contains('_'),
            "{overflows}"
        );
        for same in ["pauses of the app's runtime: of its collector", "setting thread_pool_size as a number", "a.b, c"]
        {
            assert_eq!(told(same), same);
        }
    }
}

//! The questions to `holdup capacity`: the values to measure, and the load to plan for.

use holdup_compare::capacity::{Demand, Load};

/// Default share of its knee that an instance keeps free.
const HEADROOM: &str = "30%";

/// A setting and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// The name of the setting that varies.
    pub axis: String,
    /// Its values, as they were typed and as numbers.
    pub values: Vec<(String, f64)>,
}

/// Parses `cpu=1,2,4`.
pub fn vary(text: &str) -> Result<Vary, String> {
    let (axis, list) = text.split_once('=').ok_or("expected NAME=VALUE,VALUE, e.g. cpu=1,2,4")?;
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if axis.is_empty() || !axis.chars().all(is_fine) {
        return Err("a name has only letters, digits, `-` and `_`, e.g. workers=2,4".to_owned());
    }
    let mut values: Vec<(String, f64)> = Vec::new();
    for text in list.split(',').map(str::trim) {
        match text.parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() && values.iter().all(|(_, known)| *known != value) => {
                values.push((text.to_owned(), value));
            }
            Ok(value) if value > 0.0 && value.is_finite() => return Err(format!("{text} occurs twice")),
            _ => return Err(format!("{text:?} is not a number above 0, e.g. {axis}=1,2,4")),
        }
    }
    Ok(Vary { axis: axis.to_owned(), values })
}

#[derive(clap::Args)]
#[command(next_help_heading = "What is planned for")]
pub struct DemandArgs {
    /// Plan for this rate: requests per second, or multiples of the smallest value's knee (3x)
    #[arg(long, value_name = "RATE", value_parser = load)]
    for_rate: Option<Load>,

    /// Share of its knee that each instance keeps free
    #[arg(long, value_name = "PERCENT", default_value = HEADROOM, value_parser = headroom)]
    headroom: f64,

    /// Database connections that an instance opens [default: its pool's maximum, or the most that were open]
    #[arg(long, value_name = "N", requires = "for_rate", value_parser = count)]
    connections_per_instance: Option<f64>,

    /// Database connections there may be [default: max_connections of a watched database, less those kept for superusers]
    #[arg(long, value_name = "N", requires = "for_rate", value_parser = count)]
    connection_budget: Option<f64>,
}

impl DemandArgs {
    /// The load to plan for, if one was given.
    pub fn demand(&self) -> Option<Demand> {
        Some(Demand {
            load: self.for_rate?,
            headroom: self.headroom,
            connections_per_instance: self.connections_per_instance,
            connection_budget: self.connection_budget,
        })
    }
}

fn load(text: &str) -> Result<Load, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    let times = text.strip_suffix('x').and_then(number).map(Load::Times);
    let load = times.or_else(|| number(text).map(Load::Rate));
    load.ok_or_else(|| "expected requests per second, e.g. 300, or a multiple of the knee, e.g. 3x".to_owned())
}

fn headroom(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=95.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "expected a share from 0% to 95%, e.g. 30%".to_owned())
}

fn count(text: &str) -> Result<f64, String> {
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.map(f64::from).ok_or_else(|| "expected a whole number from 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_as_they_were_typed() {
        let vary = vary("cpu=0.5,1, 2.0").unwrap();
        assert_eq!((vary.axis.as_str(), vary.values.len()), ("cpu", 3));
        assert_eq!(vary.values[2], ("2.0".to_owned(), 2.0));
        for (text, word) in
            [("cpu", "NAME=VALUE"), ("=1", "letters"), ("a=1,1.0", "twice"), ("a=0", "above 0"), ("a=", "above 0")]
        {
            let error = super::vary(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn loads_and_shares_are_read() {
        assert_eq!(
            (load("300"), load("3x"), load("2.5x")),
            (Ok(Load::Rate(300.0)), Ok(Load::Times(3.0)), Ok(Load::Times(2.5)))
        );
        assert!(load("x").is_err() && load("-3").is_err() && load("3y").is_err());
        assert_eq!((headroom("30%"), headroom("0")), (Ok(0.3), Ok(0.0)));
        assert!(headroom("100%").is_err() && count("0").is_err() && count("10") == Ok(10.0));
    }
}

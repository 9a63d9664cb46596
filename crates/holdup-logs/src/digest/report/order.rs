//! The order of queries in a report, as `--order` names it.

/// The order of queries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Time in total.
    #[default]
    TotalTime,
    /// Executions.
    Calls,
    /// Mean time.
    AverageTime,
    /// 95th percentile of the time.
    P95,
    /// Longest time.
    MaxTime,
    /// Sum of another attribute.
    Sum(String),
}

impl std::str::FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "total" => Self::TotalTime,
            "calls" => Self::Calls,
            "avg" => Self::AverageTime,
            "p95" => Self::P95,
            "max" => Self::MaxTime,
            _ if text.starts_with(|first: char| first.is_ascii_uppercase()) => Self::Sum(text.to_owned()),
            _ => {
                return Err(format!(
                    "{text} is unknown; use total, calls, avg, p95, max, or an attribute of the log such as Rows_examined"
                ));
            }
        })
    }
}

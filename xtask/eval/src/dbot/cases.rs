//! The set's files: a case a line, with labels, alerts, prose about its statements, and series that its authors filtered for
//! being unusual. The trigger's command and the story around a case are not read: they give the label away.

use std::fs;
use std::path::Path;

use crate::dbot::course_judge::{Alarm, Executed, Workload, alarm_of_alert, signal_of_metric};
use anyhow::{Context as _, Result, bail};
use holdup_signals::time::counters::{Frame, Signal};
use serde_json::Value;

use super::{labels, prose};

/// A case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name in the set.
    pub name: String,
    /// Its labels as they are written.
    pub labels: Vec<String>,
    /// For each label the causes it stands for.
    pub causes: Vec<Vec<&'static str>>,
    /// Its series.
    pub frame: Frame,
    /// What alerts fired.
    pub alarms: Vec<Alarm>,
    /// Its statements, if prose or slow queries show any.
    pub workload: Option<Workload>,
}

impl Case {
    /// Every cause that one of its labels stands for.
    pub fn right(&self) -> Vec<&'static str> {
        self.causes.iter().flatten().copied().collect()
    }
}

/// Every case of the folder's `.jsonl` files, in the order of their names.
pub fn read(folder: &Path) -> Result<Vec<Case>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("failed to read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            cases.push(case(line).with_context(|| format!("failed to read {} line {number}", file.display()))?);
        }
    }
    if cases.is_empty() {
        bail!("{} has no case; give the folder of cases_with_metrics.jsonl", folder.display());
    }
    Ok(cases)
}

fn case(line: &str) -> Result<Case> {
    let value: Value = serde_json::from_str(line).context("no JSON")?;
    let labels = [&value["labels_norm"], &value["labels"]]
        .into_iter()
        .find_map(|labels| labels.as_array().filter(|l| !l.is_empty()));
    let labels: Vec<String> =
        labels.into_iter().flatten().filter_map(|label| label.as_str().map(str::to_owned)).collect();
    let alerts = value["alerts"].as_array().into_iter().flatten();
    let mut executed = prose::statements(value["workload"].as_str().unwrap_or_default());
    slow_queries(&value["slow_queries"], &mut executed);
    Ok(Case {
        name: value["case"].as_str().context("a case needs a name in \"case\"")?.to_owned(),
        causes: labels.iter().map(|label| labels::causes(label)).collect(),
        labels,
        frame: frame(&value)?,
        alarms: alerts.filter_map(|alert| alarm_of_alert(alert["name"].as_str()?)).collect(),
        workload: Workload::of(&executed),
    })
}

/// Slow queries are texts, or objects with a text, in lists of any depth.
fn slow_queries(value: &Value, executed: &mut Vec<Executed>) {
    let mut add = |sql: &str| executed.push(Executed { sql: sql.to_owned(), sessions: None });
    match value {
        Value::String(sql) => add(sql),
        Value::Object(query) => query.get("sql").and_then(Value::as_str).into_iter().for_each(add),
        Value::Array(queries) => queries.iter().for_each(|query| slow_queries(query, executed)),
        _ => {}
    }
}

fn frame(value: &Value) -> Result<Frame> {
    let mut series: Vec<(Signal, Vec<f64>)> = Vec::new();
    for (name, values) in value["metrics"].as_object().into_iter().flatten() {
        let values = values.as_array().with_context(|| format!("{name} is no list"))?;
        // Two metrics may say the same; the first is taken.
        if let Some(signal) = signal(name).filter(|signal| series.iter().all(|(known, _)| known != signal)) {
            series.push((signal, values.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()));
        }
    }
    if series.is_empty() {
        // Such a case is judged by its statements.
        return Ok(Frame::default());
    }
    let rows = series.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let seconds = value["end"].as_f64().zip(value["start"].as_f64()).map(|(end, start)| end - start);
    let seconds = seconds.filter(|seconds| *seconds > 0.0).context("a case needs \"start\" and \"end\", s")?;
    #[expect(clippy::cast_precision_loss, reason = "counts of rows")]
    let mut frame = Frame::new(rows, seconds / (rows.max(2) - 1) as f64);
    for (signal, values) in series {
        frame.set(signal, values);
    }
    Ok(frame)
}

/// What a series is: its name is a folder, what was computed, and the metric, such as `io/irate(node_disk_reads_completed_total`.
fn signal(name: &str) -> Option<Signal> {
    let computed = name.split_once('/').map_or(name, |(_, computed)| computed);
    if computed.starts_with("1-(node_filesystem_free_bytes") {
        return Some(Signal::FilesystemUsed);
    }
    let metric = computed.rsplit('(').next()?;
    signal_of_metric(metric.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = r#"{"case":"a","start":100,"end":106,"labels_norm":["INSERT_LARGE_DATA","NEW_ONE"],"command":"--anomaly X",
            "alerts":[{"name":"NodeCpuHigh"},{"name":"Other"}],"workload":"`select 1`","slow_queries":[[{"sql":"DELETE FROM t"}]],
            "metrics":{"cpu/node_procs_running":[1,2,9],"io/irate(node_disk_read_bytes_total":[0,null],"io/1-(node_filesystem_free_bytes":[0.4]}}"#
            .replace('\n', " ");
        let case = super::case(&line).unwrap();
        assert_eq!((case.right(), case.alarms), (vec!["insert_large_data"], vec![Alarm::CpuHigh]));
        assert!((case.frame.period_s() - 3.0).abs() < 1e-9);
        assert_eq!(case.frame.get(Signal::RunQueue), Some(&[1.0, 2.0, 9.0][..]));
        assert!(case.frame.get(Signal::DiskReadBytes).unwrap()[1].is_nan());
        assert!(case.frame.get(Signal::FilesystemUsed).is_some());
        assert!(case.workload.unwrap().deletes_in_bulk());
        let bare = super::case(r#"{"case":"b","labels":["vacuum"],"workload":""}"#).unwrap();
        assert_eq!((bare.right(), bare.frame.rows(), bare.workload), (vec!["heavy_deletes"], 0, None));
    }
}

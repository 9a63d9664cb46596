//! Follows the server's log as it grows, if `?log=PATH` names it: each `Slow query` becomes an execution
//! with its plan and its waits, and what the server says of its own work becomes events. It keeps no
//! line and no value of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdup_mongodb::{LogLine, Message, logged};
use holdup_recording::{Batch, Coverage, Labels, clock};

use super::executions::{EXECUTIONS_MAX, Ended, add, is_own};
use crate::coverage::{Line as _, part};
use crate::log::follow::{Follow, Line};
use crate::reading::event;

/// Most events of one sample, besides connections, which are counted.
const EVENTS_MAX: usize = 500;

/// A log that is followed.
pub(super) struct Log {
    path: PathBuf,
    follow: Option<Follow>,
}

/// What one look found beside rows.
#[derive(Default)]
struct Look {
    executions: usize,
    left_out: u64,
    unread: u64,
    events: Vec<(i64, &'static str, String, Labels)>,
    connections: BTreeMap<&'static str, (i64, u64)>,
}

impl Log {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), follow: None }
    }

    /// Whether it can be read; its line of the coverage if not.
    pub(super) fn probe(&mut self, source: &str) -> Option<Coverage> {
        let error = self.skip_to_end().err()?;
        let enable =
            "run holdup on the server's machine, as a user who may read its log (systemLog.path in its configuration)";
        Some(part(source, "log").absent(format!("{}: {error}", self.path.display())).enable(enable))
    }

    fn skip_to_end(&mut self) -> std::io::Result<()> {
        let mut follow = Follow::new(self.path.clone());
        follow.begin(0, &mut |_, _| {})?;
        self.follow = Some(follow);
        Ok(())
    }

    /// Adds what was logged since the last call.
    pub(super) fn sample(&mut self, source: &str, batch: &mut Batch) -> std::io::Result<()> {
        let Some(follow) = &mut self.follow else { return self.skip_to_end() };
        let mut look = Look::default();
        let skipped = follow.look(&mut |_, line| match line {
            Line::Whole(line) => look.take(&String::from_utf8_lossy(line), source, batch),
            _ => look.unread += 1,
        })?;
        look.finish(skipped, source, batch);
        Ok(())
    }
}

impl Look {
    fn take(&mut self, line: &str, source: &str, batch: &mut Batch) {
        let Some(logged) = logged(line) else {
            self.unread += u64::from(!line.trim().is_empty());
            return;
        };
        let at = logged.at;
        match logged.line {
            LogLine::Slow(slow) if is_own(&slow) => {}
            LogLine::Slow(_) if self.executions >= EXECUTIONS_MAX => self.left_out += 1,
            LogLine::Slow(slow) => {
                self.executions += 1;
                add(*slow, &Ended { at, source, session_id: logged.connection }, batch);
            }
            LogLine::Message(message) => self.message(at, message),
            LogLine::Other => {}
        }
    }

    fn message(&mut self, at: i64, message: Message) {
        let (kind, text, labels) = match message {
            Message::Connected | Message::Disconnected => {
                let kind = if message == Message::Connected { "connections_accepted" } else { "connections_ended" };
                self.connections.entry(kind).or_insert((at, 0)).1 += 1;
                return;
            }
            Message::IndexBegun(collection) => index("index build begun", &collection, "begun"),
            Message::IndexDone(collection) => index("index built", &collection, "done"),
            Message::IndexScanned(ns) => {
                let labels =
                    Labels::new([("state", "scanned"), ("duration_ms", (ns / 1_000_000).to_string().as_str())]);
                ("index_build", format!("an index build read its collection in {} ms", ns / 1_000_000), labels)
            }
            Message::Checkpoint { seconds, megabytes, is_over } => {
                let state = if is_over { "done" } else { "running" };
                let labels = Labels::new([("state", state), ("total_ms", (seconds * 1_000).to_string().as_str())]);
                let words = if is_over { "ran" } else { "has been running" };
                ("checkpoint", format!("a checkpoint {words} for {seconds} s and wrote {megabytes} MB"), labels)
            }
            Message::FlowControl => (
                "flow_control",
                "flow control holds writes back, and the secondaries do not catch up".to_owned(),
                Labels::none(),
            ),
        };
        if self.events.len() < EVENTS_MAX {
            self.events.push((at, kind, text, labels));
        }
    }

    fn finish(self, skipped: u64, source: &str, batch: &mut Batch) {
        let now = clock::now_ns();
        let mut say = |at, kind, text: String, labels| batch.events.push(event(source, at, kind, text, labels));
        for (at, kind, text, labels) in self.events {
            say(at, kind, text, labels);
        }
        for (kind, (at, count)) in self.connections {
            let words = kind.replace('_', " ");
            say(at, kind, format!("{count} {words}"), Labels::new([("count", count.to_string().as_str())]));
        }
        if self.left_out > 0 {
            let text =
                format!("{} operations of the log were left out: more than {EXECUTIONS_MAX} at once", self.left_out);
            say(now, "sampled", text, Labels::none());
        }
        if self.unread > 0 {
            let text = format!("{} lines of the log could not be read", self.unread);
            say(now, "gap", text, Labels::none());
        }
        if skipped > 0 {
            let text = format!("{skipped} bytes of the log were skipped: it grows faster than holdup reads it");
            say(now, "gap", text, Labels::none());
        }
    }
}

fn index(words: &str, collection: &str, state: &str) -> (&'static str, String, Labels) {
    let labels = Labels::new([("state", state), ("collection", collection)]);
    ("index_build", format!("{words} on {collection}"), labels)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const SLOW: &str = r#"{"t":{"$date":"2026-11-26T10:05:23.411+00:00"},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn53","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","appName":"web","command":{"find":"orders","filter":{"status":"canary"},"$db":"shop"},"planSummary":"COLLSCAN","keysExamined":0,"docsExamined":800,"nreturned":3,"locks":{"Global":{"timeAcquiringMicros":{"r":900}}},"storage":{"data":{"timeReadingMicros":7000}},"cpuNanos":5,"remote":"10.0.0.9:41352","durationMillis":300}}"#;
    const BUILT: &str = r#"{"t":{"$date":"2026-11-26T10:05:24.000+00:00"},"s":"I",  "c":"INDEX",    "id":20345,   "ctx":"conn2","msg":"Index build: done building","attr":{"namespace":"shop.orders","index":"status_1"}}"#;
    const ACCEPTED: &str = r#"{"t":{"$date":"2026-11-26T10:05:24.000+00:00"},"s":"I",  "c":"NETWORK",  "id":22943,   "ctx":"listener","msg":"Connection accepted","attr":{"remote":"canary"}}"#;

    #[test]
    fn lines_become_rows_across_a_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mongod.log");
        std::fs::write(&path, format!("{SLOW}\n")).unwrap();
        let mut log = Log::new(&path);
        assert_eq!(log.probe("mongodb://x"), None);
        let own = SLOW.replace("\"appName\":\"web\"", "\"appName\":\"holdup\"");
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{SLOW}\n{own}\n{BUILT}\n{ACCEPTED}\n{ACCEPTED}\nnonsense").unwrap();
        std::fs::rename(&path, dir.path().join("mongod.log.1")).unwrap();
        std::fs::write(&path, format!("{SLOW}\n")).unwrap();
        let mut batch = Batch::default();
        log.sample("mongodb://x", &mut batch).unwrap();
        let [first, _] = batch.statements.as_slice() else { panic!("{:?}", batch.statements) };
        assert_eq!(first.digest_text, "find shop.orders filter { status: ? }");
        assert_eq!((first.observed_at, first.session_id), (1_795_687_523_411_000_000, Some(53)));
        assert_eq!((first.duration_ns, first.lock_ns, first.rows_examined), (300_000_000, 900_000, 800));
        assert_eq!((first.rows_sent, first.no_index, first.errors), (3, 1, 0));
        let stages: Vec<(&str, i64)> = batch.stages.iter().map(|it| (it.stage.as_str(), it.duration_ns)).collect();
        assert_eq!(stages, [("storage_read", 7_000_000), ("lock_wait", 900_000)].repeat(2));
        assert_eq!((batch.plans.len(), batch.plans[0].kind.as_str()), (2, "auto_explain"));
        assert_eq!((batch.plans[0].rows_actual, batch.plans[0].duration_ns), (Some(3.0), Some(300_000_000)));
        let events: Vec<(&str, &str)> = batch.events.iter().map(|it| (it.kind.as_str(), it.text.as_str())).collect();
        let expected = [
            ("index_build", "index built on shop.orders"),
            ("connections_accepted", "2 connections accepted"),
            ("gap", "1 lines of the log could not be read"),
        ];
        assert_eq!(events, expected);
        assert!(!format!("{batch:?}").contains("canary"));
    }

    #[test]
    fn a_write_that_failed_has_its_figures() {
        let failed = r#""type":"update","ninserted":1,"nModified":2,"usedDisk":true,"errCode":112,"#;
        let (mut look, mut batch) = (Look::default(), Batch::default());
        look.take(&SLOW.replace(r#""type":"command","#, failed), "mongodb://x", &mut batch);
        let [failed] = batch.statements.as_slice() else { panic!("{:?}", batch.statements) };
        assert_eq!((failed.errors, failed.rows_affected, failed.temporary_disk_tables), (1, 3, 1));
    }

    #[test]
    fn index_builds_and_checkpoints_become_events() {
        let (mut look, mut batch) = (Look::default(), Batch::default());
        look.message(1, Message::IndexScanned(2_500_000_000));
        for is_over in [false, true] {
            look.message(2, Message::Checkpoint { seconds: 70, megabytes: 5, is_over });
        }
        look.finish(0, "mongodb://x", &mut batch);
        let labels: Vec<_> = batch.events.iter().map(|it| (it.kind.as_str(), it.labels.clone())).collect();
        let expected = [
            ("index_build", Labels::new([("state", "scanned"), ("duration_ms", "2500")])),
            ("checkpoint", Labels::new([("state", "running"), ("total_ms", "70000")])),
            ("checkpoint", Labels::new([("state", "done"), ("total_ms", "70000")])),
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn one_look_takes_so_many_and_says_what_it_left_out() {
        let (mut look, mut batch) = (Look::default(), Batch::default());
        (0..=EXECUTIONS_MAX).for_each(|_| look.take(SLOW, "mongodb://x", &mut batch));
        (0..=EVENTS_MAX).for_each(|_| look.take(BUILT, "mongodb://x", &mut batch));
        look.take(" ", "mongodb://x", &mut batch);
        look.finish(7, "mongodb://x", &mut batch);
        assert_eq!((batch.statements.len(), batch.events.len()), (EXECUTIONS_MAX, EVENTS_MAX + 2));
        let last: Vec<_> = batch.events[EVENTS_MAX..].iter().map(|it| (it.kind.as_str(), &it.text[..12])).collect();
        assert_eq!(last, [("sampled", "1 operations"), ("gap", "7 bytes of t")]);
    }

    #[test]
    fn a_log_that_is_not_there_is_a_line_of_the_coverage() {
        let absent = Log::new(Path::new("/nonexistent/mongod.log")).probe("mongodb://x").unwrap();
        assert!(
            absent.state == holdup_recording::CoverageState::Absent
                && absent.why.unwrap().contains("/nonexistent/mongod.log")
        );
    }
}

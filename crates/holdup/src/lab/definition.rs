//! The content of a `lab.yaml` as values. Placeholders are checked here and filled in later, when
//! ports and processes exist. This module starts nothing, and does not know whether the culprit of
//! an [`Expect`] exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdup_load::yaml::{Map, Node, YamlError};

use super::cannot;
use super::command::{Launch, Ready, Step};
use super::fields::Fields;
use super::placeholder::{Declared, instead, is_name};
use super::signal::signal;
use crate::failure::Failure;

/// An incident that can be played: the processes to start and the diagnosis to expect. It holds the
/// lab's passwords.
pub struct Lab {
    /// Its name, which is also its folder's.
    pub name: String,
    /// One line about the incident.
    pub title: String,
    /// Its variants in the order of the file.
    pub variants: Vec<Variant>,
    /// Time between samples, if the lab needs another than the default.
    pub interval: Option<Duration>,
    /// Its folder, absolute.
    pub(super) folder: PathBuf,
    pub(super) scenario: ScenarioFile,
    pub(super) needs: Vec<Step>,
    pub(super) setup: Vec<Step>,
    pub(super) ports: Vec<String>,
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) processes: Vec<Process>,
    pub(super) watch: Vec<String>,
    pub(super) watch_if_allowed: Vec<String>,
    pub(super) by_hand: Option<ByHand>,
}

/// How the same seconds are recorded without holdup: a process that writes what a person would paste.
pub(super) struct ByHand {
    /// Its name among the processes.
    pub process: String,
    /// The file it writes; the text still holds placeholders.
    pub paste: String,
}

/// A load as written in its file, with placeholders.
#[derive(Clone, Debug)]
pub(super) struct ScenarioFile {
    pub path: PathBuf,
    pub text: String,
}

/// One way to play the incident.
pub struct Variant {
    /// `faulty`, `fixed`, `decoy`, …
    pub name: String,
    /// One line about its difference from the other variants.
    pub title: String,
    /// The diagnosis it must get.
    pub expect: Expect,
    /// Its own load, if a fix changes the requests.
    pub(super) scenario: Option<ScenarioFile>,
    /// Names of the processes it starts, in this order.
    pub(super) start: Vec<String>,
    /// Sources of its own, beside the lab's.
    pub(super) watch: Vec<String>,
    /// Appended to a process's arguments.
    pub(super) arguments: BTreeMap<String, Vec<String>>,
    /// Added to a process's environment; overrides the process's own values.
    pub(super) env: BTreeMap<String, Vec<(String, String)>>,
}

/// The verdict that a variant must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// `found`, `healthy` or `undecided`; none if only the knee matters.
    pub verdict: Option<String>,
    /// The cause that must be named, if any.
    pub culprit: Option<String>,
    /// The cause that must be named as the next limit, if any.
    pub next: Option<String>,
    /// Causes that must be named as contributors.
    pub contributors: Vec<String>,
    /// Causes that must be named as symptoms of another.
    pub symptoms: Vec<String>,
    /// Causes that must be among the cleared.
    pub cleared: Vec<String>,
    /// The condition on the knee, if one must be found.
    pub knee: Option<Knee>,
    /// The delays that must be recovered, if any.
    pub recovered: Option<Recover>,
    /// Causes that may be named instead if only standard tools looked.
    pub by_hand: Vec<String>,
}

/// A knee that must be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knee {
    /// The variant whose knee's interval must lie below this one's, if any.
    pub above: Option<String>,
}

/// Delays that the lab inserts at known places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recover {
    /// The variant without them.
    pub against: String,
    /// Parts of the ledger that together must hold exactly the growth of response time.
    pub places: Vec<String>,
}

/// A program that runs until it is stopped.
#[derive(Debug)]
pub(super) struct Process {
    pub name: String,
    pub launch: Launch,
    pub ready: Option<Ready>,
    pub ready_within: Duration,
    pub then: Vec<Step>,
    pub stop_signal: i32,
    pub stop_within: Duration,
}

/// Default time limit of a step, and of a process that gets ready.
const STEP_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Installing packages through a slow mirror takes this long.
const NEEDS_WITHIN: Duration = Duration::from_secs(900);
const STOP_WITHIN: Duration = Duration::from_secs(10);

impl Lab {
    /// Reads the lab in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("lab.yaml");
        let text = std::fs::read_to_string(&file).map_err(cannot("read", &file))?;
        let root = Node::parse(&text, &file.display().to_string()).map_err(Failure::unusable)?;
        Self::parse(&root, folder).map_err(Failure::unusable)
    }

    fn parse(root: &Node, folder: &Path) -> Result<Self, YamlError> {
        let map = root.map(&[
            "name",
            "title",
            "scenario",
            "needs",
            "ports",
            "secrets",
            "setup",
            "processes",
            "watch",
            "watch_if_allowed",
            "by_hand",
            "interval",
            "variants",
        ])?;

        let name = map.need("name")?;
        if folder.file_name().and_then(|n| n.to_str()) != Some(name.text()?) {
            return Err(name.error("a lab must have the name of its folder"));
        }
        let secrets = secrets(map)?;
        let processes = map.need("processes")?;
        let declared = Declared {
            ports: map.get("ports").map_or(&[][..], Node::list).iter().map(identifier).collect::<Result<_, _>>()?,
            secrets: secrets.keys().cloned().collect(),
            processes: processes.list().iter().map(process_name).collect::<Result<_, _>>()?,
        };
        only_once(processes, &declared.processes)?;
        if let Some(ports) = map.get("ports") {
            only_once(ports, &declared.ports)?;
        }
        let fields = Fields { declared: &declared };

        let scenario = scenario(map.need("scenario")?, folder, &fields)?;

        Ok(Self {
            name: name.text()?.to_owned(),
            title: map.need("title")?.text()?.to_owned(),
            variants: variants(map.need("variants")?, folder, &fields)?,
            interval: map.get("interval").map(Node::duration).transpose()?,
            needs: fields.steps(map.get("needs"), NEEDS_WITHIN, false)?,
            setup: fields.steps(map.get("setup"), STEP_WITHIN, false)?,
            processes: processes.list().iter().map(|p| process(p, &fields)).collect::<Result<_, _>>()?,
            watch: fields.watch(map.get("watch"))?,
            watch_if_allowed: fields.watch(map.get("watch_if_allowed"))?,
            by_hand: map.get("by_hand").map(|node| by_hand(node, &fields)).transpose()?,
            ports: declared.ports,
            folder: folder.to_owned(),
            scenario,
            secrets,
        })
    }

    /// # Errors
    /// If the lab does not say how standard tools record it.
    pub fn check_by_hand(&self) -> Result<(), Failure> {
        self.tools().map(|_| ())
    }

    /// The process that runs standard tools, and the text of the path it writes to.
    pub(super) fn tools(&self) -> Result<(&Process, &str), Failure> {
        let by_hand = self.by_hand.as_ref();
        let found = by_hand.and_then(|by_hand| Some((self.process(&by_hand.process)?, by_hand.paste.as_str())));
        found.ok_or_else(|| {
            let why = "cannot be recorded by hand: its lab.yaml has no \"by_hand\"; run it without --by-hand";
            Failure::Unusable(format!("lab {} {why}", self.name))
        })
    }

    /// The variant of that name.
    ///
    /// # Errors
    /// If the lab lacks it; the message names the nearest, and all.
    pub fn variant(&self, name: &str) -> Result<&Variant, Failure> {
        self.variants.iter().find(|v| v.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).collect();
            let (lab, hint) = (&self.name, instead(name, &known));
            Failure::Unusable(format!("lab {lab} has no variant \"{name}\"; {hint}"))
        })
    }

    pub(super) fn process(&self, name: &str) -> Option<&Process> {
        self.processes.iter().find(|p| p.name == name)
    }
}

fn identifier(node: &Node) -> Result<String, YamlError> {
    let text = node.text()?;
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(node
            .error(format!("\"{text}\" is not a name: use letters, digits, - and _, beginning with a letter or digit")))
    }
}

fn only_once(list: &Node, names: &[String]) -> Result<(), YamlError> {
    match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        Some((i, name)) => Err(list.list()[i].error(format!("\"{name}\" occurs twice"))),
        None => Ok(()),
    }
}

/// Shorter secrets occur in logs by chance, and redacting those matches would make the logs
/// unreadable.
const SHORTEST_SECRET: usize = 6;

fn secrets(map: Map<'_>) -> Result<BTreeMap<String, String>, YamlError> {
    let mut secrets = BTreeMap::new();
    for (name, value) in map.get("secrets").map_or(Ok(&[][..]), Node::entries)? {
        if !is_name(name) {
            return Err(value.error("not a name: use letters, digits, - and _, beginning with a letter or digit"));
        }
        let text = value.text()?;
        if text.len() < SHORTEST_SECRET {
            return Err(value.error(format!("a secret needs at least {SHORTEST_SECRET} characters")));
        }
        secrets.insert(name.clone(), text.to_owned());
    }
    Ok(secrets)
}

fn process_name(node: &Node) -> Result<String, YamlError> {
    identifier(node.map(&["name", "run", "env", "stdin", "ready", "then", "stop"])?.need("name")?)
}

fn process(node: &Node, fields: &Fields<'_>) -> Result<Process, YamlError> {
    let map = node.map(&["name", "run", "env", "stdin", "ready", "then", "stop"])?;
    let (ready, ready_within) = match map.get("ready") {
        Some(ready) => {
            let (ready, within) = fields.ready(ready)?;
            (Some(ready), within.unwrap_or(READY_WITHIN))
        }
        None => (None, READY_WITHIN),
    };
    let stop = map.get("stop").map(|n| n.map(&["signal", "within"])).transpose()?;
    Ok(Process {
        name: identifier(map.need("name")?)?,
        launch: fields.launch(map, true)?,
        ready,
        ready_within,
        then: fields.steps(map.get("then"), STEP_WITHIN, true)?,
        stop_signal: stop.and_then(|s| s.get("signal")).map_or(Ok(libc::SIGTERM), signal)?,
        stop_within: stop.and_then(|s| s.get("within")).map_or(Ok(STOP_WITHIN), Node::duration)?,
    })
}

fn by_hand(node: &Node, fields: &Fields<'_>) -> Result<ByHand, YamlError> {
    let map = node.map(&["process", "paste"])?;
    let known: Vec<&str> = fields.declared.processes.iter().map(String::as_str).collect();
    let process = fields.one_of(map.need("process")?, &known)?;
    let paste = fields.word(map.need("paste")?)?;
    Ok(ByHand { process, paste })
}

fn scenario(node: &Node, folder: &Path, fields: &Fields<'_>) -> Result<ScenarioFile, YamlError> {
    let path = folder.join(node.text()?);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| node.error(format!("failed to read {}: {error}", path.display())))?;
    fields.check_scenario(&text, &path)?;
    Ok(ScenarioFile { path, text })
}

fn variants(node: &Node, folder: &Path, fields: &Fields<'_>) -> Result<Vec<Variant>, YamlError> {
    let variants: Vec<Variant> =
        node.entries()?.iter().map(|(name, value)| variant(name, value, folder, fields)).collect::<Result<_, _>>()?;
    if variants.is_empty() {
        return Err(node.error("a lab needs at least one variant"));
    }
    Ok(variants)
}

fn variant(name: &str, node: &Node, folder: &Path, fields: &Fields<'_>) -> Result<Variant, YamlError> {
    let map = node.map(&["title", "scenario", "start", "watch", "arguments", "env", "expect"])?;
    if !is_name(name) {
        return Err(node.error("not a name: use letters, digits, - and _, beginning with a letter or digit"));
    }
    let start = map.need("start")?;
    let known: Vec<&str> = fields.declared.processes.iter().map(String::as_str).collect();
    let names: Vec<String> = start.list().iter().map(|n| fields.one_of(n, &known)).collect::<Result<_, _>>()?;
    only_once(start, &names)?;
    let started: Vec<&str> = names.iter().map(String::as_str).collect();

    let mut arguments = BTreeMap::new();
    if let Some(node) = map.get("arguments") {
        // Values for a process that is not started would be lost silently.
        node.map(&started)?;
        for (process, words) in node.entries()? {
            arguments.insert(process.clone(), fields.words(words, true)?);
        }
    }
    let mut env = BTreeMap::new();
    if let Some(node) = map.get("env") {
        node.map(&started)?;
        for (process, entries) in node.entries()? {
            env.insert(process.clone(), fields.env(Some(entries), true)?);
        }
    }
    let expect = expect(map.need("expect")?, fields)?;
    Ok(Variant {
        name: name.to_owned(),
        title: map.need("title")?.text()?.to_owned(),
        expect,
        scenario: map.get("scenario").map(|node| scenario(node, folder, fields)).transpose()?,
        start: names,
        watch: fields.watch(map.get("watch"))?,
        arguments,
        env,
    })
}

fn recover(node: &Node) -> Result<Recover, YamlError> {
    let map = node.map(&["against", "in"])?;
    Ok(Recover { against: map.need("against")?.text()?.to_owned(), places: texts(map.need("in")?.list())? })
}

fn knee(node: &Node) -> Result<Knee, YamlError> {
    let map = node.map(&["above"])?;
    Ok(Knee { above: map.get("above").map(|n| n.text().map(str::to_owned)).transpose()? })
}

fn texts(nodes: &[Node]) -> Result<Vec<String>, YamlError> {
    nodes.iter().map(|node| node.text().map(str::to_owned)).collect()
}

fn expect(node: &Node, fields: &Fields<'_>) -> Result<Expect, YamlError> {
    let map = node.map(&[
        "verdict",
        "culprit",
        "next",
        "contributors",
        "symptoms",
        "cleared",
        "knee",
        "recovered",
        "by_hand",
    ])?;
    let knee = map.get("knee").map(knee).transpose()?;
    // A search may be judged by its knee alone.
    let verdict = if knee.is_some() { map.get("verdict") } else { Some(map.need("verdict")?) };
    let verdict = verdict.map(|node| fields.one_of(node, &["found", "healthy", "undecided"])).transpose()?;
    let culprit = map.get("culprit").map(|n| n.text().map(str::to_owned)).transpose()?;
    if (verdict.as_deref() == Some("found")) != culprit.is_some() {
        return Err(node.error("a culprit needs the verdict \"found\""));
    }
    let list = |key| texts(map.get(key).map_or(&[][..], Node::list));
    Ok(Expect {
        verdict,
        culprit,
        next: map.get("next").map(|n| n.text().map(str::to_owned)).transpose()?,
        contributors: list("contributors")?,
        symptoms: list("symptoms")?,
        cleared: list("cleared")?,
        knee,
        recovered: map.get("recovered").map(recover).transpose()?,
        by_hand: list("by_hand")?,
    })
}

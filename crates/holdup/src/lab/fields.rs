//! Parses the parts that occur in several places of a `lab.yaml`: commands, environments,
//! readiness, signals. It checks every text for placeholders that could never be filled in, so that
//! a mistake shows before anything is started.

use std::path::Path;
use std::time::Duration;

use holdup_load::yaml::{Map, Node, YamlError};

use super::command::{Launch, Ready, Step};
use super::placeholder::{Allowed, Declared, instead};

/// Reads values of a lab that declares these names.
pub(super) struct Fields<'a> {
    pub declared: &'a Declared,
}

impl Fields<'_> {
    fn text(&self, node: &Node, allowed: Allowed) -> Result<String, YamlError> {
        let text = node.text()?;
        self.declared.check(text, allowed).map_err(|why| node.error(why))?;
        Ok(text.to_owned())
    }

    /// A text that is one of `known`.
    pub fn one_of(&self, node: &Node, known: &[&str]) -> Result<String, YamlError> {
        let text = node.text()?;
        if known.contains(&text) {
            return Ok(text.to_owned());
        }
        Err(node.error(format!("unknown \"{text}\"; {}", instead(text, known))))
    }

    /// The words of an argument list.
    pub fn words(&self, node: &Node, pids: bool) -> Result<Vec<String>, YamlError> {
        node.list().iter().map(|word| self.text(word, Allowed { secrets: false, pids })).collect()
    }

    /// One word, as in a command.
    pub fn word(&self, node: &Node) -> Result<String, YamlError> {
        self.text(node, Allowed { secrets: false, pids: true })
    }

    /// The variables of an environment.
    pub fn env(&self, node: Option<&Node>, pids: bool) -> Result<Vec<(String, String)>, YamlError> {
        let entries = node.map_or(Ok(&[][..]), Node::entries)?;
        let mut env = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(value.error("not the name of a variable"));
            }
            env.push((name.clone(), self.text(value, Allowed { secrets: true, pids })?));
        }
        Ok(env)
    }

    /// `run`, `env` and `stdin` of a map.
    pub fn launch(&self, map: Map<'_>, pids: bool) -> Result<Launch, YamlError> {
        let run = map.need("run")?;
        Ok(Launch {
            run: self.run(run, pids)?,
            env: self.env(map.get("env"), pids)?,
            stdin: map.get("stdin").map(|n| self.text(n, Allowed { secrets: false, pids })).transpose()?,
        })
    }

    fn run(&self, node: &Node, pids: bool) -> Result<Vec<String>, YamlError> {
        let words = self.words(node, pids)?;
        if words.first().is_none_or(String::is_empty) {
            return Err(node.error("expected a program and its arguments"));
        }
        Ok(words)
    }

    /// A list of commands: each either a list of words, or a map with `run`.
    pub fn steps(&self, node: Option<&Node>, within: Duration, pids: bool) -> Result<Vec<Step>, YamlError> {
        let items = node.map_or(&[][..], Node::list);
        items.iter().map(|item| self.step(item, within, pids)).collect()
    }

    fn step(&self, node: &Node, within: Duration, pids: bool) -> Result<Step, YamlError> {
        if node.text().is_ok() {
            return Err(node.error("expected a command: a list of words, or keys and values with \"run\""));
        }
        if node.entries().is_err() {
            let launch = Launch { run: self.run(node, pids)?, env: Vec::new(), stdin: None };
            return Ok(Step { launch, within });
        }
        let map = node.map(&["run", "env", "stdin", "within"])?;
        let within = map.get("within").map_or(Ok(within), Node::duration)?;
        Ok(Step { launch: self.launch(map, pids)?, within })
    }

    /// `ready`, and its time limit if it has one.
    pub fn ready(&self, node: &Node) -> Result<(Ready, Option<Duration>), YamlError> {
        let map = node.map(&["tcp", "stdout", "http", "within"])?;
        let text = |node| self.text(node, Allowed { secrets: false, pids: true });
        let ready = match (map.get("tcp"), map.get("stdout"), map.get("http")) {
            (Some(port), None, None) => Ready::Tcp(text(port)?),
            (None, Some(words), None) => Ready::Stdout(text(words)?),
            (None, None, Some(url)) => {
                if !url.text()?.starts_with("http://") {
                    return Err(url.error("expected a URL that begins with http://"));
                }
                Ready::Http(text(url)?)
            }
            _ => return Err(node.error("expected one of tcp, stdout, http")),
        };
        Ok((ready, map.get("within").map(Node::duration).transpose()?))
    }

    /// The sources to watch.
    pub fn watch(&self, node: Option<&Node>) -> Result<Vec<String>, YamlError> {
        let items = node.map_or(&[][..], Node::list);
        items.iter().map(|item| self.text(item, Allowed { secrets: true, pids: true })).collect()
    }

    /// Checks a scenario's text without reading it as a scenario.
    pub fn check_scenario(&self, text: &str, file: &Path) -> Result<(), YamlError> {
        for (index, line) in text.lines().enumerate() {
            self.declared.check(line, Allowed { secrets: false, pids: true }).map_err(|message| YamlError {
                file: file.display().to_string(),
                line: index + 1,
                message,
            })?;
        }
        Ok(())
    }
}

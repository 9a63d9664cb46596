//! Parses pods and events from JSON, single objects or lists, in the form of the API or of
//! `kubectl`. Objects of other kinds are noted and left out. Keys may come in any order, and lists
//! may be null.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::kubernetes::objects::source;

/// The objects of a document.
#[derive(Debug, Default)]
pub struct Document {
    pub(crate) pods: Vec<Pod>,
    pub(crate) events: Vec<Event>,
    /// The kinds of other objects, each once.
    pub others: Vec<String>,
    /// The token of the next page, if the API has more.
    pub next: Option<String>,
}

impl Document {
    /// The number of pods.
    pub fn pods(&self) -> usize {
        self.pods.len()
    }

    /// The number of events.
    pub fn events(&self) -> usize {
        self.events.len()
    }
}

/// Why a text is not a Kubernetes document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Unread {
    /// Line, from 1; 0 if the error belongs to no line.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

/// An object of any kind. Pod-only fields are parsed leniently: other kinds use the same keys for
/// other things.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    kind: Option<String>,
    #[serde(default)]
    metadata: Option<Metadata>,
    items: Option<Vec<Object>>,
    spec: Option<Lenient<Spec>>,
    status: Option<Lenient<Status>>,
    #[serde(alias = "regarding")]
    involved_object: Option<Involved>,
    reason: Option<Lenient<String>>,
    #[serde(alias = "note")]
    message: Option<Lenient<String>>,
    #[serde(rename = "type")]
    severity: Option<Lenient<String>>,
    #[serde(alias = "deprecatedCount")]
    count: Option<Lenient<u64>>,
    #[serde(alias = "deprecatedFirstTimestamp")]
    first_timestamp: Option<String>,
    #[serde(alias = "deprecatedLastTimestamp")]
    last_timestamp: Option<String>,
    event_time: Option<String>,
    series: Option<Lenient<Series>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Valid(T),
    Other(IgnoredAny),
}

impl<T> Lenient<T> {
    fn valid(self) -> Option<T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    pub creation_timestamp: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Involved {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    #[serde(rename = "fieldPath")]
    field_path: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    count: Option<u64>,
    last_observed_time: Option<String>,
}

/// A pod.
#[derive(Debug)]
pub(crate) struct Pod {
    pub metadata: Metadata,
    pub spec: Spec,
    pub status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    pub node_name: Option<String>,
    pub restart_policy: Option<String>,
    pub termination_grace_period_seconds: Option<i64>,
    pub containers: Option<Vec<Container>>,
    pub init_containers: Option<Vec<Container>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Container {
    pub name: String,
    pub image: Option<String>,
    pub ports: Option<Vec<Port>>,
    pub resources: Option<Resources>,
    pub liveness_probe: Option<Probe>,
    pub readiness_probe: Option<Probe>,
    pub startup_probe: Option<Probe>,
    pub restart_policy: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Port {
    pub name: Option<String>,
    pub container_port: Option<u64>,
}

/// Quantities: strings, or numbers in YAML written by hand.
#[derive(Debug, Deserialize)]
pub(crate) struct Resources {
    pub limits: Option<Amounts>,
    pub requests: Option<Amounts>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Amounts {
    pub cpu: Option<Value>,
    pub memory: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Probe {
    pub http_get: Option<Asked>,
    pub tcp_socket: Option<Asked>,
    pub grpc: Option<Asked>,
    pub exec: Option<Exec>,
    pub initial_delay_seconds: Option<u64>,
    pub period_seconds: Option<u64>,
    pub timeout_seconds: Option<u64>,
    pub success_threshold: Option<u64>,
    pub failure_threshold: Option<u64>,
}

/// What a probe asks: with all kinds the port, with some the rest.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    pub path: Option<String>,
    pub port: Option<Value>,
    pub host: Option<String>,
    pub scheme: Option<String>,
    pub service: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Exec {
    pub command: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub qos_class: Option<String>,
    pub container_statuses: Option<Vec<ContainerStatus>>,
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub name: String,
    pub ready: Option<bool>,
    pub restart_count: Option<u64>,
    pub state: Option<State>,
    pub last_state: Option<State>,
}

/// One of the three states; none before the container starts.
#[derive(Debug, Deserialize)]
pub(crate) struct State {
    pub running: Option<Running>,
    pub waiting: Option<Waiting>,
    pub terminated: Option<Terminated>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Running {
    pub started_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Waiting {
    pub reason: Option<String>,
    pub message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Terminated {
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub reason: Option<String>,
    pub finished_at: Option<String>,
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
}

impl Pod {
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or("unnamed")
    }

    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or("default")
    }
}

/// Something that Kubernetes reports, once or several times.
#[derive(Debug)]
pub(crate) struct Event {
    metadata: Metadata,
    involved: Involved,
    pub reason: String,
    pub message: String,
    pub severity: String,
    count: u64,
    pub first: Option<String>,
    pub last: Option<String>,
}

impl Event {
    /// What distinguishes it from other events.
    pub fn id(&self) -> String {
        let Metadata { name, namespace, uid, .. } = &self.metadata;
        uid.clone().unwrap_or_else(|| {
            format!("{}/{}", namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
        })
    }

    /// How often it has happened.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The source of the pod; for other objects, that of the namespace.
    pub fn source(&self) -> String {
        let namespace = self.involved.namespace.as_deref().or(self.metadata.namespace.as_deref()).unwrap_or("default");
        let pod = self.involved.name.as_deref().filter(|_| self.involved.kind.as_deref() == Some("Pod"));
        source(namespace, pod)
    }

    /// Kind and name of an object other than a pod.
    pub fn object(&self) -> Option<String> {
        let kind = self.involved.kind.as_deref().filter(|kind| *kind != "Pod")?;
        Some(format!("{kind}/{}", self.involved.name.as_deref().unwrap_or_default()))
    }

    /// The container concerned: `spec.containers{app}`.
    pub fn container(&self) -> Option<&str> {
        let (_, rest) = self.involved.field_path.as_deref()?.split_once('{')?;
        rest.strip_suffix('}')
    }
}

impl Object {
    fn into_event(self) -> Event {
        let created = self.metadata.as_ref().and_then(|it| it.creation_timestamp.clone());
        let series = self.series.and_then(Lenient::valid);
        let of_series = series.as_ref().and_then(|it| it.count);
        let text = |value: Option<Lenient<String>>| value.and_then(Lenient::valid).unwrap_or_default();
        let once = self.event_time.or(created);
        Event {
            count: of_series.or(self.count.and_then(Lenient::valid)).unwrap_or(1).max(1),
            first: self.first_timestamp.or_else(|| once.clone()),
            last: series.and_then(|it| it.last_observed_time).or(self.last_timestamp).or(once),
            metadata: self.metadata.unwrap_or_default(),
            involved: self.involved_object.unwrap_or_default(),
            reason: text(self.reason),
            message: text(self.message),
            severity: text(self.severity),
        }
    }

    fn into_pod(self) -> Result<Pod, String> {
        let metadata = self.metadata.unwrap_or_default();
        let of_form = |part: &str| {
            let name = metadata.name.as_deref().unwrap_or("without a name");
            format!("the {part} of pod {name} does not have the form of Kubernetes' API")
        };
        let spec = match self.spec {
            Some(Lenient::Valid(spec)) => spec,
            Some(Lenient::Other(_)) => return Err(of_form("spec")),
            None => Spec::default(),
        };
        let status = match self.status {
            Some(Lenient::Valid(status)) => status,
            Some(Lenient::Other(_)) => return Err(of_form("status")),
            None => Status::default(),
        };
        Ok(Pod { metadata, spec, status })
    }

    /// Adds it, and the objects it contains, to `document`. In the API's lists only the list states
    /// the kind.
    fn sort(self, of_list: Option<&str>, document: &mut Document) -> Result<(), String> {
        let kind = self.kind.clone().or_else(|| of_list.map(str::to_owned)).unwrap_or_default();
        if let Some(items) = self.items {
            if let Some(next) = self.metadata.and_then(|it| it.next).filter(|next| !next.is_empty()) {
                document.next = Some(next);
            }
            let inside = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
            return items.into_iter().try_for_each(|item| item.sort(inside, document));
        }
        match kind.as_str() {
            "Pod" => document.pods.push(self.into_pod()?),
            "Event" => document.events.push(self.into_event()),
            // An empty list of the API has no `items`.
            "PodList" | "EventList" => {}
            other => {
                let other: String = other.chars().take(60).collect();
                let other = if other.is_empty() { "an object without a kind".to_owned() } else { other };
                if !document.others.contains(&other) {
                    document.others.push(other);
                }
            }
        }
        Ok(())
    }
}

/// Parses one document, or several in a row as `--watch` prints them.
///
/// # Errors
/// If it is not JSON, or if a pod in it does not have the form of Kubernetes' API.
pub fn read(bytes: &[u8]) -> Result<Document, Unread> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut document = Document::default();
    let mut objects = serde_json::Deserializer::from_slice(bytes).into_iter::<Object>();
    while let Some(object) = objects.next() {
        let object = object.map_err(|e| Unread { line: e.line(), text: message_without_position(&e) })?;
        let line = 1 + bytes[..objects.byte_offset()].iter().filter(|byte| **byte == b'\n').count();
        object.sort(None, &mut document).map_err(|text| Unread { line, text })?;
    }
    Ok(document)
}

/// The parser's message without the position, which is reported beside it.
fn message_without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |end| text[..end].to_owned())
}

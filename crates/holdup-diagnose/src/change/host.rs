//! Where a process runs, and what that place lets one change: the kernel of the machine, or only
//! the limits that a container runtime or Kubernetes has given it. From within a container no
//! kernel setting is changed: it is said what to do on the node.

use holdup_recording::rows::Setting;
use holdup_signals::View;

use super::{SettingChange, Steps, settings};

/// Bytes of memory that the machine has, if that was recorded.
pub fn memory_bytes(view: &View<'_>) -> Option<f64> {
    view.setting_of("host", "memory_total_bytes")?.parse::<f64>().ok().filter(|bytes| *bytes > 0.0)
}

/// CPUs that the machine has, if that was recorded.
pub fn cpus(view: &View<'_>) -> Option<f64> {
    view.setting_of("host", "cpu_logical_count")?.parse::<f64>().ok().filter(|count| *count > 0.0)
}

/// What keeps a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing but the machine and its service manager.
    Machine,
    /// A container of Docker or Podman: the runtime's command, and the container's short id.
    Docker(&'static str, String),
    /// A pod.
    Kubernetes,
    /// A container of another runtime, or one of which only its root file system tells.
    Container,
}

/// Characters of a container's id that name it.
const SHORT_ID: usize = 12;

impl Place {
    /// Where the process at `source` runs, and where holdup ran if that is all there is.
    pub fn find(view: &View<'_>, source: &str) -> Self {
        Self::among(settings(view), source)
    }

    /// The same by recorded settings.
    pub fn among(rows: &[Setting], source: &str) -> Self {
        let value = |source: &str, name: &str| {
            rows.iter().rev().find(|row| row.source == source && row.name == name).map(|row| row.value.as_str())
        };
        let path = value(source, "cgroup.path").or_else(|| source.strip_prefix("cgroup:"));
        let by_path = path.and_then(Self::of_path);
        // Within a container a cgroup's path is / as a rule, and the root lies on the layers of an
        // image.
        let is_layered = value("host", "mount[/].fstype") == Some("overlay");
        let in_pods = || rows.iter().any(|row| row.source.starts_with("kubernetes:"));
        match by_path {
            Some(place) => place,
            None if is_layered && in_pods() => Self::Kubernetes,
            None if is_layered => Self::Container,
            None => Self::Machine,
        }
    }

    fn of_path(path: &str) -> Option<Self> {
        if path.contains("kubepods") {
            return Some(Self::Kubernetes);
        }
        let is_one = |part: &&str| part.len() >= SHORT_ID && part.chars().all(|c| c.is_ascii_hexdigit());
        if path.contains("docker") || path.contains("libpod") {
            let runtime = if path.contains("libpod") { "podman" } else { "docker" };
            let id = path.split(['/', '-', '.', ':']).rfind(is_one);
            return Some(id.map_or(Self::Container, |id| Self::Docker(runtime, id.chars().take(SHORT_ID).collect())));
        }
        ["/lxc", "containerd", "crio", "/machine.slice", "garden"]
            .iter()
            .any(|word| path.contains(word))
            .then_some(Self::Container)
    }

    /// Whether the machine's kernel can be set from there.
    pub fn is_machine(&self) -> bool {
        *self == Self::Machine
    }

    /// A kernel setting of the machine or of a network namespace.
    pub fn sysctl(&self, change: &SettingChange) -> Steps {
        let SettingChange { name, to, .. } = change;
        let file = format!("{name} = {to} in a file of /etc/sysctl.d/");
        if self.is_machine() {
            let command = Some(format!("sysctl -w {name}={to}"));
            return Steps { command, keep: Some(file), effect: "Takes effect at once.".to_owned() };
        }
        // A container has a network of its own, and the rest of the kernel from its node.
        let keep = match self {
            Self::Docker(..) if name.starts_with("net.") => {
                format!("start the container with --sysctl {name}={to}")
            }
            Self::Kubernetes if name.starts_with("net.") => {
                format!("put {name}={to} under securityContext.sysctls of the pod")
            }
            _ => format!("on the node, {file}"),
        };
        Steps { command: None, keep: Some(keep), effect: String::new() }
    }

    /// A command for the machine itself: a block device, a mount, a queue of an interface. `keep`
    /// is how it stays.
    pub fn machine(&self, command: String, keep: String) -> Steps {
        if self.is_machine() {
            return Steps { command: Some(command), keep: Some(keep), effect: "Takes effect at once.".to_owned() };
        }
        Steps { command: None, keep: Some(format!("on the node: {command}")), effect: String::new() }
    }

    /// CPUs that a cgroup may use. `write` changes it where the service manager made the cgroup.
    pub fn cpus(&self, cpus: f64, write: String, container: Option<&str>) -> Steps {
        let effect = "Takes effect at once.".to_owned();
        match self {
            Self::Machine => {
                let keep = Some(format!("systemctl set-property UNIT CPUQuota={:.0}%", cpus * 100.0));
                Steps { command: Some(write), keep, effect }
            }
            Self::Docker(runtime, id) => {
                let command = Some(format!("{runtime} update --cpus {cpus:.2} {id}"));
                let keep = Some(format!("--cpus {cpus:.2} where the container is started"));
                Steps { command, keep, effect }
            }
            _ => {
                let name = container.map_or_else(String::new, |name| format!(" of container {name}"));
                in_manifest(format!("resources.limits.cpu: {:.0}m{name}", (cpus * 1e3).round()), self)
            }
        }
    }

    /// MiB of memory that a cgroup may have; as [`Self::cpus`].
    pub fn memory(&self, mebibytes: f64, file: &str) -> Steps {
        let effect = "Takes effect at once.".to_owned();
        match self {
            Self::Machine => {
                let command = Some(format!("echo {:.0} > {file}", mebibytes * 1_048_576.0));
                Steps { command, keep: Some(format!("systemctl set-property UNIT MemoryMax={mebibytes:.0}M")), effect }
            }
            Self::Docker(runtime, id) => {
                // A limit above that of memory and swap together is refused; twice as much is the
                // runtime's own default.
                let size = format!("--memory {mebibytes:.0}m --memory-swap {:.0}m", 2.0 * mebibytes);
                let command = Some(format!("{runtime} update {size} {id}"));
                Steps { command, keep: Some(format!("{size} where the container is started")), effect }
            }
            _ => in_manifest(format!("resources.limits.memory: {mebibytes:.0}Mi"), self),
        }
    }

    /// Files that a process may have open; `hard` is what its limit can be raised to without a
    /// privilege.
    pub fn files(&self, pid: &str, enough: f64, hard: Option<f64>) -> Steps {
        let to_hard = hard.map_or(enough, |hard| hard.max(enough));
        let command = format!("prlimit --pid {pid} --nofile={enough:.0}:{to_hard:.0}");
        let effect = "Takes effect at once.".to_owned();
        match self {
            Self::Machine => {
                let keep = format!(
                    "LimitNOFILE={enough:.0} in its systemd unit (systemctl edit UNIT), or nofile in /etc/security/limits.conf"
                );
                Steps { command: Some(command), keep: Some(keep), effect }
            }
            _ => {
                // Above its hard limit a container's process gets none without a capability that it
                // rarely has.
                let may = hard.is_some_and(|hard| enough <= hard);
                let keep = match self {
                    Self::Kubernetes => format!("raise the runtime's limit on the node (LimitNOFILE={enough:.0})"),
                    _ => format!("start the container with --ulimit nofile={enough:.0}:{to_hard:.0}"),
                };
                Steps {
                    command: may.then_some(command),
                    keep: Some(keep),
                    effect: if may { effect } else { String::new() },
                }
            }
        }
    }
}

/// A limit that stands in a manifest, of which the recording does not have the name.
fn in_manifest(line: String, place: &Place) -> Steps {
    let keep = match place {
        Place::Kubernetes => format!("put {line} in the workload's manifest, which starts its pods anew"),
        _ => format!("put {line} (or the runtime's word for it) where the container is started"),
    };
    Steps { command: None, keep: Some(keep), effect: String::new() }
}

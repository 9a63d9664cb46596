//! A Kafka broker on loopback: open, with SASL, and with SASL over TLS, each on a port of its own.

use std::path::Path;
use std::process::Command;

use crate::{PASSWORD, Process, certificate, free_port, kit, output};

/// The account that may log in.
pub const ACCOUNT: &str = "holdup";

/// A running one.
pub struct Broker {
    /// The port without an account, where everything is allowed.
    pub port: u16,
    /// The port with SASL.
    pub sasl: u16,
    /// The port with SASL over TLS.
    pub tls: u16,
    process: Option<Process>,
    folder: tempfile::TempDir,
}

impl Broker {
    /// Starts it; none where it is not to be had.
    pub fn start() -> Option<Self> {
        if let Err(why) = output(Command::new("sh").arg(kit("kafka.sh")).arg("fetch")) {
            // Its jars come from another registry than the rest, so it may be missing with `CI` set, too.
            eprintln!("skipped: {why}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        certificate(folder.path());
        let of = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a certificate");
        std::fs::write(folder.path().join("store.pem"), of("key.pem") + &of("cert.pem")).expect("a key store");
        let [port, sasl, tls, controller] = [free_port(), free_port(), free_port(), free_port()];
        let properties = properties([port, sasl, tls, controller], folder.path());
        std::fs::write(folder.path().join("own.properties"), properties).expect("a file");
        let mut broker = Self { port, sasl, tls, process: None, folder };
        broker.start_again();
        Some(broker)
    }

    /// The certificate of the port with TLS.
    pub fn certificate(&self) -> std::path::PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it where it was, and waits until it listens.
    pub fn start_again(&mut self) {
        let folder = self.folder.path();
        let mut command = Command::new("sh");
        command.arg(kit("kafka.sh")).arg("serve").arg(folder).arg(folder.join("own.properties"));
        let mut process = Process::start(&mut command, &folder.join("log"), libc::SIGKILL);
        process.wait_for_port(self.port);
        self.process = Some(process);
    }
}

fn properties([port, sasl, tls, controller]: [u16; 4], folder: &Path) -> String {
    let places = format!("PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},TLS://127.0.0.1:{tls}");
    let mut text = format!(
        "controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners={places},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners={places}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL\n\
         authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
         super.users=User:ANONYMOUS\n\
         listener.name.tls.ssl.keystore.type=PEM\n\
         listener.name.tls.ssl.keystore.location={}/store.pem\n",
        folder.display()
    );
    let modules = "org.apache.kafka.common.security";
    for listener in ["sasl", "tls"] {
        let name = format!("listener.name.{listener}");
        text += &format!(
            "{name}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\n\
             {name}.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required user_{ACCOUNT}=\"{PASSWORD}\";\n\
             {name}.scram-sha-256.sasl.jaas.config={modules}.scram.ScramLoginModule required;\n"
        );
    }
    text
}

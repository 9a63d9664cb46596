//! The attributes of a span that holdup uses, under their old and new names. The conventions for
//! databases and HTTP were renamed when they became stable (2023 HTTP, 2025 databases), and
//! packages of both ages are in use, often in one app. Other attributes are dropped while parsing.

use std::borrow::Cow;

/// An attribute's value. Arrays and maps are never used.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Double(f64),
    /// Yes or no.
    Flag(bool),
}

impl Value<'_> {
    /// As text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Whole(number) => Cow::Owned(number.to_string()),
            Self::Double(number) => Cow::Owned(number.to_string()),
            Self::Flag(flag) => Cow::Owned(flag.to_string()),
        }
    }

    /// As a number, even if it was sent as text.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Text(text) => text.parse().ok(),
            Self::Whole(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            Self::Flag(_) => None,
        }
    }
}

/// The topic of an attribute, under either name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The database management system.
    DatabaseSystem,
    /// The statement.
    Statement,
    /// The pool of a connection.
    Pool,
    /// The peer's name.
    Peer,
    /// The peer's port.
    PeerPort,
    /// The messaging system.
    Messaging,
    /// Marks an HTTP span.
    Http,
    /// The complete URL of an HTTP request.
    HttpAddress,
    /// Reported only by HTTP servers.
    HttpServer,
    /// Marks a call by another protocol.
    Rpc,
    /// The operation on a message.
    Operation,
    /// The status of the answer over HTTP.
    HttpStatus,
    /// The status of the answer of gRPC.
    GrpcStatus,
    /// Says that the span failed, and how.
    Error,
    /// The share of traces kept, 0-1.
    SampledRatio,
    /// The kind of sampler that chose the kept traces.
    SamplerType,
    /// That sampler's parameter, whose meaning depends on the kind.
    SamplerParam,
    /// Marks tail sampling.
    TailPolicy,
    /// Marks sampling of another kind.
    Sampler,
}

const COUNT: usize = Topic::Sampler as usize + 1;

/// The topic of `key`, and its rank among the names of that topic: the lowest is preferred.
fn topic(key: &str) -> Option<(Topic, u8)> {
    use Topic as A;
    Some(match key {
        "db.system.name" => (A::DatabaseSystem, 0),
        "db.system" => (A::DatabaseSystem, 1),
        "db.query.text" => (A::Statement, 0),
        "db.statement" => (A::Statement, 1),
        "db.client.connection.pool.name" => (A::Pool, 0),
        "db.client.connections.pool.name" => (A::Pool, 1),
        "pool.name" => (A::Pool, 2),
        "server.address" => (A::Peer, 0),
        "net.peer.name" => (A::Peer, 1),
        "net.sock.peer.name" => (A::Peer, 2),
        "network.peer.address" => (A::Peer, 3),
        "net.peer.ip" => (A::Peer, 4),
        "net.sock.peer.addr" => (A::Peer, 5),
        "peer.service" => (A::Peer, 6),
        "http.host" => (A::Peer, 7),
        "server.port" => (A::PeerPort, 0),
        "net.peer.port" => (A::PeerPort, 1),
        "network.peer.port" => (A::PeerPort, 2),
        "net.sock.peer.port" => (A::PeerPort, 3),
        "messaging.system" => (A::Messaging, 0),
        "messaging.operation.type" => (A::Operation, 0),
        "messaging.operation" => (A::Operation, 1),
        "http.request.method" => (A::Http, 0),
        "http.method" => (A::Http, 1),
        "url.full" => (A::HttpAddress, 0),
        "http.url" => (A::HttpAddress, 1),
        "http.route" => (A::HttpServer, 0),
        "url.path" => (A::HttpServer, 1),
        "http.target" => (A::HttpServer, 2),
        "http.server_name" => (A::HttpServer, 3),
        "client.address" => (A::HttpServer, 4),
        "http.client_ip" => (A::HttpServer, 5),
        "rpc.system.name" => (A::Rpc, 0),
        "rpc.system" => (A::Rpc, 1),
        "http.response.status_code" => (A::HttpStatus, 0),
        "http.status_code" => (A::HttpStatus, 1),
        // As names of columns have it.
        "http.response.status.code" => (A::HttpStatus, 2),
        "http.status.code" => (A::HttpStatus, 3),
        "rpc.grpc.status_code" => (A::GrpcStatus, 0),
        "grpc.status_code" => (A::GrpcStatus, 1),
        "grpc.status.code" => (A::GrpcStatus, 2),
        "error.type" => (A::Error, 0),
        "exception.type" => (A::Error, 1),
        "error" => (A::Error, 2),
        "sampling.probability" => (A::SampledRatio, 0),
        "sampling.ratio" => (A::SampledRatio, 1),
        "sampler.type" => (A::SamplerType, 0),
        "sampler.param" => (A::SamplerParam, 0),
        "tailsampling.policy" => (A::TailPolicy, 0),
        _ if key.starts_with("sampling.") => (A::Sampler, 0),
        _ => return None,
    })
}

/// The used attributes of a span.
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a> {
    values: [Option<(u8, Value<'a>)>; COUNT],
}

impl<'a> Attributes<'a> {
    /// Stores an attribute if it is used and none with a better name was there. Empty text is
    /// ignored.
    pub fn put(&mut self, key: &str, value: Value<'a>) {
        let Some((topic, rank)) = topic(key) else { return };
        let place = &mut self.values[topic as usize];
        let says_nothing = matches!(&value, Value::Text(text) if text.is_empty());
        if !says_nothing && place.as_ref().is_none_or(|(known, _)| rank < *known) {
            *place = Some((rank, value));
        }
    }

    /// The value for `what`.
    pub fn get(&self, topic: Topic) -> Option<&Value<'a>> {
        self.values[topic as usize].as_ref().map(|(_, value)| value)
    }

    /// The value for `what` as text.
    pub fn text(&self, topic: Topic) -> Option<Cow<'_, str>> {
        self.get(topic).map(Value::text)
    }

    /// Whether it is present.
    pub fn has(&self, topic: Topic) -> bool {
        self.get(topic).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_name_is_preferred_whichever_comes_first() {
        let text = |text: &'static str| Value::Text(Cow::Borrowed(text));
        for order in [
            [("db.system", "mysql"), ("db.system.name", "mariadb")],
            [("db.system.name", "mariadb"), ("db.system", "mysql")],
        ] {
            let mut attributes = Attributes::default();
            for (key, value) in order {
                attributes.put(key, text(value));
            }
            assert_eq!(attributes.text(Topic::DatabaseSystem).as_deref(), Some("mariadb"));
        }
        let mut attributes = Attributes::default();
        attributes.put("server.address", text(""));
        attributes.put("net.peer.name", text("db1"));
        attributes.put("net.peer.port", Value::Whole(3306));
        attributes.put("enduser.id", text("me"));
        assert_eq!(attributes.text(Topic::Peer).as_deref(), Some("db1"));
        assert_eq!(attributes.text(Topic::PeerPort).as_deref(), Some("3306"));
        assert!(!attributes.has(Topic::Statement) && topic("enduser.id").is_none());
    }
}

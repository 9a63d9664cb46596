//! The shops of others: services as a developer would write them, in a framework that holdup's authors did not make. What
//! they need is installed into `target/shop`, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::app::{App, Place, database_host};
use super::database::Database;
use super::process::ask;
use crate::load::Operation;
use crate::statements;

/// Knobs that gunicorn and its workers read when they begin.
pub const AT_RELOAD: &[&str] = &["workers", "pool"];

/// Where the shops are written.
fn sources(root: &Path) -> PathBuf {
    root.join("xtask/strangers/app")
}

/// Installs by `install` into `folder`, unless what `list` says was installed there before.
fn installed(folder: &Path, list: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read_to_string(list).with_context(|| format!("failed to read {}", list.display()))?;
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(&stamp, wanted).with_context(|| format!("failed to write {}", stamp.display()))
}

/// A virtual environment with what Flask's shop needs. Returns its folder.
pub fn python(root: &Path) -> Result<PathBuf> {
    let (folder, list) = (root.join("target/shop/python"), sources(root).join("python.txt"));
    installed(&folder, &list, || {
        ask(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), "")?;
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&list);
        ask(&mut pip, "").map(drop).context("pip could not install Flask; it needs to reach PyPI or a mirror of it")
    })?;
    Ok(folder)
}

/// Starts Flask's shop in gunicorn.
pub fn flask_words(root: &Path) -> Result<Vec<String>> {
    let python = python(root)?.join("bin/python");
    let words = [&python.display().to_string(), "-uBm", "gunicorn", "--config"].map(str::to_owned);
    let options = sources(root).join("gunicorn.conf.py").display().to_string();
    Ok([&words[..], &[options, "shop:app".to_owned()]].concat())
}

/// What a shop reads from its environment.
pub fn variables(app: &App, database: &Database, place: &Place<'_>) -> Vec<(&'static str, String)> {
    let all = Operation::ALL.map(|operation| (operation.name(), statements::of_operation(operation)));
    let routes: serde_json::Map<String, serde_json::Value> =
        all.into_iter().map(|(name, statements)| (name, statements.into())).collect();
    vec![
        ("PYTHONPATH", sources(place.root).display().to_string()),
        ("SHOP_LISTEN", format!("{}:{}", app.host, app.port)),
        ("SHOP_DATABASE", format!("app@{}:{}/shop", database_host(place), database.port)),
        ("SHOP_DOWNSTREAM", format!("http://{}/stock", place.downstream)),
        ("SHOP_KNOBS", app.file.display().to_string()),
        ("SHOP_ROUTES", serde_json::Value::Object(routes).to_string()),
    ]
}

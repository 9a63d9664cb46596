//! The container image for all platforms, as an archive of OCI's image layout: nothing but the program, a user of its own, and
//! the folders that it writes to. It needs no daemon to be made.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::archives::{digest, tar};
use super::stage::Stage;
use super::{Platform, Release};
use crate::steps::{command, run as run_command};

/// The user in the image: nobody's on the host.
const USER: &str = "65532";

const MEDIA: &str = "application/vnd.oci.image";

/// Writes the archive `to`; `dir` serves to make it.
pub fn archive(release: &Release, stages: &[Stage], dir: &Path, to: &Path) -> Result<()> {
    let layout = Layout::new(&dir.join("layout"))?;
    let mut manifests = Vec::new();
    for stage in stages {
        let bare = layer(release, stage, &dir.join(stage.platform.cpu))?;
        manifests.push(layout.platform(release, stage.platform, &bare)?);
    }
    // One name for all platforms: the outer index has the name, the inner one the platforms.
    let mut all = layout.blob("index.v1+json", &layout.write("index", &index(&manifests))?)?;
    all["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    layout.write("index.json", &index(&[all]))?;
    tar(&layout.dir, &release.epoch, to, "--create", "0", &["blobs", "index.json", "oci-layout"])
}

/// The tar of the files of one platform. The program and the folder of passwd are root's, the rest is the user's.
fn layer(release: &Release, stage: &Stage, dir: &Path) -> Result<PathBuf> {
    for folder in ["etc", "tmp", "usr/bin", "var/lib/holdup"] {
        fs::create_dir_all(dir.join(folder))?;
    }
    fs::copy(stage.dir.join("usr/bin/holdup"), dir.join("usr/bin/holdup"))?;
    fs::write(dir.join("etc/passwd"), format!("holdup:x:{USER}:{USER}::/var/lib/holdup:/sbin/nologin\n"))?;
    let file = dir.with_extension("tar");
    tar(dir, &release.epoch, &file, "--create", "0", &["etc", "usr"])?;
    tar(dir, &release.epoch, &file, "--append", USER, &["tmp", "var/lib/holdup"])?;
    Ok(file)
}

fn index(manifests: &[Value]) -> Value {
    json!({"schemaVersion": 2, "mediaType": format!("{MEDIA}.index.v1+json"), "manifests": manifests})
}

/// A folder with blobs that are called as their digests.
struct Layout {
    dir: PathBuf,
}

impl Layout {
    fn new(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir.join("blobs/sha256"))?;
        let layout = Self { dir: dir.to_owned() };
        layout.write("oci-layout", &json!({"imageLayoutVersion": "1.0.0"}))?;
        Ok(layout)
    }

    fn write(&self, name: &str, value: &Value) -> Result<PathBuf> {
        let path = self.dir.join(name);
        fs::write(&path, value.to_string())?;
        Ok(path)
    }

    /// Takes a file in; returns what refers to it.
    fn blob(&self, kind: &str, file: &Path) -> Result<Value> {
        let digest = digest(file)?;
        let to = self.dir.join("blobs/sha256").join(&digest);
        fs::rename(file, &to)?;
        let size = fs::metadata(&to)?.len();
        Ok(json!({"mediaType": format!("{MEDIA}.{kind}"), "digest": format!("sha256:{digest}"), "size": size}))
    }

    /// Takes in the image of one platform, whose layer is the tar `bare`; returns what the index says of it.
    fn platform(&self, release: &Release, platform: &Platform, bare: &Path) -> Result<Value> {
        let inner = digest(bare)?;
        run_command(command(&self.dir, "gzip", &[Path::new("-nf9"), bare]))?;
        let layer = self.blob("layer.v1.tar+gzip", &bare.with_extension("tar.gz"))?;
        let config = json!({
            "architecture": platform.arch,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": ["PATH=/usr/bin"],
                "Entrypoint": ["/usr/bin/holdup"],
                "WorkingDir": "/var/lib/holdup",
                "Labels": {
                    "org.opencontainers.image.version": release.version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{inner}")]},
        });
        let config = self.blob("config.v1+json", &self.write("config", &config)?)?;
        let kind = "manifest.v1+json";
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": format!("{MEDIA}.{kind}"),
            "config": config,
            "layers": [layer],
        });
        let mut entry = self.blob(kind, &self.write("manifest", &manifest)?)?;
        entry["platform"] = json!({"architecture": platform.arch, "os": "linux"});
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows every digest from the index down, as a registry does.
    #[test]
    fn every_digest_is_that_of_its_blob() {
        let dir = std::env::temp_dir().join(format!("xtask-image-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let release = Release { version: "0.1.0", commit: String::new(), epoch: "1000000000".to_owned() };
        let layout = Layout::new(&dir.join("layout")).unwrap();
        fs::write(dir.join("a.tar"), "bytes").unwrap();
        let inner = digest(&dir.join("a.tar")).unwrap();
        let entry = layout.platform(&release, &super::super::PLATFORMS[1], &dir.join("a.tar")).unwrap();
        let blob = |described: &Value| {
            let name = described["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
            let path = layout.dir.join("blobs/sha256").join(&name);
            assert_eq!(digest(&path).unwrap(), name);
            assert_eq!(fs::metadata(&path).unwrap().len(), described["size"].as_u64().unwrap());
            fs::read(path).unwrap()
        };
        let manifest: Value = serde_json::from_slice(&blob(&entry)).unwrap();
        let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
        assert!(blob(&manifest["layers"][0]).starts_with(&[0x1f, 0x8b]));
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{inner}"));
        assert_eq!((&config["architecture"], &entry["platform"]["architecture"]), (&json!("arm64"), &json!("arm64")));
        assert_ne!(config["config"]["User"], "0:0");
        fs::remove_dir_all(dir).unwrap();
    }
}

//! easy_fuser's source as the registry has it, copied twice: to be left as it is, and to be changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub(crate) const NAME: &str = "easy_fuser";
pub(crate) const VERSION: &str = "0.7.1";

/// Two copies of one source.
pub(crate) struct Copies {
    pub(crate) stock: PathBuf,
    pub(crate) swapped: PathBuf,
    /// The root of this repository.
    pub(crate) repository: PathBuf,
}

pub(crate) fn copies() -> Result<Copies> {
    let ours = cargo_metadata(&["--no-deps"]).context("no metadata of this workspace")?;
    let room = path(&ours["target_directory"])?.join("drop-in");
    let original = registry_source(&room)?;
    let copies = Copies {
        stock: room.join("stock"),
        swapped: room.join("swapped"),
        repository: path(&ours["workspace_root"])?,
    };
    for copy in [&copies.stock, &copies.swapped] {
        if copy.exists() {
            fs::remove_dir_all(copy)?;
        }
        copy_tree(&original, copy).with_context(|| format!("no copy at {}", copy.display()))?;
        // It is in the folder of a workspace that it doesn't belong to.
        append(&copy.join("Cargo.toml"), "\n[workspace]\n")?;
    }
    Ok(copies)
}

pub(crate) fn append(file: &Path, text: &str) -> Result<()> {
    let old = fs::read_to_string(file)?;
    Ok(fs::write(file, old + text)?)
}

/// Has cargo fetch the crate, by way of a package that does nothing but depend on it.
fn registry_source(room: &Path) -> Result<PathBuf> {
    let package = room.join("fetch");
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/lib.rs"), "")?;
    let manifest = package.join("Cargo.toml");
    fs::write(
        &manifest,
        format!(
            "[package]\nname = \"fetch\"\nedition = \"2024\"\n\n\
             [dependencies]\n{NAME} = \"={VERSION}\"\n\n[workspace]\n"
        ),
    )?;
    let arguments = ["--manifest-path".as_ref(), manifest.as_os_str()];
    let metadata =
        cargo_metadata(&arguments).with_context(|| format!("cargo can't get {NAME} {VERSION}"))?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.find(|package| package["name"] == NAME);
    let found = found.with_context(|| format!("no {NAME} among what cargo got"))?;
    let manifest = path(&found["manifest_path"])?;
    Ok(manifest.parent().context("a manifest lies in a folder")?.to_owned())
}

fn cargo_metadata(arguments: &[impl AsRef<std::ffi::OsStr>]) -> Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1"])
        .args(arguments)
        .output()
        .context("cargo can't be run")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn path(value: &Value) -> Result<PathBuf> {
    Ok(PathBuf::from(value.as_str().context("cargo metadata has no such path")?))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

//! The settings of the sink: its section of a pipeline file, as JSON. Defaults are filled in before; those here serve
//! whoever opens the sink without a pipeline file.

use std::path::{Component, Path, PathBuf};

use contract::registry::Settings as Section;
use contract::{Error, Kind};
use iceberg::NamespaceIdent;
use serde_json::Value;

const INDEX_MEMORY: u64 = 256 * 1024 * 1024;

/// What the sink was asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// The warehouse's directory, absolute.
    pub(crate) root: PathBuf,
    /// Where tables and the pipeline's record live.
    pub(crate) namespace: NamespaceIdent,
    /// For the key indexes of all tables together.
    pub(crate) index_bytes_max: u64,
    /// How large a data file becomes; what a new table is told.
    pub(crate) file_bytes_target: Option<u64>,
}

impl Settings {
    /// Reads them. Names the first that will not do.
    pub(crate) fn read(section: &Section) -> Result<Self, Error> {
        if let Some(catalog) = text(section, "catalog")?.filter(|catalog| *catalog != "sql") {
            return Err(not_built("sink.catalog", catalog, "'sql': `catalog.db` in the directory that `sink.uri` names"));
        }
        match text(section, "deleteMode")? {
            None | Some("vectors" | "positional") => {}
            Some(mode) => return Err(not_built("sink.deleteMode", mode, "'vectors'")),
        }
        let uri = text(section, "uri")?.filter(|uri| !uri.is_empty());
        let uri = uri.ok_or_else(|| wrong("sink.uri", "it is missing; it names the warehouse's directory"))?;
        let index = section.get("keyIndex").and_then(Value::as_object);
        let defaults = section.get("defaults").and_then(Value::as_object);
        Ok(Self {
            root: directory(uri)?,
            namespace: namespace(text(section, "namespace")?.unwrap_or("default"))?,
            index_bytes_max: index
                .map(|index| bytes(index, "memory", "sink.keyIndex.memory"))
                .transpose()?
                .flatten()
                .unwrap_or(INDEX_MEMORY),
            file_bytes_target: defaults
                .map(|d| bytes(d, "targetFileSize", "sink.defaults.targetFileSize"))
                .transpose()?
                .flatten(),
        })
    }
}

fn text<'a>(section: &'a Section, name: &str) -> Result<Option<&'a str>, Error> {
    match section.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(&format!("sink.{name}"), "it must be text")),
    }
}

fn bytes(section: &Section, name: &str, path: &str) -> Result<Option<u64>, Error> {
    let number = match section.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => size(text),
        Some(_) => None,
    };
    number.map(Some).ok_or_else(|| wrong(path, "it must be a number of bytes, as 268435456 or 256Mi"))
}

fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" | "B" => 1,
        "Ki" | "KiB" => 1 << 10,
        "Mi" | "MiB" => 1 << 20,
        "Gi" | "GiB" => 1 << 30,
        "Ti" | "TiB" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

fn namespace(text: &str) -> Result<NamespaceIdent, Error> {
    let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    if parts.iter().any(|part| part.is_empty() || part.chars().any(|c| c.is_control() || c == '/')) {
        return Err(wrong("sink.namespace", "it must be a name, or names divided by dots"));
    }
    NamespaceIdent::from_vec(parts).map_err(|e| wrong("sink.namespace", e.message()))
}

/// The directory as an absolute path without links, as far as it exists: readers take it as it stands in the metadata.
fn directory(uri: &str) -> Result<PathBuf, Error> {
    let path = match uri.split_once("://") {
        None => uri,
        Some(("file", path)) if path.starts_with('/') => path,
        Some((scheme, _)) => return Err(not_built("sink.uri", &format!("{scheme}://..."), "a local directory")),
    };
    let failed = |e: std::io::Error| wrong("sink.uri", &format!("its path cannot be made absolute: {e}"));
    let absolute = std::path::absolute(Path::new(path)).map_err(failed)?;
    let there = absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let missing = absolute.strip_prefix(there).unwrap_or(Path::new(""));
    if missing.components().any(|part| part == Component::ParentDir) {
        return Err(wrong("sink.uri", "its path goes up from a directory that does not exist"));
    }
    Ok(there.canonicalize().map_err(failed)?.join(missing).components().collect())
}

fn wrong(field: &str, why: &str) -> Error {
    Error::new(Kind::Config, "iceberg-settings", format!("`{field}` will not do: {why}"), "correct it in the pipeline file")
}

fn not_built(field: &str, found: &str, instead: &str) -> Error {
    let what = format!("`{field}`: '{found}' is not built yet");
    Error::new(Kind::Config, "iceberg-not-built", what, format!("use {instead}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(section: Value) -> Result<Settings, Error> {
        let Value::Object(section) = section else { panic!("no section") };
        Settings::read(&section)
    }

    #[test]
    fn a_directory_alone_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let settings = read(json!({"kind": "iceberg", "uri": dir.path().join("a/b")})).unwrap();
        assert_eq!(settings.root, dir.path().canonicalize().unwrap().join("a/b"));
        assert_eq!(settings.namespace.to_string(), "default");
        assert_eq!((settings.index_bytes_max, settings.file_bytes_target), (256 << 20, None));
    }

    #[test]
    fn sizes_are_numbers_or_text() {
        for (given, bytes) in [(json!(1024), 1024), (json!("64Mi"), 64 << 20), (json!("3 GB"), 3_000_000_000), (json!("7"), 7)] {
            let section = json!({"uri": "/w", "keyIndex": {"memory": given}, "defaults": {"targetFileSize": given}});
            let settings = read(section).unwrap();
            assert_eq!((settings.index_bytes_max, settings.file_bytes_target), (bytes, Some(bytes)));
        }
        for given in [json!("64 mebibytes"), json!(-1), json!("Mi"), json!(true), json!("99999999999Ti")] {
            let error = read(json!({"uri": "/w", "keyIndex": {"memory": given}})).unwrap_err();
            assert_eq!(error.what, "`sink.keyIndex.memory` will not do: it must be a number of bytes, as 268435456 or 256Mi");
        }
    }

    #[test]
    fn what_is_not_built_says_so() {
        let cases = [
            (json!({"uri": "s3://bucket/w"}), "`sink.uri`: 's3://...' is not built yet"),
            (json!({"uri": "/w", "catalog": "rest"}), "`sink.catalog`: 'rest' is not built yet"),
            (json!({"uri": "/w", "deleteMode": "equality"}), "`sink.deleteMode`: 'equality' is not built yet"),
        ];
        for (section, what) in cases {
            let error = read(section).unwrap_err();
            assert_eq!((error.kind, error.what.as_str()), (Kind::Config, what));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (json!({}), "`sink.uri` will not do: it is missing; it names the warehouse's directory"),
            (json!({"uri": 7}), "`sink.uri` will not do: it must be text"),
            (json!({"uri": "/nowhere/../w"}), "`sink.uri` will not do: its path goes up from a directory that does not exist"),
            (
                json!({"uri": "/w", "namespace": "a..b"}),
                "`sink.namespace` will not do: it must be a name, or names divided by dots",
            ),
        ];
        for (section, what) in cases {
            assert_eq!(read(section).unwrap_err().what, what);
        }
    }

    #[test]
    fn links_and_file_uris_lead_to_the_same_directory() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("there")).unwrap();
        std::os::unix::fs::symlink(real.join("there"), real.join("link")).unwrap();
        let root = |uri: String| read(json!({"uri": uri})).unwrap().root;
        assert_eq!(root(real.join("link/w").display().to_string()), real.join("there/w"));
        assert_eq!(root(format!("file://{}/there/../there/w", real.display())), real.join("there/w"));
    }
}

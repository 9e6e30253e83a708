//! Reading a registry: schema documents in files, which references may lead to.

use std::fmt;
use std::path::{Path, PathBuf};

use louver::front::json_schema::Registry;
use louver::limits::Limits;
use louver::spec::json::Json;
use serde_json::Value;

/// Why a registry cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the registry's {path} {problem}")]
#[non_exhaustive]
pub struct RegistryError {
    /// The file or folder.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

impl RegistryError {
    fn new(path: &Path, problem: &str, cause: &dyn fmt::Display) -> RegistryError {
        RegistryError { path: path.display().to_string(), problem: format!("{problem}: {cause}") }
    }
}

/// Reads the schema documents of files and folders (all files `*.json` in them). A document is
/// known by its `$id`. Without `$id`, it is known by its `file:` URI and by its path below the
/// folder.
pub fn read_registry(paths: &[PathBuf]) -> Result<Registry, RegistryError> {
    let mut registry = Registry::new();
    for path in paths {
        if path.is_dir() {
            for file in files(path)? {
                let name = file.strip_prefix(path).unwrap_or(&file);
                add(&mut registry, &file, name)?;
            }
        } else {
            add(&mut registry, path, path.file_name().map_or(path.as_path(), Path::new))?;
        }
    }
    Ok(registry)
}

/// The URI of a registry's document for the `jsonschema` crate. To it, a relative reference in a
/// document without `$id` is below `json-schema:///`.
pub fn validator_uri(uri: &str) -> String {
    let is_absolute = uri.split('/').next().is_some_and(|head| head.contains(':'));
    if is_absolute { uri.to_owned() } else { format!("json-schema:///{uri}") }
}

/// Parses an instance for the `jsonschema` crate. Whole numbers become integers, also those that
/// are written as `-0`, `1.0` or `1e2`: the crate takes these for no integers in a list of types.
pub fn validator_instance(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::from_slice(text)?;
    write_integers(&mut value);
    Ok(value)
}

fn write_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(write_integers),
        Value::Object(members) => members.values_mut().for_each(write_integers),
        Value::Number(number) if number.is_f64() => {
            // Doubles up to 2^53 are exact.
            let exact = |x: &f64| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0;
            if let Some(whole) = number.as_f64().filter(exact) {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}

/// The files `*.json` in a folder and in folders below it, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, RegistryError> {
    let (mut out, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let unreadable =
            |error: std::io::Error| RegistryError::new(&folder, "cannot be read", &error);
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                out.push(path);
            }
        }
    }
    out.sort();
    Ok(out)
}

/// Adds a document under its identifier, or under its `file:` URI and its name.
fn add(registry: &mut Registry, file: &Path, name: &Path) -> Result<(), RegistryError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| RegistryError::new(file, "cannot be read", &error))?;
    let document = Json::parse(&text, &Limits::default())
        .map_err(|error| RegistryError::new(file, "is not JSON", &error))?;
    let identifier = ["$id", "id"].into_iter().find_map(|key| document.get(key)?.as_str());
    let uris = match identifier {
        Some(id) => vec![id.to_owned()],
        None => vec![file_uri(file)?, name.to_string_lossy().replace('\\', "/")],
    };
    for uri in uris {
        if registry.insert(&*uri, document.clone()).is_some() {
            return Err(RegistryError::new(file, "is the second document called", &uri));
        }
    }
    Ok(())
}

/// The `file:` URI of a file.
fn file_uri(file: &Path) -> Result<String, RegistryError> {
    let path = std::path::absolute(file)
        .map_err(|error| RegistryError::new(file, "has no absolute path", &error))?;
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().replace('\\', "/").bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b':' => uri.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_integers_for_validators() {
        let value = validator_instance(br#"[-0, 1.0, {"a": 1e2}, 1.5, 1e300, "1.0"]"#).unwrap();
        assert_eq!(value.to_string(), r#"[0,1,{"a":100},1.5,1e+300,"1.0"]"#);
        assert!(validator_instance(b"{").is_err());
    }

    #[test]
    fn documents_are_known_by_identifier_or_by_file() {
        let folder = std::env::temp_dir().join(format!("louver registry {}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("a.json", r#"{"$id": "https://example.org/a#", "type": "null"}"#);
        write("sub/b.json", r#"{"type": "integer"}"#);
        write("notes.txt", "not a schema");
        let registry = read_registry(std::slice::from_ref(&folder)).unwrap();
        let mut uris: Vec<&str> = registry.iter().map(|(uri, _)| uri).collect();
        uris.sort_unstable();
        let [file, id, name] = uris[..] else { panic!("{uris:?}") };
        assert_eq!((id, name), ("https://example.org/a", "sub/b.json"));
        assert!(file.starts_with("file:///") && file.contains("/louver%20registry%20"), "{file}");
        write("c.json", r#"{"$id": "https://example.org/a"}"#);
        let twice = read_registry(std::slice::from_ref(&folder)).unwrap_err().to_string();
        assert!(twice.contains("is the second document called"), "{twice}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

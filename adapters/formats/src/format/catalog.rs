//! The catalog of wire formats: those of Louver and those of a user.

use super::{FormatError, WireFormat};

/// The file name and text of every `families/*.toml`.
static FAMILIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/families.rs"));

/// Wire formats by name.
#[derive(Clone, Debug)]
pub struct Catalog {
    formats: Vec<WireFormat>,
}

/// No format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no wire format is called `{name}`; known: {}", known.join(", "))]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
    /// The names of the catalog.
    pub known: Vec<String>,
}

impl Catalog {
    /// The families that Louver ships. Cost: each call parses every family's file, so keep the
    /// catalog instead of calling this again.
    pub fn shipped() -> Catalog {
        let formats = FAMILIES.iter().map(|(file, text)| match WireFormat::from_toml(text) {
            Ok(format) => format,
            Err(error) => unreachable!("embedded family {file} (every one is tested): {error}"),
        });
        Catalog { formats: formats.collect() }
    }

    /// A catalog without formats.
    pub fn empty() -> Catalog {
        Catalog { formats: Vec::new() }
    }

    /// Adds a format. Replaces a format of the same name.
    pub fn add(&mut self, format: WireFormat) {
        match self.formats.iter_mut().find(|f| f.name == format.name) {
            Some(slot) => *slot = format,
            None => self.formats.push(format),
        }
    }

    /// Parses a format from TOML, adds it, and returns its name.
    pub fn add_toml(&mut self, text: &str) -> Result<String, FormatError> {
        Ok(self.add_named(WireFormat::from_toml(text)?))
    }

    /// The format of this name.
    pub fn get(&self, name: &str) -> Result<&WireFormat, UnknownFormat> {
        let found = self.formats.iter().find(|f| f.name == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned(), known: self.names() })
    }

    /// All formats.
    pub fn formats(&self) -> &[WireFormat] {
        &self.formats
    }

    /// The names of all formats.
    pub fn names(&self) -> Vec<String> {
        self.formats.iter().map(|f| f.name.clone()).collect()
    }

    /// As [`Catalog::add_toml`], from a file.
    pub fn add_file(&mut self, path: &std::path::Path) -> Result<String, FormatError> {
        Ok(self.add_named(WireFormat::from_file(path)?))
    }

    fn add_named(&mut self, format: WireFormat) -> String {
        let name = format.name.clone();
        self.add(format);
        name
    }
}

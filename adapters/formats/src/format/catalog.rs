//! The catalog of wire formats: those of Louver and those of a user.

use std::path::Path;

use super::{FormatError, UnknownFormat, WireFormat};

/// The file name and text of every `families/*.toml`.
static FAMILIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/families.rs"));

/// Wire formats by name.
#[derive(Clone, Debug)]
pub struct Catalog {
    formats: Vec<WireFormat>,
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

    /// The format of this name, or that of a description if the name ends with `.toml`.
    ///
    /// ```
    /// use louver_formats::Catalog;
    ///
    /// let catalog = Catalog::shipped();
    /// assert_eq!(catalog.named_or_file("qwen3")?.name, "qwen3");
    /// assert!(catalog.named_or_file("no/such/file.toml").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn named_or_file(&self, name: &str) -> Result<WireFormat, FormatError> {
        match name.ends_with(".toml") {
            true => WireFormat::from_file(Path::new(name)),
            false => Ok(self.get(name)?.clone()),
        }
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
    pub fn add_file(&mut self, path: &Path) -> Result<String, FormatError> {
        Ok(self.add_named(WireFormat::from_file(path)?))
    }

    fn add_named(&mut self, format: WireFormat) -> String {
        let name = format.name.clone();
        self.add(format);
        name
    }
}

//! Schema documents of `--registry`, which references may lead to.

use std::path::PathBuf;

use anyhow::Result;
use louver::front::json_schema::Registry;

/// The option `--registry`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RegistryArgs {
    /// A schema document, or a folder of them (*.json), that references may lead to; repeatable. A
    /// document is known by its `$id`. Without `$id`, it is known by its `file:` URI and by its
    /// path below the folder.
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) registry: Vec<PathBuf>,
}

impl RegistryArgs {
    /// Reads the documents.
    pub(crate) fn read(&self) -> Result<Registry> {
        Ok(louver_formats::read_registry(&self.registry)?)
    }
}

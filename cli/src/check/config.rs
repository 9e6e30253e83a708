//! `louver check --config`: a server's configuration, without loading its models.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use louver_server::{Config, ConfigError, ConfigFile, ModelConfig};

/// Prints all faults of a configuration file, or each model's effective settings.
pub(super) fn run(path: &Path) -> Result<ExitCode> {
    match read(path) {
        Ok(config) => {
            for model in &config.models {
                println!("{}", describe(&config, model));
            }
            println!("{}: valid", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ ConfigError::Read { .. }) => {
            Err(anyhow::Error::from(error).context("--config"))
        }
        Err(error) => {
            println!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn read(path: &Path) -> Result<Config, ConfigError> {
    let file = ConfigFile::open(path)?;
    let config = file.config()?;
    let faults: Vec<_> = config.faults().into_iter().chain(config.file_faults()).collect();
    if faults.is_empty() { Ok(config) } else { Err(file.error(faults)) }
}

/// A model and its effective settings, in TOML as a configuration may have them.
fn describe(config: &Config, model: &ModelConfig) -> String {
    let names = [&[model.served_name()], &model.aliases[..]].concat().join(", ");
    let is_local = Path::new(&model.model).exists();
    let hub = if is_local { "" } else { " on the Hugging Face Hub, which was not asked" };
    format!("# {names}: {}{hub}\n{}", model.model, config.settings(model).to_toml())
}

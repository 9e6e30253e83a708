//! Checks of the files that a configuration names, without loading a model.

use louver_formats::Catalog;

use crate::config::{Config, ConfigFault, ModelConfig};
use crate::device;
use crate::load::{self, LoadError, option_fault};
use crate::model_source::{self, ModelSource};

impl Config {
    /// The faults of files that the configuration names: models, templates, tokenizers, wire
    /// formats, the registry, programs of MCP servers; and of options that depend on them or on
    /// this build. Reads small files and the metadata of GGUF files; opens no other weights, no
    /// device and no network.
    pub fn file_faults(&self) -> Vec<ConfigFault> {
        let registry = louver_formats::read_registry(&self.registry).err();
        let registry = registry.map(|error| ConfigFault::new("registry", error.to_string()));
        let of_models = self.models.iter().enumerate().flat_map(|(i, model)| {
            let faults = model_faults(model).into_iter();
            faults.map(move |error| match error {
                LoadError::Option { member, problem, .. } => {
                    ConfigFault::new(format!("model[{i}].{member}"), problem)
                }
                other => ConfigFault::new(format!("model[{i}].model"), other.to_string()),
            })
        });
        let of_servers = self.mcp_servers.iter().enumerate().filter_map(|(i, server)| {
            Some(ConfigFault::new(format!("mcp[{i}].command"), server.command_fault()?))
        });
        registry.into_iter().chain(of_models).chain(of_servers).collect()
    }
}

fn model_faults(model: &ModelConfig) -> Vec<LoadError> {
    // Reported with the values.
    if model.model.is_empty() {
        return Vec::new();
    }
    let source = model_source::find(&model.model, model.tokenizer.is_some());
    let of_source = match &source {
        Ok(ModelSource::Gguf(file)) => {
            let fault = |source| LoadError::Model { model: model.served_name(), source };
            let file = louver_mistralrs::check_gguf(file).map_err(fault);
            vec![load::check_gguf_options(model), file]
        }
        _ => vec![load::isq(model, None).map(drop), load::tokenizer(model).map(drop)],
    };
    let formats = load::formats(model);
    let name = formats.as_ref().ok().and_then(|(name, formats)| {
        let mut catalog = Catalog::shipped();
        formats.iter().cloned().for_each(|format| catalog.add(format));
        let error = catalog.get(name.as_deref()?).err()?;
        Some(option_fault(model)("format", error.to_string()))
    });
    let device =
        device::missing_feature(model.device).map(|problem| option_fault(model)("device", problem));
    let others = [
        source.map(drop).map_err(LoadError::from),
        load::chat_template(model).map(drop),
        load::dtype(model).map(drop),
        formats.map(drop),
    ];
    let all = others.into_iter().chain(of_source).filter_map(Result::err);
    all.chain(name).chain(device).collect()
}

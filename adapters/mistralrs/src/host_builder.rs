//! The builder of a host, from what the SDK's model builders load.

use std::sync::Arc;

use mistralrs::SchedulerConfig;
use mistralrs_core::{AddModelConfig, MistralRsBuilder, Pipeline};
use tokio::sync::Mutex;

/// The builder of the host of a pipeline, with all settings of the SDK's builder.
pub(crate) fn host_builder(
    pipeline: Arc<Mutex<dyn Pipeline>>,
    scheduler: SchedulerConfig,
    config: AddModelConfig,
) -> MistralRsBuilder {
    let engine = &config.engine_config;
    let mut builder = MistralRsBuilder::new(
        pipeline,
        scheduler,
        engine.throughput_logging_enabled,
        engine.search_embedding_model,
    )
    .with_no_kv_cache(engine.no_kv_cache)
    .with_no_prefix_cache(engine.no_prefix_cache)
    .with_prefix_cache_n(engine.prefix_cache_n);
    if let Some(callback) = &engine.search_callback {
        builder = builder.with_search_callback(callback.clone());
    }
    if let Some(mcp) = &config.mcp_client_config {
        builder = builder.with_mcp_client(mcp.clone());
    }
    if let Some(loader) = &config.loader_config {
        builder = builder.with_loader_config(loader.clone());
    }
    with_host_tools(builder, config)
}

/// Adds the tools that the host runs itself.
#[cfg(not(feature = "mistralrs-0-9"))]
fn with_host_tools(mut builder: MistralRsBuilder, config: AddModelConfig) -> MistralRsBuilder {
    for (name, callback) in config.engine_config.tool_callbacks {
        builder = builder.with_tool_callback(name, callback);
    }
    for (name, tool) in config.engine_config.tool_callbacks_with_tools {
        builder = builder.with_tool_callback_and_tool(name, tool.callback, tool.tool);
    }
    builder
}

/// Adds the tools that the host runs itself.
#[cfg(feature = "mistralrs-0-9")]
fn with_host_tools(mut builder: MistralRsBuilder, config: AddModelConfig) -> MistralRsBuilder {
    for (name, tool) in config.engine_config.tool_callbacks {
        builder = builder.with_tool_callback_with_tool(name, tool);
    }
    if let Some(code) = config.code_exec_config {
        builder = builder.with_code_execution(code);
    }
    if let Some(shell) = config.shell_config {
        builder = builder.with_shell_execution(shell);
    }
    builder
}

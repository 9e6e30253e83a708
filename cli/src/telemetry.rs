//! What `louver serve` tells its operator: the log, and spans of requests by OTLP, the protocol of
//! OpenTelemetry.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// The default log levels. Two warnings of mistral.rs while it loads are left out: that the Hub
/// cannot be reached, which the error repeats, and that a GGUF model is on a GPU and the CPU, which
/// it says of every one on the CPU.
const DEFAULT_LOG: &str = "info,mistralrs_core=warn,mistralrs_quant=warn,\
                           mistralrs_core::pipeline::hf=error,mistralrs_core::pipeline::gguf=error";

/// Starts the log on standard error, and the export of spans if there is an endpoint. Call it
/// outside of the asynchronous runtime.
///
/// # Errors
///
/// The endpoint is not a URL, or this build has no export.
pub(crate) fn start(format: LogFormat, endpoint: Option<&str>) -> anyhow::Result<Export> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_LOG));
    let is_terminal = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(is_terminal);
    let log = match format {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    let registry = tracing_subscriber::registry().with(log.with_filter(filter));
    #[cfg(feature = "otel")]
    {
        let export = Export::start(endpoint)?;
        registry.with(export.layer()).init();
        Ok(export)
    }
    #[cfg(not(feature = "otel"))]
    {
        if endpoint.is_some() {
            anyhow::bail!(
                "--otlp-endpoint: this build has no export: build with `--features otel`"
            );
        }
        registry.init();
        Ok(NoExport)
    }
}

/// The export of spans: none in this build.
#[cfg(not(feature = "otel"))]
#[derive(Debug)]
pub(crate) struct NoExport;

#[cfg(not(feature = "otel"))]
impl NoExport {
    pub(crate) fn finish(self) {}
}

#[cfg(not(feature = "otel"))]
use NoExport as Export;

#[cfg(feature = "otel")]
pub(crate) use otlp::Export;

#[cfg(feature = "otel")]
mod otlp {
    use std::sync::Once;
    use std::time::Duration;

    use anyhow::Context;
    use opentelemetry::trace::TracerProvider;
    use opentelemetry::{Key, KeyValue, Value, global};
    use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
    use tracing::{Level, Subscriber};
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::registry::LookupSpan;

    /// The variables of OpenTelemetry that turn the export on, as the flag does.
    const ENDPOINT_VARIABLES: [&str; 2] =
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

    /// The variables of OpenTelemetry that choose between protobuf, the default, and JSON.
    const PROTOCOL_VARIABLES: [&str; 2] =
        ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"];

    /// The path of traces below a collector's address.
    const PATH: &str = "/v1/traces";

    /// An exporter that logs its first failure. The SDK logs none.
    #[derive(Debug)]
    struct LoggedExporter {
        exporter: SpanExporter,
        first_failure: Once,
    }

    impl opentelemetry_sdk::trace::SpanExporter for LoggedExporter {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            let result = self.exporter.export(batch).await;
            if let Err(error) = &result {
                self.first_failure.call_once(|| {
                    tracing::warn!(
                        "spans cannot be sent to the collector, and are lost; further failures \
                         are not logged: {error}"
                    );
                });
            }
            result
        }

        fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
            self.exporter.shutdown_with_timeout(timeout)
        }

        fn force_flush(&self) -> OTelSdkResult {
            self.exporter.force_flush()
        }

        fn set_resource(&mut self, resource: &Resource) {
            self.exporter.set_resource(resource);
        }
    }

    /// The export of spans, if there is an endpoint. A thread of its own sends them in batches;
    /// when that falls behind, spans are dropped and requests do not wait.
    #[derive(Debug)]
    pub(crate) struct Export(Option<SdkTracerProvider>);

    impl Export {
        /// Starts the export to `endpoint`, the collector's address with or without `/v1/traces`,
        /// or else to that of OpenTelemetry's environment variables.
        pub(super) fn start(endpoint: Option<&str>) -> anyhow::Result<Export> {
            let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            if endpoint.is_none() && !ENDPOINT_VARIABLES.into_iter().any(is_set) {
                return Ok(Export(None));
            }
            for name in PROTOCOL_VARIABLES {
                let value = std::env::var(name).unwrap_or_default();
                if !["", "http/protobuf", "http/json"].contains(&value.as_str()) {
                    anyhow::bail!("{name}={value}: spans are sent by http/protobuf or http/json");
                }
            }
            let exporter = SpanExporter::builder().with_http();
            let exporter = if PROTOCOL_VARIABLES.into_iter().any(is_set) {
                exporter
            } else {
                exporter.with_protocol(Protocol::HttpBinary)
            };
            let exporter = match endpoint {
                Some(base) => {
                    let base = base.trim_end_matches('/');
                    let base = base.strip_suffix(PATH).unwrap_or(base);
                    exporter.with_endpoint(format!("{base}{PATH}"))
                }
                None => exporter,
            };
            let exporter = exporter.build().context("--otlp-endpoint")?;
            global::set_text_map_propagator(TraceContextPropagator::new());
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(LoggedExporter { exporter, first_failure: Once::new() })
                .with_resource(resource())
                .build();
            Ok(Export(Some(provider)))
        }

        /// The layer that exports the server's spans, and its warnings and errors with them.
        pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
        where
            S: Subscriber + for<'a> LookupSpan<'a>,
        {
            let tracer = self.0.as_ref()?.tracer("louver");
            let exported = Targets::new()
                .with_target(louver_server::SPAN_TARGET, Level::TRACE)
                .with_target("louver_server", Level::WARN);
            let layer = tracing_opentelemetry::layer()
                .with_tracer(tracer)
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_tracked_inactivity(false);
            Some(layer.with_filter(exported))
        }

        /// Sends what is left. Call it outside of the asynchronous runtime.
        pub(crate) fn finish(self) {
            if let Some(Err(error)) = self.0.map(|provider| provider.shutdown()) {
                tracing::warn!("the last spans were not exported: {error}");
            }
        }
    }

    /// The service: `louver`, unless OpenTelemetry's environment variables name another.
    fn resource() -> Resource {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let named = Resource::builder().with_attribute(version.clone()).build();
        let is_named = named
            .get(&Key::from_static_str("service.name"))
            .is_some_and(|name: Value| !name.as_str().starts_with("unknown_service"));
        if is_named {
            named
        } else {
            Resource::builder().with_service_name("louver").with_attribute(version).build()
        }
    }
}

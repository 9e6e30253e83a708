//! Resource limits of the server. Every limit has a safe default and its own error.

use std::time::Duration;

use louver::limits::Limits;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::overrides::Overrides;
use crate::inspect::TraceLimits;

/// A duration; in TOML a positive number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(pub Duration);

/// Maximum configurable duration: one year.
const MAX_SECONDS: f64 = 31_536_000.0;

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        if seconds > 0.0 && seconds <= MAX_SECONDS {
            Ok(Seconds(Duration::from_secs_f64(seconds)))
        } else {
            Err(format!("must be a number of seconds above 0 and at most {MAX_SECONDS}"))
        }
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

impl Seconds {
    const fn whole(seconds: u64) -> Seconds {
        Seconds(Duration::from_secs(seconds))
    }

    /// The whole seconds, rounded up; at least 1.
    pub(crate) fn rounded_up(self) -> u64 {
        let begun = u64::from(self.0.subsec_nanos() > 0);
        self.0.as_secs().saturating_add(begun).max(1)
    }
}

/// All limits: the file given by `--limits`, or `[limits]` in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// Connections and bodies.
    pub http: HttpLimits,
    /// Requests.
    pub requests: RequestLimits,
    /// Schemas, grammars and parsers. `source_bytes` is replaced by `http.body_bytes`.
    #[serde(deserialize_with = "schema_limits")]
    pub schema: Limits,
    /// Recorded traces.
    pub traces: TraceLimits,
    /// Stored responses.
    pub responses: ResponseLimits,
}

/// Limits of the responses that the Responses API stores in memory. The oldest are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseLimits {
    /// Maximum number of responses; 0 stores none.
    pub responses: usize,
    /// Approximate maximum of memory, in bytes, of all responses with their conversations. A
    /// conversation of short items takes several times the length of its JSON text.
    pub bytes: usize,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        ResponseLimits { responses: 1024, bytes: 64 << 20 }
    }
}

/// Limits of connections and bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpLimits {
    /// Maximum body length in bytes; 413 beyond.
    pub body_bytes: usize,
    /// Total memory, in bytes, of the bodies of all clients, from the first byte until the
    /// generation begins: their text and 64 bytes for each value. The first 64 KiB of each body are
    /// not counted, nor the values of shorter bodies. 503 beyond.
    pub bodies_bytes: usize,
    /// Maximum number of connections. A further one evicts an inactive connection, or is answered
    /// 503.
    pub connections: usize,
    /// Maximum number of connections of one IPv4 address or one IPv6 /64 network; handled in the
    /// same way.
    pub connections_per_peer: usize,
    /// Time limit for a request head to arrive; then the connection is closed.
    pub header_timeout_s: Seconds,
    /// Time limit for a body to arrive; 408 beyond.
    pub read_timeout_s: Seconds,
    /// Time limit for a connection without a request.
    pub idle_timeout_s: Seconds,
    /// Time limit for a client that reads nothing of its response; then the request is cancelled.
    pub write_timeout_s: Seconds,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            body_bytes: 4 << 20,
            bodies_bytes: 64 << 20,
            connections: 1024,
            connections_per_peer: 256,
            header_timeout_s: Seconds::whole(10),
            read_timeout_s: Seconds::whole(30),
            idle_timeout_s: Seconds::whole(75),
            write_timeout_s: Seconds::whole(30),
        }
    }
}

/// Limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestLimits {
    /// Maximum number of concurrent generations. A request with `n` choices counts as `n`.
    pub concurrent: usize,
    /// Maximum number of waiting requests; 429 beyond.
    pub queue: usize,
    /// Time limit for a waiting request; 429 beyond.
    pub queue_timeout_s: Seconds,
    /// Time limit for a request, including waiting: 408, or an error event in a stream.
    pub timeout_s: Seconds,
    /// Maximum tokens of one generation; also the default if a request has no limit.
    pub max_tokens: usize,
    /// Maximum bytes of a prompt as rendered by the chat template; 400 beyond, before tokenization.
    pub prompt_bytes: usize,
    /// Maximum number of choices.
    pub n: usize,
    /// Maximum number of messages and of the calls in them, together.
    pub messages: usize,
    /// Maximum number of tools.
    pub tools: usize,
    /// Maximum number of stop strings.
    pub stop: usize,
    /// Maximum number of concurrent checks (`/v1/louver/check`). Eight times as many wait; 429
    /// beyond.
    pub checks: usize,
    /// Time limit for a check, including waiting; 408 beyond.
    pub check_timeout_s: Seconds,
}

/// Number of waiting checks per running check.
const WAITING_CHECKS_PER_SLOT: usize = 8;

impl RequestLimits {
    /// The limits of the admission gate of checks.
    pub(crate) fn for_checks(self) -> RequestLimits {
        let queue = self.checks.saturating_mul(WAITING_CHECKS_PER_SLOT);
        RequestLimits {
            concurrent: self.checks,
            queue,
            queue_timeout_s: self.check_timeout_s,
            ..self
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            concurrent: 32,
            queue: 256,
            queue_timeout_s: Seconds::whole(60),
            timeout_s: Seconds::whole(600),
            max_tokens: 16_384,
            prompt_bytes: 1 << 20,
            n: 8,
            messages: 4096,
            tools: 1024,
            stop: 16,
            checks: 2,
            check_timeout_s: Seconds::whole(10),
        }
    }
}

/// Maximum configurable depth; bodies are parsed recursively.
const MAX_DEPTH: usize = 512;

/// Reads limits of schemas. That of their length is the one of bodies.
fn schema_limits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
    let members = Overrides::<Limits>::deserialize(deserializer)?;
    if members.has(SOURCE_BYTES) {
        return Err(D::Error::custom(format!("{SOURCE_BYTES}: {NO_SOURCE_BYTES}")));
    }
    Ok(members.apply(&Limits::default()))
}

/// The member of [`Limits`] that `[limits.schema]` does not have.
pub(crate) const SOURCE_BYTES: &str = "source_bytes";

/// What is wrong with that member.
pub(crate) const NO_SOURCE_BYTES: &str = "use the member `http.body_bytes` of the limits";

/// The invalid limits of schemas: members, and what they must be.
pub(crate) fn schema_faults(limits: &Limits) -> Vec<(&'static str, String)> {
    let mut out = zeros(&[
        ("depth", limits.depth as u64),
        ("compile_fuel", limits.compile_fuel),
        ("mask_fuel", limits.mask_fuel),
        ("sequence_fuel", limits.sequence_fuel),
    ]);
    if limits.depth > MAX_DEPTH {
        out.push(("depth", format!("must be at most {MAX_DEPTH}")));
    }
    out
}

/// The faults of values that must not be 0.
pub(crate) fn zeros(values: &[(&'static str, u64)]) -> Vec<(&'static str, String)> {
    let zeros = values.iter().filter(|(_, value)| *value == 0);
    zeros.map(|(name, _)| (*name, "must not be 0".to_owned())).collect()
}

impl ServerLimits {
    /// The engine's limits.
    pub fn engine(&self) -> Limits {
        self.schema.clone().with_source_bytes(self.http.body_bytes)
    }

    /// The invalid limits: their names, and what they must be.
    pub(crate) fn faults(&self) -> Vec<(String, String)> {
        let schema = schema_faults(&self.schema).into_iter();
        let schema = schema.map(|(name, problem)| (format!("schema.{name}"), problem));
        let others = self.other_faults().into_iter();
        schema.chain(others.map(|(name, problem)| (name.to_owned(), problem))).collect()
    }

    fn other_faults(&self) -> Vec<(&'static str, String)> {
        let mut out = zeros(&[
            ("http.body_bytes", self.http.body_bytes as u64),
            ("http.bodies_bytes", self.http.bodies_bytes as u64),
            ("http.connections", self.http.connections as u64),
            ("http.connections_per_peer", self.http.connections_per_peer as u64),
            ("requests.concurrent", self.requests.concurrent as u64),
            ("requests.max_tokens", self.requests.max_tokens as u64),
            ("requests.prompt_bytes", self.requests.prompt_bytes as u64),
            ("requests.n", self.requests.n as u64),
            ("requests.messages", self.requests.messages as u64),
            ("requests.checks", self.requests.checks as u64),
        ]);
        let HttpLimits { body_bytes, bodies_bytes, .. } = self.http;
        if bodies_bytes > 0 && bodies_bytes < body_bytes {
            out.push(("http.bodies_bytes", "must be at least http.body_bytes".to_owned()));
        }
        for (name, value, most) in [
            // A semaphore with `u32` permits counts these bytes.
            ("http.bodies_bytes", self.http.bodies_bytes, u32::MAX as usize),
            ("http.connections", self.http.connections, 1_000_000),
            ("requests.concurrent", self.requests.concurrent, 100_000),
            ("requests.checks", self.requests.checks, 100_000),
        ] {
            if value > most {
                out.push((name, format!("must be at most {most}")));
            }
        }
        let RequestLimits { n, concurrent, .. } = self.requests;
        if concurrent > 0 && n > concurrent {
            let problem = format!(
                "is {n} (8 by default) and must be at most `concurrent` ({concurrent}): set it, too"
            );
            out.push(("requests.n", problem));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        for (millis, whole) in [(0, 1), (200, 1), (1000, 1), (1001, 2), (1900, 2), (30_000, 30)] {
            assert_eq!(Seconds(Duration::from_millis(millis)).rounded_up(), whole, "{millis} ms");
        }
    }

    #[test]
    fn limits_are_parsed_and_validated() {
        let limits: ServerLimits = toml::from_str(
            "[http]\nbody_bytes = 1000\nwrite_timeout_s = 0.5\n[requests]\nconcurrent = 4\nn = 2\n\
             [schema]\ndepth = 64",
        )
        .unwrap();
        assert_eq!(
            (limits.http.body_bytes, limits.requests.concurrent, limits.schema.depth),
            (1000, 4, 64)
        );
        assert_eq!(limits.http.write_timeout_s, Seconds(Duration::from_millis(500)));
        assert_eq!((limits.engine().source_bytes, limits.engine().depth), (1000, 64));
        assert_eq!(limits.faults(), []);
        assert_eq!(ServerLimits::default().faults(), []);
        for (text, at) in [
            ("[requests]\nconcurrent = 2", &["requests.n"][..]),
            ("[http]\nbody_bytes = 0", &["http.body_bytes"]),
            ("[http]\nbodies_bytes = 0", &["http.bodies_bytes"]),
            ("[requests]\nconcurrent = 0", &["requests.concurrent"]),
            ("[http]\nbody_bytes = 100\nbodies_bytes = 10", &["http.bodies_bytes"]),
            ("[http]\nconnections = 2000000", &["http.connections"]),
            ("[schema]\ndepth = 100000\nmask_fuel = 0", &["schema.mask_fuel", "schema.depth"]),
        ] {
            let faults = toml::from_str::<ServerLimits>(text).unwrap().faults();
            assert_eq!(faults.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), at);
        }
        for wrong in [
            "[http]\nwrite_timeout_s = 0",
            "[http]\nbytes = 1",
            "[http]\nidle_timeout_s = -1.0",
            "[schema]\nsource_bytes = 1",
            "[schema]\ndepth = -1",
            "x = 1",
        ] {
            assert!(toml::from_str::<ServerLimits>(wrong).is_err(), "{wrong}");
        }
    }
}

//! Spans and events of requests, as a subscriber gets them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use louver_server::SPAN_TARGET;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[path = "api/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the API")]
mod support;

use support::{Processor, Server, ask, data, rest, tools};

type Fields = BTreeMap<&'static str, String>;

/// A span or an event.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    level: Level,
    fields: Fields,
}

/// Collects the server's spans and events.
#[derive(Clone, Default)]
struct Collector {
    next: Arc<AtomicU64>,
    spans: Arc<Mutex<BTreeMap<u64, Entry>>>,
    events: Arc<Mutex<Vec<Entry>>>,
}

struct FieldVisitor<'f>(&'f mut Fields);

impl Visit for FieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        target == SPAN_TARGET
            || target.starts_with("louver_server")
            || metadata.is_event() && target.starts_with("louver_host")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let (metadata, mut fields) = (attributes.metadata(), Fields::new());
        attributes.record(&mut FieldVisitor(&mut fields));
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Entry { name: metadata.name().to_owned(), level: *metadata.level(), fields };
        self.spans.lock().unwrap().insert(id, entry);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(entry) = self.spans.lock().unwrap().get_mut(&span.into_u64()) {
            values.record(&mut FieldVisitor(&mut entry.fields));
        }
    }

    fn event(&self, event: &Event<'_>) {
        let (metadata, mut fields) = (event.metadata(), Fields::new());
        event.record(&mut FieldVisitor(&mut fields));
        let name = fields.remove("message").unwrap_or_default();
        self.events.lock().unwrap().push(Entry { name, level: *metadata.level(), fields });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Collector {
    /// The spans of this name since the last call.
    fn take_spans(&self, name: &str) -> Vec<Entry> {
        let mut spans = self.spans.lock().unwrap();
        let found = spans.values().filter(|span| span.name == name).cloned().collect();
        spans.retain(|_, span| span.name != name);
        found
    }

    fn take_events(&self) -> Vec<Entry> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

/// The only event whose message begins like this.
fn only_event<'e>(events: &'e [Entry], start: &str) -> &'e Entry {
    let found: Vec<&Entry> = events.iter().filter(|event| event.name.starts_with(start)).collect();
    assert_eq!(found.len(), 1, "{start}: {events:#?}");
    found[0]
}

/// Rows of NaN.
const NAN: usize = 1;
/// No rows.
const FAILING: usize = 2;

/// A processor that can be told to be odd.
fn odd_processor() -> (Processor, Arc<AtomicUsize>) {
    let odd = Arc::new(AtomicUsize::new(0));
    let kind = odd.clone();
    let processor: Processor =
        Arc::new(move |logits: &mistralrs::Tensor, _: &[u32]| match kind.load(Ordering::Relaxed) {
            NAN => logits.affine(f64::NAN, f64::NAN),
            FAILING => logits.narrow(9, 0, 1),
            _ => Ok(logits.clone()),
        });
    (processor, odd)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_have_spans_and_events() {
    let collector = Collector::default();
    tracing::subscriber::set_global_default(collector.clone()).unwrap();
    let (processor, odd) = odd_processor();
    let server = Server::with_processor("[preparation]\ncandidates = 1\n", processor).await;
    collector.take_events();

    let call = json!({"tools": tools(), "tool_choice": "required", "max_tokens": 300});
    let answer = server.chat(&ask(call)).await;
    let usage = answer.json()["usage"].clone();
    assert_eq!(answer.status, 200, "{}", answer.text);
    let [plan] = &collector.take_spans("plan")[..] else { panic!("one plan") };
    for (field, value) in [
        ("gen_ai.request.model", "tiny"),
        ("louver.format", "qwen3"),
        ("louver.tools", "2"),
        ("gen_ai.usage.input_tokens", &usage["prompt_tokens"].to_string()),
    ] {
        assert_eq!(plan.fields[field], value, "{plan:#?}");
    }
    let [generation] = &collector.take_spans("generation")[..] else { panic!("one generation") };
    for (field, value) in [
        ("gen_ai.response.model", "tiny"),
        ("louver.format", "qwen3"),
        ("louver.tools", "2"),
        ("louver.finish", "stop"),
        ("gen_ai.usage.output_tokens", &usage["completion_tokens"].to_string()),
    ] {
        assert_eq!(generation.fields[field], value, "{generation:#?}");
    }
    let events = collector.take_events();
    assert_eq!(only_event(&events, "masks are prepared").fields["masks"], "512");
    let prepared = only_event(&events, "masks were prepared");
    assert_eq!((prepared.level, &*prepared.fields["candidates"]), (Level::DEBUG, "1"));
    assert_eq!(generation.fields["louver.prepared_masks"], prepared.fields["built"]);
    // Nothing per token: a generation of many tokens has no more events than these.
    assert!(usage["completion_tokens"].as_u64() > Some(20) && events.len() < 8, "{events:#?}");
    let requests = collector.take_spans("request");
    let routes = requests.iter().map(|span| span.fields.get("route"));
    let named = requests.iter().filter(|span| span.fields.contains_key("http.route"));
    assert_eq!((routes.flatten().count(), named.count()), (1, 1), "{requests:#?}");

    // A fault.
    assert_eq!(server.chat(&json!({"messages": 1})).await.status, 400);
    let events = collector.take_events();
    assert_eq!(only_event(&events, "rejected: ").fields["code"], "invalid_type");

    let schema_request = |schema: Value, max_tokens: u32| {
        let format = json!({"type": "json_schema", "json_schema": {"schema": schema}});
        ask(json!({"response_format": format, "max_tokens": max_tokens}))
    };
    // A truncation.
    server.chat(&schema_request(json!({"type": "string", "minLength": 100}), 4)).await;
    let events = collector.take_events();
    let about_limit = |events: &[Entry]| {
        let limit = events.iter().filter(|event| event.name.contains("length limit"));
        limit.map(|event| event.level).collect::<Vec<_>>()
    };
    assert_eq!(only_event(&events, "truncated at the length limit").level, Level::DEBUG);
    assert_eq!(about_limit(&events), [Level::DEBUG]);
    collector.take_spans("generation");

    // A completion near the limit.
    let text = json!({"type": "string", "minLength": 40, "maxLength": 4000});
    server.chat(&schema_request(text, 60)).await;
    let events = collector.take_events();
    only_event(&events, "narrowed near the length limit");
    assert_eq!(about_limit(&events), [Level::DEBUG]);
    collector.take_spans("generation");

    // A host that cancels, which mistral.rs does with all generations of the process.
    let long = json!({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3000});
    let (stream, _) = server.begin(&schema_request(long, 7000)).await;
    mistralrs_core::TERMINATE_ALL_NEXT_STEP.store(true, Ordering::SeqCst);
    let text = rest(stream).await;
    let last: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "host", "{last}");
    let [generation] = &collector.take_spans("generation")[..] else { panic!("one generation") };
    assert_eq!(generation.fields["louver.finish"], "cancelled");
    collector.take_events();

    // Rows without a usable logit, and a host that fails.
    odd.store(NAN, Ordering::Relaxed);
    let choice = json!({"type": "json_schema", "json_schema": {"schema": {"enum": ["a", "b"]}}});
    assert_eq!(server.chat(&ask(json!({"response_format": choice}))).await.status, 200);
    let events = collector.take_events();
    let warnings: Vec<&Entry> = events.iter().filter(|event| event.level == Level::WARN).collect();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].name.starts_with("repaired row"), "{warnings:#?}");
    let [generation] = &collector.take_spans("generation")[..] else { panic!("one generation") };
    let rows = &generation.fields["louver.repaired_rows"];
    assert!(rows.parse::<usize>().is_ok_and(|rows| rows > 0), "{generation:#?}");
    odd.store(FAILING, Ordering::Relaxed);
    assert_eq!(server.chat(&ask(json!({}))).await.status, 500);
    let events = collector.take_events();
    assert_eq!(only_event(&events, "the generation failed: ").level, Level::WARN);
    let [generation] = &collector.take_spans("generation")[..] else { panic!("one generation") };
    assert_eq!(generation.fields["louver.finish"], "error");
}

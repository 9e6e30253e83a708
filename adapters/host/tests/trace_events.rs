//! The spans and events of `tracing` that a plan and its generations emit.

#[path = "conformance/rig.rs"]
mod rig;

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use louver::{EngineOptions, Limits, PrepareBudget};
use louver_host::{
    Completion, DrawnBy, EnforcementError, Finish, Generation, GenerationError, PreparedGeneration,
};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use rig::{
    AMPLE, LOUVER, PROMPT, STOP, STOPPED, WIDTH, direct, finish, generate, largest, plan, plan_of,
    prepare,
};

/// Keeps spans and events as lines: the level, and the name and fields.
#[derive(Clone, Default)]
struct Collector {
    lines: Arc<Mutex<Vec<(Level, String)>>>,
    spans: Arc<AtomicU64>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?} "),
            name => write!(self.0, "{name}={value:?} "),
        };
    }
}

impl Collector {
    fn push(&self, level: Level, start: &str, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields(format!("{start} "));
        record(&mut fields);
        self.lines.lock().unwrap().push((level, fields.0.trim().to_owned()));
    }
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let metadata = span.metadata();
        self.push(*metadata.level(), &format!("span {}", metadata.name()), |f| span.record(f));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.push(Level::TRACE, "record", |f| values.record(f));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert!(event.parent().is_some() || event.is_contextual(), "an event without a place");
        self.push(*event.metadata().level(), "event", |f| event.record(f));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The lines above the level `TRACE` that `run` emits, and the number of the others.
fn collect(run: impl FnOnce()) -> (Vec<(Level, String)>, usize) {
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), run);
    let lines = std::mem::take(&mut *collector.lines.lock().unwrap());
    let all = lines.len();
    let kept: Vec<_> = lines.into_iter().filter(|(level, _)| *level < Level::TRACE).collect();
    let traced = all - kept.len();
    (kept, traced)
}

fn texts(lines: &[(Level, String)]) -> Vec<(Level, &str)> {
    lines.iter().map(|(level, text)| (*level, text.as_str())).collect()
}

const GENERATION: &str = "span generation prompt_tokens=5 limit=200 seed=7";

#[test]
fn plans_and_generations_emit_spans_and_events() {
    // A usual generation: nothing for each token.
    let (lines, _) = collect(|| {
        let plan = plan();
        let _preparation = plan.prepare_masks(PrepareBudget::default());
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
        generate(&direct(hook), AMPLE);
        finish((events, task), STOPPED).unwrap();
    });
    let expected = [
        (Level::DEBUG, "span plan format=\"hermes\" tools=1"),
        (Level::DEBUG, "event preparation: first masks in the background"),
        (Level::DEBUG, GENERATION),
    ];
    assert_eq!(texts(&lines), expected);
    let plan = plan();
    // Rows of NaN: one event for all.
    let mut repaired = 0;
    let (lines, traced) = collect(|| {
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
        let mut context = PROMPT.to_vec();
        loop {
            let mut row = vec![f32::NAN; WIDTH];
            hook.apply(&mut row, &context);
            repaired += 1;
            match largest(&row) {
                STOP => break,
                token => context.push(token),
            }
        }
        finish((events, task), STOPPED).unwrap();
    });
    let nan = (Level::WARN, "event repaired row: NaN or infinite logits");
    assert_eq!(texts(&lines), [(Level::DEBUG, GENERATION), nan]);
    assert!(traced >= repaired - 1 && repaired > 10);
    // An error, and a host that does not call.
    let (lines, _) = collect(|| {
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
        let mut row = vec![0.0; WIDTH];
        (0..3).for_each(|_| hook.apply(&mut row, &[&PROMPT[..], &[259]].concat()));
        finish((events, task), STOPPED).unwrap_err();
        let PreparedGeneration { events, task, .. } = prepare(&plan, LOUVER, AMPLE);
        finish((events, task), Some(Ok(Finish::Stop))).unwrap_err();
    });
    let [_, (Level::WARN, rejected), _, (Level::WARN, bypassed)] = &texts(&lines)[..] else {
        panic!("{lines:?}")
    };
    assert!(
        rejected.starts_with("event enforcement failed error=the host chose token 259"),
        "{rejected}"
    );
    assert!(
        bypassed.starts_with("event enforcement failed error=the host generated without"),
        "{bypassed}"
    );
    // Near the length limit.
    let ended = |limit: usize, drawn_by: DrawnBy| {
        collect(|| {
            let PreparedGeneration { hook, events, task, .. } = prepare(&plan, drawn_by, limit);
            generate(&direct(hook), limit);
            finish((events, task), STOPPED).unwrap();
        })
    };
    let (lines, _) = ended(3, LOUVER);
    let truncated = (Level::DEBUG, "event truncated at the length limit");
    assert_eq!(texts(&lines)[1..], [truncated]);
}

/// The result and the lines of a generation of a required call with a string.
fn string_call(
    schema: serde_json::Value,
    options: EngineOptions,
    limit: usize,
) -> Option<(Result<Generation, GenerationError>, Vec<(Level, String)>)> {
    let parameters =
        json!({"type": "object", "properties": {"note": schema}, "required": ["note"]});
    let plan = plan_of(parameters, options).ok()?;
    let mut result = None;
    let (lines, _) = collect(|| {
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, limit);
        generate(&direct(hook), limit);
        result = Some(finish((events, task), STOPPED));
    });
    Some((result?, lines))
}

#[test]
fn completions_near_the_limit_emit_an_event() {
    let schema = json!({"type": "string", "minLength": 10, "maxLength": 150});
    let (result, lines) = string_call(schema, EngineOptions::default(), 100).unwrap();
    assert_eq!(result.unwrap().report.completion, Completion::Limited);
    assert_eq!(texts(&lines)[1..], [(Level::DEBUG, "event narrowed near the length limit")]);
}

#[test]
fn limits_of_the_engine_emit_an_event() {
    // With little fuel the plan is refused, with much the call ends; between, a mask is too costly.
    let limited = (6..24).find_map(|power| {
        let limits = Limits::default().with_mask_fuel(1 << power);
        let options = EngineOptions::default().with_limits(limits);
        let schema = json!({"type": "string", "pattern": "^(a|b)*a(a|b){14}$"});
        let (result, lines) = string_call(schema, options, AMPLE)?;
        matches!(result, Err(GenerationError::Enforcement(EnforcementError::Limit(_))))
            .then_some(lines)
    });
    let lines = limited.expect("an amount of fuel between");
    let [_, (Level::DEBUG, limit)] = &texts(&lines)[..] else { panic!("{lines:?}") };
    assert!(limit.starts_with("event limit reached limit=\"fuel"), "{limit}");
}

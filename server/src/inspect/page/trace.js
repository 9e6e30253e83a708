// Parses a recorded trace, and computes the state of the turn after a number of tokens.
// A trace is untrusted input: every member is checked before it is used.

export const PHASES = [
  "text",
  "reasoning",
  "response",
  "marker",
  "header",
  "arguments",
  "trailer",
  "free",
];

/** The text is not a trace. The message names the JSON pointer of the wrong value. */
export class TraceError extends Error {}

const KINDS = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  array: Array.isArray,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/** The value, if it is of this kind; otherwise a TraceError. */
function need(value, kind, pointer) {
  if (!KINDS[kind](value)) {
    const article = kind === "array" || kind === "object" ? "an" : "a";
    throw new TraceError(`${pointer || "/"}: expected ${article} ${kind}`);
  }
  return value;
}

/** The value, if it is a finite number. JSON has no infinity: such values are null or absent. */
function numberOr(value, fallback) {
  return KINDS.number(value) ? value : fallback;
}

function candidate(value, pointer) {
  need(value, "object", pointer);
  return {
    token: need(value.token, "number", `${pointer}/token`),
    text: need(value.text, "string", `${pointer}/text`),
    logprob: numberOr(value.logprob, -Infinity),
    reason: typeof value.reason === "string" ? value.reason : "",
  };
}

function candidates(value, pointer) {
  return need(value ?? [], "array", pointer).map((entry, i) => candidate(entry, `${pointer}/${i}`));
}

function step(value, pointer) {
  need(value, "object", pointer);
  const phase = need(value.phase, "string", `${pointer}/phase`);
  return {
    token: need(value.token, "number", `${pointer}/token`),
    text: need(value.text, "string", `${pointer}/text`),
    phase: PHASES.includes(phase) ? phase : "free",
    allowed: need(value.allowed, "number", `${pointer}/allowed`),
    removed: Math.min(1, Math.max(0, numberOr(value.removed_mass, 0))),
    logprob: numberOr(value.logprob, -Infinity),
    top: candidates(value.top, `${pointer}/top`),
    refused: candidates(value.refused, `${pointer}/refused`),
    forced: value.forced === true,
  };
}

function positionedEvent(value, pointer) {
  need(value, "object", pointer);
  need(value.event, "object", `${pointer}/event`);
  need(value.event.type, "string", `${pointer}/event/type`);
  return { tokens: need(value.tokens, "number", `${pointer}/tokens`), event: value.event };
}

/** Parses a trace from JSON text. Throws a TraceError with the reason and the JSON pointer. */
export function parseTrace(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TraceError(`not JSON: ${error.message}`);
  }
  need(value, "object", "");
  const steps = need(value.steps, "array", "/steps").map((entry, i) => step(entry, `/steps/${i}`));
  const eventEntries = need(value.events ?? [], "array", "/events");
  const events = eventEntries.map((entry, i) => positionedEvent(entry, `/events/${i}`));
  const request = KINDS.object(value.request) ? value.request : {};
  return {
    id: typeof value.id === "string" ? value.id : "(no id)",
    created: numberOr(value.created, 0),
    request,
    // Unconstrained steps also count the ids beyond the vocabulary as allowed.
    vocabulary: steps.reduce(
      (largest, entry) => Math.max(largest, entry.allowed),
      Math.max(1, numberOr(value.vocabulary, 0)),
    ),
    promptTokens: numberOr(value.prompt_tokens, 0),
    finish: typeof value.finish === "string" ? value.finish : "",
    cut: value.cut === true,
    report: KINDS.object(value.report) ? value.report : {},
    timing: KINDS.object(value.timing) ? value.timing : {},
    steps,
    events,
  };
}

/** The parts of the turn after step `current`, in the order in which they began. */
export function turnAt(trace, current) {
  const parts = [];
  const calls = new Map();
  const append = (kind, delta) => {
    const last = parts[parts.length - 1];
    if (last?.kind === kind) {
      last.text += delta;
    } else {
      parts.push({ kind, text: delta });
    }
  };
  for (const { tokens, event } of trace.events) {
    if (tokens > current + 1) {
      continue;
    }
    const delta = String(event.delta ?? "");
    const call = calls.get(event.index);
    switch (event.type) {
      case "text_delta":
        append("text", delta);
        break;
      case "reasoning_delta":
        append("reasoning", delta);
        break;
      case "call_start": {
        const started = {
          kind: "call",
          name: String(event.name ?? ""),
          id: String(event.id ?? ""),
          custom: event.kind === "custom",
          text: "",
          complete: false,
        };
        calls.set(event.index, started);
        parts.push(started);
        break;
      }
      case "arguments_delta":
        if (call) call.text += delta;
        break;
      case "call_end":
        if (call) call.complete = true;
        break;
      case "incomplete":
        parts.push({
          kind: "cut",
          text: String(event.why ?? ""),
          partial: String(event.partial ?? ""),
        });
        break;
      case "end":
        parts.push({ kind: "end", text: "" });
        break;
      default:
        parts.push({ kind: event.type, text: JSON.stringify(event) });
    }
  }
  return parts;
}

/**
 * The nearest step after (direction 1) or before (direction -1) `current` at which a call
 * begins or ends.
 * Without one, the last or the first step.
 */
export function nextCallBoundary(trace, current, direction) {
  const steps = trace.events
    .filter(({ event }) => event.type === "call_start" || event.type === "call_end")
    .map(({ tokens }) => Math.max(0, tokens - 1))
    .filter((step) => (direction > 0 ? step > current : step < current));
  const end = direction > 0 ? trace.steps.length - 1 : 0;
  return steps.length === 0 ? end : direction > 0 ? Math.min(...steps) : Math.max(...steps);
}

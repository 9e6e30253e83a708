// A recorded trace: read with care (it may be anybody's text), and what the turn looks like after so many tokens.

export const PHASES = ["text", "reasoning", "response", "marker", "header", "arguments", "trailer", "free"];

/** A trace that is not one: says where. */
export class TraceError extends Error {}

const KINDS = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  array: Array.isArray,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

function need(value, kind, place) {
  if (!KINDS[kind](value)) {
    throw new TraceError(`${place || "/"}: expected ${kind === "array" || kind === "object" ? "an" : "a"} ${kind}`);
  }
  return value;
}

/** A probability, which JSON can only say as a number or not at all. */
function number(value, otherwise) {
  return KINDS.number(value) ? value : otherwise;
}

function candidate(value, place) {
  need(value, "object", place);
  return {
    token: need(value.token, "number", `${place}/token`),
    text: need(value.text, "string", `${place}/text`),
    logprob: number(value.logprob, -Infinity),
    reason: typeof value.reason === "string" ? value.reason : "",
  };
}

function candidates(value, place) {
  return need(value ?? [], "array", place).map((entry, i) => candidate(entry, `${place}/${i}`));
}

function step(value, place) {
  need(value, "object", place);
  const phase = need(value.phase, "string", `${place}/phase`);
  return {
    token: need(value.token, "number", `${place}/token`),
    text: need(value.text, "string", `${place}/text`),
    phase: PHASES.includes(phase) ? phase : "free",
    allowed: need(value.allowed, "number", `${place}/allowed`),
    removed: Math.min(1, Math.max(0, number(value.removed_mass, 0))),
    logprob: number(value.logprob, -Infinity),
    top: candidates(value.top, `${place}/top`),
    refused: candidates(value.refused, `${place}/refused`),
    forced: value.forced === true,
  };
}

function placed(value, place) {
  need(value, "object", place);
  need(value.event, "object", `${place}/event`);
  need(value.event.type, "string", `${place}/event/type`);
  return { tokens: need(value.tokens, "number", `${place}/tokens`), event: value.event };
}

/** Reads a trace from JSON text. Throws a TraceError that says what is wrong and where. */
export function read(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TraceError(`not JSON: ${error.message}`);
  }
  need(value, "object", "");
  const steps = need(value.steps, "array", "/steps").map((entry, i) => step(entry, `/steps/${i}`));
  const events = need(value.events ?? [], "array", "/events").map((entry, i) => placed(entry, `/events/${i}`));
  const request = KINDS.object(value.request) ? value.request : {};
  return {
    id: typeof value.id === "string" ? value.id : "(no id)",
    created: number(value.created, 0),
    request,
    // Without a constraint the ids beyond the vocabulary count as well.
    vocabulary: steps.reduce((most, s) => Math.max(most, s.allowed), Math.max(1, number(value.vocabulary, 0))),
    promptTokens: number(value.prompt_tokens, 0),
    finish: typeof value.finish === "string" ? value.finish : "",
    cut: value.cut === true,
    report: KINDS.object(value.report) ? value.report : {},
    timing: KINDS.object(value.timing) ? value.timing : {},
    steps,
    events,
  };
}

/** What the turn consists of after step `at`: pieces in the order they came. */
export function turnAt(trace, at) {
  const pieces = [];
  const calls = new Map();
  const more = (kind, delta) => {
    const last = pieces[pieces.length - 1];
    if (last?.kind === kind) {
      last.text += delta;
    } else {
      pieces.push({ kind, text: delta });
    }
  };
  for (const { tokens, event } of trace.events) {
    if (tokens > at + 1) {
      continue;
    }
    const delta = String(event.delta ?? "");
    const call = calls.get(event.index);
    switch (event.type) {
      case "text_delta":
        more("text", delta);
        break;
      case "reasoning_delta":
        more("reasoning", delta);
        break;
      case "call_start": {
        const said = { name: String(event.name ?? ""), id: String(event.id ?? ""), custom: event.kind === "custom" };
        const begun = { kind: "call", ...said, text: "", whole: false };
        calls.set(event.index, begun);
        pieces.push(begun);
        break;
      }
      case "arguments_delta":
        if (call) call.text += delta;
        break;
      case "call_end":
        if (call) call.whole = true;
        break;
      case "incomplete":
        pieces.push({ kind: "cut", text: String(event.why ?? ""), partial: String(event.partial ?? "") });
        break;
      case "end":
        pieces.push({ kind: "end", text: "" });
        break;
      default:
        pieces.push({ kind: event.type, text: JSON.stringify(event) });
    }
  }
  return pieces;
}

/** The next step, in a direction, at which a call begins or ends. The first or last step if there is none. */
export function nextCall(trace, at, direction) {
  const steps = trace.events
    .filter(({ event }) => event.type === "call_start" || event.type === "call_end")
    .map(({ tokens }) => Math.max(0, tokens - 1))
    .filter((found) => (direction > 0 ? found > at : found < at));
  const end = direction > 0 ? trace.steps.length - 1 : 0;
  return steps.length === 0 ? end : direction > 0 ? Math.min(...steps) : Math.max(...steps);
}

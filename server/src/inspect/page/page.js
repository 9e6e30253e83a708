// Where traces come from, and moving through one.

import { TraceError, nextCall, read } from "./trace.js";
import { byId, element, showLegend, showRequest, showStep, showTokens } from "./view.js";
import { draw, stepAt } from "./chart.js";

const EXAMPLE = {
  messages: [{ role: "user", content: "What is the weather in Oslo?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather in a city.",
        strict: true,
        parameters: {
          type: "object",
          properties: { city: { type: "string", maxLength: 20 }, days: { type: "integer", minimum: 1, maximum: 7 } },
          required: ["city", "days"],
          additionalProperties: false,
        },
      },
    },
  ],
  tool_choice: "required",
  parallel_tool_calls: false,
  seed: 1,
  max_tokens: 200,
  louver: { whitespace: "python_like" },
};

let trace = null;
let at = 0;
let timer = null;

function say(text, kind = "") {
  byId("status").textContent = text;
  byId("status").className = kind;
}

/** Errors of this page and of the server end here, as text. */
async function careful(what) {
  try {
    await what();
  } catch (error) {
    const prefix = error instanceof TraceError ? "This is no trace: " : "";
    say(prefix + error.message, "bad");
  }
}

function headers(more = {}) {
  const key = byId("key").value;
  return key === "" ? more : { ...more, authorization: `Bearer ${key}` };
}

async function ask(path, options = {}) {
  const response = await fetch(path, { cache: "no-store", ...options, headers: headers(options.headers) });
  const text = await response.text();
  if (!response.ok) {
    let said = text.slice(0, 400);
    try {
      const { message, param } = JSON.parse(text).error;
      said = param ? `${message} (${param})` : message;
    } catch {
      // Not the server's own error: shown as it is.
    }
    throw new Error(`${response.status}: ${said}`);
  }
  return text;
}

function label(entry) {
  const when = new Date(1000 * entry.created).toLocaleTimeString();
  return `${when}  ${entry.model}  ${entry.steps} steps, ${entry.finish}  ${entry.id}`;
}

async function refresh(pick) {
  const list = JSON.parse(await ask("/v1/louver/traces")).data;
  const options = list.map((entry) => element("option", { value: entry.id }, label(entry)));
  const head = element("option", { value: "" }, list.length > 0 ? `choose one of ${list.length}` : "none yet");
  byId("recorded").replaceChildren(head, ...options);
  byId("recorded").value = pick ?? "";
}

async function load(id) {
  show(await ask(`/v1/louver/traces/${encodeURIComponent(id)}`));
  byId("recorded").value = id;
}

async function run() {
  const body = JSON.parse(byId("body").value);
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Error("a request is a JSON object");
  }
  const path = "input" in body ? "/v1/responses" : "/v1/chat/completions";
  const traced = { ...body, stream: false, louver: { ...body.louver, trace: true } };
  say("running …");
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(traced) };
  const answer = JSON.parse(await ask(path, options));
  const id = answer.louver?.trace ?? answer.louver?.choices?.[0]?.trace;
  if (typeof id !== "string") {
    throw new Error("the request was run, but not recorded: the server keeps no traces, or this one was too large");
  }
  await refresh(id);
  await load(id);
}

/** Shows a trace from its JSON text. */
function show(text) {
  const found = read(text);
  if (found.steps.length === 0) {
    throw new TraceError("/steps: there is no step in it");
  }
  stop();
  trace = found;
  byId("recorded").value = "";
  byId("view").hidden = false;
  byId("slider").max = String(trace.steps.length - 1);
  showRequest(trace);
  showLegend(trace);
  showTokens(trace);
  go(0);
  say(`${trace.steps.length} steps, ${trace.events.length} events.`);
}

function go(to) {
  if (trace === null) {
    return;
  }
  at = Math.min(trace.steps.length - 1, Math.max(0, to));
  byId("slider").value = String(at);
  showStep(trace, at);
  draw(byId("chart"), trace, at);
  if (at === trace.steps.length - 1) {
    stop();
  }
}

function stop() {
  clearInterval(timer);
  timer = null;
  byId("play").setAttribute("aria-pressed", "false");
  byId("play").textContent = "Play";
}

function play() {
  if (timer !== null || trace === null) {
    stop();
    return;
  }
  if (at === trace.steps.length - 1) {
    go(0);
  }
  timer = setInterval(() => go(at + 1), 1000 / Number(byId("speed").value));
  byId("play").setAttribute("aria-pressed", "true");
  byId("play").textContent = "Pause";
}

const KEYS = {
  ArrowLeft: () => go(at - 1),
  ArrowRight: () => go(at + 1),
  Home: () => go(0),
  End: () => go(Infinity),
  " ": play,
  n: () => trace && go(nextCall(trace, at, 1)),
  p: () => trace && go(nextCall(trace, at, -1)),
};

function key(event) {
  const typing = event.target.closest("input:not([type=range]), textarea, select");
  const pressing = event.key === " " && event.target.closest("button, summary");
  const act = KEYS[event.key];
  if (act && !typing && !pressing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    act();
  }
}

function wire() {
  const click = (id, act) => byId(id).addEventListener("click", act);
  click("refresh", () => careful(() => refresh()));
  click("run", () => careful(run));
  click("open", () => careful(() => show(byId("pasted").value)));
  click("first", () => go(0));
  click("back", () => go(at - 1));
  click("play", play);
  click("forward", () => go(at + 1));
  click("last", () => go(Infinity));
  byId("recorded").addEventListener("change", (event) => event.target.value && careful(() => load(event.target.value)));
  byId("file").addEventListener("change", (event) => careful(async () => show(await event.target.files[0].text())));
  byId("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  byId("speed").addEventListener("change", () => timer !== null && (play(), play()));
  click("chart", (event) => trace && go(stepAt(event.currentTarget, trace.steps.length, event.clientX)));
  byId("tokens").addEventListener("click", (event) => {
    const chip = event.target.closest("[data-step]");
    chip && go(Number(chip.dataset.step));
  });
  document.addEventListener("keydown", key);
  const redraw = () => trace && draw(byId("chart"), trace, at);
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

wire();
byId("body").value = JSON.stringify(EXAMPLE, null, 2);
const linked = new URLSearchParams(location.hash.slice(1)).get("trace");
careful(async () => {
  await refresh();
  if (linked) {
    await load(linked);
  }
});

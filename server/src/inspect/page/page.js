// Loads traces (recorded, pasted or from a new request) and moves through their steps.

import { TraceError, nextCallBoundary, parseTrace } from "./trace.js";
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
          properties: {
            city: { type: "string", maxLength: 20 },
            days: { type: "integer", minimum: 1, maximum: 7 },
          },
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
let current = 0;
let timer = null;

function showStatus(text, kind = "") {
  byId("status").textContent = text;
  byId("status").className = kind;
}

/** Runs an action; shows an error of the page or of the server as the status. */
async function reportErrors(action) {
  try {
    await action();
  } catch (error) {
    const prefix = error instanceof TraceError ? "Not a trace: " : "";
    showStatus(prefix + error.message, "bad");
  }
}

function withKey(headers = {}) {
  const key = byId("key").value;
  return key === "" ? headers : { ...headers, authorization: `Bearer ${key}` };
}

/** The text of a response. Throws an error with the status and the server's message. */
async function fetchText(path, options = {}) {
  const headers = withKey(options.headers);
  const response = await fetch(path, { cache: "no-store", ...options, headers });
  const text = await response.text();
  if (!response.ok) {
    let reason = text.slice(0, 400);
    try {
      const { message, param } = JSON.parse(text).error;
      reason = param ? `${message} (${param})` : message;
    } catch {
      // Not JSON, so not the server's own error: the beginning of the text is shown.
    }
    throw new Error(`${response.status}: ${reason}`);
  }
  return text;
}

function label(entry) {
  const when = new Date(1000 * entry.created).toLocaleTimeString();
  return `${when}  ${entry.model}  ${entry.steps} steps, ${entry.finish}  ${entry.id}`;
}

async function refresh(selected) {
  const list = JSON.parse(await fetchText("/v1/louver/traces")).data;
  const options = list.map((entry) => element("option", { value: entry.id }, label(entry)));
  const prompt = list.length > 0 ? `choose one of ${list.length}` : "none yet";
  const head = element("option", { value: "" }, prompt);
  byId("recorded").replaceChildren(head, ...options);
  byId("recorded").value = selected ?? "";
  return list.length;
}

async function load(id) {
  show(await fetchText(`/v1/louver/traces/${encodeURIComponent(id)}`));
  byId("recorded").value = id;
}

async function run() {
  const body = JSON.parse(byId("body").value);
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Error("the request must be a JSON object");
  }
  const routes = { messages: "/v1/chat/completions", input: "/v1/responses", prompt: "/v1/completions" };
  const path = routes[Object.keys(routes).find((name) => name in body) ?? "messages"];
  const traced = { ...body, stream: false, louver: { ...body.louver, trace: true } };
  showStatus("running …");
  const options = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(traced),
  };
  const response = JSON.parse(await fetchText(path, options));
  const id = response.louver?.trace ?? response.louver?.choices?.[0]?.trace;
  if (typeof id !== "string") {
    throw new Error(
      "the request was not recorded: the server keeps no traces, or the trace was too large",
    );
  }
  await refresh(id);
  await load(id);
}

/** Shows a trace from its JSON text. */
function show(text) {
  const parsed = parseTrace(text);
  if (parsed.steps.length === 0) {
    throw new TraceError("/steps: expected at least one step");
  }
  stop();
  trace = parsed;
  byId("recorded").value = "";
  byId("view").hidden = false;
  byId("welcome").hidden = true;
  byId("slider").max = String(trace.steps.length - 1);
  showRequest(trace);
  showLegend(trace);
  showTokens(trace);
  goTo(0);
  showStatus(`${trace.steps.length} steps, ${trace.events.length} events.`);
}

/** Makes a step current; the index is limited to the trace. */
function goTo(index) {
  if (trace === null) {
    return;
  }
  current = Math.min(trace.steps.length - 1, Math.max(0, index));
  byId("slider").value = String(current);
  showStep(trace, current);
  draw(byId("chart"), trace, current);
  if (current === trace.steps.length - 1) {
    stop();
  }
}

function stop() {
  clearInterval(timer);
  timer = null;
  byId("play").setAttribute("aria-pressed", "false");
  byId("play").textContent = "Play";
}

/** Starts or stops playing. */
function togglePlay() {
  if (timer !== null || trace === null) {
    stop();
    return;
  }
  if (current === trace.steps.length - 1) {
    goTo(0);
  }
  timer = setInterval(() => goTo(current + 1), 1000 / Number(byId("speed").value));
  byId("play").setAttribute("aria-pressed", "true");
  byId("play").textContent = "Pause";
}

const KEYS = {
  ArrowLeft: () => goTo(current - 1),
  ArrowRight: () => goTo(current + 1),
  Home: () => goTo(0),
  End: () => goTo(Infinity),
  " ": togglePlay,
  n: () => trace && goTo(nextCallBoundary(trace, current, 1)),
  p: () => trace && goTo(nextCallBoundary(trace, current, -1)),
};

function handleKey(event) {
  const typing = event.target.closest("input:not([type=range]), textarea, select");
  const pressing = event.key === " " && event.target.closest("button, summary");
  const action = KEYS[event.key];
  if (action && !typing && !pressing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    action();
  }
}

function attachListeners() {
  const on = (id, type, action) => byId(id).addEventListener(type, action);
  const click = (id, action) => on(id, "click", action);
  click("refresh", () => reportErrors(() => refresh()));
  click("run", () => reportErrors(run));
  click("open", () => reportErrors(() => show(byId("pasted").value)));
  click("first", () => goTo(0));
  click("back", () => goTo(current - 1));
  click("play", togglePlay);
  click("forward", () => goTo(current + 1));
  click("last", () => goTo(Infinity));
  on("recorded", "change", ({ target }) => target.value && reportErrors(() => load(target.value)));
  on("file", "change", ({ target }) =>
    reportErrors(async () => show(await target.files[0].text())),
  );
  on("slider", "input", (event) => goTo(Number(event.target.value)));
  on("speed", "change", () => timer !== null && (togglePlay(), togglePlay()));
  click("chart", ({ currentTarget, clientX }) => {
    trace && goTo(stepAt(currentTarget, trace.steps.length, clientX));
  });
  byId("tokens").addEventListener("click", (event) => {
    const chip = event.target.closest("[data-step]");
    chip && goTo(Number(chip.dataset.step));
  });
  document.addEventListener("keydown", handleKey);
  const redraw = () => trace && draw(byId("chart"), trace, current);
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

attachListeners();
byId("body").value = JSON.stringify(EXAMPLE, null, 2);
const linked = new URLSearchParams(location.hash.slice(1)).get("trace");
reportErrors(async () => {
  byId("run-box").open = (await refresh()) === 0;
  if (linked) {
    await load(linked);
  }
});

// Builds the elements of the page. Text of models and requests becomes text nodes, never markup.

import { PHASES, turnAt } from "./trace.js";

/** Creates an element with attributes and children; strings become text nodes. */
export function element(tag, attributes = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

export const byId = (id) => document.getElementById(id);

// Invisible characters, and those that reorder the text around them.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;
const NAMES = { "\n": "↵", "\r": "‹CR›", "\t": "⇥" };
// The subset that ordinary text does not need: control characters and bidirectional controls.
const MISLEADING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const characterName = (c) =>
  NAMES[c] ?? `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;

/** Text of several words, with control characters and bidirectional controls replaced by names. */
export const plain = (text) => text.replace(MISLEADING, characterName);

/** A token's text with every invisible character replaced by a name. */
export function visible(text) {
  const shown = text.replace(INVISIBLE, characterName);
  return shown === "" ? "∅" : shown.replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length));
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 2 : 1)} %`;
const probability = (logprob) => percent(Math.exp(Math.min(0, logprob)));

/** Fills a `dl` with the rows that have a value. */
function showPairs(list, rows) {
  const entries = rows.filter(([, value]) => value !== undefined && value !== "");
  const child = (part) => (typeof part === "string" ? plain(part) : part);
  const pair = ([name, value]) => {
    const description = element("dd", {}, ...[value].flat().map(child));
    return element("div", {}, element("dt", {}, name), description);
  };
  list.replaceChildren(...entries.map(pair));
}

/** A bar filled to this share, 0 to 1, of its width. */
function bar(share, kind) {
  const inner = element("span", { class: `fill ${kind}` });
  inner.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, inner);
}

const tokenCode = (text) => element("code", { class: "token", dir: "ltr" }, visible(text));

function relaxedText(report) {
  const list = Array.isArray(report.relaxed) ? report.relaxed : [];
  const entry = (item) => `${item.pointer ?? ""} ${item.keyword ?? ""}: ${item.reason ?? ""}`;
  return list.map(entry).join("; ");
}

/** Shows the table of facts about the request, and its body. */
export function showRequest(trace) {
  const { request, report, timing } = trace;
  const us = (value) => (typeof value === "number" ? `${value.toFixed(1)} µs` : undefined);
  showPairs(byId("about"), [
    ["trace", trace.id],
    ["recorded", trace.created ? new Date(1000 * trace.created).toLocaleString() : ""],
    ["route", String(request.route ?? "")],
    ["model", String(request.model ?? "")],
    ["choice", request.choice === undefined ? "" : String(request.choice)],
    ["prompt", `${trace.promptTokens} tokens`],
    ["generated", `${trace.steps.length} steps`],
    ["finish", trace.cut ? `${trace.finish} (the trace was cut off)` : trace.finish],
    ["enforced", String(report.level ?? "")],
    ["grammar", String(report.completion ?? "")],
    ["relaxed", relaxedText(report)],
    ["forced", report.forced_tokens === undefined ? "" : `${report.forced_tokens} tokens`],
    ["mask, mean", us(timing.mask_mean_us)],
    ["mask, p99", us(timing.mask_p99_us)],
    ["Louver's share", typeof timing.share === "number" ? percent(timing.share) : undefined],
  ]);
  byId("request-body").textContent =
    request.body === undefined ? "(not recorded)" : plain(JSON.stringify(request.body, null, 2));
}

/** Shows the colours of the phases that occur in the trace. */
export function showLegend(trace) {
  const present = new Set(trace.steps.map((step) => step.phase));
  const phases = PHASES.filter((phase) => present.has(phase));
  const entry = (phase) => element("li", { class: `chip ${phase}` }, phase);
  byId("legend").replaceChildren(...phases.map(entry));
}

/** Shows all tokens; called once per trace. `showStep` marks the current one. */
export function showTokens(trace) {
  const chips = document.createDocumentFragment();
  trace.steps.forEach((step, i) => {
    const label = step.text === "\n" ? "↵" : visible(step.text);
    const forced = step.forced ? " forced" : "";
    const attributes = {
      class: `chip ${step.phase}${forced}`,
      "data-step": i,
      title: `${i}: ${step.phase}`,
    };
    chips.append(element("span", attributes, label));
    if (step.text.includes("\n")) {
      chips.append(element("br"));
    }
  });
  byId("tokens").replaceChildren(chips);
}

/** JSON text with indentation; other text unchanged. */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The list item of one part of the turn. */
function turnPart(part) {
  const body = (text) => element("pre", { dir: "auto" }, plain(text));
  switch (part.kind) {
    case "call": {
      const [state, phase, title] = part.complete
        ? ["whole", "arguments", "call"]
        : ["open", "header", "call …"];
      const head = element("span", { class: `chip ${phase}` }, title);
      const name = element("strong", { dir: "ltr" }, visible(part.name));
      const id = element("small", {}, ` ${visible(part.id)} `);
      // The input of a custom tool is plain text, even if it looks like JSON.
      const input = part.complete && !part.custom ? pretty(part.text) : part.text;
      const caption = element("small", {}, part.custom ? "input" : "arguments");
      const inner = element("li", { class: "leaf" }, caption, body(input));
      const list = element("ul", {}, inner);
      return element("li", { class: `call ${state}` }, head, " ", name, id, list);
    }
    case "cut":
      return element("li", { class: "cut" }, `cut off in ${plain(part.text)}`, body(part.partial));
    case "end":
      return element("li", { class: "end" }, "end of turn");
    default: {
      const kind = element("span", { class: "chip", "data-kind": part.kind }, plain(part.kind));
      return element("li", { class: "leaf" }, kind, body(part.text));
    }
  }
}

function showTurn(trace, current) {
  const parts = turnAt(trace, current).map(turnPart);
  if (parts.length === 0) {
    parts.push(element("li", { class: "note" }, "no output yet"));
  }
  byId("turn").replaceChildren(...parts);
}

/** Fills a table's body: one row per entry. An empty table is hidden. */
function showRows(table, list, cells) {
  const column = (cell) => element("td", {}, ...[cell].flat());
  const body = list.map((entry) => element("tr", {}, ...cells(entry).map(column)));
  byId(table).tBodies[0].replaceChildren(...body);
  byId(table).hidden = body.length === 0;
}

/** Shows one step: its table, the mark in the token list, and the turn so far. */
export function showStep(trace, current) {
  const step = trace.steps[current];
  for (const previous of byId("tokens").querySelectorAll("[aria-current]")) {
    previous.removeAttribute("aria-current");
  }
  const chips = byId("tokens").querySelectorAll("[data-step]");
  chips.forEach((chip, i) => chip.classList.toggle("later", i > current));
  chips[current]?.setAttribute("aria-current", "step");
  chips[current]?.scrollIntoView({ block: "nearest" });
  byId("where").textContent = `${current + 1} of ${trace.steps.length}`;
  const share = step.allowed / trace.vocabulary;
  const allowed = `${step.allowed} of ${trace.vocabulary}`;
  const chance = step.forced ? "forced: no other text was allowed" : probability(step.logprob);
  showPairs(byId("step"), [
    ["number", `${current} (token ${trace.promptTokens + current} of the context)`],
    ["phase", element("span", { class: `chip ${step.phase}` }, step.phase)],
    ["chosen", [tokenCode(step.text), ` id ${step.token}, `, chance]],
    ["allowed", [`${allowed} (${percent(share)})`, bar(share, "allowed")]],
    ["mass removed", [percent(step.removed), bar(step.removed, "removed")]],
  ]);
  showRows("top", step.top, (c) => [
    tokenCode(c.text),
    String(c.token),
    [probability(c.logprob), bar(Math.exp(c.logprob), "allowed")],
  ]);
  showRows("refused", step.refused, (c) => [
    tokenCode(c.text),
    String(c.token),
    [probability(c.logprob), bar(Math.exp(c.logprob), "removed")],
    plain(c.reason),
  ]);
  showTurn(trace, current);
}

// The page's pieces. Whatever a model or a request said goes in as text nodes, never as markup.

import { PHASES, turnAt } from "./trace.js";

/** An element with attributes and children; strings become text nodes. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

// Characters that cannot be seen or that reorder what is around them.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;
const NAMES = { "\n": "↵", "\r": "‹CR›", "\t": "⇥" };
// Of those, the ones that no running text needs: controls, and marks that turn the reading direction around.
const MISLEADING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const named = (c) => NAMES[c] ?? `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;

/** Running text in which nothing can hide or reorder what is around it. */
export const plain = (text) => text.replace(MISLEADING, named);

/** Text in which every character can be seen. */
export function visible(text) {
  const shown = text.replace(UNSEEN, named);
  return shown === "" ? "∅" : shown.replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length));
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 2 : 1)} %`;
const probability = (logprob) => percent(Math.exp(Math.min(0, logprob)));

function pairs(list, rows) {
  const entries = rows.filter(([, value]) => value !== undefined && value !== "");
  const shown = (part) => (typeof part === "string" ? plain(part) : part);
  const pair = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, ...[value].flat().map(shown)));
  list.replaceChildren(...entries.map(pair));
}

/** A bar that fills this share, 0 to 1, of its width. */
function bar(share, kind) {
  const inner = element("span", { class: `fill ${kind}` });
  inner.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, inner);
}

const token = (text) => element("code", { class: "token", dir: "ltr" }, visible(text));

function relaxed(report) {
  const list = Array.isArray(report.relaxed) ? report.relaxed : [];
  return list.map((one) => `${one.pointer ?? ""} ${one.keyword ?? ""}: ${one.reason ?? ""}`).join("; ");
}

/** What is known of the request as a whole. */
export function showRequest(trace) {
  const { request, report, timing } = trace;
  const us = (value) => (typeof value === "number" ? `${value.toFixed(1)} µs` : undefined);
  pairs(byId("about"), [
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
    ["relaxed", relaxed(report)],
    ["forced", report.forced_tokens === undefined ? "" : `${report.forced_tokens} tokens`],
    ["mask, mean", us(timing.mask_mean_us)],
    ["mask, p99", us(timing.mask_p99_us)],
    ["Louver's share", typeof timing.share === "number" ? percent(timing.share) : undefined],
  ]);
  byId("request-body").textContent = request.body === undefined ? "(not recorded)" : plain(JSON.stringify(request.body, null, 2));
}

/** The colours of the phases that occur. */
export function showLegend(trace) {
  const seen = new Set(trace.steps.map((step) => step.phase));
  const shown = PHASES.filter((phase) => seen.has(phase));
  byId("legend").replaceChildren(...shown.map((phase) => element("li", { class: `chip ${phase}` }, phase)));
}

/** All tokens, once; `showStep` marks where we are. */
export function showTokens(trace) {
  const all = document.createDocumentFragment();
  trace.steps.forEach((step, i) => {
    const shown = step.text === "\n" ? "↵" : visible(step.text);
    const forced = step.forced ? " forced" : "";
    all.append(element("span", { class: `chip ${step.phase}${forced}`, "data-step": i, title: `${i}: ${step.phase}` }, shown));
    if (step.text.includes("\n")) {
      all.append(element("br"));
    }
  });
  byId("tokens").replaceChildren(all);
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function piece(part) {
  const body = (text) => element("pre", { dir: "auto" }, plain(text));
  switch (part.kind) {
    case "call": {
      const state = part.whole ? "whole" : "open";
      const head = element("span", { class: `chip ${part.whole ? "arguments" : "header"}` }, part.whole ? "call" : "call …");
      const name = element("strong", { dir: "ltr" }, visible(part.name));
      const id = element("small", {}, ` ${visible(part.id)} `);
      // The input of a custom tool is text, also where it looks like JSON.
      const said = part.whole && !part.custom ? pretty(part.text) : part.text;
      const inner = element("li", { class: "leaf" }, element("small", {}, part.custom ? "input" : "arguments"), body(said));
      return element("li", { class: `call ${state}` }, head, " ", name, id, element("ul", {}, inner));
    }
    case "cut":
      return element("li", { class: "cut" }, `cut off in ${plain(part.text)}`, body(part.partial));
    case "end":
      return element("li", { class: "end" }, "end of turn");
    default:
      return element("li", { class: "leaf" }, element("span", { class: "chip", "data-kind": part.kind }, plain(part.kind)), body(part.text));
  }
}

function showTurn(trace, at) {
  const parts = turnAt(trace, at).map(piece);
  byId("turn").replaceChildren(...(parts.length > 0 ? parts : [element("li", { class: "note" }, "nothing is decided yet")]));
}

function rows(table, list, cells) {
  const body = list.map((entry) => element("tr", {}, ...cells(entry).map((cell) => element("td", {}, ...[cell].flat()))));
  byId(table).tBodies[0].replaceChildren(...body);
  byId(table).hidden = body.length === 0;
}

/** One step: the card, the place among the tokens, the turn so far. */
export function showStep(trace, at) {
  const step = trace.steps[at];
  for (const old of byId("tokens").querySelectorAll("[aria-current]")) {
    old.removeAttribute("aria-current");
  }
  const chips = byId("tokens").querySelectorAll("[data-step]");
  chips.forEach((chip, i) => chip.classList.toggle("later", i > at));
  chips[at]?.setAttribute("aria-current", "step");
  chips[at]?.scrollIntoView({ block: "nearest" });
  byId("where").textContent = `${at + 1} of ${trace.steps.length}`;
  const share = step.allowed / trace.vocabulary;
  pairs(byId("step"), [
    ["number", `${at} (token ${trace.promptTokens + at} of the context)`],
    ["phase", element("span", { class: `chip ${step.phase}` }, step.phase)],
    ["chosen", [token(step.text), ` id ${step.token}, `, step.forced ? "forced: nothing else could follow" : probability(step.logprob)]],
    ["allowed", [`${step.allowed} of ${trace.vocabulary} (${percent(share)})`, bar(share, "allowed")]],
    ["mass removed", [percent(step.removed), bar(step.removed, "removed")]],
  ]);
  rows("top", step.top, (c) => [token(c.text), String(c.token), [probability(c.logprob), bar(Math.exp(c.logprob), "allowed")]]);
  rows("refused", step.refused, (c) => [
    token(c.text),
    String(c.token),
    [probability(c.logprob), bar(Math.exp(c.logprob), "removed")],
    plain(c.reason),
  ]);
  showTurn(trace, at);
}

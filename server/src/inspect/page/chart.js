// The strip chart: two lanes over all steps, drawn on a canvas.
// With more steps than pixels, several steps share a column, which shows their maximum.

const LANE = 46;
const GAP = 8;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The index of the step under this point of the canvas. */
export function stepAt(canvas, steps, clientX) {
  const box = canvas.getBoundingClientRect();
  const index = Math.floor(((clientX - box.left) / Math.max(1, box.width)) * steps);
  return Math.min(steps - 1, Math.max(0, index));
}

/** Draws all steps, and a frame around the current one. */
export function draw(canvas, trace, current) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = 2 * LANE + GAP;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, height);
  const count = trace.steps.length;
  const logVocabulary = Math.log1p(trace.vocabulary);
  const columns = Math.max(1, Math.min(count, Math.floor(width)));
  const columnWidth = width / columns;
  for (let column = 0; column < columns; column += 1) {
    const from = Math.floor((column * count) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * count) / columns));
    let [allowed, removed] = [0, 0];
    for (let i = from; i < to; i += 1) {
      allowed = Math.max(allowed, trace.steps[i].allowed);
      removed = Math.max(removed, trace.steps[i].removed);
    }
    const left = column * columnWidth;
    const barWidth = Math.max(1, columnWidth > 3 ? columnWidth - 1 : columnWidth);
    const barHeight = Math.max(1, LANE * Math.min(1, Math.log1p(allowed) / logVocabulary));
    pen.fillStyle = colour(`--${trace.steps[from].phase}`);
    pen.fillRect(left, LANE - barHeight, barWidth, barHeight);
    pen.fillStyle = colour("--removed");
    pen.fillRect(left, height - Math.max(1, LANE * removed), barWidth, Math.max(1, LANE * removed));
  }
  pen.fillStyle = colour("--line");
  pen.fillRect(0, LANE, width, 1);
  pen.strokeStyle = colour("--accent");
  pen.lineWidth = 2;
  pen.strokeRect((current * width) / count, 1, Math.max(2, width / count), height - 2);
  const step = trace.steps[current];
  const allowed = `${step.allowed} of ${trace.vocabulary} tokens allowed`;
  const removed = `${(100 * step.removed).toFixed(1)} percent of the probability mass removed`;
  canvas.setAttribute("aria-label", `Step ${current + 1} of ${count}: ${allowed}, ${removed}`);
}

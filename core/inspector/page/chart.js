// What has happened to a name, as a Gantt chart.
import { el, plain, short } from "./show.js";

// How far apart the times below a chart can be, in ms.
const steps = [15000, 30000, 60000, 120000, 180000, 300000, 480000];

const rowHeight = 26, lane = 4, top = 6;

// chart draws the last ms of a history. Each holder has a row, and those who wait have thin lines below.
export function chart(history, ms, width) {
  const left = Math.min(190, Math.max(90, width * 0.22)), right = 14;
  const from = history.now - ms, scale = (width - left - right) / ms;
  const x = (t) => left + Math.max(0, Math.min(ms, t - from)) * scale;
  const holds = history.holds.filter((t) => t.to >= from), waits = history.waits.filter((w) => w.to >= from);
  const holders = rows(holds), lanes = pack(waits);
  const bottom = top + Math.max(1, holders.length) * rowHeight;
  const height = bottom + (waits.length ? 16 + Math.min(lanes.count, 40) * lane : 0) + 30;
  const svg = el("svg:svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(holds, waits, history.marks, ms) });

  const step = steps.find((s) => ms / s <= (width < 500 ? 2 : 5)) ?? ms;
  for (let ago = 0; ago <= ms; ago += step) {
    const at = x(history.now - ago);
    svg.append(el("svg:line", { class: "grid", x1: at, x2: at, y1: 0, y2: height - 24 }));
    svg.append(el("svg:text", { x: at, y: height - 8, "text-anchor": ago ? "middle" : "end" }, ago ? "−" + (step % 60000 ? ago / 1000 + " s" : ago / 60000 + " min") : "now"));
  }
  holders.forEach((row, i) => {
    const y = top + i * rowHeight;
    const who = el("svg:text", { class: "who", x: 0, y: y + 16 }, fit(row.label, left - 12));
    who.append(el("svg:title", {}, row.label));
    svg.append(who);
    for (const t of row.holds) {
      const bar = el("svg:rect", {
        class: "bar" + (t.kind === "exclusive" ? "" : " soft"), x: x(t.from), y: y + 4, width: Math.max(2, x(t.open ? history.now : t.to) - x(t.from)), height: rowHeight - 8, rx: 2,
      });
      bar.append(el("svg:title", {}, `${row.label}: ${t.kind}, held for ${short(t.to - t.from)}${t.fence ? ", fence " + t.fence : ""}${t.end ? ", " + t.end : t.open ? ", still held" : ""}`));
      svg.append(bar);
      if (t.end?.startsWith("lost")) svg.append(mark("lost", x(t.to), y + 18, "✕", t.end));
    }
  });
  if (!holders.length) svg.append(el("svg:text", { x: left + 8, y: top + 16 }, "not held"));
  if (waits.length) svg.append(el("svg:text", { x: 0, y: bottom + 16 }, `${waits.length} waited`));
  for (const [w, i] of lanes.placed) {
    if (i >= 40) continue;
    const y = bottom + 12 + i * lane;
    const line = el("svg:line", { class: "thin", x1: x(w.from), x2: Math.max(x(w.from) + 2, x(w.open ? history.now : w.to)), y1: y, y2: y });
    line.append(el("svg:title", {}, `waited ${short(w.to - w.from)}${w.end ? ", " + w.end : w.open ? ", still waits" : ""}`));
    svg.append(line);
  }
  for (const m of history.marks) {
    if (m.kind === "conflict" && m.at >= from) svg.append(mark("conflict", x(m.at), bottom + 6, "!", "found it held, and went away"));
  }
  return svg;
}

function mark(kind, x, y, text, title) {
  const node = el("svg:text", { class: kind, x, y, "text-anchor": "middle" }, text);
  node.append(el("svg:title", {}, title));
  return node;
}

const mostRows = 12;

// What tells one task or request from another makes no row of its own.
const ids = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{16,}\b/gi;

// rows are the holders, the latest first. Those without a label share a row, as far as they do not overlap.
function rows(holds) {
  const byLabel = new Map();
  for (const t of holds) {
    const label = plain(t.label || "no label").replace(ids, "…");
    if (!byLabel.has(label)) byLabel.set(label, []);
    byLabel.get(label).push(t);
  }
  const all = [];
  for (const [label, own] of byLabel) {
    for (const [t, i] of pack(own).placed) {
      const key = label + "\0" + i;
      let row = all.find((r) => r.key === key);
      if (!row) all.push((row = { key, label, holds: [], latest: 0 }));
      row.holds.push(t);
      row.latest = Math.max(row.latest, t.to);
    }
  }
  return all.sort((a, b) => b.latest - a.latest).slice(0, mostRows);
}

// pack puts spans into lanes in which they do not overlap.
function pack(spans) {
  const ends = [], placed = [];
  for (const s of [...spans].sort((a, b) => a.from - b.from)) {
    let i = ends.findIndex((end) => end <= s.from);
    if (i < 0) i = ends.length;
    ends[i] = s.to;
    placed.push([s, i]);
  }
  return { placed, count: ends.length };
}

// fit cuts a text to a width, of letters of about 7 pixels.
function fit(text, width) {
  const most = Math.floor(width / 6.6), letters = [...text];
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

// describe says the chart for who cannot see it.
function describe(holds, waits, marks, ms) {
  const lost = marks.filter((m) => m.kind === "lost").length;
  return `In the last ${short(ms)}: held ${holds.length} times, ${waits.length} waited, ${lost} lost.`;
}

// The page of package inspector. It shows text by textContent only, so no name can be markup.
import { chart } from "./chart.js";
import { el, plain, show, span, short } from "./show.js";

const $ = (id) => document.getElementById(id);

let last = null;       // what came last
let came = 0;          // when, on this clock
let sort = { by: "line", down: true };
let view = "now";
let chosen = "";       // the name of the chart
const opened = new Set();

// --- The stream

let stream = null;
let retry = 0;

function connect() {
  clearTimeout(retry);
  if (stream) stream.close();
  stream = new EventSource("events?search=" + encodeURIComponent($("search").value));
  stream.addEventListener("now", (e) => {
    last = JSON.parse(e.data);
    came = performance.now();
    render();
  });
  stream.onerror = () => {
    state("bad", "disconnected, trying again");
    // A browser gives up after an answer that is no stream, such as a proxy's while the server is replaced.
    if (stream.readyState === EventSource.CLOSED) retry = setTimeout(() => document.hidden || connect(), 2000);
  };
}

function state(kind, text) {
  $("state").dataset.state = kind;
  if ($("state").textContent !== text) $("state").textContent = text;
}

// --- Now

const age = () => performance.now() - came;

const columns = {
  name: (n) => n.name,
  kind: kindOf,
  label: labelOf,
  for: (n) => n.for,
  ttl: (n) => n.ttl,
  line: (n) => (n.line || []).length,
};

function kindOf(n) {
  if (n.kind === "limited" && n.holders) return `${n.holders.length} of ${n.limit}`;
  if (n.kind === "shared" && n.holders) return n.holders.length > 1 ? `shared by ${n.holders.length}` : "shared";
  return n.kind;
}

// Several holders have a label each.
function labelOf(n) {
  return n.label || (n.holders || []).map((h) => h.label).filter(Boolean).join(", ");
}

// votesOf says how many nodes of a quorum know the holder, where they disagree.
function votesOf(n) {
  if (!n.nodes) return "";
  return ` (${n.nodes.filter((v) => v.held && v.handle === n.handle).length} of ${n.nodes.length} nodes)`;
}

function compare(a, b) {
  const x = columns[sort.by](a), y = columns[sort.by](b);
  const order = x < y ? -1 : x > y ? 1 : 0;
  return (sort.down ? -order : order) || (a.name < b.name ? -1 : 1);
}

// Without a template of its own, a name's parts with digits stand for any.
function templateOf(n) {
  if (!n.template && !/[:/.]/.test(n.name)) return n.name.replace(/\d+/g, "{…}");
  return n.template || n.name.split(/([:/.])/).map((part) => (/\d/.test(part) ? "{…}" : part)).join("");
}

const rows = new Map(); // by name: what is shown of it

function row(n) {
  let r = rows.get(n.name);
  if (r) return r;
  const button = el("button", { class: "open", "aria-expanded": "false" }, show(n.name));
  r = { button, lease: el("tr", { class: "lease" }), more: el("tr", { class: "more", hidden: "" }) };
  r.kind = el("b"); r.label = el("td", { class: "label" }); r.for = el("td", { class: "for" });
  r.bar = el("i"); r.left = el("span"); r.trust = el("div", { class: "trust" }, r.bar, r.left);
  r.line = el("b");
  r.lease.append(
    el("td", { class: "name", title: plain(n.name) }, button), el("td", { class: "kind" }, r.kind), r.label, r.for,
    el("td", { class: "ttl" }, r.trust), el("td", { class: "line" }, r.line));
  r.facts = el("td", { colspan: "6" });
  r.more.append(r.facts);
  const toggle = () => {
    if (!opened.delete(n.name)) opened.add(n.name);
    render();
  };
  r.lease.addEventListener("click", toggle);
  button.addEventListener("click", (e) => { e.stopPropagation(); toggle(); });
  rows.set(n.name, r);
  return r;
}

function set(node, key, text) {
  if (node.dataset.shown === key) return;
  node.dataset.shown = key;
  node.replaceChildren(text);
}

function fill(r, n) {
  r.kind.textContent = kindOf(n);
  const label = labelOf(n);
  const text = label ? show(label) : el("span", { class: "none" }, "–");
  set(r.label, (label || "-") + votesOf(n), n.nodes ? el("span", {}, text, votesOf(n)) : text);
  r.label.title = plain(label);
  const waiting = (n.line || []).length;
  r.line.textContent = waiting || "–";
  r.line.toggleAttribute("data-long", waiting > 0);
  const open = opened.has(n.name);
  r.button.setAttribute("aria-expanded", open);
  r.more.hidden = !open;
  if (open) details(r, n);
  tick(r, n);
}

// tick goes on between two looks.
function tick(r, n) {
  const passed = age(), left = Math.max(0, n.ttl - passed);
  r.for.textContent = n.for || !n.atLeast ? (n.atLeast ? "> " : "") + short(n.for + passed) : "–";
  r.left.textContent = n.ttl ? short(left, true) : "none";
  r.bar.style.setProperty("--left", n.full ? (100 * left) / n.full + "%" : "0%");
  r.trust.toggleAttribute("data-low", n.ttl > 0 && left < n.full / 3);
}

function details(r, n) {
  readMarkers(n.name);
  const marks = marksOf.get(n.name)?.markers ?? [];
  const key = JSON.stringify([n.fence, n.handle, n.holders, n.line, n.own, n.nodes, marks, last.release]);
  if (r.facts.dataset.key === key) return;
  // Who is about to press a button here does not lose it.
  const focused = r.facts.contains(document.activeElement) && document.activeElement.dataset.act;
  r.facts.dataset.key = key;
  const facts = el("dl", {}, ...pair("Name", show(n.name)));
  if (!n.holders) facts.append(...pair("Held by", who(n.label)));
  if (n.fence) facts.append(...pair("Fence", n.fence));
  if (n.handle) facts.append(...pair("Handle", show(n.handle)));
  facts.append(...pair("Template", show(templateOf(n))));
  const buttons = el("div", { class: "buttons" });
  buttons.append(button("Over time", "time", () => choose(n.name)));
  if (last.release && !n.holders && n.handle) {
    buttons.append(button("Release…", "release", () => ask(n, { handle: n.handle }), "danger"));
  }
  const parts = [el("div", {}, facts, buttons)];
  if (n.holders) {
    const list = el("ol");
    for (const h of n.holders) {
      const held = h.for ? `for ${short(h.for)}, ` : "";
      const item = el("li", {}, who(h.label), `, ${held}handle ${h.handle}, ${short(h.ttl)} left `);
      if (last.release) item.append(button("Release…", "release " + h.handle, () => ask(n, { handle: h.handle }), "danger"));
      list.append(item);
    }
    parts.push(el("div", {}, el("h3", {}, "Holders"), list));
  }
  if (n.nodes) parts.push(el("div", {}, el("h3", {}, "Nodes disagree"), el("ol", { start: 0 }, ...n.nodes.map((v) => el("li", {}, ...vote(v))))));
  parts.push(el("div", {}, el("h3", {}, "Waiting, in their order"), n.line ? waiters(n.line) : "nobody"));
  if (n.own) parts.push(el("div", {}, el("h3", {}, "Calls of this process that wait"), waiters(n.own)));
  if (marks.length) {
    const list = el("ol");
    for (const m of marks) {
      const item = el("li", {}, scopeOf(m), `, ends in ${short(m.ttl)} `);
      if (last.release) item.append(button("Remove…", "marker " + m.scope, () => askMarker(m), "danger"));
      list.append(item);
    }
    parts.push(el("div", {}, el("h3", {}, "Done already"), list));
  }
  r.facts.replaceChildren(el("div", { class: "facts" }, ...parts));
  if (focused) r.facts.querySelector(`[data-act="${CSS.escape(focused)}"]`)?.focus();
}

const who = (label) => (label ? show(label) : el("span", { class: "none" }, "no label"));

// vote is what one node of a quorum says.
function vote(v) {
  if (v.silent) return ["no answer"];
  return v.held ? [who(v.label), `, handle ${v.handle || "unknown"}`] : ["not held"];
}

const scopeOf = (m) => (m.scope ? show(m.scope) : el("span", { class: "none" }, "no scope"));

function waiters(line) {
  const list = el("ol");
  for (const w of line) list.append(el("li", {}, who(w.label), `, waits${w.waited ? " for " + short(w.waited) : ""}${w.alive ? "" : ", not heard of lately"}`));
  return list;
}

function pair(title, value) {
  return [el("dt", {}, title), el("dd", {}, value)];
}

function button(text, act, does, kind = "") {
  const b = el("button", { "data-act": act, class: kind }, text);
  b.addEventListener("click", does);
  return b;
}

const headOf = (group, members) => [group, `${members.length} held, ${members.reduce((sum, n) => sum + (n.line || []).length, 0)} waiting`];

function bodyOf(group, members) {
  const body = el("tbody");
  if ($("group").checked) {
    const [title, text] = headOf(group, members);
    body.append(el("tr", { class: "group" }, el("th", { colspan: "6", scope: "rowgroup" }, show(title), el("span", {}, text))));
  }
  for (const n of members) body.append(row(n).lease, row(n).more);
  return body;
}

let drawn = ""; // which rows there are, in their order

function renderNow() {
  const active = document.activeElement; // a row that moves loses the focus
  const names = [...last.names].sort(compare), groups = new Map();
  for (const n of names) {
    const group = $("group").checked ? templateOf(n) : "";
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(n);
  }
  const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
  for (const n of names) fill(row(n), n);
  // Rows that stay where they are keep a selection, and what is about to be clicked.
  const order = JSON.stringify(sorted.map(([group, members]) => [$("group").checked && headOf(group, members), members.map((n) => n.name)]));
  if (order !== drawn) {
    drawn = order;
    for (const body of [...$("table").tBodies]) body.remove();
    $("table").append(...sorted.map(([group, members]) => bodyOf(group, members)));
  }
  if (active && active !== document.activeElement && active.isConnected) active.focus({ preventScroll: true });
  const shown = new Set(last.names.map((n) => n.name));
  for (const name of rows.keys()) if (!shown.has(name)) rows.delete(name);
  for (const th of $("table").tHead.rows[0].cells) {
    const own = th.firstElementChild.dataset.sort === sort.by;
    own ? th.setAttribute("aria-sort", sort.down ? "descending" : "ascending") : th.removeAttribute("aria-sort");
  }
  const more = last.total - last.names.length;
  $("count").textContent = more > 0 ? `${last.names.length} of ${last.total}; search for the others` : "";
  $("empty").hidden = names.length > 0;
  $("empty").textContent = $("search").value ? "Nothing that is held matches." : last.whole ? "Nothing is held." : "Looking for names…";
}

// --- Markers

const marksOf = new Map(); // by name: what was answered, and when

// readMarkers asks for those of an opened row, now and then.
async function readMarkers(name) {
  const known = marksOf.get(name);
  if (known && performance.now() - known.at < 5000) return;
  marksOf.set(name, { at: performance.now(), markers: known?.markers ?? [] });
  for (const other of marksOf.keys()) if (!opened.has(other)) marksOf.delete(other);
  try {
    const reply = await fetch("markers?name=" + encodeURIComponent(name));
    if (reply.ok && marksOf.has(name)) marksOf.get(name).markers = (await reply.json()).markers;
  } catch { /* the stream says that the server is gone */ }
}

let marked = null, reading = false, again = false; // what came last

async function renderMarkers() {
  again = reading; // with what is searched for then
  if (reading) return;
  reading = true;
  try {
    const reply = await fetch("markers?search=" + encodeURIComponent($("marker-search").value));
    marked = await reply.json();
    drawMarkers();
  } catch { /* as above */ } finally {
    reading = false;
  }
  if (again) renderMarkers();
}

function drawMarkers() {
  const body = $("marker-table").tBodies[0], found = marked.markers ?? [];
  const active = document.activeElement.dataset?.act;
  body.replaceChildren(...found.map((m) => {
    const act = button("Remove…", m.name + "\0" + m.scope, () => askMarker(m), "danger");
    return el("tr", {}, el("td", { title: plain(m.name) }, show(m.name)), el("td", { title: plain(m.scope) }, scopeOf(m)),
      el("td", { title: plain(m.label || "") }, who(m.label)), el("td", { class: "num" }, short(m.ttl)), el("td", {}, marked.release ? act : ""));
  }));
  if (active) [...body.querySelectorAll("button")].find((b) => b.dataset.act === active)?.focus({ preventScroll: true });
  $("marker-table").parentElement.hidden = found.length === 0;
  $("marker-empty").hidden = found.length > 0;
  $("marker-empty").textContent = marked.error ?? ($("marker-search").value ? "No marker matches." : "Nothing is marked as done.");
  const more = marked.more || marked.total > found.length;
  $("marker-count").textContent = more ? `${found.length} of ${marked.more ? "more than " : ""}${marked.total}; search for the others` : "";
}

let typingMarker = 0;
$("marker-search").addEventListener("input", () => {
  clearTimeout(typingMarker);
  typingMarker = setTimeout(renderMarkers, 250);
});

// --- A change, asked for twice

let asked = null;

function ask(n, who) {
  const what = [...pair("Name", show(n.name)), ...pair("Held by", n.label ? show(n.label) : "no label")];
  if (who.handle) what.push(...pair("Handle", show(who.handle)));
  askFor("release", { name: n.name, handle: who.handle }, "Take this lock away?", "Release", what,
    "The holder learns of it with its next renewal. Until then it works on, beside the next holder.");
}

function askMarker(m) {
  askFor("unmark", { name: m.name, scope: m.scope }, "Let this be done again?", "Remove the marker",
    [...pair("Name", show(m.name)), ...pair("Scope", scopeOf(m)), ...pair("Done by", who(m.label))],
    "Whoever asks next does the work again. Work that is under way is not stopped.");
}

function askFor(action, body, title, yes, what, why) {
  asked = { action, body };
  $("ask-title").textContent = title;
  $("ask-yes").textContent = yes;
  $("ask-what").replaceChildren(...what);
  $("ask-why").textContent = why;
  $("ask-answer").hidden = true;
  $("ask-yes").disabled = false;
  $("ask").showModal();
  $("ask-no").focus();
}

$("ask-no").addEventListener("click", () => $("ask").close());
$("ask-yes").addEventListener("click", async () => {
  $("ask-yes").disabled = true;
  let text = "the page's server did not answer";
  try {
    const reply = await fetch(asked.action, {
      method: "POST", headers: { "Content-Type": "application/json", "X-Holdfast-Inspector": "1" }, body: JSON.stringify(asked.body),
    });
    if (reply.ok) {
      marksOf.clear();
      if (view === "markers") renderMarkers();
      return $("ask").close();
    }
    text = (await reply.json()).error;
  } catch { /* as it says */ }
  $("ask-answer").textContent = text;
  $("ask-answer").hidden = false;
});

// --- Over time

function choose(name) {
  chosen = name;
  go("time");
}

let drawing = false;

async function renderTime() {
  const body = $("contended").tBodies[0];
  const active = document.activeElement.dataset?.name;
  body.replaceChildren(...last.contended.map((c) => {
    const pick = el("button", { title: plain(c.name) }, show(c.name));
    pick.dataset.name = c.name;
    pick.addEventListener("click", () => { chosen = c.name; renderTime(); });
    const tr = el("tr", {}, el("td", {}, pick), el("td", {}, c.waits), el("td", {}, short(c.waited)), el("td", {}, c.conflicts), el("td", {}, c.losses));
    if (c.name === chosen) tr.setAttribute("aria-current", "true");
    return tr;
  }));
  if (active !== undefined) [...body.querySelectorAll("button")].find((b) => b.dataset.name === active)?.focus();
  $("calm").hidden = last.contended.length > 0;
  $("contended").hidden = last.contended.length === 0;
  if (!chosen && last.contended.length) chosen = last.contended[0].name;
  if (!chosen || drawing) return;
  drawing = true;
  try {
    const reply = await fetch("history?name=" + encodeURIComponent(chosen));
    const h = await reply.json();
    $("chart-title").replaceChildren(show(h.name));
    $("legend").hidden = false;
    $("chart").replaceChildren(chart(h, spanOf(h), $("chart").clientWidth));
  } catch { /* the stream says that the server is gone */ } finally {
    drawing = false;
  }
}

// spanOf is how much of a history to draw: what was chosen, or else as much as there is.
function spanOf(h) {
  if ($("span").value !== "auto") return Number($("span").value) * 1000;
  const first = Math.min(h.now, ...[...h.holds, ...h.waits].map((s) => s.from));
  return Math.min(h.past, Math.max(60000, Math.ceil((h.now - first) / 60000) * 60000));
}

$("span").addEventListener("change", () => renderTime());

// --- Health

function renderHealth() {
  const h = last.health, cards = [];
  const card = (title, value, text, bad) => {
    const c = el("div", { class: "card" }, el("h2", {}, title), el("strong", {}, value), el("p", {}, text));
    if (bad) c.dataset.bad = "";
    return c;
  };
  const took = h.latency.at(-1) ?? 0;
  const looks = card("An inspection takes", span(took), last.error ? "the last one failed: " + last.error : `at most ${span(Math.max(0, ...h.latency))} in the last minute`, last.error);
  looks.append(sparkline(h.latency));
  cards.push(looks);
  cards.push(card("Held", last.total, `${last.waiting} waiting, in all processes`));
  cards.push(card("Names are found", last.every > 2000 ? "every " + short(last.every) : "each second",
    last.every > 2000 ? "the database has many keys; in between, known names are asked for" : "with a walk through all of them"));
  if (h.recorded) {
    cards.push(card("Leases of this process", h.held, `held now; ${h.waiting} of its calls wait`));
    cards.push(card("Degraded", h.degraded, "held without the lock service, in this process only", h.degraded > 0));
    cards.push(card("Lost", h.lost, "leases, since the start", h.lost > 0));
    cards.push(card("Not confirmed", h.unconfirmed, "releases, since the start", h.unconfirmed > 0));
    cards.push(card("No answer", h.outages, h.lastOutage ? `last ${short(last.now - h.lastOutage)} ago: ${h.lastError}` : "calls of this process that the lock service did not answer", h.outages > 0));
  } else {
    const note = el("div", { class: "card wide" }, el("h2", {}, "This process"), el("p", {}, "Nothing is recorded of it: the page runs alone, or without a Recorder."));
    cards.push(note);
  }
  $("cards").replaceChildren(...cards);
}

function sparkline(values) {
  const svg = el("svg:svg", { viewBox: "0 0 59 32", preserveAspectRatio: "none", role: "img", "aria-label": "time of the last looks" });
  const top = Math.max(1, ...values), start = 60 - values.length;
  svg.append(el("svg:polyline", { points: values.map((v, i) => `${start + i},${30 - (28 * v) / top}`).join(" ") }));
  return svg;
}

// --- All of it

function render() {
  if (!last) return;
  state(last.error ? "bad" : "live", last.error ? "no answer" : `${last.total} held · ${last.waiting} waiting`);
  $("title").replaceChildren(show(last.title));
  $("trouble").hidden = !last.error;
  $("trouble").textContent = last.error ? "The lock service does not answer; this is what was known last. " + last.error : "";
  attention();
  ({ now: renderNow, time: renderTime, markers: drawnEnough, health: renderHealth })[view]();
}

// attention is what an operator should look at. A name in it leads to its row.
function attention() {
  const list = $("attention"), rows = last.attention ?? [], key = JSON.stringify(rows);
  list.hidden = rows.length === 0;
  if (list.dataset.key === key) return;
  const focused = list.contains(document.activeElement) && document.activeElement.dataset.act;
  list.dataset.key = key;
  list.replaceChildren(...rows.map((r) => {
    if (!r.name) return el("li", {}, show(r.text));
    return el("li", {}, button(show(r.name), r.name, () => { $("search").value = r.name; opened.add(r.name); go("now"); connect(); }), " " + r.text);
  }));
  if (focused) list.querySelector(`[data-act="${CSS.escape(focused)}"]`)?.focus();
}

// drawnEnough reads the markers every few looks.
let looks = 0;
function drawnEnough() {
  if (looks++ % 3 === 0) renderMarkers();
}

function go(to) {
  view = to;
  looks = 0;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const own = tab.dataset.view === to;
    tab.setAttribute("aria-selected", own);
    tab.tabIndex = own ? 0 : -1;
    $(tab.dataset.view).hidden = !own;
  }
  const hash = "#" + to + (to === "time" && chosen ? "=" + encodeURIComponent(chosen) : "");
  if (location.hash !== hash) history.replaceState(null, "", hash);
  render();
}

function fromHash() {
  const [to, name] = location.hash.slice(1).split("=");
  try { if (name) chosen = decodeURIComponent(name); } catch { /* somebody typed it */ }
  go(["now", "time", "markers", "health"].includes(to) ? to : "now");
}

for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => go(tab.dataset.view));
document.querySelector("[role=tablist]").addEventListener("keydown", (e) => {
  const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!step || at < 0) return;
  const next = tabs[(at + step + tabs.length) % tabs.length];
  next.focus();
  go(next.dataset.view);
});
for (const head of document.querySelectorAll("[data-sort]")) {
  head.addEventListener("click", () => {
    const by = head.dataset.sort;
    sort = { by, down: sort.by === by ? !sort.down : ["for", "ttl", "line"].includes(by) };
    render();
  });
}
let typing = 0;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(connect, 250);
});
$("group").addEventListener("change", render);
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
    e.preventDefault();
    go("now");
    $("search").focus();
  }
});
const stale = 5000; // ms without news: the lock service is slow to answer, or the page's server is
setInterval(() => {
  if (last && age() > stale && $("state").dataset.state !== "bad") state("wait", `no news for ${short(age())}`);
  if (!last || view !== "now" || document.hidden) return;
  for (const n of last.names) {
    const r = rows.get(n.name);
    if (r) tick(r, n);
  }
}, 250);
window.addEventListener("hashchange", fromHash);
// A page that nobody sees does not make the server look.
document.addEventListener("visibilitychange", () => (document.hidden ? stream?.close() : connect()));
fromHash();
connect();

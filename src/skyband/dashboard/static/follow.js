"use strict";
// One subscriber's answer, live: the whole answer first, then its changes. The browser itself comes back after a break,
// with the id of the last event. ?x=COLUMN&y=COLUMN (kept columns) draws a map; &px=NUMBER&py=NUMBER is the subscriber's place.
const $ = (id) => document.getElementById(id), given = new URLSearchParams(location.search);
const query = given.get("query") || "", subscriber = given.get("subscriber") || "", axes = [given.get("x"), given.get("y")];
const HIDDEN = new Set(["query", "subscriber", "at", "diff", "first", "rank"]), SVG = "http://www.w3.org/2000/svg";
let rows = [], events = 0, changed = 0, fresh = new Set();

const same = (a, b) => a.id === b.id && a.score === b.score;
const shown = (value) => typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(5) : String(value ?? "");

function answer(data) {
  rows = data.rows.map((row) => Object.fromEntries(row.map((value, i) => [data.columns[i], value])));
  fresh = new Set();
}

function change(data) {
  fresh = new Set();
  for (const row of data) {
    const place = rows.findIndex((one) => same(one, row));
    if (row.diff < 0 && place >= 0) rows.splice(place, 1);
    if (row.diff > 0) { rows.push(row); fresh.add(row.id); }
  }
  changed += data.length;
}

function node(tag, text) { const made = document.createElement(tag); made.textContent = text; return made; }

function draw() {
  rows.sort((a, b) => smallest ? a.score - b.score : b.score - a.score);
  const names = Object.keys(rows[0] || {}).filter((name) => !HIDDEN.has(name));
  const head = document.createElement("tr");
  head.append(node("th", "rank"), ...names.map((name) => node("th", name)));
  $("names").replaceChildren(head);
  $("rows").replaceChildren(...rows.slice(0, 100).map((row, i) => {
    const line = document.createElement("tr");
    line.append(node("td", String(i + 1)), ...names.map((name) => node("td", shown(row[name]))));
    if (fresh.has(row.id)) line.className = "new";
    return line;
  }));
  $("counts").textContent = rows.length + " in the answer; " + events + " events, " + changed + " changes since this page was opened.";
  if (axes[0] && axes[1]) map();
}

function part(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function map() {
  const here = [given.get("px"), given.get("py")].map((text) => text === null ? NaN : Number(text));
  const points = rows.map((row) => axes.map((axis) => Number(row[axis])));
  const known = here.every(Number.isFinite);
  const all = known ? [...points, here] : points;
  if (!all.length) { $("map").replaceChildren(); return; }
  const middle = known ? here : [0, 1].map((i) => all.reduce((sum, one) => sum + one[i], 0) / all.length);
  const reach = 1.15 * Math.max(...all.map((one) => Math.max(Math.abs(one[0] - middle[0]), Math.abs(one[1] - middle[1]))), 1e-9);
  const place = (one) => [50 + 50 * (one[0] - middle[0]) / reach, 50 - 50 * (one[1] - middle[1]) / reach];
  const parts = [part("rect", { width: 100, height: 100, class: "ground" })];
  points.forEach((one, i) => {
    const [x, y] = place(one);
    if (known) parts.push(part("line", { x1: 50, y1: 50, x2: x, y2: y, class: "way" }));
    parts.push(part("circle", { cx: x, cy: y, r: 2.2, class: fresh.has(rows[i].id) ? "member new" : "member" }));
    const label = x > 75 ? { x: x - 3, "text-anchor": "end" } : { x: x + 3 };
    parts.push(part("text", { ...label, y: y + 1.4 }, (i + 1) + ": " + rows[i].id));
  });
  if (known) parts.push(part("circle", { cx: 50, cy: 50, r: 2.6, class: "here" }), part("text", { x: 53, y: 46 }, subscriber));
  $("map").removeAttribute("hidden");
  $("map").replaceChildren(...parts);
}

function say(text) { $("said").hidden = !text; $("said").textContent = text || ""; }
function state(word, kind) { $("link").textContent = word; $("link").className = "pill " + kind; }

let smallest = false;
async function follow() {
  const base = "/api/queries/" + encodeURIComponent(query);
  $("who").textContent = subscriber + ": " + query;
  const found = await fetch(base), about = await found.json();
  if (!found.ok) { say(about.error.message); state("nobody", "gone"); return; }
  smallest = / ASC /.test(" " + about.sql + " ");
  const source = new EventSource(base + "/changes?subscriber=" + encodeURIComponent(subscriber));
  const on = (name, handle) => source.addEventListener(name, (event) => {
    events += name === "beat" ? 0 : 1;
    state("live", "live");
    handle(JSON.parse(event.data));
    requestAnimationFrame(draw);
  });
  on("answer", (data) => { answer(data); say(""); });
  on("changes", change);
  on("reset", (data) => say(data.why));
  on("failed", (data) => say(data.why));
  on("gone", () => { rows = []; say("There is no such subscriber any more. It may come back."); });
  on("beat", () => {});
  source.onerror = async () => {
    state("disconnected", "gone");
    if (source.readyState !== EventSource.CLOSED) return;
    const response = await fetch(base + "/answer?rows=1&subscriber=" + encodeURIComponent(subscriber));
    say(response.ok ? "The server takes no more listeners now. Reload in a moment." : (await response.json()).error.message);
  };
}

$("query").value = query;
$("subscriber").value = subscriber;
$("whom").addEventListener("submit", (event) => {
  event.preventDefault();
  for (const name of ["query", "subscriber"]) given.set(name, $(name).value);
  for (const name of ["px", "py"]) given.delete(name);
  location.search = given.toString();
});
if (query && subscriber) follow().catch(() => { state("disconnected", "gone"); say("The server cannot be reached."); });
else state("choose whom to follow", "");

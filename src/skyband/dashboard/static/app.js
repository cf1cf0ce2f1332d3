"use strict";
const $ = (id) => document.getElementById(id);
const shown = (number) => (number === null || number === undefined ? "–" : typeof number === "number" ? number.toLocaleString("en") : String(number));
let head = null, detail = null, chosen = null, group = null, source = null, lastEvent = 0, lastFrame = 0, drawing = false, awaited = null;
let ranks = new Map(), gone = [], drawnTable = "", editing = null, suggested = "", drawnPast = "";

// --- the connection: server-sent events; the newest frame is drawn, those between are not

function connect() {
  if (source) source.close();
  const parameters = chosen === null ? "" : "?watch=" + encodeURIComponent(chosen) + (group === null ? "" : "&group=" + group);
  source = new EventSource("/api/events" + parameters);
  source.addEventListener("frame", (event) => {
    lastEvent = lastFrame = performance.now();
    const frame = JSON.parse(event.data);
    head = frame.head;
    detail = frame.detail;
    state("live");
    if (!drawing) { drawing = true; requestAnimationFrame(draw); }
  });
  source.addEventListener("beat", () => { lastEvent = performance.now(); state("live"); });
  source.onerror = () => {
    state("gone");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (source.readyState === EventSource.CLOSED) connect(); }, 2000);
  };
}

function state(now) {
  const pill = $("link");
  const words = { live: "live", gone: "disconnected" };
  if (pill.textContent !== words[now]) {
    pill.textContent = words[now];
    pill.className = "pill " + now;
    document.querySelector("main").classList.toggle("stale", now === "gone");
    $("lost").hidden = now === "live";
    $("lost").textContent = now === "live" ? "" : "The connection is lost. This is the last known state; trying again …";
  }
}

setInterval(() => {
  const stream = head && head.stream, silent = performance.now() - lastFrame;
  if (source && lastEvent && performance.now() - lastEvent > 6000) state("gone");
  const running = stream && !stream.paused && !stream.ended && !stream.error && stream.speed > 0;
  $("busy").hidden = !(running && silent > 3000 && $("link").className.includes("live"));
  $("busy").textContent = $("busy").hidden ? "" : "No frame for " + Math.round(silent / 1000) + " s: the server is busy. The first use of an engine compiles it, once.";
}, 1000);

async function api(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) { options.body = JSON.stringify(body); options.headers["Content-Type"] = "application/json"; }
  let response;
  try { response = await fetch(path, options); } catch (error) { throw new Error("The server cannot be reached."); }
  const text = await response.text();
  let result = null;
  try { result = text ? JSON.parse(text) : null; } catch (error) { /* no JSON: the status has to do */ }
  if (!response.ok) throw new Error(result && result.error ? result.error.message : "The server responds with status " + response.status + ".");
  return result;
}

// --- drawing

function set(id, text) { const node = $(id); if (node.textContent !== text) node.textContent = text; }

function draw() {
  drawing = false;
  if (!head) return;
  drawStream(head.stream);
  drawList(head.queries);
  drawDetail();
}

function drawStream(stream) {
  $("counts").hidden = !stream;
  $("controls").hidden = !stream || !stream.paced;
  if (!stream) {
    set("stream-name", "None is chosen.");
    if (!$("choosing").dataset.opened) { $("choosing").open = true; $("choosing").dataset.opened = "yes"; }
    return;
  }
  const roles = stream.roles, labels = [];
  if (roles.id) labels.push("id: " + roles.id);
  if (roles.time) labels.push("time: " + roles.time);
  const what = stream.error ? "stopped by an error" : stream.ended ? "ended" : stream.paused ? "paused" : stream.fixed ? "answers of a Spark pipeline" : "running";
  set("stream-name", stream.title + (labels.length ? " (" + labels.join(", ") + ")" : "") + ": " + what);
  $("stream-error").hidden = !stream.error;
  set("stream-error", stream.error || "");
  set("speed", shown(Math.round(stream.speed)));
  set("arrivals", shown(stream.arrivals));
  set("late", shown(stream.late));
  const reasons = Object.entries(stream.rejected || {});
  set("rejected", shown(reasons.reduce((sum, entry) => sum + entry[1], 0)));
  $("reasons").hidden = !reasons.length;
  set("reasons", reasons.map(([reason, count]) => reason + ": " + shown(count)).join("; "));
  const failures = stream.failures || { count: 0 };
  $("failures").hidden = !failures.count;
  set("failures", failures.count ? "Failures that the server survived: " + shown(failures.count) + ". The last: " + failures.last : "");
  set("clock", stream.clock === null ? "none" : shortTime(stream.clock));
  $("past").hidden = stream.history.length < 2;
  if (!$("past").hidden && stream.history.length + stream.history.at(-1).join() !== drawnPast) {
    drawnPast = stream.history.length + stream.history.at(-1).join();
    drawHistory($("history"), stream.history);
    const [pace, kept] = stream.history.at(-1);
    $("history").setAttribute("aria-label", "The last two minutes; now " + shown(Math.round(pace)) + " rows a second, " + shown(kept) + " objects kept");
  }
  set("pause", stream.paused ? "Resume" : "Pause");
  const pace = stream.rate === null ? "" : String(stream.rate);
  if (document.activeElement !== $("pace") && $("pace").value !== pace) {
    if (![...$("pace").options].some((option) => option.value === pace)) $("pace").add(new Option(shown(stream.rate) + " rows a second", pace));
    $("pace").value = pace;
  }
  drawExamples(stream);
}

function drawExamples(stream) {
  const columns = stream.columns || [];
  const key = JSON.stringify([columns, stream.roles]);
  if (key === suggested) return;
  suggested = key;
  const numbers = columns.filter(([name, type]) => /^(u?int|float|double|decimal)/.test(type) && name !== stream.roles.time && name !== stream.roles.id).map((column) => quote(column[0]));
  const words = columns.filter(([, type]) => /string/.test(type)).map((column) => quote(column[0])).filter((name) => name !== stream.roles.id);
  const examples = [];
  if (numbers.length) {
    const by = numbers[numbers.length - 1], over = stream.roles.time ? "WINDOW '1 hour'" : "WINDOW 1000 ROWS";
    examples.push(["best", "SELECT * FROM s ORDER BY " + by + " DESC LIMIT 10 WINDOW 1000 ROWS"]);
    if (words.length) examples.push(["best per " + words[0], "SELECT * FROM s ORDER BY " + by + " DESC LIMIT 5 PER " + words[0] + " " + over]);
    if (words.length) examples.push([words[0] + " by total", "SELECT " + words[0] + ", sum(" + by + "), count(*) FROM s GROUP BY " + words[0] + " ORDER BY sum(" + by + ") DESC LIMIT 10 " + over]);
    if (numbers.length > 1) examples.push(["both", "SELECT * FROM s ORDER BY 0.5*" + numbers[0] + " + 0.5*" + numbers[1] + " DESC LIMIT 10 " + over]);
  }
  const place = $("examples");
  place.replaceChildren("Columns: " + columns.map(([name, type]) => name + " (" + type + ")").join(", ") + ". ");
  if (examples.length) place.append("Try: ");
  for (const [name, text] of examples) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => { edit(null); $("query-name").value = free(name); $("query-sql").value = text; });
    place.append(button, " ");
  }
  place.hidden = !columns.length;
}

function quote(name) { return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : "`" + name.replaceAll("`", "``") + "`"; }
function free(name) {
  const taken = new Set((head ? head.queries : []).map((one) => one.name));
  let found = name;
  for (let n = 2; taken.has(found); n++) found = name + " " + n;
  return found;
}

const entries = new Map();
function drawList(queries) {
  const list = $("list");
  set("queries-count", queries.length ? "(" + queries.length + ")" : "");
  const fixed = head.stream && head.stream.fixed;
  $("no-queries").hidden = queries.length > 0;
  set("no-queries", head.stream ? "There is no query yet. Add one:" : "Choose a stream first, then add queries.");
  $("adding").hidden = !head.stream || fixed;
  if (!queries.length && head.stream && !$("adding").dataset.opened) { $("adding").open = true; $("adding").dataset.opened = "yes"; }
  const names = new Set(queries.map((one) => one.name));
  for (const [name, entry] of entries) if (!names.has(name)) { entry.item.remove(); entries.delete(name); }
  for (const one of queries) {
    let entry = entries.get(one.name);
    if (!entry) { entry = makeEntry(one.name); entries.set(one.name, entry); list.append(entry.item); }
    fill(entry.sql, one.sql);
    fill(entry.number, (one.kept === null ? "" : shown(one.kept) + " kept, ") + shown(one.changes) + " changes");
    entry.number.classList.toggle("beat", entry.changes !== undefined && entry.changes !== one.changes);
    entry.changes = one.changes;
    const current = String(one.name === chosen);
    if (entry.button.getAttribute("aria-current") !== current) entry.button.setAttribute("aria-current", current);
  }
  if (names.has(chosen)) awaited = null;
  const absent = !names.has(chosen) && !(awaited && awaited.name === chosen && performance.now() < awaited.until);
  if (queries.length && absent) choose(queries[0].name);
  if (!queries.length && chosen !== null && absent) choose(null);
}

function fill(node, text) { if (node.textContent !== text) node.textContent = text; }

function makeEntry(name) {
  const item = document.createElement("li"), button = document.createElement("button");
  button.type = "button";
  const parts = {};
  for (const part of ["name", "number", "sql"]) { parts[part] = document.createElement("span"); parts[part].className = part; button.append(parts[part]); }
  parts.name.textContent = name;
  button.addEventListener("click", () => choose(name));
  item.append(button);
  return { item, button, ...parts };
}

function choose(name, which = null) {
  chosen = name;
  group = which;
  detail = null;
  ranks = new Map();
  gone = [];
  connect();
  if (head) { drawList(head.queries); drawDetail(); }
}

function drawDetail() {
  const query = head.queries.find((one) => one.name === chosen);
  $("detail").hidden = !query;
  $("nothing").hidden = Boolean(query);
  if (!query) {
    set("shown-title", "Answer");
    set("nothing", !head.stream ? "Choose a stream and add a query: its answer is shown here." : "Add a query: its answer is shown here.");
    return;
  }
  set("shown-title", query.name);
  set("shown-sql", query.sql);
  const fixed = head.stream && head.stream.fixed;
  $("change").hidden = $("drop").hidden = Boolean(fixed);
  set("kept", query.kept === null ? "–" : shown(query.kept) + " of " + shown(query.window));
  $("kept-bar").style.width = query.kept === null || !query.window ? "0" : Math.min(100, (100 * query.kept) / query.window) + "%";
  set("changes", shown(query.changes));
  set("query-arrivals", shown(query.arrivals));
  set("query-late", shown(query.late));
  set("query-rejected", shown(query.rejected));
  set("algorithm", query.algorithm || "–");
  if (!detail || detail.name !== chosen) { set("total", "loading …"); return; }
  if (group === null && detail.group !== null && detail.group !== undefined) { group = detail.group; connect(); }
  if (detail.error || detail.gone) { set("total", detail.error || "It has been dropped."); return; }
  drawGroups();
  drawPlane($("plane"), detail.plane);
  const top = detail.plane.points.filter((point) => point[2]).length;
  $("plane").setAttribute("aria-label", "The score-time plane: " + top + " in the answer, " + (detail.plane.points.length - top) + " in the skyband");
  drawAnswer(detail.answer);
}

function drawGroups() {
  const groups = detail.groups, select = $("group");
  $("group-label").hidden = groups.length < 2;
  if (select.options.length !== groups.length) {
    select.replaceChildren(...groups.map((values, place) => new Option(values.map((value) => (value === null ? "null" : value)).join(", "), place)));
  }
  const at = String(detail.group || 0);
  if (document.activeElement !== select && select.value !== at) select.value = at;
}

// Movements are shown for three seconds: a row that has entered, risen or fallen.
function drawAnswer(answer) {
  const now = performance.now(), columns = answer.columns, of = chosen + " " + detail.group + " " + columns.join();
  if (of !== drawnTable) {
    drawnTable = of;
    ranks = new Map();
    gone = [];
    $("head").replaceChildren(...["", ...columns].map((name) => {
      const cell = document.createElement(name ? "th" : "td");
      cell.textContent = name;
      if (name) cell.scope = "col";
      if (name === "score" || name === "rank" || name === "probability") cell.className = "n";
      return cell;
    }));
    $("rows").replaceChildren();
  }
  set("total", answer.total > answer.rows.length ? "(the first " + answer.rows.length + " of " + shown(answer.total) + ")" : "");
  $("empty").hidden = answer.rows.length > 0;
  const label = columns.map((name, place) => (/^id(_[ab])?$/.test(name) || (detail.per || []).includes(name) ? place : -1)).filter((place) => place >= 0);
  const kind = head.queries.find((one) => one.name === chosen).kind, keyed = kind === "TopKGroups" || kind === "TopKIncomplete";
  const times = keyed ? -1 : columns.indexOf("time");  // a keyed object stays the same when a newer row comes
  const next = new Map(), fresh = ranks.size > 0;
  answer.rows.forEach((row, place) => {
    const identity = label.map((at) => row[at]).join("\u0000") + (times >= 0 ? "\u0000" + row[times] : "");
    const before = ranks.get(identity);
    const moved = before === undefined ? (fresh ? "new" : "") : before.place === place ? before.moved : place < before.place ? "up" : "down";
    const at = before !== undefined && before.place === place ? before.at : now;
    const by = before === undefined || before.place === place ? (before ? before.by : 0) : Math.abs(place - before.place);
    next.set(identity, { place, moved, at, by, text: row });
  });
  for (const [identity, before] of ranks) if (!next.has(identity)) gone.unshift(label.map((at) => before.text[at]).join(", "));
  gone = gone.slice(0, 8);
  ranks = next;
  const body = $("rows");
  while (body.rows.length > answer.rows.length) body.deleteRow(-1);
  while (body.rows.length < answer.rows.length) {
    const line = body.insertRow();
    for (let n = 0; n <= columns.length; n++) line.insertCell();
    line.cells[0].className = "move";
  }
  const marks = [...next.values()];
  answer.rows.forEach((row, place) => {
    const cells = body.rows[place].cells, mark = marks[place], live = mark && now - mark.at < 3000 ? mark : { moved: "", by: 0 };
    fill(cells[0], live.moved === "new" ? "new" : live.moved === "up" ? "▲ " + live.by : live.moved === "down" ? "▼ " + live.by : "");
    const style = "move " + live.moved;
    if (cells[0].className !== style) cells[0].className = style;
    row.forEach((value, n) => {
      fill(cells[n + 1], value === null ? "" : typeof value === "number" ? (columns[n] === "score" || columns[n] === "probability" ? short(value) : String(value)) : shortTime(value));
      const side = typeof value === "number" ? "n" : "";
      if (cells[n + 1].className !== side) cells[n + 1].className = side;
    });
  });
  set("left", gone.length ? "Left recently: " + gone.join("; ") : "");
}

// --- actions

function show(id, error) { $(id).hidden = !error; $(id).textContent = error ? error.message : ""; }

$("pause").addEventListener("click", () => api("PATCH", "/api/stream", { paused: !head.stream.paused }).catch((error) => alertStream(error)));
$("pace").addEventListener("change", () => api("PATCH", "/api/stream", { rate: $("pace").value ? Number($("pace").value) : null }).catch((error) => alertStream(error)));
function alertStream(error) { show("stream-error", error); }

$("choosing").addEventListener("toggle", loadStreams);
async function loadStreams() {
  if (!$("choosing").open) return;
  try {
    const found = await api("GET", "/api/streams");
    const before = $("choice").value;
    $("choice").replaceChildren(...found.map((one) => new Option((one.name === "-" ? "stdin" : one.name) + " (" + one.kind + ")", one.name)));
    if (before) $("choice").value = before;
    show("choose-error", null);
  } catch (error) { show("choose-error", error); }
}

$("choose").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target), keep = form.get("keep").split(",").map((name) => name.trim()).filter(Boolean);
  const body = { stream: form.get("stream"), keep, rate: 2000 };
  for (const role of ["id", "time", "part", "value"]) body[role] = form.get(role).trim() || null;
  try {
    await api("PUT", "/api/stream", body);
    show("choose-error", null);
    $("choosing").open = false;
    delete $("adding").dataset.opened;
    choose(null);
  } catch (error) { show("choose-error", error); }
});

function edit(name) {
  editing = name;
  $("adding").open = true;
  $("query-name").readOnly = name !== null;
  $("query-form").querySelector("[type=submit]").textContent = name === null ? "Add" : "Change " + name;
  if (name !== null) { $("query-name").value = name; $("query-sql").value = head.queries.find((one) => one.name === name).sql; }
  show("query-error", null);
  $("query-explanation").hidden = true;
  $("query-sql").focus();
}

$("query-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = $("query-name").value.trim(), sql = $("query-sql").value;
  try {
    if (editing === null) await api("POST", "/api/queries", { name, sql });
    else await api("PUT", "/api/queries/" + encodeURIComponent(editing), { sql });
    show("query-error", null);
    $("query-explanation").hidden = true;
    editing = null;
    $("query-name").readOnly = false;
    $("query-form").querySelector("[type=submit]").textContent = "Add";
    $("query-form").reset();
    $("adding").open = false;
    awaited = { name, until: performance.now() + 5000 };  // the next frame has it
    choose(name);
    $("shown").focus();
  } catch (error) { show("query-error", error); }
});

$("check").addEventListener("click", async () => {
  try {
    const checked = await api("POST", "/api/check", { sql: $("query-sql").value });
    $("query-explanation").textContent = checked.explain;
    $("query-explanation").hidden = false;
    show("query-error", null);
  } catch (error) { show("query-error", error); $("query-explanation").hidden = true; }
});

$("change").addEventListener("click", () => edit(chosen));
$("drop").addEventListener("click", async () => {
  try { await api("DELETE", "/api/queries/" + encodeURIComponent(chosen)); choose(null); $("queries-title").scrollIntoView({ block: "nearest" }); }
  catch (error) { alertStream(error); }
});
$("group").addEventListener("change", () => choose(chosen, Number($("group").value)));
window.addEventListener("resize", () => { if (head) drawDetail(); });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  if (event.key === "/" && head && head.stream && !head.stream.fixed) { event.preventDefault(); edit(null); }
  if (event.key === "p" && !$("controls").hidden) $("pause").click();
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && $("list").contains(event.target)) {
    event.preventDefault();
    const names = head.queries.map((one) => one.name), at = names.indexOf(chosen) + (event.key === "ArrowDown" ? 1 : -1);
    if (at >= 0 && at < names.length) { choose(names[at]); entries.get(names[at]).button.focus(); }
  }
});

const themes = ["system", "light", "dark"];
function theme(name) {
  if (name === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  $("theme").textContent = "theme: " + name;
  try { localStorage.setItem("skyband theme", name); } catch (error) { /* private mode: not kept */ }
  if (head) drawDetail();
}
$("theme").addEventListener("click", () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % 3]));
let kept = "system";
try { kept = localStorage.getItem("skyband theme") || "system"; } catch (error) { /* as above */ }
theme(themes.includes(kept) ? kept : "system");
connect();
loadStreams();

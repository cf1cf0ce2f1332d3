"use strict";
// The score-time plane on a canvas. plane: {points: [[x, score, rank]], rest: [[x, score]], span, from, to}; x <= 0 is
// relative to now, rank 0 is no answer. Scores may be "inf" or "-inf": they are drawn at the edges.
function drawPlane(canvas, plane) {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  const width = Math.max(50, Math.round(box.width)), height = Math.max(50, Math.round(box.height));
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  const left = 52, right = 12, top = 10, bottom = 24, inner = width - left - right, tall = height - top - bottom;
  pen.fillStyle = colour("--tile");
  pen.fillRect(left, top, inner, tall);
  pen.fillStyle = colour("--soft");
  if (!plane.points.length) {
    pen.textAlign = "center";
    pen.fillText("nothing is kept yet", left + inner / 2, top + tall / 2);
    return;
  }
  const numbers = [...plane.points, ...plane.rest].map((point) => point[1]).filter((score) => typeof score === "number");
  let low = Math.min(...numbers), high = Math.max(...numbers);
  if (!numbers.length) { low = 0; high = 1; }
  if (high <= low) { low -= 1; high += 1; }
  const margin = (high - low) * 0.05, span = Math.max(plane.span || 0, 1);
  low -= margin; high += margin;
  const x = (stamp) => left + inner * (1 + stamp / span);
  const value = (score) => (typeof score === "number" ? score : score.startsWith("-") ? low : high);
  const y = (score) => top + tall * (1 - (value(score) - low) / (high - low));
  pen.strokeStyle = colour("--line");
  pen.textAlign = "right";
  for (const tick of ticks(low, high)) {
    pen.beginPath(); pen.moveTo(left, y(tick)); pen.lineTo(left + inner, y(tick)); pen.stroke();
    pen.fillText(short(tick), left - 6, y(tick) + 4);
  }
  pen.fillText("now " + (plane.to === null ? "" : shortTime(plane.to)), left + inner, height - 6);
  pen.textAlign = "left";
  if (plane.from !== null) pen.fillText(shortTime(plane.from), left, height - 6);
  pen.save();
  pen.beginPath(); pen.rect(left - 6, top - 6, inner + 12, tall + 12); pen.clip();
  pen.fillStyle = colour("--rest");
  for (const [stamp, score] of plane.rest) dot(pen, x(stamp), y(score), 1.8);
  pen.fillStyle = colour("--band");
  for (const [stamp, score, rank] of plane.points) if (!rank) diamond(pen, x(stamp), y(score), 4);
  pen.fillStyle = colour("--top");
  for (const [stamp, score, rank] of plane.points) if (rank) dot(pen, x(stamp), y(score), 5);
  pen.restore();
}

// The last two minutes: [[rows a second, objects kept]], each line from 0 to its largest.
function drawHistory(canvas, samples) {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  const width = Math.max(50, Math.round(box.width)), height = Math.max(20, Math.round(box.height));
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const style = getComputedStyle(document.documentElement), pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  ["--top", "--band"].forEach((name, line) => {
    const values = samples.map((sample) => sample[line]).filter((value) => value !== null), most = Math.max(...values, 1);
    pen.strokeStyle = style.getPropertyValue(name).trim();
    pen.lineWidth = 1.5;
    pen.beginPath();
    values.forEach((value, at) => pen.lineTo(width - 2 - (values.length - 1 - at) * (width / 120), height - 3 - (height - 6) * (value / most)));
    pen.stroke();
  });
}

function dot(pen, x, y, size) { pen.beginPath(); pen.arc(x, y, size, 0, 2 * Math.PI); pen.fill(); }
function diamond(pen, x, y, size) {
  pen.beginPath(); pen.moveTo(x, y - size); pen.lineTo(x + size, y); pen.lineTo(x, y + size); pen.lineTo(x - size, y); pen.fill();
}

function ticks(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high && found.length < 12; at += step) found.push(Math.abs(at) < step / 1e6 ? 0 : at);
  return found;
}

function short(number) {
  if (typeof number !== "number") return String(number);
  const size = Math.abs(number);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return number.toExponential(1);
  return String(Number(number.toPrecision(4)));
}

function shortTime(text) { return String(text).replace(/(\d\d:\d\d:\d\d)\.\d+/, "$1"); }

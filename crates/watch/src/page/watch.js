"use strict";
// Draws the frames that the server sends (`frame.rs` defines them). Totals count from the start;
// rates are differences of totals.

const PAST_MILLIS = 30_000;      // The time that charts show.
const RATE_MILLIS = 1_000;       // The time over which rates are computed.
const GLOW_HALVES_MILLIS = 450;  // The half-life of the light of a bucket.
const PATHS = 3;                 // The trips that are drawn as lines.
const [PREFETCH, READ, WRITE, FLUSH] = [0, 1, 2, 3];                        // Operations of storage.
const [ASK_READ, ASK_WRITE, ASK_ZERO, ASK_TRIM, ASK_FLUSH] = [0, 1, 2, 3, 4];  // Kinds of requests.

const by = (id) => document.getElementById(id);
const say = (id, text) => { by(id).textContent = text; };

// ───────────────────────────── numbers for people ─────────────────────────────

const count = (n) => Math.round(n).toLocaleString("en");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
function bytes(n) {
  let unit = 0;
  while (n >= 1000 && unit < UNITS.length - 1) { n /= 1024; unit += 1; }
  const digits = unit === 0 || n >= 100 || Number.isInteger(n) ? 0 : 1;
  return `${n.toFixed(digits)} ${UNITS[unit]}`;
}
const sum = (numbers) => numbers.reduce((all, n) => all + n, 0);
const part = (n, of) => of > 0 ? (100 * n / of).toFixed(n === of || n === 0 ? 0 : 1) + " %" : "–";

// ───────────────────────────── received state ─────────────────────────────

let hello = null;
let frames = [];     // The frames of the last second, for rates.
let visits = [];     // Visits of the leaf level: { at, tree, bucket, isEviction }.
let asked = [];      // [millis, kind, offset, bytes]
let paths = [];      // The latest trips: [millis, is_write, [[level, bucket], …]].
let trees = [];      // The lit buckets of each tree.
let now = 0;         // The server's time of the latest frame.
let came = 0;        // The local time when it arrived.
let leftOut = 0, ownerLeftOut = 0, missed = 0;
let shown = 0;       // The index of the drawn tree.

function begin(message) {
  hello = message;
  frames = []; visits = []; asked = []; paths = [];
  leftOut = ownerLeftOut = missed = 0;
  trees = hello.trees.map((tree) => {
    const rows = [];
    tree.buckets.forEach((buckets, level) => {
      if (buckets > 0) rows.push({ level, buckets, lit: [new Map(), new Map()] });
    });
    return { number: tree.number, read: null, rows, row: new Map(rows.map((row) => [row.level, row])), leaf: rows.at(-1)?.level };
  });
  const most = (tree) => tree.rows.length > 0 ? tree.rows.at(-1).buckets : 0;
  shown = trees.reduce((best, tree, i) => most(tree) > most(trees[best]) ? i : best, 0);
  by("tree").replaceChildren(...trees.map((tree, i) => new Option(String(tree.number), String(i), false, i === shown)));
  by("choice").hidden = trees.length < 2;
  by("hidden").hidden = hello.shows_secrets;
  by("shown").hidden = !hello.shows_secrets;
  say("disk", `a disk of ${bytes(hello.disk_bytes)}, in blocks of ${bytes(hello.block_bytes)}`);
  fitPicture();
}

function take(frame) {
  const { storage, owner } = frame;
  const span = hello.frame_millis;
  now = frame.millis;
  came = performance.now();
  frames.push(frame);
  while (frames.length > 2 && frames[0].millis < now - RATE_MILLIS) frames.shift();

  // Spread the visits of a frame evenly over its time.
  storage.visits.forEach(([trip, tree, isWrite, level, bucket], i) => {
    const at = now - span + span * i / storage.visits.length;
    trees[tree].row.get(level)?.lit[isWrite].set(bucket, at);
    if (level === trees[tree].leaf) visitLeaf(trees[tree], { at, tree, bucket, isEviction: isWrite === 1 });
    if (tree !== shown) return;
    const last = paths.at(-1);
    const goesOn = last && last.trip === trip && last.isWrite === isWrite
      && Math.abs(last.buckets.at(-1)[0] - level) === 1;
    if (goesOn) last.buckets.push([level, bucket]);
    else paths.push({ at, trip, isWrite, buckets: [[level, bucket]] });
  });
  paths = paths.filter((path) => path.buckets.length > 1).slice(-PATHS);
  visits = visits.filter(({ at }) => at > now - PAST_MILLIS);
  leftOut += storage.visits_left_out;
  if (owner) {
    owner.latest.forEach(([kind, offset, length], i) => {
      asked.push([now - span + span * i / owner.latest.length, kind, offset, length]);
    });
    asked = asked.filter(([at]) => at > now - PAST_MILLIS);
    ownerLeftOut += owner.left_out;
  }
  tell(frame);
}

// An eviction reads a path, like an access, and then writes it: a read followed by a write belongs
// to an eviction.
function visitLeaf(tree, visit) {
  if (visit.isEviction) {
    if (tree.read) tree.read.isEviction = true;
    tree.read = null;
  } else {
    tree.read = visit;
  }
  visits.push(visit);
}

// ───────────────────────────── numbers ─────────────────────────────

function tell(frame) {
  const before = frames[0];
  const seconds = Math.max(frame.millis - before.millis, 1) / 1000;
  const rate = (of) => frames.length > 1 ? (of(frame) - of(before)) / seconds : 0;
  const trips = ({ storage }) => sum(storage.operations.map((operation) => operation.trips));
  say("trips", count(rate(trips)));
  say("trips-all", count(trips(frame)));
  say("read", bytes(rate(({ storage }) => storage.operations[READ].bytes)));
  say("written", bytes(rate(({ storage }) => storage.operations[WRITE].bytes)));
  say("flushes-all", count(frame.storage.operations[FLUSH].trips));
  const notes = [];
  if (leftOut > 0) notes.push(`${count(leftOut)} visits were too fast to draw; all are counted.`);
  if (missed > 0) notes.push(`This page was too slow for ${count(missed)} frames; the disk did not wait.`);
  say("left-out", notes.join(" "));
  if (!frame.owner) return;
  say("requests", count(rate(({ owner }) => sum(owner.requests))));
  say("requests-all", count(sum(frame.owner.requests)));
  say("owner-read", bytes(rate(({ owner }) => owner.bytes[ASK_READ])));
  say("owner-written", bytes(rate(({ owner }) => owner.bytes[ASK_WRITE])));
  say("owner-flushes-all", count(frame.owner.requests[ASK_FLUSH]));
  say("owner-left-out", ownerLeftOut > 0 ? `${count(ownerLeftOut)} requests were too fast to draw; all are counted.` : "");
  tellInside(frame.owner.inner);
}

function tellInside({ to_blocks, to_positions, to_nothing, stash }) {
  const all = to_blocks + to_positions + to_nothing;
  const found = Math.max(to_blocks - to_positions, 0);
  const of = (n) => [n, all, `${count(n)}, ${part(n, all)}`];
  const rows = [["accesses to blocks", ...of(to_blocks)]];
  // Dummies occur at a fixed rate; the other accesses if the position map is in the tree.
  if (to_nothing > 0) rows.push(["dummy accesses", ...of(to_nothing)]);
  if (to_positions > 0) rows.push(["accesses to the position map", ...of(to_positions)]);
  rows.push(["positions found on the client", found, to_blocks, part(found, to_blocks)]);
  if (stash) {
    rows.push(["blocks in the stash", stash.blocks, stash.blocks_max, `${count(stash.blocks)} of at most ${count(stash.blocks_max)}`]);
  }
  const table = by("inside");
  if (table.dataset.rows !== rows.map(([name]) => name).join()) {
    table.dataset.rows = rows.map(([name]) => name).join();
    table.replaceChildren(...rows.flatMap(([name]) => {
      const [label, track, fill, value] = Array.from({ length: 4 }, () => document.createElement("div"));
      label.textContent = name;
      track.className = "track"; fill.className = "fill"; value.className = "value";
      track.append(fill);
      return [label, track, value];
    }));
  }
  rows.forEach(([, n, most, text], i) => {
    table.children[3 * i + 1].firstChild.style.width = `${most > 0 ? Math.min(100 * n / most, 100) : 0}%`;
    table.children[3 * i + 2].textContent = text;
  });
}

// ───────────────────────────── pictures ─────────────────────────────

const TREE_HEIGHT = 200, ROW_GAP = 3;      // Rows fill the height, within bounds.
const CAP_HEIGHT = 34;                     // For the levels on the client.
const LABEL_WIDTH = 74, BAR_WIDTH = 118;

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["ink", "quiet", "line", "dark", "read", "write", "trim"]
    .map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}
let ink = colours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { ink = colours(); });

// Clears a canvas and sizes it to the pixels of the screen.
function wiped(id) {
  const canvas = by(id);
  const scale = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif";
  pen.textBaseline = "middle";
  return { pen, width, height };
}

// The layout of a tree's rows.
function layout(tree) {
  const rows = tree.rows.length;
  const height = Math.max(9, Math.min(34, TREE_HEIGHT / Math.max(rows, 1) - ROW_GAP));
  const cap = hello.levels_on_client > 0 ? CAP_HEIGHT : 0;
  const top = (row) => 16 + cap + row * (height + ROW_GAP);
  return { rows, height, cap, top, middle: (row) => top(row) + height / 2 };
}

function fitPicture() {
  const tree = trees[shown];
  if (!tree) return;
  const { rows, top } = layout(tree);
  by("picture").style.height = `${Math.ceil(top(rows))}px`;
}

// The extent of a row: the tree is narrow at the root and wide at the leaves.
function spread(row, rows, width) {
  const room = width - LABEL_WIDTH - BAR_WIDTH;
  const wide = rows > 1 ? room * (0.16 + 0.84 * row / (rows - 1)) : room;
  return { left: LABEL_WIDTH + (room - wide) / 2, wide };
}

function drawPicture(time) {
  const { pen, width } = wiped("picture");
  const tree = trees[shown];
  if (!tree) return;
  const shape = layout(tree);
  const last = frames.at(-1), before = frames[0];
  const seconds = last ? Math.max(last.millis - before.millis, 1) / 1000 : 1;
  const rates = tree.rows.map(({ level }) => [0, 1].map((operation) =>
    last ? (last.storage.levels[shown][level][operation] - before.storage.levels[shown][level][operation]) / seconds : 0));
  const most = Math.max(1, ...rates.flat());
  pen.fillStyle = ink.quiet;
  pen.textAlign = "right";
  pen.fillText("buckets", LABEL_WIDTH - 10, 7);
  pen.textAlign = "left";
  pen.fillText("pieces per second", width - BAR_WIDTH + 12, 7);
  if (shape.cap > 0) drawCap(pen, shape, width);
  tree.rows.forEach((row, i) => {
    const { left, wide } = spread(i, shape.rows, width);
    const top = shape.top(i);
    pen.fillStyle = ink.dark;
    pen.fillRect(left, top, wide, shape.height);
    const cell = wide / row.buckets;
    row.lit.forEach((lit, isWrite) => {
      pen.fillStyle = isWrite ? ink.write : ink.read;
      for (const [bucket, at] of lit) {
        const light = Math.pow(0.5, (time - at) / GLOW_HALVES_MILLIS);
        if (light < 0.03) { lit.delete(bucket); continue; }
        pen.globalAlpha = Math.min(light, 1);
        // Buckets of long rows get a minimum width.
        pen.fillRect(left + bucket * cell, top, Math.max(cell - (cell > 4 ? 1 : 0), 1.5), shape.height);
      }
      pen.globalAlpha = 1;
    });
    pen.fillStyle = ink.quiet;
    pen.textAlign = "right";
    pen.fillText(count(row.buckets), LABEL_WIDTH - 10, shape.middle(i));
    const thick = Math.min(6, shape.height / 2 - 1);
    const bar = (operation, colour, y) => {
      pen.fillStyle = colour;
      pen.fillRect(width - BAR_WIDTH + 12, y, 44 * rates[i][operation] / most, thick);
    };
    bar(0, ink.read, shape.middle(i) - thick - 0.5);
    bar(1, ink.write, shape.middle(i) + 0.5);
    pen.fillStyle = ink.quiet;
    pen.fillText(`${short(rates[i][0])} · ${short(rates[i][1])}`, width, shape.middle(i));
  });
  drawPaths(pen, tree, width, shape, time);
}

const short = (n) => n >= 9999.5 ? `${Math.round(n / 1000)}k` : count(n);

// Draws the top of the tree, which is on the client.
function drawCap(pen, { rows, cap, top }, width) {
  const { left, wide } = spread(0, rows, width);
  const middle = left + wide / 2;
  pen.setLineDash([3, 3]);
  pen.strokeStyle = ink.quiet;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(left, top(0) - 2);
  pen.lineTo(middle, top(0) - cap + 4);
  pen.lineTo(left + wide, top(0) - 2);
  pen.stroke();
  pen.setLineDash([]);
  pen.fillStyle = ink.quiet;
  pen.textAlign = "left";
  pen.fillText(`${hello.levels_on_client} more levels are on the client`, middle + wide / 4 + 8, top(0) - cap + 12);
}

// Joins the buckets of the latest trips by lines.
function drawPaths(pen, tree, width, { rows, middle }, time) {
  for (const { at, isWrite, buckets } of paths) {
    pen.globalAlpha = Math.min(Math.pow(0.5, (time - at) / GLOW_HALVES_MILLIS), 1);
    if (pen.globalAlpha < 0.03) continue;
    pen.strokeStyle = isWrite ? ink.write : ink.read;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (const [level, bucket] of buckets) {
      const i = tree.rows.findIndex((row) => row.level === level);
      if (i < 0) continue;
      const { left, wide } = spread(i, rows, width);
      pen.lineTo(left + (bucket + 0.5) * wide / tree.rows[i].buckets, middle(i));
    }
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

// Draws dots over the last seconds. Each is [millis, colour, from, to], with positions from 0 (bottom)
// to 1.
function drawPast(id, time, dots, names) {
  const { pen, width, height } = wiped(id);
  const [left, bottom] = [LABEL_WIDTH, height - 18];
  pen.strokeStyle = ink.line;
  pen.lineWidth = 1;
  pen.strokeRect(left + 0.5, 0.5, width - left - 1, bottom - 1);
  pen.fillStyle = ink.quiet;
  pen.textAlign = "right";
  names.forEach((name, i) => {
    const y = bottom - (bottom - 14) * i / (names.length - 1) - 7;
    pen.fillText(name, left - 8, y);
  });
  for (let back = 0; back <= PAST_MILLIS; back += 10_000) {
    const x = width - (width - left) * back / PAST_MILLIS;
    pen.textAlign = back === 0 ? "right" : back === PAST_MILLIS ? "left" : "center";
    pen.fillText(back === 0 ? "now" : `${back / 1000} s ago`, x, height - 7);
    if (back > 0 && back < PAST_MILLIS) pen.fillRect(Math.round(x), bottom - 4, 1, 4);
  }
  pen.save();
  pen.beginPath();
  pen.rect(left + 1, 1, width - left - 2, bottom - 2);
  pen.clip();
  pen.globalAlpha = 0.75;
  for (const [at, colour, from, to] of dots) {
    const x = width - (width - left) * (time - at) / PAST_MILLIS;
    const [y, top] = [from, to].map((place) => bottom - 1 - place * (bottom - 2));
    pen.fillStyle = colour;
    pen.fillRect(x - 1, Math.min(top, y - 2), 2, Math.max(y - top, 2));
  }
  pen.restore();
}

function draw() {
  requestAnimationFrame(draw);
  if (!hello) return;
  // Charts keep moving between frames, and stop if frames stop.
  const time = now + Math.min(performance.now() - came, 2 * hello.frame_millis);
  drawPicture(time);
  const tree = trees[shown];
  const buckets = tree?.rows.at(-1)?.buckets ?? 1;
  const seen = visits.filter((visit) => visit.tree === shown).map(({ at, bucket, isEviction }) =>
    [at, isEviction ? ink.write : ink.read, bucket / buckets, (bucket + 1) / buckets]);
  drawPast("leaves", time, seen, ["0", count(buckets / 2), count(buckets)]);
  if (hello.shows_secrets) {
    const tones = [ink.read, ink.write, ink.trim, ink.trim];
    const dots = asked.map(([at, kind, offset, length]) =>
      [at, tones[kind], offset / hello.disk_bytes, (offset + length) / hello.disk_bytes]);
    drawPast("offsets", time, dots, [0, 0.25, 0.5, 0.75, 1].map((place) => bytes(place * hello.disk_bytes)));
  }
}

// ───────────────────────────── the server ─────────────────────────────

function status(text, kind) {
  say("status", text);
  by("status").className = kind;
}

const source = new EventSource(location.pathname.replace(/\/*$/, "/events"));
source.addEventListener("hello", (event) => { begin(JSON.parse(event.data)); status("live", "live"); });
source.addEventListener("frame", (event) => take(JSON.parse(event.data)));
source.addEventListener("missed", (event) => { missed = JSON.parse(event.data); });
source.addEventListener("end", () => { source.close(); status("the volume is closed", "gone"); });
source.addEventListener("error", () => {
  status(source.readyState === EventSource.CLOSED
    ? "refused: close other pages of this disk, then reload"
    : "no answer: the disk is no longer served, or is busy", "gone");
});
by("tree").addEventListener("change", (event) => { shown = Number(event.target.value); paths = []; fitPicture(); });
addEventListener("resize", fitPicture);
draw();

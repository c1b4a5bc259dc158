// Prior, likelihood and posterior at each place of the sliders.
const heights = bytes(content.heights), peaks = doubles(content.peaks), numbers = doubles(content.numbers);
const likelihood = content.likelihood ? bytes(content.likelihood) : null;
const groups = content.raw ? doubles(content.groups) : null;  // mean and 95% interval of each
const P = content.names.length, counts = content.counts, width = 1 + 5 * P + 4;
const isHierarchy = content.kind === "hierarchy";  // by quadrature: no MAP, no MLE, no likelihood of its parameters alone
const place = content.fields.map((field) => field.start);
let rows = counts.length - 1;

function state(at) {
  let index = 0;
  content.fields.forEach((field, i) => { index = index * field.values.length + place[i]; });
  return index * counts.length + at;
}

function curve(at, p) {
  const first = (state(at) * P + p) * content.bins, peak = peaks[state(at) * P + p];
  return Array.from(heights.subarray(first, first + content.bins), (part) => (part / 255) * peak);
}

function path(values, top, cls, svg) {
  if (!(top > 0)) return;
  const points = values.map((value, i) => `${(20 + (600 * (i + 0.5)) / content.bins).toFixed(1)} ${(190 - 170 * Math.min(value / top, 1.2)).toFixed(1)}`);
  element(svg, "path", { class: `curve ${cls}`, d: `M${points.join("L")}` });
}

function mark(value, p, cls, svg) {
  if (value === null || Number.isNaN(value)) return;
  const [low, high] = content.ends[p], x = 20 + (600 * (value - low)) / (high - low);
  if (x < 20 || x > 620) return;
  element(svg, "line", { class: cls, x1: x, x2: x, y1: 10, y2: 190, "stroke-width": 1.5 });
}

function endsOfGroups() {
  const sorted = groups.filter(Number.isFinite).sort(), raw = content.raw.estimates;
  const [low, high] = [0.01, 0.99].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
  return [Math.min(low, ...raw), Math.max(high, ...raw)];
}

const rangeOfGroups = groups ? endsOfGroups() : null;  // the same at all places of the sliders

function ofGroups() {
  const holder = document.getElementById("groups"), size = content.raw.labels.length;
  const table = Array.from(groups.subarray(state(rows) * 3 * size, (state(rows) + 1) * 3 * size));
  const [low, high] = rangeOfGroups;
  const names = content.raw.labels.map((label) => (label.length > 16 ? `${label.slice(0, 15)}…` : label));
  const left = 20 + 11 * Math.max(...names.map((name) => name.length));
  const x = (value) => Math.min(Math.max(left + ((620 - left) * (value - low)) / (high - low), left), 620);
  const svg = element(holder, "svg", { viewBox: `0 0 640 ${22 * size + 46}` });
  names.forEach((name, i) => {
    const y = 22 * i + 16, [mean, from, to] = table.slice(3 * i, 3 * i + 3);
    element(svg, "text", { x: left - 10, y: y + 5, "text-anchor": "end" }, name);
    if (Number.isNaN(mean)) return;
    element(svg, "line", { class: "interval", x1: x(from), x2: x(to), y1: y, y2: y, "stroke-width": 2 });
    element(svg, "circle", { class: "raw", cx: x(content.raw.estimates[i]), cy: y, r: 5 });
    element(svg, "circle", { class: "pooled", cx: x(mean), cy: y, r: 4 }).dataset.mean = mean;
  });
  [low, (low + high) / 2, high].forEach((value, i) => {
    element(svg, "text", { x: x(value), y: 22 * size + 20, "text-anchor": ["start", "middle", "end"][i] }, format(Number(value.toPrecision(3))));
  });
  element(svg, "text", { x: (left + 620) / 2, y: 22 * size + 38, "text-anchor": "middle" }, content.raw.name);
}

function figure(p, own) {
  const svg = element(document.getElementById("figures"), "svg", { viewBox: "0 0 640 225" });
  const prior = curve(0, p), posterior = curve(rows, p);
  const top = Math.max(...posterior) * 1.05;
  element(svg, "line", { class: "axis", x1: 20, x2: 620, y1: 190, y2: 190 });
  if (likelihood && rows > 0) {
    const parts = Array.from(likelihood.subarray(rows * content.bins, (rows + 1) * content.bins));
    path(parts.map((part) => (part / 255) * Math.max(...posterior)), top, "likelihood", svg);
  }
  path(prior, top, "prior", svg);
  path(posterior, top, "posterior", svg);
  mark(own[5 + 5 * p], p, "mode", svg);
  mark(content.mle[rows][p], p, "mle", svg);
  const [low, high] = content.ends[p];
  [0, 0.25, 0.5, 0.75, 1].forEach((share) => {
    const anchor = { 0: "start", 1: "end" }[share] ?? "middle";  // else the page cuts the last label
    element(svg, "text", { x: 20 + 600 * share, y: 206, "text-anchor": anchor }, format(Number((low + share * (high - low)).toPrecision(3))));
  });
  element(svg, "text", { x: 320, y: 222, "text-anchor": "middle" }, content.names[p]);
}

function code() {
  const settings = content.fields.map((field, i) => [field.name, field.values[place[i]]]), n = counts[rows];
  let data = `bz.read(M)  # the first ${n} rows of ${content.source}`;
  if (content.table) {
    const some = Object.fromEntries(Object.entries(content.table).map(([name, cells]) => [name, cells.slice(0, n)]));
    data = `bz.read(M, ${JSON.stringify(some)})`;
  }
  const set = settings.map(([name, value]) => `--set ${name}=${value}`).join(" ");
  const some = n === content.rows ? "" : `  # of the first ${n} rows`;
  return `import bayeszoo as bz\n\nM = bz.find("${content.model}")\nmodel = M(${settings.map(([name, value]) => `${name}=${value}`).join(", ")})\n` +
    `data = ${data}\ntree = bz.fit(model, data, "exact", seed=1)\nprint(bz.facts(tree)["log_evidence"], bz.summarize(tree))\n\n` +
    `bayeszoo fit ${content.model} DATA.csv ${set} --method exact${some}\n`;
}

function draw() {
  const own = Array.from(numbers.subarray(state(rows) * width, (state(rows) + 1) * width));
  document.getElementById("figures").replaceChildren();
  content.names.forEach((name, p) => figure(p, own));
  document.getElementById("groups").replaceChildren();
  if (groups) ofGroups();
  const table = document.getElementById("numbers");
  table.replaceChildren();
  const columns = isHierarchy ? 5 : 7;
  row(table, ["", "mean", "sd", "2.5%", "97.5%", "MAP", "MLE"].slice(0, columns), "th");
  content.names.forEach((name, p) => {
    const cells = [name, ...own.slice(1 + 5 * p, 6 + 5 * p).map(format), format(content.mle[rows][p])];
    row(table, cells.slice(0, columns));
  });
  const next = own.slice(1 + 5 * P);
  if (!next.every(Number.isNaN)) row(table, ["next row", ...next.map(format), "", ""]);
  row(table, ["log evidence", format(own[0]), "", "", "", "", ""].slice(0, columns));
  document.getElementById("about").textContent = `${counts[rows]} of ${content.rows} rows of ${content.source}`;
  document.getElementById("code").textContent = code();
  document.querySelectorAll("#sliders input").forEach((input, i) => {
    const last = i === content.fields.length, value = last ? counts[rows] : content.fields[i].values[place[i]];
    set(input, last ? rows : place[i], value);
  });
}

const without = [...(likelihood ? [] : ["likelihood"]), ...(isHierarchy ? ["mode", "mle"] : []), ...(groups ? [] : ["raw", "pooled"])];
without.forEach((name) => document.querySelector(`span.${name}`).remove());
content.fields.forEach((field, i) => slider(field.name, field.label, field.values.length, (value) => { place[i] = value; }));
slider("rows", "", counts.length, (value) => { rows = value; });
act("next", () => { rows = Math.min(rows + 1, counts.length - 1); });
act("all", () => { rows = counts.length - 1; });
act("reset", () => { content.fields.forEach((field, i) => { place[i] = field.start; }); rows = 0; });
draw();

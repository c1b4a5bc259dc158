// A mixture at each step of EM, from each start.
const parts = bytes(content.parts), numbers = doubles(content.numbers), K = content.K, S = content.steps;
const width = 1 + 3 * K, place = { start: 0, step: 0 };

function at(start, step) {
  return Array.from(numbers.subarray((start * S + step) * width, (start * S + step + 1) * width));
}

function curve(k) {
  const first = ((place.start * S + place.step) * (K + 1) + k) * content.bins;
  return Array.from(parts.subarray(first, first + content.bins), (part) => part / 255);
}

function line(svg, values, cls) {
  const points = values.map((value, i) => `${(20 + (600 * (i + 0.5)) / values.length).toFixed(1)} ${(190 - 170 * value).toFixed(1)}`);
  element(svg, "path", { class: `curve ${cls}`, d: `M${points.join("L")}` });
}

function ends(svg, low, high, name) {
  [[20, "start", low], [320, "middle", (low + high) / 2], [620, "end", high]].forEach(([x, anchor, value]) => {
    element(svg, "text", { x, y: 206, "text-anchor": anchor }, format(Number(value.toPrecision(3))));
  });
  element(svg, "text", { x: 320, y: 222, "text-anchor": "middle" }, name);
}

function densities() {
  const svg = element(document.getElementById("figures"), "svg", { viewBox: "0 0 640 225" });
  const size = content.histogram.length;
  content.histogram.forEach((height, i) => {
    element(svg, "rect", { class: "bar", x: 20 + (600 * i) / size, width: 600 / size - 1, y: 190 - 170 * height, height: 170 * height });
  });
  for (let k = 0; k < K; k++) line(svg, curve(k), "prior");
  line(svg, curve(K), "posterior");
  ends(svg, content.ends[0], content.ends[1], content.column);
}

function climb() {
  const svg = element(document.getElementById("figures"), "svg", { viewBox: "0 0 640 225" });
  const heights = Array.from({ length: S }, (_, step) => at(place.start, step)[0]);
  const low = Math.min(...heights), high = Math.max(...heights), part = (height) => (high > low ? (height - low) / (high - low) : 1);
  line(svg, heights.map(part), "posterior");
  element(svg, "circle", { class: "pooled", cx: 20 + (600 * (place.step + 0.5)) / S, cy: 190 - 170 * part(heights[place.step]), r: 5 });
  ends(svg, 0, S - 1, "step: log joint density");
}

function code() {
  const set = Object.entries(content.fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return `import bayeszoo as bz\n\nM = bz.find("${content.model}")\nmodel = M(${set})\ntree = bz.fit(model, bz.read(M, DATA), "map", seed=1)  # of many climbs the best\nprint(bz.summarize(tree))\n`;
}

function draw() {
  const own = at(place.start, place.step);
  document.getElementById("figures").replaceChildren();
  densities();
  climb();
  const table = document.getElementById("numbers");
  table.replaceChildren();
  row(table, ["component", "weight", "mean", "sd"], "th");
  for (let k = 0; k < K; k++) row(table, [String(k + 1), ...own.slice(1 + 3 * k, 4 + 3 * k).map(format)]);
  row(table, ["log joint density", format(own[0]), "", ""]);
  document.getElementById("about").textContent = `${content.rows} rows of ${content.source}; start ${place.start + 1} of ${content.starts}, step ${place.step} of ${S - 1}`;
  document.getElementById("code").textContent = code();
  const [start, step] = document.querySelectorAll("#sliders input");
  set(start, place.start, place.start + 1);
  set(step, place.step, place.step);
}

["likelihood", "mode", "mle", "raw", "pooled"].forEach((name) => document.querySelector(`span.${name}`).remove());
document.querySelector("span.prior").textContent = "components times their weights";
document.querySelector("span.posterior").textContent = "mixture";
slider("start", "whose means are rows drawn at random", content.starts, (value) => { place.start = value; });
slider("step", "E-step and M-step", S, (value) => { place.step = value; });
const labels = { next: "one more step", all: "to the end", reset: "another start" };
for (const [id, label] of Object.entries(labels)) document.getElementById(id).textContent = label;
act("next", () => { place.step = Math.min(place.step + 1, S - 1); });
act("all", () => { place.step = S - 1; });
act("reset", () => { place.start = (place.start + 1) % content.starts; place.step = 0; });
draw();

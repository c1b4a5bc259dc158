"use strict";
// What the pages with sliders share. They look up and draw: every number was computed by Python.
const content = JSON.parse(document.getElementById("content").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const doubles = (text) => new Float64Array(bytes(text).buffer);
const format = (value) => (value === null || Number.isNaN(value) ? "–" : Number(value.toPrecision(5)).toString());

function element(parent, name, attributes, text) {
  const svg = ["svg", "path", "line", "text", "circle", "rect"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function row(table, cells, tag) {
  const line = element(table, "tr");
  cells.forEach((cell, i) => element(line, i && tag !== "th" ? "td" : "th", {}, cell));
}

function slider(name, label, places, moved) {
  const holder = element(document.getElementById("sliders"), "label", {}, `${name}${label ? `, ${label}` : ""}: `);
  element(holder, "b");
  const input = element(holder, "input", { type: "range", min: 0, max: places - 1, step: 1 });
  input.addEventListener("input", () => { moved(Number(input.value)); draw(); });
}

function set(input, place, value) {
  input.value = place;
  input.setAttribute("aria-valuetext", String(value));
  input.parentElement.querySelector("b").textContent = format(value);
}

const act = (id, change) => document.getElementById(id).addEventListener("click", () => { change(); draw(); });
document.getElementById("copy").addEventListener("click", () => {
  const text = document.getElementById("code").textContent;
  const range = document.createRange();
  range.selectNodeContents(document.getElementById("code"));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  if (navigator.clipboard) navigator.clipboard.writeText(text).catch(() => {});
});

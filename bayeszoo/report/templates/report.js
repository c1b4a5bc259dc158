"use strict";
// Tables are sorted by a click on a column's name; of alternatives one is shown. Without this script all is there.
document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const key = (row, i) => {
    const text = row.cells[i].textContent.trim();
    const value = Number(text);
    return text !== "" && !Number.isNaN(value) ? value : text;
  };
  const missing = (value) => value === "-" || value === "" || value === "withheld";
  const compare = (a, b) => {
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  Array.from(table.tHead.rows[0].cells).forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = rows.slice().sort((one, other) => {
        const [a, b] = [key(one, i), key(other, i)];
        return down && !missing(a) && !missing(b) ? compare(b, a) : compare(a, b);
      });
      body.append(...sorted);
    });
  });
});
document.querySelectorAll(".choice").forEach((choice) => {
  const options = Array.from(choice.querySelectorAll(":scope > .option"));
  if (options.length < 2) return;
  const label = document.createElement("label");
  const select = document.createElement("select");
  label.className = "chooser";
  label.append(choice.dataset.label, select);
  options.forEach((option, i) => {
    const isFirst = option.dataset.name === choice.dataset.first;
    select.append(new Option(option.dataset.name, String(i), isFirst, isFirst));
  });
  const show = () => options.forEach((option, i) => option.classList.toggle("shown", String(i) === select.value));
  select.addEventListener("change", show);
  choice.classList.add("chosen");
  choice.prepend(label);
  show();
});

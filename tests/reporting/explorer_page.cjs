// The explorer's page in a document that has no more than its scripts use: SCRIPTS, the page's JSON on standard input and
// the address' hash to what is shown, as JSON.
const { readFileSync } = require("fs");
const [inference, explore, hash] = process.argv.slice(2), data = JSON.parse(readFileSync(0, "utf8"));
const part = (dataset = {}) => {
  const inside = {};
  return {
    dataset, style: {}, textContent: "", hidden: false, classList: { toggle() {} }, addEventListener() {},
    setAttribute(name, value) { this[name] = value; }, querySelector: (name) => inside[name] ??= part(),
  };
};
const cards = data.variables.map(({ states, cells }) => {
  const rows = states.map((_, k) => part({ k })), bars = Array.from({ length: cells }, () => part());
  const ends = bars.map(() => part());
  const numbers = Array.from({ length: cells ? 4 : 0 }, () => part());
  const lists = { "tr[data-k]": rows, "tr.number": numbers, "rect.cell": bars, "line.end": ends };
  return Object.assign(part(), { querySelectorAll: (name) => lists[name], rows, numbers, bars, ends });
});
const controls = new Map();
data.variables.forEach(({ states, cells }, v) => {
  const options = ["", ...states.keys()].map((value) => ({ value: String(value) }));
  controls.set(`v${v}`, { value: "", options });
  if (cells) controls.set(`v${v}-to`, { value: "", options, disabled: false });
});
controls.set("first", { ...part(), value: "", options: data.variables.map((_, v) => ({ value: String(v) })) });
const status = part(), body = { dataset: {}, removeAttribute() {} };
const known = { model: { textContent: JSON.stringify(data) }, status, known: part(), first: controls.get("first") };
known.evidence = { elements: { namedItem: (name) => controls.get(name) || null }, addEventListener() {} };
global.document = { body, getElementById: (id) => known[id] || cards[Number(id.split("-")[1])] };
let order = null;
global.Page = { start() {}, refresh() {}, arrange(_, v, moved) { order = { v, moved }; } };
Object.assign(global, { location: { hash }, history: { replaceState() {} }, matchMedia: () => ({ matches: true }) });
(0, eval)(`${readFileSync(inference, "utf8")}\n${readFileSync(explore, "utf8").replace('"use strict";', "")}`);
const wait = setInterval(() => {
  if (!body.dataset.done) return;
  clearInterval(wait);
  const shown = cards.map((card) => ({
    rows: card.rows.map((row) => [".p", ".interval"].map((name) => row.querySelector(name).textContent)),
    numbers: card.numbers.map((row) => [".value", ".ends"].map((name) => row.querySelector(name).textContent)),
    worth: card.querySelector(".worth").textContent,
    heights: card.bars.map((bar) => bar.height), ends: card.ends.map((end) => [end.y1, end.y2]),
  }));
  console.log(JSON.stringify({ done: body.dataset.done, status: status.textContent, cards: shown, order, folded: known.known.open === false }));
}, 5);

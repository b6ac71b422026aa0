// The explorer's page in a document that has no more than its scripts use: SCRIPTS, the page's JSON on standard input and
// the address' hash to what is shown, as JSON.
const { readFileSync } = require("fs");
const [inference, explore, hash] = process.argv.slice(2), data = JSON.parse(readFileSync(0, "utf8"));
const part = () => ({ style: {}, textContent: "", hidden: false });
const cards = data.variables.map(({ states }) => {
  const rows = states.map(() => ({ ".fill": part(), ".p": part(), ".range": part(), ".interval": part() }));
  const worth = part(), tr = rows.map((row) => ({ querySelector: (name) => row[name] }));
  return { classList: { toggle() {} }, querySelectorAll: () => tr, querySelector: () => worth, rows, worth };
});
const controls = new Map();
data.variables.forEach(({ states, cells }, v) => {
  const options = ["", ...states.keys()].map((value) => ({ value: String(value) }));
  controls.set(`v${v}`, { value: "", options });
  if (cells) controls.set(`v${v}-to`, { value: "", options, disabled: false });
});
const status = part(), body = { dataset: {}, removeAttribute() {} };
const known = { model: { textContent: JSON.stringify(data) }, status };
known.evidence = { elements: { namedItem: (name) => controls.get(name) || null }, addEventListener() {} };
global.document = { body, getElementById: (id) => known[id] || cards[Number(id.split("-")[1])] };
Object.assign(global, { location: { hash }, history: { replaceState() {} } });
(0, eval)(`${readFileSync(inference, "utf8")}\n${readFileSync(explore, "utf8").replace('"use strict";', "")}`);
const wait = setInterval(() => {
  if (!body.dataset.done) return;
  clearInterval(wait);
  const shown = cards.map(({ rows, worth }) => ({
    rows: rows.map((row) => [row[".p"].textContent, row[".interval"].textContent]), worth: worth.textContent,
  }));
  console.log(JSON.stringify({ done: body.dataset.done, status: status.textContent, cards: shown }));
}, 5);

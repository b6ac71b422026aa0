"use strict";
// Long lists of states show their largest, are searched and sorted; the variable that matters to a reader comes first.
const Page = (() => {
  const SHOWN = 10, lists = [];

  function made(name, properties, ...children) {
    const one = Object.assign(document.createElement(name), properties);
    one.append(...children);
    return one;
  }

  function longList(table) {
    const body = table.tBodies[0], rows = [...body.rows], name = table.dataset.name;
    const state = (row) => row.cells[0].textContent;
    const orders = [
      ["largest first", (a, b) => b.dataset.p - a.dataset.p],
      ["in the schema's order", () => 0],
      ["by name", (a, b) => state(a).localeCompare(state(b), undefined, { numeric: true })],
    ];
    const find = made("input", { type: "search", placeholder: "Find", ariaLabel: `Find a state of ${name}`, autocomplete: "off" });
    const order = made("select", { ariaLabel: `Order of the states of ${name}`, autocomplete: "off" },
      ...orders.map(([text], k) => made("option", { value: k, textContent: text })));
    const all = made("button", { type: "button" });
    let open = false;

    function show() {
      const wanted = find.value.trim().toLowerCase(), largest = [...rows].sort(orders[0][1]).slice(0, SHOWN);
      const listed = [...rows].sort(orders[order.value][1]);
      listed.forEach((row) => {
        row.classList.toggle("rest", wanted ? !state(row).toLowerCase().includes(wanted) : !open && !largest.includes(row));
      });
      if (listed.some((row, k) => row !== body.rows[k])) body.append(...listed);
      all.textContent = open ? `Show the ${SHOWN} largest` : `Show all ${rows.length}`;
      all.setAttribute("aria-expanded", open);
      all.hidden = Boolean(wanted);
    }

    find.addEventListener("input", show);
    order.addEventListener("change", show);
    all.addEventListener("click", () => { open = !open; show(); });
    table.before(made("div", { className: "tools" }, find, order));
    table.after(all);
    lists.push(show);
    show();
  }

  // The chosen card first, then what knowing it changes most; -1 for the order of the schema.
  function arrange(cards, v, moved) {
    const place = cards.map((_, k) => k);
    if (v >= 0) place.sort((a, b) => (b === v) - (a === v) || moved[b] - moved[a]);
    place.forEach((k) => cards[k].parentElement.append(cards[k]));  // each within its section
    cards.forEach((card, k) => {
      const line = card.querySelector(".moved"), name = cards[v] && cards[v].querySelector("h3").textContent;
      card.classList.toggle("first", k === v);
      line.hidden = v < 0;
      line.textContent = v < 0 ? "" : k === v ? "The variable that you chose." : `Knowing ${name} changes ${(100 * moved[k]).toFixed(1)} % of it, on average.`;
    });
  }

  function start() {
    document.querySelectorAll("table[data-name]").forEach((table) => { if (table.tBodies[0].rows.length > SHOWN + 2) longList(table); });
    const data = document.getElementById("moved"), select = document.getElementById("first");
    if (!data || !select) return;
    const { pairs } = JSON.parse(data.textContent), cards = [...document.querySelectorAll("article.card")];
    select.parentElement.hidden = false;
    const choose = () => arrange(cards, select.value === "" ? -1 : Number(select.value), pairs[Number(select.value)]);
    select.addEventListener("change", choose);
    if (select.value !== "") choose();
  }

  const openAll = (open) => document.querySelectorAll("details").forEach((one) => {
    if (open && !one.open) one.dataset.closed = one.open = true;
    else if (!open && one.dataset.closed) { one.open = false; delete one.dataset.closed; }
  });
  addEventListener("beforeprint", () => openAll(true));
  addEventListener("afterprint", () => openAll(false));
  return { start, arrange, refresh: () => lists.forEach((show) => show()) };
})();

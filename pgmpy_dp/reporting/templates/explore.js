"use strict";
// What the page does: reads the evidence, asks the Explorer, shows its answers. The address keeps the evidence.
(() => {
  const data = JSON.parse(document.getElementById("model").textContent), explorer = new Explorer(data);
  const form = document.getElementById("evidence"), status = document.getElementById("status");
  const cards = data.variables.map((_, v) => document.getElementById(`variable-${v}`));
  const rows = cards.map((card) => [...card.querySelectorAll("tr[data-k]")].sort((a, b) => a.dataset.k - b.dataset.k));
  const percent = (p) => `${(100 * p).toFixed(1)} %`, length = (p) => `${(100 * p).toFixed(2)}%`;
  let asked = 0;
  if (matchMedia("(max-width: 56rem)").matches) document.getElementById("known").open = false;  // answers before menus

  const control = (v, end) => form.elements.namedItem(end ? `v${v}-to` : `v${v}`);

  function read() {
    const evidence = new Map(), told = [];
    data.variables.forEach(({ name, states, cells }, v) => {
      const first = control(v, false).value, to = control(v, true);
      let from = first === "" ? -1 : Number(first), last = from;
      if (to) {
        to.disabled = from >= cells;
        const end = to.disabled || to.value === "" ? -1 : Number(to.value);
        if (from < 0 && end < 0) return;
        if (from < cells) {
          last = end < 0 ? cells - 1 : end;
          from = Math.max(from, 0);
        }
        if (last < from) last = from;
      } else if (from < 0) return;
      evidence.set(v, states.map((_, state) => Number(state >= from && state <= last)));
      told.push(`${name} = ${states[from]}${last > from ? ` to ${states[last]}` : ""}`);
    });
    return { evidence, told };
  }

  function showEstimates(evidence, marginals) {
    cards.forEach((card, v) => {
      card.classList.toggle("known", evidence.has(v));
      rows[v].forEach((row, state) => {
        const p = marginals[v][state];
        row.dataset.p = p;
        row.querySelector(".fill").style.width = length(p);
        row.querySelector(".p").textContent = percent(p);
        row.querySelector(".range").hidden = true;
        row.querySelector(".interval").textContent = evidence.has(v) ? "known" : "";
      });
      if (data.numbers[v]) showNumber(card, v, marginals[v]);
    });
    Page.refresh();
  }

  // A histogram on the number's real scale: the area of a cell is its share; below it the middle half, median and mean.
  function showNumber(card, v, shares, ends = null, told = []) {
    const { picture, cells } = data.variables[v], { height, first, unit } = picture, found = explorer.numbers(v, shares);
    const density = (p, k) => p / picture.cells[k].width, set = (part, values) => {
      for (const [name, value] of Object.entries(values)) part.setAttribute(name, value);
    };
    const tops = picture.cells.map((_, k) => density(ends ? ends[k][1] : shares[k], k)), most = Math.max(...tops) || 1;
    const y = (p, k) => height * (1 - density(p, k) / most);
    card.querySelectorAll("rect.cell").forEach((rect, k) => set(rect, { y: y(shares[k], k), height: height - y(shares[k], k) }));
    card.querySelectorAll("line.end").forEach((line, k) => set(line, ends ? { y1: y(ends[k][1], k), y2: y(ends[k][0], k) } : { y1: 0, y2: 0 }));
    const place = (value) => (value - first) * unit, marks = card.querySelector("g.marks");
    marks.style.display = found ? "" : "none";
    card.querySelectorAll("tr.number").forEach((row, k) => {
      const end = told[k];
      row.querySelector(".value").textContent = found ? `${end?.printed ? "✓ " : ""}${numberText(v, [found.mean, ...found.quartiles][k])}` : "none";
      row.querySelector(".ends").textContent = end ? `${end.lower} to ${end.upper}` : "";
    });
    if (!found) return;
    const [low, middle, high] = found.quartiles.map(place);
    set(marks.querySelector(".half"), { x: low, width: Math.max(high - low, 1) });
    set(marks.querySelector(".median"), { x1: middle, x2: middle });
    set(marks.querySelector(".mean"), { cx: place(found.mean) });
  }

  function numberText(v, value) {
    if (data.numbers[v].kind === "date") return new Date(864e5 * Math.round(value)).toISOString().slice(0, 10);
    return String(Math.abs(value) < 1e4 ? Number(value.toPrecision(4)) : Math.round(value));
  }

  // Below each variable what is to be said of its answer; what is to be said of all of them is returned.
  function showWorth(evidence) {
    const open = cards.map((_, v) => v).filter((v) => !evidence.has(v));
    const lines = new Map(open.map((v) => [v, explorer.worth(v, evidence)]));
    const common = (lines.get(open[0]) || []).filter((line) => open.every((v) => lines.get(v).includes(line)));
    cards.forEach((card, v) => {
      const own = (lines.get(v) || []).filter((line) => !common.includes(line));
      card.querySelector(".worth").textContent = own.join(" ");
    });
    return common;
  }

  function showIntervals(found, marginals, evidence) {
    const vouched = cards.map((_, v) => !evidence.has(v) && !explorer.outside(v, evidence));
    cards.forEach((card, v) => {
      if (found[v] === null) return;
      if (data.numbers[v]) showNumber(card, v, marginals[v], found[v], evidence.size ? [] : data.variables[v].ends);
      rows[v].forEach((row, state) => {
        const [low, high] = found[v][state], range = row.querySelector(".range");
        range.hidden = false;
        range.style.left = length(low);
        range.style.width = length(high - low);
        row.querySelector(".interval").textContent = `${(100 * low).toFixed(1)} to ${percent(high)}`;
        if (vouched[v] && explorer.printed(marginals[v][state], low, high)) row.querySelector(".p").textContent = `✓ ${percent(marginals[v][state])}`;
      });
    });
  }

  async function update() {
    const mine = ++asked, { evidence, told } = read();
    document.body.removeAttribute("data-done");
    const given = told.length ? `Known: ${told.join("; ")}.` : "You have chosen nothing yet: the numbers are of everybody.";
    const { probability, marginals } = explorer.answer(evidence);
    if (marginals === null) {
      status.textContent = `${given} The model gives this the probability 0: choose what can be.`;
      document.body.dataset.done = "impossible";
      return;
    }
    showEstimates(evidence, marginals);
    const common = showWorth(evidence);
    const start = [given, ...(told.length ? [explorer.held(probability)] : []), ...common].join(" ");
    if (!explorer.hasIntervals(evidence)) {
      status.textContent = start + (data.draws ? ` Intervals are for up to ${MOST_KNOWN} known variables.` : "");
      document.body.dataset.done = "estimates";
      return;
    }
    status.textContent = `${start} Intervals follow.`;
    const draws = [];
    let since = performance.now();
    for (let k = 0; k < data.draws.n; k++) {
      if (performance.now() - since > 50) {  // the page stays awake
        await new Promise((go) => { setTimeout(go); });
        if (mine !== asked) return;
        since = performance.now();
      }
      const found = explorer.draw(k, evidence);
      if (found !== null) draws.push(found);
    }
    if (draws.length < data.draws.n) {
      status.textContent = `${start} Some draws give this the probability 0, so there are no intervals.`;
    } else {
      showIntervals(explorer.intervals(evidence, draws), marginals, evidence);
      const means = evidence.size && data.variables.some(({ ends }) => ends.length) ? " Means and quartiles have them while nothing is known." : "";
      status.textContent = `${start} Probabilities have ${100 * data.level} % intervals.${means}`;
    }
    document.body.dataset.done = "intervals";
  }

  function remember() {
    const chosen = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...chosen]) if (value === "") chosen.delete(name);
    try {
      history.replaceState(null, "", `#${chosen}`);
    } catch { /* an address that cannot be changed, as in a frame */ }
  }

  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const found = form.elements.namedItem(name);
    if (found && [...found.options].some((option) => option.value === value)) found.value = value;
  }
  const first = document.getElementById("first");
  const choose = () => Page.arrange(cards, first.value === "" ? -1 : Number(first.value), first.value === "" ? [] : explorer.moved(Number(first.value)));
  first.addEventListener("change", () => { remember(); choose(); });  // it stands outside of the form that it belongs to
  Page.start();
  if (first.value !== "") choose();
  form.addEventListener("change", () => { remember(); update(); });
  form.addEventListener("reset", () => { setTimeout(() => { remember(); choose(); update(); }); });
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
})();

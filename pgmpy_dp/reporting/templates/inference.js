"use strict";
// Exact inference on a junction tree in log space, and the intervals of
// pgmpy_dp.models.posterior.query_intervals, with what pgmpy_dp.models.answer says of them.
// A clique's axes are its residual variables, then its separator in the parent's order; a parent comes after its
// children, the root is last. Tables are flat, in C order.

function logSumExp(values) {
  let most = -Infinity;
  for (const value of values) if (value > most) most = value;
  if (most === -Infinity) return most;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - most);
  return most + Math.log(sum);
}

// For each cell of a table with these axes, the cell of the table of some of them.
function cellsOf(axes, part, sizes) {
  const strides = new Map();
  let step = 1;
  for (let k = part.length - 1; k >= 0; k--) {
    strides.set(part[k], step);
    step *= sizes[part[k]];
  }
  let found = new Int32Array([0]);
  for (const axis of axes) {
    const size = sizes[axis], stride = strides.get(axis) || 0, next = new Int32Array(found.length * size);
    for (let cell = 0; cell < found.length; cell++)
      for (let state = 0; state < size; state++) next[cell * size + state] = found[cell] + state * stride;
    found = next;
  }
  return found;
}

class JunctionTree {
  constructor({ sizes, cliques, residual, parents }) {
    Object.assign(this, { sizes, cliques, parents });
    const product = (axes) => axes.reduce((all, axis) => all * sizes[axis], 1);
    this.cells = cliques.map(product);
    this.separators = cliques.map((axes, k) => axes.slice(residual[k]));
    this.separatorCells = this.separators.map(product);
    this.inParent = cliques.map((_, k) => parents[k] < 0 ? null : cellsOf(cliques[parents[k]], this.separators[k], sizes));
    this.home = [];
    cliques.forEach((axes, k) => axes.slice(0, residual[k]).forEach((axis) => { this.home[axis] = k; }));
    this.states = sizes.map((_, axis) => cellsOf(cliques[this.home[axis]], [axis], sizes));
  }

  // Where each table of a model lies: computed once for all of its parameters.
  layout(scopes, homes) {
    let end = 0;
    return scopes.map((scope, t) => {
      const start = end;
      end += scope.reduce((all, axis) => all * this.sizes[axis], 1);
      return { start, home: homes[t], cells: cellsOf(this.cliques[homes[t]], scope, this.sizes) };
    });
  }

  potentials(layout, theta) {
    const found = this.cells.map((size) => new Float64Array(size));
    for (const { start, home, cells } of layout) {
      const table = found[home];
      for (let cell = 0; cell < table.length; cell++) table[cell] += theta[start + cells[cell]];
    }
    return found;
  }

  // Logarithm of the total, and each variable's distribution; `evidence` maps variables to weights of their states.
  propagate(potentials, evidence) {
    const beliefs = potentials.map((table) => table.slice()), messages = [];
    for (const [axis, weights] of evidence) {
      const table = beliefs[this.home[axis]], states = this.states[axis], logs = weights.map(Math.log);
      for (let cell = 0; cell < table.length; cell++) table[cell] += logs[states[cell]];
    }
    const last = beliefs.length - 1;
    for (let k = 0; k < last; k++) {
      messages[k] = this.reduced(beliefs[k], null, this.separatorCells[k]);
      const above = beliefs[this.parents[k]], place = this.inParent[k];
      for (let cell = 0; cell < above.length; cell++) above[cell] += messages[k][place[cell]];
    }
    const total = logSumExp(beliefs[last]);
    if (total === -Infinity) return { total, marginals: null };
    for (let cell = 0; cell < beliefs[last].length; cell++) beliefs[last][cell] -= total;
    for (let k = last - 1; k >= 0; k--) {
      const wanted = this.reduced(beliefs[this.parents[k]], this.inParent[k], this.separatorCells[k]);
      const table = beliefs[k], size = this.separatorCells[k];
      for (let cell = 0; cell < table.length; cell++) {
        const place = cell % size;
        table[cell] = messages[k][place] === -Infinity ? -Infinity : table[cell] - messages[k][place] + wanted[place];
      }
    }
    const marginals = this.sizes.map((size, axis) => {
      const found = new Float64Array(size), table = beliefs[this.home[axis]], states = this.states[axis];
      for (let cell = 0; cell < table.length; cell++) found[states[cell]] += Math.exp(table[cell]);
      return found;
    });
    return { total, marginals };
  }

  // Log-sum-exp over the cells of a table that belong to the same cell of a separator: its last axes without `places`.
  reduced(table, places, size) {
    const most = new Float64Array(size).fill(-Infinity), sum = new Float64Array(size);
    for (let cell = 0; cell < table.length; cell++) {
      const place = places === null ? cell % size : places[cell];
      if (table[cell] > most[place]) most[place] = table[cell];
    }
    for (let cell = 0; cell < table.length; cell++) {
      const place = places === null ? cell % size : places[cell];
      if (table[cell] > -Infinity) sum[place] += Math.exp(table[cell] - most[place]);
    }
    return most.map((value, place) => value === -Infinity ? value : value + Math.log(sum[place]));
  }
}

// P(|Z| > z) of a standard normal Z (Numerical Recipes' erfc of z/sqrt(2), fractional error below 1.2e-7), z >= 0.
function outside(z) {
  const x = z / Math.SQRT2, t = 1 / (1 + 0.5 * x);
  const c = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277];
  let power = 0;
  for (let k = c.length - 1; k >= 0; k--) power = power * t + c[k];
  return t * Math.exp(-x * x + power);
}

// c with sum_tau p(tau) P(|Normal(0, variance + tau^2 spread)| <= c) = level.
function halfWidth(variance, spread, grid, weights, level) {
  const scale = grid.map((tau) => Math.sqrt(Math.max(variance + tau * tau * spread, Number.MIN_VALUE)));
  let low = 0, high = 10 * Math.max(...scale);
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2;
    let inside = 0;
    for (let k = 0; k < grid.length; k++) inside += weights[k] * (1 - outside(middle / scale[k]));
    if (inside < level) low = middle; else high = middle;
  }
  return high;
}

// Axes of the margins of a table that were measured: sets of two or more, and single variables that none of these has.
function measuredMargins(scope, measured) {
  const parts = new Map();
  for (const known of measured) {
    const axes = scope.map((_, axis) => axis).filter((axis) => known.has(scope[axis]));
    if (axes.length > 1) parts.set(axes.join(), axes);
  }
  const all = [...parts.values()], covered = new Set();
  const largest = all.filter((axes) => !all.some((other) => other.length > axes.length && axes.every((a) => other.includes(a))));
  largest.forEach((axes) => axes.forEach((axis) => covered.add(axis)));
  return [...largest, ...scope.map((_, axis) => [axis]).filter(([axis]) => !covered.has(axis))];
}

function kindOfTable(scope, measured, kinds) {
  if (scope.length <= 2) return "pair";
  let pairs = 0;
  for (let a = 0; a < scope.length; a++)
    for (let b = a + 1; b < scope.length; b++)
      if (measured.some((known) => known.has(scope[a]) && known.has(scope[b]))) pairs++;
  return pairs >= 2 && kinds.includes("tied") ? "tied" : "triple";
}

// g'Sg for a table with so many states along each axis: what is left of g, weighted by the shares, without the known margins.
function unmeasuredSpread(shares, slope, dims, margins) {
  const root = shares.map((share) => Math.sqrt(Math.max(share, 0))), basis = [];
  const strides = dims.map((_, axis) => dims.slice(axis + 1).reduce((all, size) => all * size, 1));
  const remove = (vector) => {
    for (const unit of basis) {
      const along = unit.reduce((sum, value, cell) => sum + value * vector[cell], 0);
      for (let cell = 0; cell < vector.length; cell++) vector[cell] -= along * unit[cell];
    }
    return Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  };
  for (const axes of margins) {
    const columns = new Map();
    root.forEach((value, cell) => {
      const label = axes.map((axis) => Math.floor(cell / strides[axis]) % dims[axis]).join();
      if (!columns.has(label)) columns.set(label, root.map(() => 0));
      columns.get(label)[cell] = value;
    });
    for (const column of columns.values()) {
      remove(column);
      const size = remove(column);  // twice, for rounding
      if (size > 1e-9) basis.push(column.map((value) => value / size));
    }
  }
  const left = slope.map((value, cell) => value * root[cell]);
  return remove(left) ** 2;
}

// Order statistics at (n + 1) p, interpolated.
function quantile(sorted, p) {
  const place = Math.min(Math.max((sorted.length + 1) * p - 1, 0), sorted.length - 1), below = Math.floor(place);
  const next = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[next] - sorted[below]);
}

function decode(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

const MOST_KNOWN = 5;  // variables with evidence for which there are intervals where the graph may be wrong

class Explorer {
  constructor(data) {
    this.data = data;
    this.tree = new JunctionTree(data.tree);
    const { model, draws, discrepancy } = data;
    this.own = this.tree.potentials(this.tree.layout(model.scopes, model.homes), decode(model.theta, Float64Array));
    this.standing = new Map(data.standing);
    this.whole = this.tree.propagate(this.own, this.standing).total;
    this.exchanges = [null, ...data.exchanges.map(([columns, states]) => ({ columns, states }))];
    this.refusals = new Map(data.worth.refusals);
    if (draws) {
      this.layout = this.tree.layout(draws.scopes, draws.homes);
      this.theta = decode(draws.theta, Float32Array);
    }
    this.measured = discrepancy ? discrepancy.measured.map((known) => new Set(known)) : [];
  }

  // Weights of all states, from those of the states that are told, with those that hold of any question; at most 1.
  spread(evidence) {
    const found = new Map(this.standing);
    for (const [v, weights] of evidence) {
      const own = new Array(this.data.tree.sizes[v]).fill(0), before = found.get(v);
      this.data.told[v].forEach((states, label) => states.forEach((state) => {
        own[state] = weights[label] * (before ? before[state] : 1);
      }));
      const most = Math.max(...own, Number.MIN_VALUE);
      found.set(v, own.map((weight) => weight / most));
    }
    return found;
  }

  // The shares of what is told of a variable; its states may have been exchanged.
  shares(v, marginal, states = null) {
    const sums = this.data.told[v].map((own) => own.reduce((sum, state) => sum + marginal[states ? states[state] : state], 0));
    const total = sums.reduce((a, b) => a + b, 0);
    return sums.map((sum) => sum / total);
  }

  // The model's answer: the probability of what is known, and all variables' distributions, or null where it is 0.
  answer(evidence) {
    const { total, marginals } = this.tree.propagate(this.own, this.spread(evidence));
    let probability = Math.exp(total - this.whole);
    for (const [v, weights] of evidence) {  // `spread` made the largest weight 1
      const before = this.standing.get(v);
      if (before) probability *= Math.max(...this.data.told[v].flatMap((own, label) => own.map((s) => weights[label] * before[s])));
    }
    return { probability, marginals: marginals && marginals.map((found, v) => this.shares(v, found)) };
  }

  // Mean and quartiles of the numbers that are there: Values.mean and Values.quantiles of pgmpy_dp.models.decoding.
  numbers(v, shares) {
    const { states, within, ends, centres, lower, step } = this.data.numbers[v];
    const cells = within.map((part, k) => part * shares[states[k]]), all = cells.reduce((a, b) => a + b, 0);
    if (!(all > 0)) return null;
    const last = cells.findLastIndex((share) => share > 0);
    const at = (level) => {
      let k = 0, behind = cells[0] / all;
      while (k < last && (behind < level - 1e-12 || cells[k] <= 0)) behind += cells[++k] / all;
      const position = Math.min(Math.max(1 - (behind - level) / (cells[k] / all), 0), 1), size = ends[k + 1] - ends[k];
      return step ? lower + step * (ends[k] + Math.max(Math.ceil(position * size - 1e-9), 1) - 1) : ends[k] + position * size;
    };
    return { mean: cells.reduce((sum, share, k) => sum + share * centres[k], 0) / all, quartiles: [0.25, 0.5, 0.75].map(at) };
  }

  // How much knowing one variable changes each other one: the mean total variation, where nothing else is known.
  moved(v) {
    const { marginals: before } = this.answer(new Map()), found = before.map(() => 0);
    before[v].forEach((share, state) => {
      if (!(share > 0)) return;
      const { marginals } = this.answer(new Map([[v, before[v].map((_, other) => Number(other === state))]]));
      if (marginals) marginals.forEach((after, other) => {
        found[other] += share * after.reduce((sum, p, k) => sum + Math.abs(p - before[other][k]), 0) / 2;
      });
    });
    return found;
  }

  hasIntervals(evidence) {
    return Boolean(this.data.draws) && (!this.data.discrepancy || evidence.size <= MOST_KNOWN);
  }

  // All variables' distributions under draw k, as the model has them and with variables exchanged.
  draw(k, evidence) {
    const size = this.theta.length / this.data.draws.n, known = this.spread(evidence);
    const potentials = this.tree.potentials(this.layout, this.theta.subarray(k * size, (k + 1) * size));
    const found = this.exchanges.map((exchange) => {
      const turned = exchange === null ? known : new Map([...known].map(([v, weights]) =>
        [exchange.columns[v], this.standing.has(v) ? weights.map((_, s) => weights[exchange.states.indexOf(s)]) : weights]));
      const { marginals } = this.tree.propagate(potentials, turned);
      return marginals && this.data.told.map((_, v) => exchange === null ? this.shares(v, marginals[v])
        : this.shares(v, marginals[exchange.columns[v]], this.standing.has(v) ? exchange.states : null));
    });
    return found.includes(null) ? null : found;
  }

  // The variables that a question about one of them depends on, itself first.
  scope(v, evidence) {
    return [...new Set([v, ...evidence.keys(), ...this.standing.keys()])];
  }

  // Ends of the intervals of all cells of all variables, from the draws' distributions.
  intervals(evidence, draws) {
    const { level, discrepancy } = this.data, known = this.spread(evidence), joints = new Map();
    return this.data.told.map((told, v) => {
      if (evidence.has(v) || this.refusal(v, evidence)) return null;
      const scope = this.scope(v, evidence);
      const alone = this.data.alone.some((one) => one.filter((axis) => scope.includes(axis)).length > 1);
      const answers = draws.map((each) => told.map((_, label) => {
        const some = alone ? each.slice(0, 1) : each;
        return some.reduce((sum, found) => sum + found[v][label], 0) / some.length;
      }));
      const others = scope.slice(1);
      if (!joints.has(others.join())) joints.set(others.join(), this.joint(others.map((axis) => [axis, known.get(axis)])));
      const tables = joints.get(others.join()), cells = tables.length, factor = this.standing.get(v);
      const weighted = (state, table) => table.marginals
        ? table.share * table.marginals[v][state] * (factor ? factor[state] : 1) : 0;
      const parts = told.map((own) => tables.map((table) => own.reduce((sum, state) => sum + weighted(state, table), 0)));
      const all = tables.map((_, k) => parts.reduce((sum, part) => sum + part[k], 0));
      const rest = tables.map((table, k) => table.share - all[k]);
      const open = Boolean(factor) || told.flat().length < this.data.tree.sizes[v];
      return told.map((_, label) => {
        const values = answers.map((answer) => answer[label]), estimate = parts[label][0] / all[0];
        const mean = values.reduce((a, b) => a + b) / values.length;
        const shift = this.data.around ? estimate - mean : 0;
        const about = (centre) => values.reduce((sum, value) => sum + (value - centre) ** 2, 0);
        if (!discrepancy) {  // Posterior.interval_of says why the lower end may be that of a normal interval
          values.sort((a, b) => a - b);
          const normal = Math.max(mean - halfWidth(about(mean) / (values.length - 1), 0, [0], [1], level), 0);
          const ends = [Math.min(quantile(values, (1 - level) / 2), normal), quantile(values, (1 + level) / 2)];
          return ends.map((end) => this.data.around ? Math.min(Math.max(end + shift, 0), 1) : end);
        }
        const shares = [...parts[label], ...parts[label].map((share, k) => all[k] - share), ...(open ? rest : [])];
        const slope = new Array(shares.length).fill(0);
        slope[0] = (1 - estimate) / all[0];
        slope[cells] = -estimate / all[0];
        const dims = [open ? 3 : 2, ...others.map(() => 2)];
        const spread = unmeasuredSpread(shares, slope, dims, measuredMargins(scope, this.measured));
        const weights = discrepancy.weights[kindOfTable(scope, this.measured, Object.keys(discrepancy.weights))];
        const variance = about(mean + shift) / Math.max(values.length - 3, 1);  // as in query_intervals
        const half = halfWidth(variance, spread, discrepancy.grid, weights, level);
        return [Math.max(estimate - half, 0), Math.min(estimate + half, 1)];
      });
    });
  }

  // The model's distributions with each piece of evidence as it is (bit 0) or turned around (bit 1), C order.
  joint(known) {
    const none = this.tree.propagate(this.own, new Map()).total;
    return Array.from({ length: 1 << known.length }, (_, cell) => {
      const turned = new Map(known.map(([axis, weights], k) =>
        [axis, cell >> (known.length - 1 - k) & 1 ? weights.map((weight) => 1 - weight) : weights]));
      const { total, marginals } = this.tree.propagate(this.own, turned);
      return { share: Math.exp(total - none), marginals };
    });
  }

  // Why there are no intervals for a variable; undefined where there are.
  refusal(v, evidence) {
    return [v, ...evidence.keys()].map((axis) => this.refusals.get(axis)).find((why) => why);
  }

  // Why nothing vouches for intervals of a variable; null where probes do.
  outside(v, evidence) {
    const { discrepancy, worth, tree } = this.data, scope = this.scope(v, evidence);
    if (!discrepancy) return worth.misses.none;
    const has = (one) => one.every((axis) => scope.includes(axis));
    const cells = scope.reduce((all, axis) => all * tree.sizes[axis], 1);
    let why = null;
    if (scope.length > discrepancy.order) why = filled(worth.misses.order, { n: scope.length, order: discrepancy.order });
    else if (discrepancy.without.some(has)) why = worth.misses.without;
    else if (scope.length > 1 && discrepancy.within.length &&
      !discrepancy.within.some((one) => scope.every((axis) => one.includes(axis)))) why = worth.misses.within;
    else if (cells > discrepancy.most) why = filled(worth.misses.cells, { cells, most: discrepancy.most });
    return why && why + (scope.length > new Set([v, ...evidence.keys()]).size ? worth.misses.size : "");
  }

  // Whether an office's rule lets a share be printed: pgmpy_dp.models.printing_rule.
  printed(share, lower, upper) {
    const { rule } = this.data;
    return Boolean(rule) && (upper - lower) / 2 <= rule.most * (rule.absolute ? 1 : share);
  }

  // What is to be said of the answer about a variable.
  worth(v, evidence) {
    const { pairs, sentences, conditional } = this.data.worth, asked = [v, ...evidence.keys()];
    const some = pairs.filter(([one, other]) => asked.includes(one) && asked.includes(other)).map((pair) => pair[2]);
    const refusal = this.refusal(v, evidence), outside = refusal ? null : this.outside(v, evidence);
    const told = [some.length ? filled(sentences.unmeasured, { pairs: some.join(", ") }) : null, conditional];
    if (refusal) told.push(filled(sentences.refusal, { why: refusal }));
    else if (outside) told.push(filled(sentences.outside, { why: outside }));
    return told.filter((line) => line);
  }

  // For how many what is known holds.
  held(probability) {
    const { sentences } = this.data.worth, n = this.data.n_records;
    const records = n === null ? "" : filled(sentences.records, { number: Math.round(probability * n).toLocaleString("en") });
    return filled(sentences.share, { share: `${(100 * probability).toFixed(1)} %`, records });
  }
}

function filled(text, parts) {
  return text.replace(/\{(\w+)\}/g, (_, name) => parts[name]);
}

if (typeof module !== "undefined") module.exports = { Explorer, JunctionTree, MOST_KNOWN, outside };

"use strict";
// Exact inference on a junction tree in log space, and the intervals of pgmpy_dp.models.query_intervals.
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

// g'Sg for a table of two states for each axis: what is left of g, weighted by the shares, without the known margins.
function unmeasuredSpread(shares, slope, dimensions, margins) {
  const root = shares.map((share) => Math.sqrt(Math.max(share, 0))), basis = [];
  const remove = (vector) => {
    for (const unit of basis) {
      const along = unit.reduce((sum, value, cell) => sum + value * vector[cell], 0);
      for (let cell = 0; cell < vector.length; cell++) vector[cell] -= along * unit[cell];
    }
    return Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  };
  for (const axes of margins) {
    for (let label = 0; label < 1 << axes.length; label++) {
      const column = root.map((value, cell) =>
        axes.every((axis, k) => (cell >> (dimensions - 1 - axis) & 1) === (label >> k & 1)) ? value : 0);
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
    this.whole = this.tree.propagate(this.own, new Map()).total;
    if (draws) {
      this.layout = this.tree.layout(draws.scopes, draws.homes);
      this.theta = decode(draws.theta, Float32Array);
    }
    this.measured = discrepancy ? discrepancy.measured.map((known) => new Set(known)) : [];
  }

  // The model's answer: the probability of what is known, and all variables' distributions, or null where it is 0.
  answer(evidence) {
    const { total, marginals } = this.tree.propagate(this.own, evidence);
    return { probability: Math.exp(total - this.whole), marginals };
  }

  hasIntervals(evidence) {
    return Boolean(this.data.draws) && (!this.data.discrepancy || evidence.size <= MOST_KNOWN);
  }

  // All variables' distributions under draw k.
  draw(k, evidence) {
    const size = this.theta.length / this.data.draws.n;
    const potentials = this.tree.potentials(this.layout, this.theta.subarray(k * size, (k + 1) * size));
    return this.tree.propagate(potentials, evidence).marginals;
  }

  // Ends of the intervals of all cells of all variables, from the draws' distributions.
  intervals(evidence, draws) {
    const { level, discrepancy } = this.data, known = [...evidence.keys()];
    const tables = discrepancy ? this.joint(evidence) : null;
    return this.data.tree.sizes.map((size, variable) => {
      if (evidence.has(variable)) return null;
      return Array.from({ length: size }, (_, state) => {
        const values = draws.map((marginals) => marginals[variable][state]);
        if (!discrepancy) {
          values.sort((a, b) => a - b);
          return [quantile(values, (1 - level) / 2), quantile(values, (1 + level) / 2)];
        }
        const mean = values.reduce((a, b) => a + b) / values.length;
        const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
        const scope = [variable, ...known], cells = tables.length;
        const shares = [], slope = new Array(2 * cells).fill(0);
        for (const inside of [true, false])
          for (const table of tables) {
            const share = table.marginals ? table.share * table.marginals[variable][state] : 0;
            shares.push(inside ? share : table.share - share);
          }
        const estimate = shares[0] / tables[0].share;
        slope[0] = 1;
        if (known.length) {
          slope[0] -= estimate;
          slope[cells] -= estimate;
          slope[0] /= tables[0].share;
          slope[cells] /= tables[0].share;
        }
        const spread = unmeasuredSpread(shares, slope, scope.length, measuredMargins(scope, this.measured));
        const weights = discrepancy.weights[kindOfTable(scope, this.measured, Object.keys(discrepancy.weights))];
        const half = halfWidth(variance, spread, discrepancy.grid, weights, level);
        return [Math.max(estimate - half, 0), Math.min(estimate + half, 1)];
      });
    });
  }

  // The model's distributions with each piece of evidence as it is (bit 0) or turned around (bit 1), C order.
  joint(evidence) {
    const known = [...evidence];
    return Array.from({ length: 1 << known.length }, (_, cell) => {
      const turned = new Map(known.map(([axis, weights], k) =>
        [axis, cell >> (known.length - 1 - k) & 1 ? weights.map((weight) => 1 - weight) : weights]));
      const { total, marginals } = this.tree.propagate(this.own, turned);
      return { share: Math.exp(total - this.whole), marginals };
    });
  }
}

if (typeof module !== "undefined") module.exports = { Explorer, JunctionTree, MOST_KNOWN, outside };

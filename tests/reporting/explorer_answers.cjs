// What templates/inference.js answers: from {data, asked} on standard input to JSON on standard output.
const { readFileSync } = require("fs");
const { Explorer } = require(process.argv[2]);
const { data, asked } = JSON.parse(readFileSync(0, "utf8"));
const explorer = new Explorer(data);
const answers = asked.map((pairs) => {
  const evidence = new Map(pairs), { probability, marginals } = explorer.answer(evidence);
  if (marginals === null) return { probability };
  let intervals = null;
  if (explorer.hasIntervals(evidence)) {
    const draws = Array.from({ length: data.draws.n }, (_, k) => explorer.draw(k, evidence));
    intervals = explorer.intervals(evidence, draws);
  }
  const worth = data.told.map((_, v) => evidence.has(v) ? null : explorer.worth(v, evidence));
  return { probability, held: explorer.held(probability), marginals: marginals.map((found) => [...found]), intervals, worth };
});
console.log(JSON.stringify(answers));

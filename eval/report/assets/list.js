// The list of questions: filtered, sorted, a hundred at a time.

const STEP = 100;

const SORTS = [
  ["order", "order of the dataset", null],
  ["confidence-", "confidence, highest first", "confidence"],
  ["confidence+", "confidence, lowest first", "confidence"],
  ["f1+", "answer F1, worst first", "f1"],
  ["f1-", "answer F1, best first", "f1"],
  ["evidence+", "evidence F1, worst first", "evidence"],
  ["calls-", "LM calls, most first", "calls"],
  ["tokens-", "tokens, most first", "tokens"],
  ["dollars-", "dollars, most first", "dollars"],
  ["seconds-", "seconds, slowest first", "seconds"],
];
const RELATIONS = [
  ["gained", "correct here, wrong there", (ours, theirs) => ours && !theirs],
  ["lost", "wrong here, correct there", (ours, theirs) => !ours && theirs],
  ["right", "both correct", (ours, theirs) => ours && theirs],
  ["wrong", "both wrong", (ours, theirs) => !ours && !theirs],
];

let shown = []; // places of the questions that pass the filters, in order
let limit = STEP;

const questions = () => index.groups[group];
const run = () => questions().runs[Number($("run").value)];
const right = (each, place) => each.em?.[each.rows[place]] === 1;

function options(select, entries, chosen = "") {
  select.replaceChildren(...entries.map(([value, name]) => make("option", { value, selected: value === chosen }, name)));
  select.parentElement.hidden = entries.length < 2;
}

/** "any" and the values of a column, with their numbers of questions. */
function choices(select, values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const known = [...counts].sort(([a], [b]) => String(a).localeCompare(String(b), "en", { numeric: true }));
  const named = known.map(([value, number]) => [String(value ?? ""), `${value === "" ? "none" : (value ?? "unknown")} (${number})`]);
  options(select, named.length > 1 ? [["any", "any"], ...named] : [["any", "any"]], select.value || "any");
}

function showGroup() {
  options($("run"), questions().runs.map((each, n) => [String(n), each.name]), "0");
  options($("relation"), RELATIONS);
  showRun();
}

function showRun() {
  const [{ runs, hops, kind }, ours] = [questions(), run()];
  choices($("outcome"), ours.outcome.map((n) => index.outcomes[n].name));
  choices($("hops"), ours.at.map((place) => hops[place]));
  choices($("kind"), ours.at.map((place) => kind[place]));
  choices($("stop"), ours.stop);
  options($("sort"), SORTS.filter(([, , column]) => !column || ours[column]), $("sort").value);
  const others = runs.map((each, n) => [String(n), each.name]).filter(([, name]) => name !== ours.name);
  options($("other"), [["", "none"], ...others], $("other").value);
  filter();
}

function filter() {
  const [asked, ours] = [questions(), run()];
  const passes = [];
  const chosen = (id, value) => $(id).value !== "any" && passes.push((place, row) => String(value(place, row) ?? "") === $(id).value);
  chosen("outcome", (place, row) => index.outcomes[ours.outcome[row]].name);
  chosen("hops", (place) => asked.hops[place]);
  chosen("kind", (place) => asked.kind[place]);
  chosen("stop", (place, row) => ours.stop[row]);
  const theirs = $("other").value && asked.runs[Number($("other").value)];
  $("relation").parentElement.hidden = !theirs;
  if (theirs) {
    const related = RELATIONS.find(([name]) => name === $("relation").value)[2];
    passes.push((place) => theirs.rows[place] >= 0 && related(right(ours, place), right(theirs, place)));
  }
  for (const word of $("find").value.toLowerCase().split(/\s+/).filter(Boolean)) {
    passes.push((place, row) => [asked.question[place], ours.answer[row], ...asked.gold[place], asked.id[place]].join("\n").toLowerCase().includes(word));
  }
  shown = ours.at.filter((place, row) => passes.every((pass) => pass(place, row)));
  const [name, , column] = SORTS.find(([each]) => each === $("sort").value);
  const direction = name.endsWith("-") ? -1 : 1;
  const value = (place) => ours[column][ours.rows[place]] ?? direction * Infinity; // questions without a value come last
  if (column) shown.sort((a, b) => direction * (value(a) - value(b)) || a - b);
  $("count").textContent = `${count(shown.length, "question")} of ${ours.at.length.toLocaleString("en")}.`;
  limit = STEP;
  draw();
}

function draw() {
  $("rows").replaceChildren(...shown.slice(0, limit).map(row));
  $("more").hidden = shown.length <= limit;
  mark();
}

function row(place) {
  const [asked, ours] = [questions(), run()];
  const at = ours.rows[place];
  const { key, name } = index.outcomes[ours.outcome[at]];
  const facts = [
    make("span", {}, make("i", { class: `swatch o-${key}` }), name),
    key === "failed" ? null : make("b", {}, ours.answer[at] || "no answer"),
    ours.confidence?.[at] != null ? make("span", { class: "small" }, `confidence ${percent(ours.confidence[at])}%`) : null,
    asked.hops[place] ? make("span", { class: "small" }, count(asked.hops[place], "hop")) : null,
  ];
  return make("li", {}, make("a", { href: addressOf(ours, place), "data-place": place }, asked.question[place], make("span", { class: "facts" }, facts)));
}

/** Marks the row of the open question. */
function mark() {
  for (const link of $("rows").querySelectorAll("a")) {
    const current = Number(link.dataset.place) === open;
    if (current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    if (current) link.scrollIntoView({ block: "nearest" });
  }
}

function step(by) {
  const to = open === null ? 0 : shown.indexOf(open) + by;
  if (to < 0 || to >= shown.length) return;
  if (to >= limit) limit += STEP;
  draw();
  open = shown[to]; // the address follows a moment later
  location.hash = addressOf(run(), open);
}

const keys = {
  "/": () => $("find").focus(),
  j: () => step(1),
  k: () => step(-1),
  Escape: () => open !== null && (location.hash = "#questions"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
  if (event.target.closest("input, select")) return event.key === "Escape" && event.target.blur();
  event.preventDefault();
  keys[event.key]();
});
$("group")?.addEventListener("change", (event) => chooseGroup(Number(event.target.value)));
for (const button of document.querySelectorAll("[data-choose]")) button.addEventListener("click", () => chooseGroup(Number(button.dataset.choose)));
for (const button of document.querySelectorAll("[data-outcome]")) {
  button.addEventListener("click", () => {
    $("run").value = button.dataset.run;
    for (const id of ["hops", "kind", "stop"]) $(id).value = "any";
    $("other").value = $("find").value = "";
    showRun();
    $("outcome").value = index.outcomes.find(({ key }) => key === button.dataset.outcome).name;
    filter();
    $("questions").scrollIntoView();
  });
}
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("find").addEventListener("input", filter);
$("run").addEventListener("change", showRun);
for (const id of ["outcome", "hops", "kind", "stop", "sort", "other", "relation"]) $(id).addEventListener("change", filter);
$("more").addEventListener("click", () => {
  limit += STEP;
  draw();
});
addEventListener("hashchange", () => (location.hash.startsWith("#questions") ? followAddress() : null));
$("browser").hidden = false;
chooseGroup(0);
followAddress();

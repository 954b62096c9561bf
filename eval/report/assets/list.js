// The list of questions: filtered and sorted; only the visible rows are in the document.

const ROW = 62; // pixels, as in the style sheet
const AROUND = 8; // rows above and below the visible ones

const SORTS = [
  ["order", "order of the dataset", null],
  ["confidence-", "confidence, highest first", (run) => run.confidence],
  ["confidence+", "confidence, lowest first", (run) => run.confidence],
  ["f1+", "answer F1, worst first", (run) => run.f1],
  ["f1-", "answer F1, best first", (run) => run.f1],
  ["evidence+", "evidence F1, worst first", (run) => run.evidence],
  ["calls-", "LM calls, most first", (run) => run.calls],
  ["tokens-", "tokens, most first", (run) => run.tokens],
  ["dollars-", "dollars, most first", (run) => run.dollars],
  ["seconds-", "seconds, slowest first", (run) => run.seconds],
];
const RELATIONS = [
  ["gained", "correct here, wrong there", (ours, theirs) => ours && !theirs],
  ["lost", "wrong here, correct there", (ours, theirs) => !ours && theirs],
  ["right", "both correct", (ours, theirs) => ours && theirs],
  ["wrong", "both wrong", (ours, theirs) => !ours && !theirs],
];

const outcomesChosen = new Set();
let shown = []; // positions of the questions that pass the filters, in order
let active = 0; // index into shown

const questions = () => index.groups[group];
const run = () => questions().runs[Number($("run").value)];
const right = (each, place) => each.rows[place] >= 0 && each.em[each.rows[place]] === 1;

function options(select, entries, chosen = "") {
  select.replaceChildren(...entries.map(([value, name]) => make("option", { value, selected: value === chosen }, name)));
  select.closest("label").hidden = entries.length < 2;
}

const order = (a, b) => String(a).localeCompare(String(b), "en", { numeric: true });

/** The values of a column, with their numbers of questions. */
function choices(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const known = [...counts].sort(([a], [b]) => order(a, b));
  const named = known.map(([value, number]) => [String(value ?? ""), `${value === "" ? "none" : value ?? "unknown"} (${number})`]);
  return named.length > 1 ? [["any", "any"], ...named] : [["any", "any"]];
}

function showGroup() {
  const { runs } = questions();
  options($("run"), runs.map((each, n) => [String(n), each.name]), "0");
  options($("relation"), RELATIONS);
  outcomesChosen.clear();
  showRun();
}

function showRun() {
  const { runs, hops, kind } = questions();
  options($("hops"), choices(run().at.map((place) => hops[place])), $("hops").value || "any");
  options($("kind"), choices(run().at.map((place) => kind[place])), $("kind").value || "any");
  options($("stop"), choices(run().stop.map((stop) => run().stops[stop])), $("stop").value || "any");
  options($("sort"), SORTS.filter(([, , column]) => !column || column(run())), $("sort").value);
  const others = runs.map((each, n) => [String(n), each.name]).filter(([, name]) => name !== run().name);
  options($("other"), [["", "none"], ...others], $("other").value);
  $("versus").hidden = !others.length;
  showOutcomes();
  filter();
}

function showOutcomes() {
  const counts = new Array(index.outcomes.length).fill(0);
  for (const outcome of run().outcome) counts[outcome] += 1;
  const chips = index.outcomes.map(({ key, name }, outcome) => {
    if (!counts[outcome]) return null;
    const box = make("input", { type: "checkbox", value: outcome, checked: outcomesChosen.has(outcome) });
    return make("label", { class: "chip" }, box, make("i", { class: `swatch o-${key}`, "aria-hidden": "true" }), `${name} ${counts[outcome].toLocaleString("en")}`);
  });
  $("outcomes").replaceChildren($("outcomes").querySelector("legend"), ...chips.filter(Boolean));
}

function filter() {
  const [asked, ours] = [questions(), run()];
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const passes = [];
  if (outcomesChosen.size) passes.push((place, row) => outcomesChosen.has(ours.outcome[row]));
  if ($("hops").value !== "any") passes.push((place) => String(asked.hops[place] ?? "") === $("hops").value);
  if ($("kind").value !== "any") passes.push((place) => String(asked.kind[place] ?? "") === $("kind").value);
  if ($("stop").value !== "any") passes.push((place, row) => ours.stops[ours.stop[row]] === $("stop").value);
  if ($("other").value) {
    const theirs = asked.runs[Number($("other").value)];
    const related = RELATIONS.find(([name]) => name === $("relation").value)[2];
    passes.push((place) => theirs.rows[place] >= 0 && related(right(ours, place), right(theirs, place)));
  }
  if (words.length) passes.push((place) => words.every((word) => searched(asked, ours, place).includes(word)));
  shown = ours.at.filter((place, row) => passes.every((pass) => pass(place, row)));
  sort(ours);
  active = Math.max(0, shown.indexOf(open?.place));
  $("relation").disabled = !$("other").value;
  $("count").textContent = `${count(shown.length, "question")} of ${ours.at.length.toLocaleString("en")}`;
  $("rows").style.height = `${shown.length * ROW}px`;
  $("list").scrollTop = 0;
  reveal();
  draw();
}

function sort(ours) {
  const [name, , column] = SORTS.find(([each]) => each === $("sort").value);
  if (!column) return;
  const [values, direction] = [column(ours), name.endsWith("-") ? -1 : 1];
  const value = (place) => values[ours.rows[place]] ?? direction * Infinity; // questions without a value come last
  shown.sort((a, b) => direction * (value(a) - value(b)) || a - b);
}

// --- drawing ---

function draw() {
  const first = Math.max(0, Math.floor($("list").scrollTop / ROW) - AROUND);
  const last = Math.min(shown.length, Math.ceil(($("list").scrollTop + $("list").clientHeight) / ROW) + AROUND);
  const rows = [];
  for (let n = first; n < last; n += 1) rows.push(row(n));
  $("rows").replaceChildren(...rows);
  if (active >= first && active < last) $("list").setAttribute("aria-activedescendant", `row-${active}`);
  else $("list").removeAttribute("aria-activedescendant");
}

function row(n) {
  const [asked, ours, place] = [questions(), run(), shown[n]];
  const at = ours.rows[place];
  const { key, name } = index.outcomes[ours.outcome[at]];
  const facts = [
    make("span", { class: `outcome` }, make("i", { class: `swatch o-${key}`, "aria-hidden": "true" }), name),
    key === "failed" ? null : make("span", { class: "said" }, ours.answer[at] || "no answer"),
    ours.confidence?.[at] != null ? make("span", { class: "small" }, `confidence ${percent(ours.confidence[at])}%`) : null,
    asked.hops[place] ? make("span", { class: "small" }, count(asked.hops[place], "hop")) : null,
    asked.runs.length > 1 ? marks(asked.runs, place) : null,
  ];
  return make(
    "div",
    {
      id: `row-${n}`,
      role: "option",
      class: `row${n === active ? " active" : ""}${place === open?.place ? " open" : ""}`,
      style: `top:${n * ROW}px`,
      "aria-selected": String(n === active),
      "aria-posinset": n + 1,
      "aria-setsize": shown.length,
      onclick: () => {
        active = n;
        openActive();
      },
    },
    make("div", { class: "asked" }, asked.question[place]),
    make("div", { class: "facts" }, facts),
  );
}

/** A dot per run: correct or wrong. */
function marks(runs, place) {
  const notes = runs.map((each) => `${each.name}: ${each.rows[place] < 0 ? "not done" : right(each, place) ? "correct" : "wrong"}`);
  const dots = runs.map((each) => make("i", { class: each.rows[place] < 0 ? "none" : right(each, place) ? "yes" : "no" }));
  return make("span", { class: "marks", role: "img", "aria-label": notes.join(", "), title: notes.join("\n") }, dots);
}

// --- moving ---

function move(to) {
  if (!shown.length) return;
  active = Math.max(0, Math.min(shown.length - 1, to));
  reveal();
  draw();
  if (open) openActive(false);
}

function reveal() {
  const list = $("list");
  if (active * ROW < list.scrollTop) list.scrollTop = active * ROW;
  else if ((active + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (active + 1) * ROW - list.clientHeight;
}

function step(by) {
  const there = open || document.activeElement === $("list");
  if (!open) $("list").focus({ preventScroll: inView($("list")) });
  move(there ? active + by : active); // the first key only moves the focus to the list
}

function inView(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return top < innerHeight - 120 && bottom > 120;
}

const page = () => Math.max(1, Math.floor($("list").clientHeight / ROW) - 1);
const inList = (act) => (event) => (event.target === $("list") ? act() : false);

if (index.groups.length) {
  keys.set("j", () => step(1));
  keys.set("k", () => step(-1));
  keys.set("ArrowDown", inList(() => step(1)));
  keys.set("ArrowUp", inList(() => step(-1)));
  keys.set("PageDown", inList(() => step(page())));
  keys.set("PageUp", inList(() => step(-page())));
  keys.set("Home", inList(() => move(0)));
  keys.set("End", inList(() => move(shown.length - 1)));
  keys.set("Enter", inList(() => openActive()));
  keys.set("/", () => {
    $("find").focus();
    $("find").select();
  });

  let drawing = 0;
  $("list").addEventListener("scroll", () => {
    cancelAnimationFrame(drawing);
    drawing = requestAnimationFrame(draw);
  });
  new ResizeObserver(draw).observe($("list"));
  $("find").addEventListener("input", filter);
  $("find").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && event.key !== "Enter") return;
    event.preventDefault();
    $("list").focus();
  });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("run").addEventListener("change", () => {
    showRun();
    if (open) openPlace(open.place);
  });
  for (const id of ["hops", "kind", "stop", "sort", "other", "relation"]) $(id).addEventListener("change", filter);
  $("outcomes").addEventListener("change", (event) => {
    const outcome = Number(event.target.value);
    if (event.target.checked) outcomesChosen.add(outcome);
    else outcomesChosen.delete(outcome);
    filter();
  });
}

// An open question: answer and gold answers, trace, evidence, costs.

let open = null; // {place, run}
let asking = 0; // only the question that was opened last is shown

async function openActive(focus = true) {
  if (shown.length) await openPlace(shown[active], focus);
}

async function openPlace(place, focus = false) {
  const [asked, ours, ticket] = [questions(), run(), ++asking];
  const at = ours.rows[place];
  if (at < 0) return;
  open = { place };
  $("panes").classList.add("opened");
  draw();
  let shownDetails;
  try {
    shownDetails = questionOf(asked, ours, place, at, await detailsOf(ours, at));
  } catch (error) {
    shownDetails = [make("p", { class: "notice" }, `This question cannot be unpacked by this browser: ${error.message}`)];
  }
  if (ticket !== asking) return;
  $("question").replaceChildren(...shownDetails);
  $("question").scrollTop = 0;
  for (const element of $("question").querySelectorAll(".scroll")) sideways.observe(element);
  if ($("list").clientHeight === 0) $("questions").scrollIntoView(); // a narrow window shows the list or the question
  if (focus) $("question").focus({ preventScroll: inView($("question")) });
  remember(ours.name, asked.id[place]);
}

function close() {
  if (!open) return false;
  open = null;
  asking += 1;
  $("panes").classList.remove("opened");
  $("question").replaceChildren(make("p", { class: "quiet empty" }, "Choose a question: click one, or press j and Enter."));
  reveal();
  draw();
  $("list").focus({ preventScroll: inView($("list")) });
  remember();
  return true;
}

function otherRun(by) {
  const { runs } = questions();
  if (!open || runs.length < 2) return;
  const next = (Number($("run").value) + by + runs.length) % runs.length;
  chooseRun(next);
}

function chooseRun(number) {
  $("run").value = String(number);
  showRun();
  if (open) openPlace(open.place, true);
}

/** Shows the questions behind a number in the table of outcomes. */
function showOutcome(number, key) {
  $("run").value = String(number);
  outcomesChosen.clear();
  outcomesChosen.add(index.outcomes.findIndex((each) => each.key === key));
  for (const id of ["hops", "kind", "stop"]) $(id).value = "any";
  $("other").value = $("find").value = "";
  showRun();
  move(0);
  $("questions").scrollIntoView();
  $("list").focus({ preventScroll: true });
}

// --- parts ---

function questionOf(asked, ours, place, at, details) {
  const known = knowledge(details, asked.titles);
  const steps = timeline(details.trace ?? [], known); // also records where passages were found
  const { key, name } = index.outcomes[ours.outcome[at]];
  return [
    make(
      "div",
      { class: "tools" },
      make("button", { type: "button", onclick: close, title: "Close (Esc)" }, "← Close"),
      make("button", { type: "button", onclick: () => step(-1), title: "Previous (k)" }, "Previous"),
      make("button", { type: "button", onclick: () => step(1), title: "Next (j)" }, "Next"),
      make("span", { class: "small id" }, asked.id[place]),
    ),
    make("h3", { class: "asked" }, asked.question[place]),
    make(
      "p",
      { class: "badges" },
      make("span", { class: `badge` }, make("i", { class: `swatch o-${key}`, "aria-hidden": "true" }), name),
      asked.hops[place] ? make("span", { class: "badge" }, count(asked.hops[place], "hop")) : null,
      asked.kind[place] ? make("span", { class: "badge" }, asked.kind[place]) : null,
      details.status ? make("span", { class: "badge" }, details.status) : null,
      details.stop_reason ? make("span", { class: "badge" }, `stop reason: ${details.stop_reason}`) : null,
    ),
    details.error ? failure(details.error) : null,
    answers(asked, ours, place, at, details),
    asked.runs.length > 1 ? everyRun(asked, place) : null,
    known.gold.size ? part("Gold passages", goldPassages(known, details)) : null,
    part("Trace", details.trace?.length ? steps : make("p", { class: "quiet" }, "No step was recorded.")),
    part("Evidence", facts((details.evidence ?? []).map((item) => [item.passage_id, item.sentence]), known) ?? make("p", { class: "quiet" }, "None.")),
    part("Costs", costs(details.costs ?? {})),
    details.costs_by_agent ? part("By agent", byAgent(details.costs_by_agent)) : null,
    details.incidents ? part("Incidents", pairs(Object.entries(details.incidents))) : null,
    part("Scores", scores(details.scores ?? {})),
  ].filter(Boolean);
}

const part = (title, ...inside) => make("section", { class: "part" }, make("h4", {}, title), inside);

function failure({ cause, type, message, at }) {
  return make("p", { class: "notice" }, make("b", {}, `Failed (${cause}): `), message, " ", quiet([type, at].filter(Boolean).join(", ")));
}

function answers(asked, ours, place, at, { confidence }) {
  const wrong = ours.em[at] !== 1;
  return make(
    "dl",
    { class: "answers" },
    make("dt", {}, "Answer"),
    make("dd", { class: wrong ? "no" : "yes" }, ours.answer[at] || "none", " ", quiet([`F1 ${percent(ours.f1[at])}`, confidence == null ? "" : `confidence ${confidence.toFixed(2)}`].filter(Boolean).join(" · "))),
    make("dt", {}, "Gold"),
    make("dd", {}, asked.gold[place].join(" · ") || "none"),
  );
}

function everyRun(asked, place) {
  const rows = asked.runs.map((each, n) => {
    const at = each.rows[place];
    const current = each === run();
    const chooser = make("button", { type: "button", class: "link", "aria-current": current ? "true" : null, onclick: () => chooseRun(n) }, each.name);
    if (at < 0) return make("tr", {}, make("th", { scope: "row" }, each.name), make("td", { colspan: 4 }, "not done"));
    const { key, name } = index.outcomes[each.outcome[at]];
    return make(
      "tr",
      { class: current ? "current" : null },
      make("th", { scope: "row" }, chooser),
      make("td", { class: "words" }, each.answer[at] || "–"),
      make("td", { class: "words" }, make("i", { class: `swatch o-${key}`, "aria-hidden": "true" }), name),
      make("td", {}, percent(each.evidence?.[at])),
      make("td", {}, each.calls?.[at] ?? "–"),
    );
  });
  const head = ["Run", "Answer", "Outcome", "Evidence F1", "LM calls"].map((text, n) => make("th", { scope: "col", class: n < 3 ? "words" : null }, text));
  const inside = make("table", { class: "numbers compact" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  return part("All runs", make("div", { class: "scroll" }, inside));
}

function goldPassages(known, { evidence }) {
  const inEvidence = new Set((evidence ?? []).map((item) => known.counted(item.passage_id)));
  const rows = [...known.gold].map((id) => {
    const first = known.first.get(id);
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, star(), titled(known, id), known.titles.get(id) ? null : [" ", quiet("(not found by any run)")]),
      make("td", { class: first ? "yes words" : "no words" }, first ? `search ${first.search}, rank ${first.rank}` : "not found"),
      make("td", { class: inEvidence.has(id) ? "yes words" : "no words" }, inEvidence.has(id) ? "in the evidence" : "not in the evidence"),
    );
  });
  return make("div", { class: "scroll" }, make("table", { class: "numbers compact" }, make("tbody", {}, rows)));
}

const COSTS = [
  ["lm_calls", "LM calls"],
  ["lm_calls_critical_path", "in sequence"],
  ["searches", "searches"],
  ["tokens_in", "tokens in"],
  ["tokens_out", "tokens out"],
  ["cost_usd", "dollars"],
  ["seconds", "seconds"],
];

const figureOf = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(3))));

function costs(given) {
  return pairs(COSTS.filter(([key]) => given[key] !== undefined).map(([key, name]) => [name, given[key]]));
}

function pairs(entries) {
  return make("dl", { class: "pairs" }, entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, figureOf(value)))));
}

function byAgent(agents) {
  const names = ["lm_calls", "tokens_in", "tokens_out", "cost_usd"];
  const head = ["Agent", "LM calls", "Tokens in", "Tokens out", "Dollars"].map((text) => make("th", { scope: "col" }, text));
  const rows = Object.entries(agents).map(([role, spent]) =>
    make("tr", {}, make("th", { scope: "row" }, role), names.map((name) => make("td", {}, spent[name] === undefined ? "–" : figureOf(spent[name])))),
  );
  return make("div", { class: "scroll" }, make("table", { class: "numbers compact" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

function scores(given) {
  const inside = Object.entries(given).map(([name, value]) => make("div", {}, make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, (100 * value).toFixed(1))));
  return folded("in percent", make("dl", { class: "pairs" }, inside));
}

// --- addresses ---

/** Puts the open question into the address, for links. */
function remember(name, id) {
  const fragment = id === undefined ? "#questions" : `#questions/${group}/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
  try {
    history.replaceState(null, "", fragment);
  } catch {
    // some browsers do not let a local file change its address
  }
}

/** A part of an address, or null if it was cut off. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function openAddress() {
  const [, number, name, id] = location.hash.match(/^#questions\/(\d+)\/([^/]+)\/(.+)$/) ?? [];
  const asked = index.groups[Number(number)];
  if (!asked) return;
  const wanted = asked.runs.findIndex((each) => each.name === decoded(name));
  const place = asked.id.indexOf(decoded(id));
  if (wanted < 0 || place < 0) return;
  chooseGroup(Number(number));
  $("run").value = String(wanted);
  showRun();
  move(Math.max(0, shown.indexOf(place)));
  openPlace(place, true);
}

if (index.groups.length) {
  keys.set("Escape", () => close());
  keys.set("[", () => otherRun(-1));
  keys.set("]", () => otherRun(1));
  document.addEventListener("group", () => {
    open = null;
    $("panes").classList.remove("opened");
    showGroup();
  });
  for (const button of document.querySelectorAll("[data-outcome]")) {
    button.addEventListener("click", () => showOutcome(Number(button.dataset.run), button.dataset.outcome));
  }
  $("browser").hidden = false;
  chooseGroup(0);
  openAddress();
}

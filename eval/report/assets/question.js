// An open question: answer and gold answers, trace, evidence, costs. The address of the page says which one is open.

let open = null; // its place among the questions of the group

const addressOf = (each, place) => `#questions/${group}/${encodeURIComponent(each.name)}/${encodeURIComponent(questions().id[place])}`;

/** Opens the question of the address, and closes it where the address names none. */
async function followAddress() {
  const [, number, name, id] = location.hash.match(/^#questions\/(\d+)\/([^/]+)\/(.+)$/) ?? [];
  const asked = index.groups[Number(number)];
  const wanted = asked?.runs.findIndex((each) => each.name === decoded(name)) ?? -1;
  const place = asked?.id.indexOf(decoded(id)) ?? -1;
  if (wanted < 0 || place < 0 || asked.runs[wanted].rows[place] < 0) return close();
  if (group !== Number(number)) chooseGroup(Number(number));
  if ($("run").value !== String(wanted)) {
    $("run").value = String(wanted);
    showRun();
  }
  open = place;
  $("panes").classList.add("opened");
  mark();
  const [ours, row] = [run(), run().rows[place]];
  let parts;
  try {
    parts = questionOf(asked, ours, place, row, await detailsOf(ours, row));
  } catch (error) {
    parts = [make("p", { class: "notice" }, `This question cannot be unpacked by this browser: ${error.message}`)];
  }
  if (open !== place || run() !== ours) return; // another one was opened meanwhile
  $("question").replaceChildren(...parts);
  $("question").scrollTop = 0;
  $("question").focus({ preventScroll: true });
  if (!$("list").clientHeight) $("questions").scrollIntoView(); // a narrow window shows the list or the question
}

/** A part of an address, or null if it was cut off. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function close() {
  const row = open === null ? null : $("rows").querySelector("[aria-current]");
  open = null;
  $("panes").classList.remove("opened");
  $("question").replaceChildren(make("p", { class: "quiet empty" }, "Choose a question: click one, or press j."));
  row?.focus();
  mark();
}

function questionOf(asked, ours, place, row, details) {
  const known = knowledge(details, asked.titles);
  const steps = timeline(details.trace ?? [], known); // also records where passages were found
  const { confidence, error, stop_reason: stop, costs_by_agent: agents, scores = {}, costs = {} } = details;
  const outcome = index.outcomes[ours.outcome[row]];
  const stated = confidence == null ? "" : ` · confidence ${confidence.toFixed(2)}`;
  const badges = [asked.hops[place] ? count(asked.hops[place], "hop") : null, asked.kind[place], details.status, stop ? `stop reason: ${stop}` : null];
  const evidence = (details.evidence ?? []).map((item) => [item.passage_id, item.sentence]);
  const inEvidence = new Set(evidence.map(([id]) => known.counted(id)));
  const gold = [...known.gold].map((id) => [
    [star(), titled(known, id)],
    make("span", { class: known.first.has(id) ? "yes" : "no" }, known.first.get(id) ?? "not found"),
    make("span", { class: inEvidence.has(id) ? "yes" : "no" }, inEvidence.has(id) ? "in the evidence" : "not in the evidence"),
  ]);
  const everyRun = asked.runs.filter((each) => each.rows[place] >= 0).map((each) => {
    const at = each.rows[place];
    return [make("a", { href: addressOf(each, place) }, each.name), each.answer[at] || "–", index.outcomes[each.outcome[at]].name, percent(each.evidence?.[at]), each.calls?.[at] ?? "–"];
  });
  const spent = Object.entries(agents ?? {}).map(([role, its]) => [role, ...["lm_calls", "tokens_in", "tokens_out", "cost_usd"].map((name) => (its[name] === undefined ? "–" : figure(its[name])))]);
  return [
    make(
      "p",
      { class: "tools" },
      make("a", { href: "#questions" }, "← Close"),
      make("button", { type: "button", onclick: () => step(-1) }, "Previous"),
      make("button", { type: "button", onclick: () => step(1) }, "Next"),
      quiet(asked.id[place]),
    ),
    make("h3", { class: "asked" }, asked.question[place]),
    make("p", { class: "badges" }, make("span", {}, make("i", { class: `swatch o-${outcome.key}` }), outcome.name), badges.filter(Boolean).map((text) => make("span", {}, text))),
    error ? make("p", { class: "notice" }, make("b", {}, `Failed (${error.cause}): `), error.message, " ", quiet([error.type, error.at].filter(Boolean).join(", "))) : null,
    make(
      "dl",
      { class: "answers" },
      make("dt", {}, "Answer"),
      make("dd", { class: ours.em?.[row] === 1 ? "yes" : "no" }, ours.answer[row] || "none", " ", quiet(`F1 ${percent(ours.f1?.[row])}${stated}`)),
      make("dt", {}, "Gold"),
      make("dd", {}, asked.gold[place].join(" · ") || "none"),
    ),
    everyRun.length > 1 ? part("All runs", table(["Run", "Answer", "Outcome", "Evidence F1", "LM calls"], everyRun)) : null,
    gold.length ? part("Gold passages", table([], gold)) : null,
    part("Trace", details.trace?.length ? steps : quiet("No step was recorded.")),
    part("Evidence", evidence.length ? facts(evidence, known) : quiet("None.")),
    part("Costs", pairs(costs, figure)),
    spent.length ? part("By agent", table(["Agent", "LM calls", "Tokens in", "Tokens out", "Dollars"], spent)) : null,
    details.incidents ? part("Incidents", pairs(details.incidents, figure)) : null,
    part("Scores", folded("in percent", pairs(scores, (value) => (100 * value).toFixed(1)))),
  ].filter(Boolean);
}

const part = (title, ...inside) => make("section", { class: "part" }, make("h4", {}, title), inside);

function pairs(values, shown) {
  const entries = Object.entries(values).map(([name, value]) => make("div", {}, make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, shown(value))));
  return make("dl", { class: "pairs" }, entries);
}

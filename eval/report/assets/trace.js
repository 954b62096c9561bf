// A trace, step by step.

const MOST = 5; // hits shown before the others are folded

/**
 * The passages of a question: gold ids, titles, and the texts of the evidence.
 * @param missed Titles of gold passages that this run did not find, from runs that did.
 */
function knowledge(details, missed) {
  const known = {
    gold: new Set(details.gold ?? []),
    titles: new Map((details.gold ?? []).map((id) => [id, missed.get(id)])),
    texts: new Map(),
    final: new Set(),
    first: new Map(), // search and rank at which a passage was found first
    searches: 0,
    kept: [],
  };
  // What a passage counts as: itself if it is gold, else its document.
  known.counted = (id) => (known.gold.has(id) ? id : (details.documents?.[id] ?? id));
  known.isGold = (id) => known.gold.has(known.counted(id));
  for (const item of details.evidence ?? []) {
    known.titles.set(item.passage_id, item.title).set(known.counted(item.passage_id), item.title);
    known.texts.set(address([item.passage_id, item.sentence]), item.text);
    known.final.add(address([item.passage_id, item.sentence]));
  }
  for (const each of flat(details.trace ?? [])) {
    for (const [id, title] of each.found ?? []) known.titles.set(id, title).set(known.counted(id), title);
  }
  return known;
}

function flat(steps) {
  return steps.flatMap((each) => (each.step === "parallel" ? each.branches.flatMap(flat) : [each]));
}

const address = ([id, sentence]) => `${id}:${sentence ?? ""}`;
const titled = (known, id) => known.titles.get(id) || id;
const star = () => make("span", { class: "gold", title: "gold passage" }, "★", make("span", { class: "sr" }, " gold "));

function timeline(steps, known) {
  return make("ol", { class: "steps" }, steps.map((each) => stepOf(each, known)));
}

function stepOf(each, known) {
  if (each.step === "parallel") {
    const branches = each.branches.map((branch, n) =>
      make("div", { class: "branch" }, make("p", { class: "small" }, `branch ${n + 1}`), timeline(branch, known)),
    );
    return make("li", { class: "step k-parallel" }, kind("in parallel"), make("div", { class: "branches" }, branches));
  }
  const [name, ...said] = (Object.hasOwn(STEPS, each.step) ? STEPS[each.step] : unknown)(each, known);
  const dropped = (each.invalid ?? []).length
    ? make("p", { class: "small warn" }, "invalid in the reply: ", each.invalid.map((text) => make("q", {}, String(text))))
    : null;
  return make("li", { class: `step k-${each.step}` }, kind(name), make("div", { class: "said" }, said, dropped));
}

const kind = (name) => make("span", { class: "kind" }, name);
const texts = (items, class_ = "texts") => (items.length ? make("ul", { class: class_ }, items.map((item) => make("li", {}, item))) : null);
const strong = (text) => make("b", {}, text);
const quiet = (text) => make("span", { class: "small" }, text);

const STEPS = {
  estimated: ({ probabilities }) => [
    "estimated",
    "hops ",
    probabilities.map((share, n) => make("span", { class: "estimate" }, `${n + 1}: ${percent(share)}% `)),
  ],
  recalled: ({ questions }) => ["recalled", folded(count(questions.length, "solved question"), texts(questions))],
  routed: ({ route, query }) => ["routed", strong(route), query ? [" ", make("q", {}, query)] : null],
  decomposed: ({ sub_questions, thoughts, route }) => [
    "decomposed",
    route ? make("p", {}, "route ", strong(route)) : null,
    sub_questions.length
      ? make("ol", { class: "texts" }, sub_questions.map((text, n) => make("li", {}, text, thoughts?.[n] ? [" ", quiet(thoughts[n])] : null)))
      : "no sub-question",
  ],
  searched: (each, known) => searchedStep(each, known),
  selected: ({ round, kept, flagged }, known) => {
    const now = new Set(kept.map(address));
    const same = kept.length > 0 && kept.length === known.kept.length && known.kept.every((fact) => now.has(address(fact)));
    const gone = known.kept.filter((fact) => !now.has(address(fact)) && !known.final.has(address(fact)));
    known.kept = [...known.kept.filter((fact) => known.final.has(address(fact)) && !now.has(address(fact))), ...kept];
    return [
      `round ${round}: kept`,
      same ? folded(kept.length > 1 ? `the same ${kept.length} as before` : "the same as before", facts(kept, known)) : (facts(kept, known) ?? "nothing"),
      gone.length ? make("div", { class: "gone" }, quiet("no longer kept"), facts(gone, known)) : null,
      flagged?.length ? make("div", {}, quiet("not supported by the known facts"), facts(flagged, known)) : null,
    ];
  },
  added: ({ round, added }, known) => {
    known.kept = [...known.kept, ...added];
    return [`round ${round}: added`, facts(added, known) ?? "nothing"];
  },
  proposed: ({ queries }) => [
    "proposed",
    texts(queries.map(([query, score], n) => [n ? query : strong(query), " ", quiet(score.toFixed(2))])) ?? "no query",
  ],
  learned: ({ known, required }) => [
    "learned",
    texts(known) ?? make("p", {}, "nothing new"),
    required.length ? [quiet("still required"), texts(required)] : quiet("nothing more is required"),
  ],
  required: ({ questions, answers = [] }) => [
    "required",
    answers.length ? texts(answers.map((text, n) => `#${n + 1} ${text}`)) : "",
    questions.length ? texts(questions) : "nothing more",
  ],
  checked: ({ supported, unsupported, irrelevant }) => [
    "checked",
    supported.length ? [quiet("supported"), texts(supported, "texts yes")] : null,
    unsupported.length ? [quiet("not supported"), texts(unsupported, "texts no")] : null,
    irrelevant?.length ? [quiet("supported, but irrelevant"), texts(irrelevant)] : null,
  ],
  decided: ({ action, query, thought }) => [
    "decided",
    strong(action),
    query ? [" ", make("q", {}, query)] : null,
    thought ? make("p", { class: "small" }, thought) : null,
  ],
  thought: ({ text }) => ["thought", text],
  stepanswered: ({ number, question, answer, cited }, known) => [
    `answered #${number}`,
    make("p", {}, question),
    make("p", {}, "→ ", strong(answer)),
    facts(cited ?? [], known),
  ],
  judged: ({ aspect, score, verdict }) => ["judged", `${aspect}: `, strong(score.toFixed(2)), verdict ? ` ${verdict}` : null],
  scored: ({ credibility }) => ["scored", "credibility: ", strong(credibility.toFixed(2))],
  weighed: ({ alpha, confidence, passed }) => [
    "weighed",
    strong(confidence.toFixed(2)),
    ` with α ${alpha.toFixed(2)}: `,
    make("span", { class: passed ? "yes" : "no" }, passed ? "passed" : "did not pass"),
  ],
  revised: ({ answer, reason, accepted, cited }, known) => [
    "revised",
    accepted ? strong(answer) : ["not accepted: ", make("s", {}, answer)],
    reason ? make("p", { class: "small" }, reason) : null,
    facts(cited ?? [], known),
  ],
  replaced: ({ answer, reason }) => ["replaced", "by ", strong(answer), reason ? make("p", { class: "small" }, reason) : null],
  refined: ({ number, question }) => [`refined #${number}`, question],
  answered: ({ answer, reasoning, confidence }) => [
    "answered",
    strong(answer),
    ` with confidence ${confidence.toFixed(2)}`,
    reasoning ? make("p", { class: "reasoning" }, reasoning) : null,
  ],
  shortened: ({ agent, needed, shown, cut, left_out }) => [
    "shortened",
    strong(agent),
    ` from about ${needed.toLocaleString("en")} tokens to ${shown.toLocaleString("en")}`,
    cut.length ? [quiet("passages shown in part"), texts(cut)] : null,
    left_out ? make("p", {}, `${count(left_out, "passage")} not shown`) : null,
  ],
  stopped: ({ reason }) => ["stopped", strong(reason)],
};

/** A step of an unknown kind, as it was recorded. */
function unknown({ step, ...rest }) {
  return [step, make("pre", {}, JSON.stringify(rest, null, 1))];
}

function folded(name, ...inside) {
  return make("details", {}, make("summary", {}, name), inside);
}

// --- searches ---

function searchedStep({ query, found, reasons, offset }, known) {
  known.searches += 1;
  found.forEach(([id], n) => {
    if (!known.first.has(known.counted(id))) known.first.set(known.counted(id), { search: known.searches, rank: (offset ?? 0) + n + 1 });
  });
  const gold = [...known.gold];
  const here = gold.filter((id) => found.some(([each]) => known.counted(each) === id)).length;
  const soFar = gold.filter((id) => known.first.has(id)).length;
  const recall = gold.length ? `${here} of ${gold.length} gold here, ${soFar} found so far` : "";
  const hits = found.map((each, n) => hit(each, reasons?.[n], n + 1 + (offset ?? 0), known));
  const start = (offset ?? 0) + 1;
  return [
    `search ${known.searches}`,
    make("p", {}, make("q", {}, query), " ", quiet([count(found.length, "hit"), offset ? `from rank ${start}` : "", recall].filter(Boolean).join(" · "))),
    hits.length ? make("ol", { class: "hits", start }, hits.slice(0, MOST)) : null,
    hits.length > MOST ? more(hits.slice(MOST), found.slice(MOST), start + MOST, known) : null,
  ];
}

/** Further hits, folded; the summary names the gold ones. */
function more(hits, found, start, known) {
  const gold = found.map(([id], n) => [id, n + start]).filter(([id]) => known.isGold(id));
  const named = gold.map(([id, rank]) => [" · ", star(), `${titled(known, id)} at ${rank}`]);
  return folded([`${hits.length} more`, named], make("ol", { class: "hits", start }, hits));
}

function hit([id, title, score], reason, rank, known) {
  return make(
    "li",
    { class: known.isGold(id) ? "is-gold" : null },
    make("span", { class: "rank" }, rank),
    make("span", {}, known.isGold(id) ? star() : null, make("span", { class: "title" }, title || id), reason ? [" ", quiet(why(reason, known))] : null),
    make("span", { class: "score" }, score.toFixed(2)),
  );
}

/** The reason for a passage of the chain retriever. */
function why({ via, name, source, words }, known) {
  const from = source ? titled(known, source) : "";
  const said = words?.length ? ` (${words.join(", ")})` : "";
  const anchor = name ? ` as “${name}”` : "";
  if (via === "named") return `the question names it: ${name}${said}`;
  if (via === "link") return `${from} mentions it: ${name}${said}`;
  if (via === "back") return `mentions ${from}${said}`;
  if (via === "shared") return `mentions ${name}, as ${from} does${said}`;
  if (via === "hyperlink") return `${from} links to it${anchor}${said}`;
  if (via === "linked") return `links to ${from}${anchor}${said}`;
  return `has words of the question${said}`;
}

// --- evidence ---

function facts(items, known) {
  if (!items.length) return null;
  return make("ul", { class: "evidence" }, items.map((fact) => factOf(fact, known)));
}

function factOf(fact, known) {
  const [id, sentence] = fact;
  const text = known.texts.get(address(fact));
  return make(
    "li",
    { class: known.isGold(id) ? "is-gold" : null },
    known.isGold(id) ? star() : null,
    make("span", { class: "title" }, titled(known, id)),
    " ",
    quiet(sentence === null || sentence === undefined ? "whole passage" : `sentence ${sentence + 1}`),
    text ? make("p", { class: "text" }, text.length > 600 ? [text.slice(0, 600), folded("…", text.slice(600))] : text) : null,
  );
}

// A trace, step by step: searches with their hits, evidence with its texts, and the other fields as they were recorded.

const MOST = 5; // hits shown before the others are folded
const FACTS = ["kept", "added", "cited", "flagged"]; // fields that name evidence

/**
 * The passages of a question: gold ids, titles, and the texts of the evidence.
 * @param missed Titles of gold passages that this run did not find, from runs that did.
 */
function knowledge(details, missed) {
  const known = {
    gold: new Set(details.gold ?? []),
    titles: new Map((details.gold ?? []).map((id) => [id, missed.get(id)])),
    texts: new Map(),
    first: new Map(), // search and rank at which a passage was found first
    searches: 0,
  };
  // What a passage counts as: itself if it is gold, else its document.
  known.counted = (id) => (known.gold.has(id) ? id : (details.documents?.[id] ?? id));
  known.isGold = (id) => known.gold.has(known.counted(id));
  for (const { passage_id: id, title, sentence, text } of details.evidence ?? []) {
    known.titles.set(id, title).set(known.counted(id), title);
    known.texts.set(address([id, sentence]), text);
  }
  for (const each of flat(details.trace ?? [])) {
    for (const [id, title] of each.found ?? []) known.titles.set(id, title).set(known.counted(id), title);
  }
  return known;
}

const flat = (steps) => steps.flatMap((each) => (each.step === "parallel" ? each.branches.flatMap(flat) : [each]));
const address = ([id, sentence]) => `${id}:${sentence ?? ""}`;
const titled = (known, id) => known.titles.get(id) || id;
const star = () => make("span", { class: "gold", title: "gold passage" }, "★", make("span", { class: "sr" }, " gold "));

function timeline(steps, known) {
  return make("ol", { class: "steps" }, steps.map((each) => make("li", { class: "step" }, stepOf(each, known))));
}

function stepOf({ step, ...fields }, known) {
  if (step === "parallel") {
    const branches = fields.branches.map((branch) => make("div", { class: "branch" }, timeline(branch, known)));
    return [make("span", { class: "quiet" }, "in parallel"), make("div", { class: "branches" }, branches)];
  }
  const said = step === "searched" ? searched(fields, known) : Object.entries(fields).map(([name, value]) => fieldOf(name, value, known));
  return [make("span", { class: "quiet" }, step === "searched" ? `search ${known.searches}` : step), make("div", { class: "said" }, said)];
}

function fieldOf(name, value, known) {
  if (value === null || value === "" || (Array.isArray(value) && !value.length)) return null;
  const words = name.replaceAll("_", " ");
  if (FACTS.includes(name)) return [quiet(words), facts(value, known)];
  const shown = (item) => (typeof item === "number" ? figure(item) : typeof item === "string" ? item : JSON.stringify(item));
  if (!Array.isArray(value)) return make("p", {}, quiet(`${words} `), shown(value));
  if (typeof value[0] === "number") return make("p", {}, quiet(`${words} `), value.map(shown).join(" · "));
  return [quiet(words), list(value.map((item) => (Array.isArray(item) ? item.map(shown).join(" · ") : shown(item))))];
}

// --- searches ---

function searched({ query, found, reasons, offset = 0 }, known) {
  known.searches += 1;
  found.forEach(([id], n) => {
    if (!known.first.has(known.counted(id))) known.first.set(known.counted(id), `search ${known.searches}, rank ${offset + n + 1}`);
  });
  const gold = [...known.gold];
  const here = gold.filter((id) => found.some(([each]) => known.counted(each) === id)).length;
  const soFar = gold.filter((id) => known.first.has(id)).length;
  const recall = gold.length ? ` · ${here} of ${gold.length} gold here, ${soFar} found so far` : "";
  const hits = found.map((each, n) => hit(each, reasons?.[n], offset + n + 1, known));
  const golden = found.slice(MOST).filter(([id]) => known.isGold(id)).map(([id]) => [" · ", star(), titled(known, id)]);
  const rest = () => folded([`${hits.length - MOST} more`, golden], make("ol", { class: "hits" }, hits.slice(MOST)));
  return [
    make("p", {}, make("q", {}, query), " ", quiet(count(found.length, "hit") + recall)),
    make("ol", { class: "hits" }, hits.slice(0, MOST)),
    hits.length > MOST ? rest() : null,
  ];
}

function hit([id, title, score], reason, rank, known) {
  const gold = known.isGold(id);
  const named = [gold ? star() : null, make("b", {}, title || id), reason ? [" ", quiet(why(reason, known))] : null];
  return make("li", { class: gold && "is-gold" }, quiet(rank), make("span", {}, named), quiet(score.toFixed(2)));
}

/** The reason for a passage of the chain retriever. */
function why({ via, name, source, words }, known) {
  const [from, anchor] = [source ? titled(known, source) : "", name ? ` as “${name}”` : ""];
  const said = {
    named: `the question names it: ${name}`,
    link: `${from} mentions it: ${name}`,
    back: `mentions ${from}`,
    shared: `mentions ${name}, as ${from} does`,
    hyperlink: `${from} links to it${anchor}`,
    linked: `links to ${from}${anchor}`,
    part: `found for “${name}”${from ? `, as ${from} suggests` : ""}`,
  };
  return (Object.hasOwn(said, via) ? said[via] : "has words of the question") + (words?.length ? ` (${words.join(", ")})` : "");
}

// --- evidence ---

function facts(items, known) {
  return make("ul", { class: "evidence" }, items.map((fact) => {
    const [[id, sentence], text, gold] = [fact, known.texts.get(address(fact)), known.isGold(fact[0])];
    const place = quiet(sentence === null || sentence === undefined ? "whole passage" : `sentence ${sentence + 1}`);
    const long = text?.length > 600;
    const said = text ? make("p", {}, long ? [text.slice(0, 600), folded("…", text.slice(600))] : text) : null;
    return make("li", { class: gold && "is-gold" }, gold ? star() : null, make("b", {}, titled(known, id)), " ", place, said);
  }));
}

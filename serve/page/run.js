// One question and one program: what its events tell, drawn as they come.

import { count, el } from "./dom.js";
import { Graph } from "./graph.js";
import { request } from "./server.js";

const TEXTS = { invalid: "ignored", queries: "queries", known: "known", required: "missing",
  supported: "supported", unsupported: "not supported", contradicted: "contradicted", irrelevant: "not needed",
  questions: "questions", answers: "answers so far", reasoning: "reasoning", reason: "reason", thought: "thought",
  sub_questions: "sub-questions", agent: "agent" };
const CHECKS = {
  verified: "The answer was verified against the passages.",
  "not checked": "The answer was not verified: the program was sure, or has no verifier.",
  "model knowledge": "The answer comes from the model's own knowledge, not from the passages.",
  contradicted: "The passages contradict the answer.",
  "supported": "A cited sentence has it, but not every reading confirmed it.",
  "in doubt": "The passages state it, but the verifier doubts that it is what was asked for.",
  "not supported": "No cited sentence has it, or it is not the kind of answer that is asked for.",
  "not verified": "The answer did not pass the verification.",
  "no answer": "The program did not find an answer.",
};

export class Run {
  constructor(question, program, say) {
    this.say = say;
    this.events = [];
    this.question = question;
    this.program = program;
    this.searches = [];
    this.passages = new Map();
    this.others = [];
    this.plan = [];
    this.check = "not checked";
    this.waiting = "";
    this.started = performance.now();
    this.build();
  }

  build() {
    this.status = el("p", { cls: "status" }, el("span", { cls: "dot" }), this.doing = el("span", {}, "starting"));
    this.meters = el("dl", { cls: "meters" });
    this.answer = el("div", { cls: "answer" }, this.status);
    this.chain = el("ol", { cls: "chain" });
    this.subs = el("ol", { cls: "plan" });
    this.graph = new Graph((id) => this.show(id));
    this.steps = el("ol", { cls: "steps" });
    const part = (title, ...content) => el("section", { hidden: true }, el("h3", {}, title), ...content);
    this.parts = {
      chain: part("Evidence", this.chain),
      plan: part("Plan", this.subs),
      graph: part("Passages", el("p", { cls: "legend quiet" }, el("i", { cls: "cited" }), "evidence ", el("i", { cls: "kept" }), "kept ",
        el("i", {}), "found"), this.graph.element),
      steps: part("Steps", this.steps),
    };
    this.element = el("article", { cls: "run running", "aria-label": `${this.program}: ${this.question}` },
      el("header", {}, el("h2", {}, this.program), this.meters), this.answer, ...Object.values(this.parts));
    this.timer = setInterval(() => this.tick(), 100);
    this.tick();
  }

  // --- events ---

  feed(event) {
    this.events.push(event);
    if (event.costs) this.costs = event.costs;
    this.seconds = event.seconds;
    for (const [id, passage] of Object.entries(event.passages ?? {})) {
      const known = this.passages.get(id);
      this.passages.set(id, { search: Math.max(0, this.searches.length - 1), kept: new Set(), ...known, ...passage });
    }
    if (event.event === "asking" || event.event === "waiting") this.wait(event.text);
    else if (event.event === "incident") this.step({ ...event, step: {} }, "incident");
    else if (event.event === "step") this.done(event);
    else if (event.event === "answer") this.finish(event);
    else if (event.event === "error") this.fail(event.message);
    this.tick();
  }

  wait(text) {
    this.doing.textContent = text;
    this.say(`${this.program}: ${text}`);
  }

  done(event) {
    const step = event.step;
    if (step.step === "searched") this.found(step);
    if (step.step === "decomposed") this.plan = step.sub_questions.map((text) => ({ text }));
    if (step.step === "stepanswered" && this.plan[step.number - 1]) this.plan[step.number - 1].answer = step.answer;
    if (step.step === "required") step.answers.forEach((answer, n) => { if (this.plan[n] && answer !== "unknown") this.plan[n].answer = answer; });
    if (step.step === "weighed") this.check = step.passed ? "verified" : "not verified";
    if (["answered", "revised"].includes(step.step)) this.others.push({ answer: step.answer, reason: step.reason ?? "" });
    for (const [id, sentence] of facts(step)) this.keep(id, sentence, "kept");
    this.doing.textContent = event.text;
    this.step(event, step.step);
    this.drawPlan();
    this.drawGraph();
  }

  found(step) {
    const asked = this.searches.findIndex(({ query }) => query === step.query);
    const search = asked < 0 ? this.searches.push({ query: step.query }) - 1 : asked;
    step.found.forEach(([id, title], n) => {
      const passage = this.passages.get(id) ?? { title, sentences: [], kept: new Set() };
      if (!this.passages.has(id) || passage.rank === undefined) Object.assign(passage, { search, reason: step.reasons[n], rank: n });
      this.passages.set(id, passage);
    });
  }

  keep(id, sentence, use) {
    const passage = this.passages.get(id);
    if (!passage) return;
    passage.use = use === "cited" ? use : passage.use ?? use;
    const all = passage.sentences.map((_, n) => n);
    for (const n of sentence === null ? all : [sentence]) passage.kept.add(n);
  }

  finish(event) {
    for (const item of event.evidence) this.keep(item.passage_id, item.sentence, "cited");
    if (event.status) this.check = event.status;
    this.end("answered");
    const sure = event.confidence === null ? null : Math.round(event.confidence * 100);
    const unknown = event.answer === "unknown";
    this.answer.replaceChildren(
      el("p", { cls: unknown ? "text unknown" : "text" }, unknown ? "No answer found" : event.answer),
      ...(event.guess ? [el("p", { cls: "guess" }, "Perhaps: ", el("b", {}, event.guess), ". The program is not sure enough.")] : []),
      el("p", { cls: "sure" }, ...(sure === null ? [] : [el("meter", { min: 0, max: 100, value: sure, "aria-label": "Confidence" }), ` ${sure}% confident · `]),
        el("span", { cls: `check ${this.check.replaceAll(" ", "-")}`, title: CHECKS[this.check] ?? "" }, this.check), ` · stopped: ${event.stopped}`),
      ...this.otherAnswers(event.guess || event.answer));
    this.chain.replaceChildren(...event.evidence.map((item) => el("li", {},
      el("button", { type: "button", cls: "link title", onclick: () => this.show(item.passage_id) }, item.title || item.passage_id),
      el("span", { cls: item.sentence === null ? "sentence whole" : "sentence" }, this.linked(item.text, this.passages.get(item.passage_id), item.sentence)))));
    this.parts.chain.hidden = !event.evidence.length;
    this.drawGraph();
    this.say(`${this.program} answers: ${event.answer}${event.guess ? `, perhaps ${event.guess}` : ""}`);
  }

  otherAnswers(answer) {
    const others = new Map(this.others.filter((other) => other.answer !== answer).map((other) => [other.answer, other.reason]));
    return others.size ? [el("p", { cls: "others quiet" }, "Also considered: ", [...others.keys()].join(" · "))] : [];
  }

  fail(message) {
    this.end("failed");
    this.answer.replaceChildren(el("p", { cls: "error", role: "alert" }, message));
  }

  stop() {
    if (this.ended) return;
    this.end("stopped");
    this.answer.replaceChildren(el("p", { cls: "quiet" }, "Stopped."));
  }

  end(state) {
    this.ended = true;
    clearInterval(this.timer);
    this.element.className = `run ${state}`;
    this.tick();
  }

  // --- drawing ---

  tick() {
    const seconds = this.ended ? this.seconds ?? 0 : (performance.now() - this.started) / 1000;
    const costs = this.costs ?? {};
    const values = [
      [`${seconds.toFixed(1)} s`, "time"],
      [count(costs.lm_calls ?? 0, "call"), "calls of the model"],
      [count(costs.tokens ?? 0, "token"), "tokens"],
      ...(!costs.cost_usd ? [] : [[`$${costs.cost_usd.toFixed(costs.cost_usd < 1 ? 4 : 2)}`, "cost"]]),
    ];
    if (this.meters.children.length !== values.length) {
      this.meters.replaceChildren(...values.map(([, title]) => el("div", {}, el("dt", { cls: "sr" }, title), el("dd", {}))));
    }
    values.forEach(([value], n) => { this.meters.children[n].lastChild.textContent = value; });
  }

  drawPlan() {
    if (!this.plan.length) return;
    this.parts.plan.hidden = false;
    this.subs.replaceChildren(...this.plan.map(({ text, answer }) => el("li", {}, text,
      ...(answer ? [" ", el("b", {}, answer)] : []))));
  }

  drawGraph() {
    if (!this.searches.length) return;
    this.parts.graph.hidden = false;
    this.graph.draw({ searches: this.searches, passages: this.passages });
  }

  step(event, kind) {
    this.parts.steps.hidden = false;
    const inside = this.details(event.step, event.text);
    const line = [el("time", {}, `${event.seconds.toFixed(1)} s`), el("span", { cls: event.branch?.length ? "what branch" : "what" }, event.text)];
    this.steps.append(el("li", { cls: kind }, inside.length ? el("details", {}, el("summary", {}, ...line), ...inside) : el("p", {}, ...line)));
  }

  details(step, told) {
    const parts = [];
    if (step.step === "searched") {
      parts.push(el("ol", { cls: "found" }, step.found.slice(0, 20).map(([id, title], n) => el("li", {},
        el("button", { type: "button", cls: "link", onclick: () => this.show(id) }, title || id),
        el("span", { cls: "quiet" }, ` ${this.why(step.reasons[n])}`)))));
    }
    const kept = facts(step);
    if (kept.length) {
      parts.push(el("ul", {}, kept.map(([id, sentence]) => {
        const passage = this.passages.get(id);
        const text = sentence === null ? "the whole passage" : passage?.sentences[sentence] ?? "";
        return el("li", {}, el("button", { type: "button", cls: "link", onclick: () => this.show(id) }, passage?.title || id), " ", el("mark", {}, text));
      })));
    }
    for (const [name, title] of Object.entries(TEXTS)) {
      const texts = [step[name] ?? []].flat().map((text) => Array.isArray(text) ? text[0] : text).filter(Boolean);
      if (texts.length && texts.every((text) => typeof text === "string" && !told.includes(text))) parts.push(el("p", { cls: "field" }, el("b", {}, title), " ", texts.join(" · ")));
    }
    return parts;
  }

  why(reason) {
    if (!reason) return "";
    const source = this.passages.get(reason.source)?.title ?? reason.source;
    const words = reason.words.length ? ` (${reason.words.join(", ")})` : "";
    const anchor = reason.name ? ` as “${reason.name}”` : "";
    return {
      named: `the question names it: ${reason.name}${words}`,
      link: `${source} mentions it: ${reason.name}${words}`,
      back: `mentions ${source}${words}`,
      shared: `mentions ${reason.name}, as ${source} does${words}`,
      hyperlink: `${source} links to it${anchor}${words}`,
      linked: `links to ${source}${anchor}${words}`,
    }[reason.via] ?? `has words of the question${words}`;
  }

  // A sentence with the hyperlinks that stand in it: to passages of the index, and to other sites.
  linked(text, passage, sentence) {
    const parts = [];
    let done = 0;
    for (const [number, anchor, target] of passage?.links ?? []) {
      const at = number === sentence && anchor ? text.indexOf(anchor, done) : -1;
      if (at < 0) continue;
      parts.push(text.slice(done, at), this.link(anchor, target));
      done = at + anchor.length;
    }
    return [...parts, text.slice(done)];
  }

  link(text, target) {
    if (!target.startsWith("//")) return el("button", { type: "button", cls: "link", title: target, onclick: () => this.follow(target) }, text);
    const address = URL.parse(`https:${target}`); // a scheme of ours: a document cannot bring one
    return address ? el("a", { href: address.href, target: "_blank", rel: "noopener noreferrer" }, text) : text;
  }

  async follow(target) {
    try {
      const passage = await (await request(`linked?target=${encodeURIComponent(target)}`)).json();
      this.show(passage.id, this.passages.get(passage.id) ?? { kept: new Set(), ...passage });
    } catch (error) {
      this.show(target, { kept: new Set(), sentences: [error.message] });
    }
  }

  show(id, passage = this.passages.get(id)) {
    const dialog = document.getElementById("passage");
    if (!passage) return;
    dialog.querySelector("h2").textContent = passage.title || id;
    dialog.querySelector(".why").textContent = this.why(passage.reason);
    dialog.querySelector(".text").replaceChildren(...passage.sentences.flatMap((text, n) =>
      [...(passage.kept.has(n) ? [el("mark", {}, this.linked(text, passage, n))] : this.linked(text, passage, n)), " "]), passage.more ? "…" : "");
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("mark")?.scrollIntoView({ block: "center" });
  }
}

function facts(step) {
  const lists = [step.kept, step.added, step.cited];
  return lists.flatMap((list) => list ?? []);
}

// Drafted questions, one at a time: both passages beside the question, and a decision by a key.

import { el } from "./dom.js";
import { request } from "./server.js";

const at = (id) => document.getElementById(id);
let drafts = [], decisions = {}, counts = {}, current = 0;

async function start() {
  const body = await (await request("drafts")).json();
  ({ drafts, decisions } = body);
  counts = body;
  document.title = `${body.file}: questions to read`;
  current = Math.max(0, drafts.findIndex((draft) => !isDecided(draft)));
  show();
}

const isDecided = (draft) => (decisions[draft.id]?.decision ?? "open") !== "open";

function tell() {
  const left = drafts.filter((draft) => !isDecided(draft)).length;
  const accepted = `accepted: ${counts.train} to train, ${counts.test} to test`;
  at("index").textContent = `${current + 1} of ${drafts.length}, ${left} to read; ${accepted}`;
}

function show() {
  const draft = drafts[current], decision = decisions[draft.id];
  at("tie").textContent = [draft.type, draft.tie, draft.known && "answered without a passage, too"].filter(Boolean).join(" · ");
  at("question").value = decision?.question ?? draft.question;
  at("answer").value = decision?.answer ?? draft.answer;
  at("state").textContent = decision && decision.decision !== "open" ? decision.decision : "not read yet";
  at("sub-questions").replaceChildren(...(draft.sub_questions ?? []).map((text) => el("li", {}, text)));
  at("passages").replaceChildren(...(draft.read ?? []).map((passage, n) => el("article", {},
    el("h2", {}, passage.title), el("p", { cls: "quiet" }, passage.document),
    el("p", { cls: "text" }, passage.sentences.flatMap((text, i) => [i === passage.naming ? el("mark", {}, text) : text, " "])))));
  tell();
}

async function move(step) {
  const draft = drafts[current], decision = decisions[draft.id];
  const typed = { question: at("question").value.trim(), answer: at("answer").value.trim() };
  if (typed.question !== (decision?.question ?? draft.question) || typed.answer !== (decision?.answer ?? draft.answer)) {
    const isWhole = typed.question && typed.answer; // else it is no longer accepted
    if (!await save({ id: draft.id, decision: isWhole && decision ? decision.decision : "open", ...typed })) return;
  }
  current = Math.min(Math.max(current + step, 0), drafts.length - 1);
  document.activeElement?.blur();
  at("notice").hidden = true;
  show();
  scrollTo(0, 0);
}

async function decide(decision) {
  const draft = drafts[current], question = at("question").value.trim(), answer = at("answer").value.trim();
  at("notice").hidden = true;
  if (decision === "accepted" && !(question && answer)) {
    say("A question and an answer are needed.");
    return;
  }
  if (await save({ id: draft.id, decision, question, answer })) await move(1);
}

// What is typed or decided is on disk before another question is shown.
async function save(body) {
  try {
    const reply = await request("drafts", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    decisions[body.id] = body;
    counts = await reply.json();
    return true;
  } catch (error) {
    say(`Not saved: ${error.message}. Is polyhop draft --review still running?`);
    return false;
  }
}

function say(text) {
  at("notice").textContent = text;
  at("notice").hidden = false;
}

const keys = {
  a: () => decide("accepted"), r: () => decide("rejected"), j: () => move(1), k: () => move(-1),
  e: () => at("question").focus(),
};
const buttons = { accept: keys.a, reject: keys.r, next: keys.j, previous: keys.k, edit: keys.e };
for (const [id, act] of Object.entries(buttons)) at(id).addEventListener("click", act);
at("draft").addEventListener("submit", (event) => event.preventDefault());
addEventListener("keydown", (event) => {
  const isWriting = event.target.matches("input, textarea");
  if (isWriting && event.key === "Escape") event.target.blur();
  if (isWriting && event.key === "Enter" && (event.ctrlKey || event.metaKey)) keys.a();
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
start().catch((error) => say(error.message));

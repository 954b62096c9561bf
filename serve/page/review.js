// Drafted questions, one at a time: both passages beside the question, and a decision by a key.

import { count, el } from "./dom.js";
import { request } from "./server.js";

const at = (id) => document.getElementById(id);
let drafts = [], decisions = {}, current = 0;

async function start() {
  const body = await (await request("drafts")).json();
  ({ drafts, decisions } = body);
  document.title = `${body.file}: questions to read`;
  current = Math.max(0, drafts.findIndex((draft) => !isDecided(draft)));
  show();
  tell(body);
}

const isDecided = (draft) => (decisions[draft.id]?.decision ?? "open") !== "open";

function tell({ train, test }) {
  const left = drafts.filter((draft) => !isDecided(draft)).length;
  at("index").textContent = `${current + 1} of ${drafts.length}, ${left} to read; accepted: ${train} to train, ${test} to test`;
}

function show() {
  const draft = drafts[current], decision = decisions[draft.id];
  at("tie").textContent = [draft.type, draft.tie, draft.known && "answered without a passage, too"].filter(Boolean).join(" · ");
  at("question").value = decision?.question ?? draft.question;
  at("answer").value = decision?.answer ?? draft.answer;
  at("state").textContent = decision && decision.decision !== "open" ? decision.decision : "not read yet";
  at("sub-questions").replaceChildren(...(draft.sub_questions ?? []).map((text) => el("li", {}, text)));
  at("passages").replaceChildren(...(draft.read ?? []).map((passage, n) => el("article", {},
    el("h2", {}, `${n + 1}. ${passage.title}`),
    el("p", { cls: "text" }, passage.sentences.flatMap((text, i) => [i === passage.naming ? el("mark", {}, text) : text, " "])))));
}

function move(step) {
  current = Math.min(Math.max(current + step, 0), drafts.length - 1);
  document.activeElement?.blur();
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
  const body = { id: draft.id, decision, question, answer };
  try {
    const reply = await request("drafts", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    decisions[draft.id] = body;
    move(1);
    tell(await reply.json());
  } catch (error) {
    say(`Not saved: ${error.message}`);
  }
}

function say(text) {
  at("notice").textContent = text;
  at("notice").hidden = false;
}

const step = async (by) => { move(by); tell(await (await request("drafts")).json()); };
const keys = {
  a: () => decide("accepted"), r: () => decide("rejected"), j: () => step(1), k: () => step(-1),
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

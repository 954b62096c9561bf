// The page: the form, the streams of events, history, links.

import { count, el } from "./dom.js";
import { Run } from "./run.js";
import { events, request, store, stored } from "./server.js";

const $ = (id) => document.getElementById(id);
const KEPT = 20; // runs in the history
let running = [];

// --- asking ---

async function ask(question, programs) {
  stop();
  notice("");
  $("examples").hidden = true;
  const aborter = new AbortController();
  const runs = show(question, programs);
  running = [{ runs, aborter }];
  $("ask").textContent = "Stop";
  await Promise.all(runs.map(async (run) => {
    try {
      for await (const event of events("ask", JSON.stringify({ question, program: run.program }), aborter.signal)) run.feed(event);
      if (!run.ended) run.fail("The connection to the server ended.");
    } catch (error) {
      if (error.name === "AbortError") run.stop();
      else run.fail(error instanceof TypeError ? "The server cannot be reached." : error.message);
    }
  }));
  if (running[0]?.aborter === aborter) {
    running = [];
    $("ask").textContent = "Ask";
  }
  if (!aborter.signal.aborted) remember(question, runs);
}

function show(question, programs) {
  const runs = programs.map((program) => new Run(question, program, say));
  $("runs").replaceChildren(...runs.map((run) => run.element));
  $("runs").className = runs.length > 1 ? "two" : "";
  return runs;
}

function stop() {
  for (const { aborter } of running) aborter.abort();
  running = [];
  $("ask").textContent = "Ask";
}

const say = (text) => { $("live").textContent = text; };

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

// --- documents ---

async function add(files) {
  const told = [];
  for (const file of files) {
    try {
      notice([...told, `adding ${file.name} ...`].join(" · "));
      const reply = await request(`index?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      told.push(`${file.name}: ${count((await reply.json()).added, "passage")} added`);
    } catch (error) { told.push(`${file.name}: ${error.message}`); }
    notice(told.join(" · "));
  }
  $("files").value = "";
  drawIndex(await (await request("index")).json());
}

function drawIndex(state) {
  $("index").textContent = `${state.index} · ${count(state.passages, "passage")}`;
  $("add").hidden = !state.uploads;
}

// --- history and links ---

function remember(question, runs) {
  const entry = { question, when: Date.now(), runs: runs.map((run) => ({ program: run.program, events: run.events })) };
  let entries = [entry, ...stored("history", [])].slice(0, KEPT);
  while (!store("history", entries) && entries.length) entries = entries.slice(0, -1);
}

function drawHistory() {
  const entries = stored("history", []);
  $("history").querySelector("ol").replaceChildren(...entries.map((entry) => {
    const last = entry.runs.map((run) => run.events.at(-1));
    const answers = last.map((event) => event?.answer ?? event?.message ?? "").join(" | ");
    const open = () => {
      $("history").close();
      stop();
      $("examples").hidden = true;
      fill(entry.question, entry.runs.map((run) => run.program));
      show(entry.question, entry.runs.map((run) => run.program)).forEach((run, n) => entry.runs[n].events.forEach((event) => run.feed(event)));
    };
    return el("li", {}, el("button", { type: "button", cls: "link", onclick: open }, entry.question),
      el("span", { cls: "quiet" }, ` ${answers}`), el("time", { cls: "quiet" }, new Date(entry.when).toLocaleString()));
  }), ...(entries.length ? [] : [el("li", { cls: "quiet" }, "Nothing yet.")]));
}

const chosen = () => [$("program").value, $("other").value].filter(Boolean);

function fill(question, programs) {
  $("question").value = question;
  const known = (select, value) => [...select.options].some((option) => option.value === value);
  if (known($("program"), programs[0])) $("program").value = programs[0];
  $("other").value = known($("other"), programs[1]) ? programs[1] : "";
  grow();
}

function link() {
  const fields = new URLSearchParams({ q: $("question").value.trim() });
  chosen().forEach((program) => fields.append("p", program));
  return `${location.origin}${location.pathname}#${fields}`;
}

function fromLink() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.get("q")) return;
  fill(fields.get("q").slice(0, 5000), fields.getAll("p"));
  notice("This question comes from a link. Press Ask to answer it.");
}

// --- the form ---

function grow() {
  $("question").style.height = "auto";
  $("question").style.height = `${Math.min($("question").scrollHeight + 2, 240)}px`;
}

function submit(event) {
  event?.preventDefault();
  if (running.length) { stop(); return; }
  const question = $("question").value.trim();
  if (!question) { $("question").focus(); return; }
  ask(question, [...new Set(chosen())]);
}

$("form").addEventListener("submit", submit);
$("question").addEventListener("input", grow);
$("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
document.addEventListener("keydown", (event) => {
  const typing = /^(input|textarea|select)$/i.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !typing) { event.preventDefault(); $("question").focus(); }
  if (event.key === "Escape" && running.length && !document.querySelector("dialog[open]")) stop();
});
$("files").addEventListener("change", () => add([...$("files").files]));
$("share").addEventListener("click", async () => {
  history.replaceState(null, "", link());
  try {
    await navigator.clipboard.writeText(link());
    say("Link copied");
    $("share").textContent = "Copied";
    setTimeout(() => { $("share").textContent = "Copy link"; }, 1500);
  } catch { notice("Copy the address of this page."); }
});
$("history-button").addEventListener("click", () => { drawHistory(); $("history").showModal(); });
$("forget").addEventListener("click", () => { store("history", []); drawHistory(); });
for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}

async function begin() {
  try {
    const state = await (await request("index")).json();
    drawIndex(state);
    const options = (first) => [...first, ...state.programs].map((name) => el("option", { value: name }, name || "nothing"));
    $("program").replaceChildren(...options([]));
    $("other").replaceChildren(...options([""]));
    if (state.examples.length) {
      $("examples").replaceChildren(el("p", { cls: "quiet" }, "For example"), ...state.examples.map((text) =>
        el("button", { type: "button", cls: "example", onclick: () => { fill(text, chosen()); submit(); } }, text)));
      $("examples").hidden = false;
    }
    fromLink();
  } catch (error) {
    notice(error instanceof TypeError ? "The server cannot be reached." : error.message);
  }
}

window.addEventListener("hashchange", fromLink);
begin();
$("question").focus();

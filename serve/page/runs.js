// Runs of `polyhop optimize`: the sections of the report, drawn again while a run goes on.

import { el } from "./dom.js";
import { request } from "./server.js";
import "./theme.js";

const $ = (id) => document.getElementById(id);
const OFTEN = 2_000, SELDOM = 10_000; // milliseconds between two requests: of a running run, of others
let timer = 0, turn = 0, state = "";

const name = () => decodeURIComponent(location.hash.slice(1));

async function draw() {
  clearTimeout(timer);
  const now = ++turn, asked = name(), start = performance.now();
  try {
    const found = await (await request(asked ? `../runs/${encodeURIComponent(asked)}` : "../runs")).json();
    if (now !== turn) return; // another run was chosen meanwhile
    notice("");
    show(asked, found);
  } catch (error) {
    if (now !== turn) return;
    notice(error instanceof TypeError ? "The server cannot be reached." : error.message);
  }
  const active = state === "running" || state === "stopping";
  timer = setTimeout(draw, Math.max(active ? OFTEN : SELDOM, 4 * (performance.now() - start))); // slow to read: less often
}

function show(asked, found) {
  document.title = `${asked || "Runs"} · polyhop`;
  $("title").textContent = asked || "Runs";
  $("all").hidden = !asked;
  $("runs").hidden = Boolean(asked);
  if (asked) {
    if (state && state !== found.state) $("live").textContent = `${asked} is ${found.state}`;
    state = found.state;
    $("state").textContent = { running: "Running", stopping: "Stopping …" }[state] ?? "Not running";
  } else {
    state = found.runs.some((run) => run.state === "running") ? "running" : "";
    $("state").textContent = found.runs.length ? "" : "There is no run of polyhop optimize yet.";
    $("runs").replaceChildren(...found.runs.map((run) => el("li", {},
      el("a", { href: `#${encodeURIComponent(run.name)}` }, run.name), " ", el("span", { cls: run.state === "running" ? "good" : "quiet" }, run.state))));
  }
  $("state").parentElement.hidden = !$("state").textContent;
  $("stop").hidden = !asked || state !== "running";
  document.body.classList.toggle("active", state === "running");
  showSections(found.sections);
}

// A section that has not changed stays as it is, with what the reader has opened in it.
function showSections(sections) {
  const before = new Map([...$("main").querySelectorAll("section")].map((section) => [section.id, section]));
  const after = sections.map(({ name, title, html }) => {
    const kept = before.get(name);
    if (kept?.html === html) return kept;
    const section = el("section", { id: name, "aria-labelledby": `${name}-title` }, el("h2", { id: `${name}-title` }, title),
      ...new DOMParser().parseFromString(html, "text/html").body.childNodes); // the server's templates escape every text
    section.html = html;
    return section;
  });
  if (after.length !== before.size || after.some((section) => before.get(section.id) !== section)) $("main").replaceChildren($("runs"), ...after);
  reachable();
}

// What scrolls sideways can be reached with Tab.
function reachable() {
  for (const wide of $("main").querySelectorAll("figure, .scroll")) {
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
    else wide.removeAttribute("tabindex");
  }
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

$("stop").addEventListener("click", () => $("sure").showModal());
$("sure").addEventListener("close", async () => {
  const sure = $("sure").returnValue === "stop";
  $("sure").returnValue = "";
  if (!sure) return;
  try {
    await request(`../runs/${encodeURIComponent(name())}/stop`, { method: "POST" });
  } catch (error) {
    notice(error.message);
    return;
  }
  draw();
});
window.addEventListener("resize", reachable);
window.addEventListener("hashchange", () => { state = ""; draw(); });
document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else draw(); });

draw();
request("../index").then((reply) => reply.json()).then((about) => { $("ask").hidden = !about.programs.length; }).catch(() => {});

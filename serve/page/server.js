// Requests with the token, streams of events, and what the browser stores; the pages share it.

import { el } from "./dom.js";

// --- storage, which a browser may refuse ---

export function stored(name, fallback) {
  try { return JSON.parse(localStorage.getItem(`polyhop-${name}`)) ?? fallback; } catch { return fallback; }
}

export function store(name, value) {
  try { localStorage.setItem(`polyhop-${name}`, JSON.stringify(value)); return true; } catch { return false; }
}

// --- the server ---

let token = "";
try { token = sessionStorage.getItem("polyhop-token") ?? ""; } catch { /* asked for again */ }

export async function request(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const reply = await fetch(path, { ...options, headers });
  if (reply.status === 401) {
    await askForToken();
    return request(path, options);
  }
  if (!reply.ok) {
    const problem = await reply.json().catch(() => ({}));
    throw new Error(problem.error?.message ?? `The server replied with status ${reply.status}.`);
  }
  return reply;
}

let asking = null; // several requests wait for one dialog
function askForToken() {
  asking ??= new Promise((done) => {
    const input = el("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const dialog = el("dialog", { id: "key", "aria-labelledby": "key-title" }, el("form", { method: "dialog" },
      el("h2", { id: "key-title" }, "This server needs a token"), el("label", {}, "Token ", input), el("button", { cls: "main" }, "Continue")));
    dialog.addEventListener("close", () => {
      token = input.value;
      try { sessionStorage.setItem("polyhop-token", token); } catch { /* for this page only */ }
      dialog.remove();
      asking = null;
      done();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

export async function* events(path, body, signal) {
  const reply = await request(path, { method: "POST", signal, body, headers: {
    accept: "text/event-stream", "content-type": "application/json" } });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

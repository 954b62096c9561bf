// The questions: an index in columns, which is read at once, and packed details, which are read when one is opened.

const index = $("index") ? JSON.parse($("index").textContent) : { groups: [], outcomes: [] };
const parsed = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve);
  else resolve();
});

for (const asked of index.groups) {
  asked.titles = new Map(Object.entries(asked.titles)); // an id may be the name of something that every object has
  for (const run of asked.runs) {
    run.rows = new Int32Array(asked.question.length).fill(-1); // from the place of a question to its row in this run
    run.at.forEach((place, row) => (run.rows[place] = row));
    run.texts = null;
  }
}

/** What is searched of a question as one run answered it, in lower case. */
function searched(questions, run, place) {
  run.texts ??= new Array(questions.question.length);
  run.texts[place] ??= [questions.question[place], run.answer[run.rows[place]], ...questions.gold[place], questions.id[place]]
    .join("\n")
    .toLowerCase();
  return run.texts[place];
}

const KEPT = 6; // unpacked chunks; neighbours are often opened after one another
const unpacked = new Map();

/** The details of one question of a run. */
async function detailsOf(run, row) {
  const number = run.first + Math.floor(row / index.size);
  if (!unpacked.has(number)) {
    unpacked.set(number, unpack(number));
    if (unpacked.size > KEPT) unpacked.delete(unpacked.keys().next().value);
  }
  return (await unpacked.get(number))[row % index.size];
}

async function unpack(number) {
  if (!$(`chunk-${number}`)) await parsed; // the page may be used before the last chunk is there
  const bytes = Uint8Array.from(atob($(`chunk-${number}`).textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// The questions: an index in columns, parsed at once, and packed details, unpacked when a question is opened.

const index = $("index") ? JSON.parse($("index").textContent) : { groups: [], outcomes: [] };
const parsed = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve);
  else resolve();
});

for (const asked of index.groups) {
  asked.titles = new Map(Object.entries(asked.titles)); // an id may be the name of an object's own property, such as constructor
  for (const run of asked.runs) {
    run.rows = new Int32Array(asked.question.length).fill(-1); // from the place of a question to its row in this run
    run.at.forEach((place, row) => (run.rows[place] = row));
    run.texts = null;
  }
}

/** The searchable text of a question and a run's answer, in lower case. */
function searched(questions, run, place) {
  run.texts ??= new Array(questions.question.length);
  run.texts[place] ??= [questions.question[place], run.answer[run.rows[place]], ...questions.gold[place], questions.id[place]]
    .join("\n")
    .toLowerCase();
  return run.texts[place];
}

const KEPT = 6; // unpacked chunks; neighbors are often opened one after the other
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
  if (!$(`chunk-${number}`)) await parsed; // the page can be used before its last chunk is parsed
  const bytes = Uint8Array.from(atob($(`chunk-${number}`).textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

"use strict";
// Elements, the choice of questions, and the packed data of the page.

const $ = (id) => document.getElementById(id);

/** An element; its children are elements or texts, and texts are never parsed as markup. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const count = (number, one) => `${number.toLocaleString("en")} ${number === 1 ? one : `${one}s`}`;
const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(0));
const figure = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(3))));
const quiet = (text) => make("span", { class: "quiet" }, text);
const folded = (name, ...inside) => make("details", {}, make("summary", {}, name), inside);
const list = (items) => make("ul", {}, items.map((item) => make("li", {}, item)));

function table(heads, rows) {
  const head = heads.length ? make("thead", {}, make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)))) : null;
  const body = rows.map(([first, ...cells]) => make("tr", {}, make("th", { scope: "row" }, first), cells.map((cell) => make("td", {}, cell))));
  return make("div", { class: "scroll" }, make("table", {}, head, make("tbody", {}, body)));
}

// --- data ---

const index = JSON.parse($("index").textContent);
for (const asked of index.groups) {
  asked.titles = new Map(Object.entries(asked.titles)); // an id may be the name of an object's own property, such as constructor
  for (const each of asked.runs) {
    each.rows = new Int32Array(asked.question.length).fill(-1); // from the place of a question to its row in this run
    each.at.forEach((place, row) => (each.rows[place] = row));
  }
}

const unpacked = new Map();

/** The details of one question of a run; chunks are unpacked when a question is opened. */
async function detailsOf(each, row) {
  const number = each.first + Math.floor(row / index.size);
  if (!unpacked.has(number)) unpacked.set(number, unpack(number));
  return (await unpacked.get(number))[row % index.size];
}

async function unpack(number) {
  const bytes = Uint8Array.from(atob($(`chunk-${number}`).textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// --- choice of questions ---

let group = 0;

function chooseGroup(number) {
  group = number;
  if ($("group")) $("group").value = String(number);
  for (const part of document.querySelectorAll("[data-group]")) part.hidden = Number(part.dataset.group) !== number;
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.choose) === number));
  }
  showGroup();
}

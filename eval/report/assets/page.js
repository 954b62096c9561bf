"use strict";
// Shared by the whole page: elements, theme, the choice of questions, navigation, keys.

const $ = (id) => document.getElementById(id);

/** An element; its children are elements or texts, and texts are never parsed as markup. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(0));

// --- light and dark ---

const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

function showTheme() {
  $("theme").textContent = theme() === "dark" ? "Light" : "Dark";
}

function switchTheme() {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("polyhop-report-theme", theme());
  } catch {
    // storage is not available: the theme lasts until the page is closed
  }
  showTheme();
}

$("theme").addEventListener("click", switchTheme);
dark.addEventListener("change", showTheme);
showTheme();

// --- choice of questions ---

let group = 0;

function chooseGroup(number) {
  group = number;
  if ($("group")) $("group").value = String(number);
  for (const part of document.querySelectorAll("[data-group]")) part.hidden = Number(part.dataset.group) !== number;
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.choose) === number));
  }
  document.dispatchEvent(new CustomEvent("group"));
}

$("group")?.addEventListener("change", (event) => chooseGroup(Number(event.target.value)));
for (const button of document.querySelectorAll("[data-choose]")) {
  button.addEventListener("click", () => chooseGroup(Number(button.dataset.choose)));
}

// --- elements that scroll sideways can be scrolled with the keyboard ---

const sideways = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const element of document.querySelectorAll(".scroll, figure")) sideways.observe(element);

// --- sections: a row of links, or a menu where a row does not fit ---

const nav = document.querySelector("nav");
const links = new Map([...nav.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
const visible = new Set();

function fit() {
  const before = nav.classList.contains("folded");
  nav.classList.remove("folded");
  nav.classList.toggle("folded", new Set([...links.values()].map((link) => link.offsetTop)).size > 1);
  const folded = nav.classList.contains("folded");
  $("menu").hidden = !folded;
  if (folded !== before) unfold(false); // scrolling on a phone resizes the window, too
}

function unfold(opened) {
  nav.classList.toggle("open", opened);
  $("menu").setAttribute("aria-expanded", String(opened));
}

$("menu").addEventListener("click", () => unfold(!nav.classList.contains("open")));
nav.addEventListener("click", (event) => event.target.closest("a") && unfold(false));
nav.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !nav.classList.contains("open")) return;
  event.stopPropagation();
  unfold(false);
  $("menu").focus();
});
document.addEventListener("click", (event) => nav.contains(event.target) || unfold(false));
nav.addEventListener("focusout", (event) => nav.contains(event.relatedTarget ?? nav) || unfold(false));
addEventListener("resize", fit);

function markSection(entries) {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) visible.add(target.id);
    else visible.delete(target.id);
  }
  const first = [...links.keys()].find((name) => visible.has(name));
  if (first) showSection(first);
}

function showSection(current) {
  for (const [name, link] of links) {
    if (name !== current) link.removeAttribute("aria-current");
    else link.setAttribute("aria-current", "true");
  }
  $("menu").textContent = $(`${current}-title`).textContent;
}

if (links.size) showSection(links.keys().next().value);
fit();
const observer = new IntersectionObserver(markSection, { rootMargin: "-80px 0px -60% 0px" });
for (const name of links.keys()) if ($(name)) observer.observe($(name));

// --- keys ---

const keys = new Map([
  ["?", () => $("keys").showModal()],
  ["t", switchTheme],
]);

$("help").addEventListener("click", () => $("keys").showModal());

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.target.closest("input, select, textarea")) return;
  const act = keys.get(event.key);
  if (act && act(event) !== false) event.preventDefault();
});

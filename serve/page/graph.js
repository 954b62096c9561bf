// The graph of a run: searches on the left, the passages that they found, and the names that link passages.
// Wide enough, it has a column for each hop; else it is a tree.

import { el, svg } from "./dom.js";

const HEIGHT = 34, DOWN = 12, INDENT = 22, NARROWEST = 132, WIDEST = 250, LABEL = 170;
const MOST_UNUSED = 6;

export class Graph {
  // `open` is called with the id of a passage.
  constructor(open) {
    this.open = open;
    this.all = false;
    this.drawn = new Map();
    this.edges = svg("g", { class: "edges" });
    this.nodes = svg("g", { class: "nodes" });
    this.svg = svg("svg", { role: "group", "aria-label": "Passages and the names that link them" }, this.edges, this.nodes);
    this.more = el("button", { type: "button", cls: "link", onclick: () => { this.all = !this.all; this.draw(this.state); } });
    this.element = el("div", { cls: "graph" }, this.svg, this.more);
    new ResizeObserver(() => this.state && this.draw(this.state)).observe(this.element);
  }

  // state: { searches: [{ query, found: [id] }], passages: Map(id -> { title, use, reason, search, rank }) }
  draw(state) {
    this.state = state;
    const { roots, hidden } = this.tree(state);
    const depth = (node) => 1 + Math.max(0, ...node.children.map(depth));
    const columns = Math.max(2, ...roots.map(depth));
    const width = Math.max(240, this.element.clientWidth);
    const wide = Math.min(WIDEST, (0.62 * width) / columns);
    const across = Math.min(LABEL, (width - columns * wide) / (columns - 1));
    const placed = wide >= NARROWEST ? inColumns(roots, wide, across) : inTree(roots, width);
    const bottom = Math.max(0, ...placed.map((node) => node.y + HEIGHT));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${bottom + 2}`);
    this.svg.setAttribute("height", bottom + 2);
    this.place(placed, wide >= NARROWEST ? across : 0);
    this.more.hidden = !hidden && !this.all;
    this.more.textContent = this.all ? "Show less" : `Show ${hidden} more that were found`;
  }

  tree({ searches, passages }) {
    const shown = new Set(), unused = [];
    for (const [id, passage] of passages) {
      if (passage.use || this.all) shown.add(id);
      else unused.push(id);
    }
    const before = (a, b) => a.search - b.search || a.rank - b.rank;
    unused.sort((a, b) => before(passages.get(a), passages.get(b)));
    let room = Math.max(2, MOST_UNUSED - shown.size);
    for (const id of unused) if (room-- > 0) shown.add(id);
    const roots = searches.map(({ query }, n) => ({ id: `search ${n}`, title: query, kind: "search", children: [] }));
    const nodes = new Map();
    for (const id of shown) nodes.set(id, { id, ...passages.get(id), kind: passages.get(id).use || "found", children: [] });
    for (const node of nodes.values()) {
      const source = nodes.get(node.reason?.source);
      const parent = source && !within(node, source) ? source : roots[node.search];
      node.label = node.reason ? name(node.reason, parent === source) : "";
      parent?.children.push(node);
    }
    const first = { cited: 0, kept: 1, found: 2 };
    const order = (node) => {
      node.children.sort((a, b) => first[a.kind] - first[b.kind] || before(a, b));
      node.children.forEach(order);
    };
    roots.forEach(order);
    return { roots: roots.filter((root, n) => n === 0 || root.children.length), hidden: passages.size - shown.size };
  }

  place(placed, across) {
    const seen = new Set();
    this.edges.replaceChildren();
    for (const node of placed) {
      seen.add(node.id);
      let group = this.drawn.get(node.id);
      if (!group) {
        group = this.create(node);
        this.drawn.set(node.id, group);
        this.nodes.append(group);
      }
      group.setAttribute("class", `node ${node.kind}`);
      group.style.transform = `translate(${node.x}px, ${node.y}px)`;
      group.querySelector("rect").setAttribute("width", node.width);
      fit(group.querySelector("text"), node.title, node.width - 20);
      if (node.parent) this.edges.append(...edge(node, across));
    }
    for (const [id, group] of this.drawn) {
      if (!seen.has(id)) { group.remove(); this.drawn.delete(id); }
    }
    // Keyboard order is the order on the page.
    if (!this.nodes.contains(document.activeElement)) for (const node of placed) this.nodes.append(this.drawn.get(node.id));
  }

  create(node) {
    const group = svg("g", {}, svg("title"), svg("rect", { height: HEIGHT, rx: node.kind === "search" ? HEIGHT / 2 : 7 }),
      svg("text", { x: node.kind === "search" ? 14 : 10, y: HEIGHT / 2 + 4.5 }));
    group.firstChild.textContent = node.title;
    if (node.kind !== "search") {
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `Passage ${node.title}`);
      group.addEventListener("click", () => this.open(node.id));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.open(node.id); }
      });
    }
    return group;
  }
}

function within(node, other) {
  return node === other || node.children.some((child) => within(child, other));
}

function name(reason, linked) {
  if (!linked) return reason.via === "named" ? reason.name : "";
  const labels = { back: "mentioned by", shared: `shares ${reason.name}`, hyperlink: `links: ${reason.name}`, linked: "linked from" };
  return labels[reason.via] ?? reason.name;
}

function inColumns(roots, width, across) {
  const placed = [];
  let row = 0;
  const walk = (node, column, parent) => {
    const first = row;
    Object.assign(node, { parent, width, x: column * (width + across) });
    placed.push(node);
    node.children.forEach((child) => walk(child, column + 1, node));
    if (!node.children.length) row++;
    node.y = first * (HEIGHT + DOWN);
  };
  roots.forEach((root) => walk(root, 0, null));
  return placed;
}

function inTree(roots, width) {
  const placed = [];
  let y = 0;
  const walk = (node, depth, parent) => {
    if (node.label) y += 14;
    Object.assign(node, { parent, x: depth * INDENT, y, width: Math.min(width - depth * INDENT, 340) });
    y += HEIGHT + DOWN;
    placed.push(node);
    node.children.forEach((child) => walk(child, depth + 1, node));
  };
  roots.forEach((root) => walk(root, 0, null));
  return placed;
}

function edge(node, across) {
  const from = node.parent, middle = node.y + HEIGHT / 2;
  const used = node.kind === "found" ? "found" : "used";
  if (!across) {
    const x = from.x + INDENT / 2;
    const label = svg("text", { x: node.x + 2, y: node.y - 4, class: `label ${used}` });
    label.textContent = node.label;
    return [svg("path", { d: `M${x} ${from.y + HEIGHT}V${middle}H${node.x}`, class: used }), label];
  }
  const start = from.x + from.width, y = from.y + HEIGHT / 2, half = (node.x - start) / 2;
  const label = svg("text", { x: node.x - 8, y: middle - 5, class: `label ${used}`, "text-anchor": "end" });
  const path = svg("path", { d: `M${start} ${y}C${start + half} ${y} ${start + half / 2} ${middle} ${node.x} ${middle}`, class: used });
  queueMicrotask(() => fit(label, node.label, across - 18));
  return [path, label];
}

// The text, shortened to a width in pixels.
function fit(element, text, width) {
  element.textContent = text;
  if (!text || element.getComputedTextLength() <= width) return;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (element.getSubStringLength(0, middle) <= width - 10) low = middle;
    else high = middle - 1;
  }
  element.textContent = `${text.slice(0, low).trimEnd()}…`;
}

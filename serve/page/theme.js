// Light and dark; the choice is stored.

import { store, stored } from "./server.js";

function set(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

set(stored("theme", ""));
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  set(dark ? "light" : "dark");
  store("theme", document.documentElement.dataset.theme);
});

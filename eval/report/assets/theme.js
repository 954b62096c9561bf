"use strict";
// Before anything is drawn: the theme that was chosen here before, if the browser remembers it.
try {
  const theme = localStorage.getItem("polyhop-report-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a file opened where nothing may be stored
}

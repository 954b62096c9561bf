"use strict";
// Before the first paint: the theme that was chosen earlier, if the browser stored it.
try {
  const theme = localStorage.getItem("polyhop-report-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is not available
}

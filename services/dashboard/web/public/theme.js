// Runs before the first paint, so that a chosen theme does not flash the other one.
try {
  const theme = localStorage.getItem("weir.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage can be forbidden; then the system's theme stays.
}

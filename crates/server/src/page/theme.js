// Light, dark, or as the system has it: a choice of this browser's, which it keeps.
"use strict";

{
  const THEMES = ["auto", "light", "dark"];
  const KEY = "selvedge-theme";

  const stored = () => {
    try {
      const theme = localStorage.getItem(KEY);
      return THEMES.includes(theme) ? theme : "auto";
    } catch {
      // Without storage a choice holds for its page.
      return "auto";
    }
  };

  let theme = stored();

  const show = () => {
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = theme;
  };

  // Before anything is drawn, so that nothing flashes.
  show();

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => {
      button.textContent = theme;
      button.setAttribute("aria-label", `colours: ${theme}`);
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // As above.
      }
      show();
      name();
    });
    name();
  });
}

// Keeps a page as the server draws it: puts the parts that it sends in place of those there are.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const main = document.querySelector("main");
  const live = document.getElementById("live");
  let feed;

  // Nodes stay what they were where they can, so focus, scroll and selection stay too.
  function keyOf(node) {
    return node.nodeType === 1 ? node.id || node.dataset.key : undefined;
  }

  function become(have, want) {
    if (have.nodeType !== 1) {
      if (have.data !== want.data) have.data = want.data;
      return;
    }
    for (const { name, value } of want.attributes) {
      if (have.getAttribute(name) !== value) have.setAttribute(name, value);
    }
    for (const { name } of [...have.attributes]) {
      // These two are the reader's, not the server's.
      const kept = name === "open" || (name === "tabindex" && have.closest("svg"));
      if (!kept && !want.hasAttribute(name)) have.removeAttribute(name);
    }
    let at = have.firstChild;
    for (const next of [...want.childNodes]) {
      const key = keyOf(next);
      let found = at;
      if (key) while (found && keyOf(found) !== key) found = found.nextSibling;
      else if (found && keyOf(found)) found = null;
      if (!found || found.nodeName !== next.nodeName) {
        have.insertBefore(next, at);
        continue;
      }
      if (found === at) at = at.nextSibling;
      else have.insertBefore(found, at);
      become(found, next);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  // The text comes escaped from our own server.
  function parsed(text) {
    const holder = document.createElement("template");
    holder.innerHTML = text;
    return holder.content.firstElementChild;
  }

  function put({ order, parts }) {
    for (const [id, text] of Object.entries(parts)) {
      const [have, want] = [document.getElementById(id), parsed(text)];
      if (have && have.nodeName === want.nodeName) become(have, want);
      else {
        have?.remove();
        main.append(want);
      }
    }
    for (const part of [...main.children]) if (!order.includes(part.id)) part.remove();
    order.forEach((id, idx) => {
      const part = document.getElementById(id);
      if (part && main.children[idx] !== part) main.insertBefore(part, main.children[idx]);
    });
    rove();
  }

  function say(text) {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("lost", text !== "live");
  }

  // A page that nobody sees holds no connection.
  function watch() {
    if (document.hidden) {
      feed?.close();
      feed = undefined;
    } else if (!feed) {
      feed = new EventSource("/live" + location.pathname + location.search);
      feed.onmessage = (event) => {
        put(JSON.parse(event.data));
        say("live");
      };
      feed.onerror = () => {
        say("no connection");
        // A browser gives up by itself when the server answers with an error.
        if (feed?.readyState === EventSource.CLOSED) {
          feed = undefined;
          setTimeout(watch, 3000);
        }
      };
    }
  }

  // In a picture of many links one is a stop of the tab key; arrows lead to the others.
  const links = (picture) => [...picture.querySelectorAll("a")];

  function rove() {
    for (const picture of document.querySelectorAll("svg[data-keys]")) {
      const all = links(picture);
      const stop = all.find((it) => it === document.activeElement) ??
        all.find((it) => it.getAttribute("tabindex") === "0") ?? all[0];
      for (const it of all) it.setAttribute("tabindex", it === stop ? "0" : "-1");
    }
  }

  main.addEventListener("keydown", (event) => {
    const from = event.target.closest("svg[data-keys] a");
    if (!from) return;
    const picture = from.closest("svg");
    const row = Number(picture.dataset.keys);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row }[event.key];
    if (!step) return;
    const all = links(picture);
    const to = all[all.indexOf(from) + step];
    if (!to) return;
    event.preventDefault();
    from.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
  });

  rove();
  watch();
  document.addEventListener("visibilitychange", watch);
});

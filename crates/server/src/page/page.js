// Draws the live part of a page again when the feed has something to say.
"use strict";

const main = document.querySelector("main");
const link = document.getElementById("link");
const REST_MS = 400;
const IDLE_MS = 5000;

let timer;
let isDrawing = false;

function soon() {
  if (timer === undefined) timer = setTimeout(draw, REST_MS);
}

async function draw() {
  timer = undefined;
  if (isDrawing) return soon();
  isDrawing = true;
  try {
    const answer = await fetch(main.dataset.live, { headers: { accept: "text/html" } });
    if (answer.ok) put(await answer.text());
    say(answer.ok ? "live" : `no answer (${answer.status})`);
  } catch {
    say("no connection");
  }
  isDrawing = false;
}

// The text comes escaped from our own server; whoever was on a link stays on it.
function put(text) {
  const at = document.activeElement?.closest?.("main a")?.getAttribute("href");
  main.innerHTML = text;
  if (at) main.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
}

function say(text) {
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("lost", text !== "live");
}

const feed = new EventSource("/v1/events");
feed.onmessage = soon;
feed.addEventListener("gap", soon);
feed.onopen = soon;
feed.onerror = () => say("no connection");
setInterval(soon, IDLE_MS);

// Sends a dropped, chosen or pasted file and shows what comes back.
"use strict";

const at = (id) => document.getElementById(id);

// A picture wider than its box is scrolled to where the drawn way is, or begins.
function reveal() {
  const box = document.querySelector("#answer .picture");
  const ways = [...document.querySelectorAll("#answer .way")].map((it) => it.getBoundingClientRect());
  if (!box || ways.length === 0) return;
  const room = box.getBoundingClientRect();
  const left = Math.min(...ways.map((it) => it.left)) - room.left;
  const right = Math.max(...ways.map((it) => it.right)) - room.left;
  if (right <= room.width) return;
  box.scrollLeft += Math.max(0, Math.min(left - 60, (left + right - room.width) / 2));
}

async function look(name) {
  const text = at("text").value;
  if (!text.trim()) return;
  at("state").textContent = "looking …";
  try {
    const answer = await fetch("/topo/look", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/html" },
      body: JSON.stringify({
        text,
        name,
        nccl: at("nccl").value,
        nodes: Number(at("nodes").value),
        rank: at("rank").value === "" ? null : Number(at("rank").value),
        from: at("from").value,
        to: at("to").value,
      }),
    });
    const isPage = (answer.headers.get("content-type") ?? "").startsWith("text/html");
    // The text comes escaped from our own server.
    if (isPage) {
      at("answer").innerHTML = await answer.text();
      reveal();
    } else at("answer").textContent = (await answer.json()).error;
    at("state").textContent = answer.ok ? name : "";
  } catch {
    at("state").textContent = "no connection";
  }
}

let chosen = "";

async function take(file) {
  if (!file) return;
  chosen = file.name;
  at("text").value = await file.text();
  look(chosen);
}

at("file").addEventListener("change", () => take(at("file").files[0]));
at("text").addEventListener("input", () => { chosen = ""; });
at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  look(chosen);
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  at("text").classList.add("over");
});
document.addEventListener("dragleave", () => at("text").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  at("text").classList.remove("over");
  take(event.dataTransfer.files[0]);
});

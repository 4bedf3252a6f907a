// Refreshes a page that somebody looks at, and listens to keys. Everything on
// the page works without it.
"use strict";

const main = document.getElementById("main");
const keys = document.getElementById("keys");
const EVERY = 5000;

const rows = () => [...main.querySelectorAll("[data-row]")];
const link = (row) => row.querySelector("a.name, a");
let at = -1;

function choose(to) {
  const all = rows();
  if (all.length === 0) return;
  all.forEach((row) => row.classList.remove("chosen"));
  at = Math.max(0, Math.min(all.length - 1, to));
  const row = all[at];
  row.classList.add("chosen");
  row.scrollIntoView({ block: "nearest" });
  const target = row.matches("tr, li") ? link(row) : row.querySelector("summary") || row;
  if (target) target.focus({ preventScroll: true });
}

function follow(selector) {
  const to = document.querySelector(selector);
  if (to) to.click();
}

const actions = {
  j: () => choose(at + 1),
  k: () => choose(at - 1),
  n: () => follow("a[rel=next]"),
  p: () => follow("a[rel=prev]"),
  u: () => follow("[data-up]"),
  r: () => refresh(true),
  "?": () => (keys.open ? keys.close() : keys.showModal()),
  "/": () => {
    const field = document.getElementById("search");
    if (field) field.focus();
    else follow("nav.tabs a:last-child");
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (keys.open && event.key !== "?") return;
  const act = actions[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

const show = document.getElementById("show-keys");
show.hidden = false;
show.addEventListener("click", actions["?"]);

// Nothing is taken away from somebody who is reading or writing.
function busy() {
  return document.hidden || keys.open || main.querySelector("details[open], :focus");
}

async function refresh(asked) {
  if (!main.hasAttribute("data-live") || (!asked && busy())) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) return;
    const text = await answer.text();
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
    if (fresh && (asked || !busy()) && fresh.innerHTML !== main.innerHTML) {
      main.replaceChildren(...fresh.childNodes);
      at = -1;
    }
  } catch {
    // The proxy is away; the next time may do better.
  }
}

if (main.hasAttribute("data-live")) setInterval(() => refresh(false), EVERY);

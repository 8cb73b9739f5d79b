"use strict";
// The reader of episodes. Everything that a model wrote goes into the page as textContent or as a
// number, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const list = byId("list"), view = byId("episode"), search = byId("search");
const tagButtons = [...document.querySelectorAll("button[data-tag]")];
const SHADES = ["surprise", "loss", "none"];

let visible = data.episodes.map((_, place) => place);
let current = -1;
let shade = "surprise";

// An element with a class and children; strings become text.
function make(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const signed = (value) => (value === null ? "–" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3).replace(/\.?0+$/, ""));
const colour = (role) => "c" + (Math.max(0, data.roles.indexOf(role)) % 8);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function pairs(title, entries) {
  if (!entries.length) return null;
  const rows = entries.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value)));
  return make("details", "", make("summary", "small", title), make("dl", "columns pairs", ...rows));
}

function marks(items) {
  return items.length ? make("div", "marks", ...items.map(([text, tone]) => make("span", "mark " + tone, text))) : null;
}

// Long texts scroll, so the keyboard must be able to reach them.
function textBlock(label, ...children) {
  const block = make("pre", "text", ...children);
  block.tabIndex = 0;
  block.setAttribute("role", "region");
  block.setAttribute("aria-label", label);
  return block;
}

const LEVELS = 16;
const surprise = (logprob) => Math.round(LEVELS * (1 - Math.exp(Math.min(0, logprob))));

// Every token is there, also one that only begins a character and has no text of its own.
function tokens(piece) {
  return piece.tokens.map((text, place) => {
    const token = document.createElement("span");
    token.className = `tok s${surprise(piece.logprobs[place])}` + (text === "" ? " none" : /^\n+$/.test(text) ? " line" : "");
    token.textContent = text;
    token.dataset.at = place;
    return token;
  });
}

// What the update does with a turn's tokens: which way, and how strongly.
function paintLoss(block, trace, bonus) {
  const paint = (element, advantage) => {
    element.style.setProperty("--hue", advantage < 0 ? "var(--minus)" : "var(--plus)");
    element.style.setProperty("--strength", advantage ? (0.12 + 0.5 * Math.min(1, Math.abs(advantage * trace.weight) / 2)).toFixed(3) : 0);
  };
  paint(block, trace.advantage);
  // Read again after a hint, tokens have advantages of their own.
  block.querySelectorAll(".tok").forEach((token, place) => { if (bonus[place]) paint(token, trace.advantage + bonus[place]); });
}

const chance = (logprob) => { const p = Math.exp(Math.min(0, logprob)); return p > 0.999 ? "p > .999" : p < 0.001 ? "p < .001" : "p " + p.toFixed(3).replace(/^0/, ""); };
const quoted = (text) => "“" + text.replaceAll("\n", "⏎") + "”";

function sampledPiece(piece, trace, turn) {
  const label = `${trace.agent}, sampled turn ${turn}`;
  const order = piece.logprobs.map((value, place) => [value, place]).sort((a, b) => a[0] - b[0]);
  const least = order.filter(([value]) => Math.exp(value) < 0.9).slice(0, 3).map(([value, place]) => `${quoted(piece.tokens[place])} ${chance(value)}`);
  const mean = piece.logprobs.length ? piece.logprobs.reduce((sum, value) => sum + value, 0) / piece.logprobs.length : 0;
  const block = textBlock(label, ...tokens(piece));
  if (piece.loss) paintLoss(block, trace, piece.bonus);
  const probe = make("p", "small", "");
  probe.textContent = [plural(piece.tokens.length, "token"), `mean log p ${signed(mean)}`, piece.finish && `ended: ${piece.finish}`].filter(Boolean).join(" · ")
    + (least.length ? " · least likely: " + least.join(", ") : "");
  const standing = probe.textContent;
  // The same line tells of the token under the pointer or the finger.
  const show = (event) => {
    const token = event.target.closest(".tok");
    block.querySelector(".hold")?.classList.remove("hold");
    if (!token) return;
    token.classList.add("hold");
    const place = Number(token.dataset.at);
    probe.textContent = `token ${place + 1} of ${piece.tokens.length}: ${quoted(piece.tokens[place])} · ${chance(piece.logprobs[place])} · log p ${signed(piece.logprobs[place])}` + (piece.bonus[place] ? ` · advantage ${signed(piece.bonus[place])}` : "");
  };
  block.addEventListener("pointerover", show);
  block.addEventListener("click", show);
  block.addEventListener("pointerleave", () => { block.querySelector(".hold")?.classList.remove("hold"); probe.textContent = standing; });
  return make("div", `piece sampled ${piece.loss ? "loss" : ""} ${colour(trace.role)}`, make("span", "", `turn ${turn}: sampled`), block, probe);
}

const LABELS = { given: "given", written: "written", text: "" };

function pieces(trace) {
  let turn = 0;
  return trace.pieces.map((piece, place) => {
    if (piece.kind === "sampled") return sampledPiece(piece, trace, ++turn);
    const label = piece.kind === "given" && place ? "given back" : LABELS[piece.kind];
    return make("div", `piece ${piece.kind} ${colour(trace.role)}`, label && make("span", "", label), textBlock(`${trace.agent}, ${label}`, piece.text));
  });
}

function terms(trace) {
  const paid = trace.terms.filter(([, value]) => value);
  const unpaid = trace.terms.filter(([, value]) => !value).map(([name]) => name);
  const parts = [];
  if (paid.length) {
    const most = Math.max(1, ...paid.map(([, value]) => Math.abs(value)));
    const rows = paid.map(([name, value]) => {
      const meter = make("span", "meter " + (value < 0 ? "c6" : "c7"));
      meter.style.setProperty("--part", (100 * Math.abs(value) / most).toFixed(1) + "%");
      const number = make("th", "", signed(value));
      const head = make("th", "", name);
      head.scope = "row";
      return make("tr", "", head, make("td", "", meter), number);
    });
    const table = make("table", "terms", make("tbody", "", ...rows));
    table.setAttribute("aria-label", `reward terms of ${trace.agent}`);
    parts.push(table);
  }
  if (unpaid.length) parts.push(make("p", "small", "reward 0: " + unpaid.join(", ")));
  return parts;
}

function confidence(trace) {
  if (trace.confidence === null) return null;
  const meter = make("meter", "");
  meter.min = 0; meter.max = 1; meter.value = trace.confidence;
  meter.setAttribute("aria-label", "stated confidence");
  return make("div", "confidence", make("span", "", "confidence"), meter, make("b", "", trace.confidence.toFixed(2)));
}

function card(trace) {
  const items = [...trace.marks];
  if (trace.status !== "ok") items.unshift(["failed", "bad"]);
  if (trace.answer !== null) items.push(["answer " + trace.answer, ""]);
  return make("section", "card" + (trace.loss ? "" : " mute"),
    make("h5", colour(trace.role), make("span", "", make("i", ""), trace.agent), make("b", "", "reward " + signed(trace.reward))),
    marks(items), confidence(trace), ...terms(trace), make("p", "small", trace.update), ...pieces(trace),
    pairs("All measurements", trace.info));
}

function goldBlock(gold) {
  return gold && make("div", "gold", make("p", "small", gold.label), textBlock("reference answer", gold.text));
}

function hintBlock(hint) {
  const said = `hint for ${hint.to}` + (hint.again ? ", after which its traces are read again" : "") + (hint.by && `, taught by ${hint.by}`);
  return make("div", "consult", make("p", "small", said), textBlock(`hint for ${hint.to}`, hint.text));
}

function roundBlock(calls, place) {
  const blocks = calls.map((call) => {
    const tone = call.fate === "accepted" ? "good" : "warn";
    const items = [[call.fate, tone]];
    if (call.states_gold) items.push(["states the answer", "warn"]);
    return make("div", "", make("p", "small", `expert ${call.expert} is asked`), textBlock("query", call.query), marks(items),
      call.result === null ? null : textBlock("result", call.result));
  });
  return make("div", "consult", make("p", "small", `consult ${place + 1}: ${plural(calls.length, "call")}`), ...blocks);
}

function drawing(shown) {
  const parts = shown.parts.map(([name, text]) => make("div", "drawing " + colour(name), make("p", "small", name), textBlock(`${shown.title}, ${name}`, text)));
  return make("section", "", make("h4", "", shown.title), ...parts);
}

function cascade(outcomes) {
  if (!outcomes.length) return null;
  const rows = outcomes.map((outcome, place) => pairs(`Question ${place + 1}`, outcome));
  return make("details", "", make("summary", "small", `The cascade: ${plural(outcomes.length, "outcome")}`), ...rows);
}

function showEpisode(episode, place) {
  const before = make("button", "", "← previous"), after = make("button", "", "next →");
  before.addEventListener("click", () => move(-1));
  after.addEventListener("click", () => move(1));
  before.disabled = visible.indexOf(place) <= 0;
  after.disabled = visible.indexOf(place) === visible.length - 1;
  const phases = new Map();
  for (const trace of episode.traces) phases.set(trace.phase, [...(phases.get(trace.phase) ?? []), trace]);
  const groups = [...phases].flatMap(([phase, traces]) => [make("h4", "", phase || "Traces"), make("div", "cards", ...traces.map(card))]);
  const title = make("h3", episode.state ? "state" : "", episode.problem);
  const seed = make("span", "", episode.seed.length > 8 ? "seed …" + episode.seed.slice(-6) : "seed " + episode.seed);
  seed.title = "seed " + episode.seed;
  view.replaceChildren(
    make("div", "move", before, after, make("span", "note", `step ${episode.step} · ${episode.mode} · `, seed)),
    title, marks(episode.tags.map((tag) => [tag, ""])) ?? "",
    goldBlock(episode.gold) ?? "", ...episode.hints.map(hintBlock), ...episode.consults.map(roundBlock), ...episode.drawings.map(drawing),
    ...[cascade(episode.cascade), pairs("Measurements of the episode", episode.facts)].filter(Boolean), ...groups);
}

function select(place, { scroll = true } = {}) {
  current = place;
  if (place < 0) {
    view.replaceChildren(make("p", "empty", "No episode matches the filter."));
    return;
  }
  showEpisode(data.episodes[place], place);
  for (const button of list.querySelectorAll("button")) button.removeAttribute("aria-current");
  const button = list.querySelector(`button[data-place="${place}"]`);
  button?.setAttribute("aria-current", "true");
  if (scroll) {
    button?.scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", "#episode-" + place);
    reveal();
  }
}

// The episode's beginning stands in the upper half of the window.
function reveal() {
  const top = view.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) view.scrollIntoView({ behavior: "instant" });
}

function move(by) {
  const next = visible[visible.indexOf(current) + by];
  if (next === undefined) return;
  const inList = list.contains(document.activeElement), inView = view.contains(document.activeElement);
  select(next);
  // Whoever holds the focus loses it with the episode that goes.
  if (inList) list.querySelector("[aria-current]").focus();
  else if (inView) view.focus({ preventScroll: true });
}

// All text of an episode in lower case, made when it is first searched.
const haystacks = [];
function haystack(place) {
  if (haystacks[place] === undefined) {
    const texts = [];
    const collect = (value) => {
      if (typeof value === "string") texts.push(value);
      else if (Array.isArray(value)) value.forEach(collect);
      else if (value && typeof value === "object") {
        if (value.tokens) texts.push(value.tokens.join(""));
        else Object.values(value).forEach(collect);
      }
    };
    collect(data.episodes[place]);
    haystacks[place] = texts.join("\n").toLowerCase();
  }
  return haystacks[place];
}

function filter() {
  const wanted = tagButtons.filter((button) => button.ariaPressed === "true").map((button) => button.dataset.tag);
  const text = search.value.trim().toLowerCase();
  visible = data.episodes.flatMap((episode, place) =>
    wanted.every((tag) => episode.tags.includes(tag)) && (!text || haystack(place).includes(text)) ? [place] : []);
  list.replaceChildren(...visible.map((place) => {
    const episode = data.episodes[place];
    const button = make("button", "", make("span", "", episode.problem.replaceAll("\n", " / ")),
      make("small", "", [`step ${episode.step}`, `reward ${signed(episode.reward)}`, ...episode.tags].join(" · ")));
    button.type = "button";
    button.dataset.place = place;
    button.addEventListener("click", () => { select(place); reveal(); });
    return make("li", "", button);
  }));
  byId("shown").textContent = `${visible.length} of ${data.episodes.length} shown`;
  select(visible.includes(current) ? current : visible[0] ?? -1, { scroll: false });
}

// (text, its class, its hue)
const LEGENDS = {
  surprise: [["likely", "s0"], ["p .5", "s8"], ["unlikely", "s15"]],
  loss: [["less likely next time", "", "var(--minus)"], ["more likely next time", "", "var(--plus)"]],
  none: [],
};

function setShade(name) {
  shade = view.dataset.shade = byId("legend").dataset.shade = name;
  document.querySelector(`input[name=shade][value=${name}]`).checked = true;
  byId("legend").replaceChildren(...LEGENDS[name].flatMap(([text, level, hue]) => {
    const swatch = make("span", "tok " + level, text);
    if (hue) {
      swatch.style.setProperty("--hue", hue);
      swatch.style.setProperty("--strength", 0.4);
    }
    return [swatch, " "];
  }), "underlined: carries loss");
}

function onKey(event) {
  const typing = event.target.matches("input[type=search]");
  if (event.key === "Escape" && typing) {
    search.value = "";
    filter();
    search.blur();
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const inList = list.contains(event.target);
  const radio = event.target.matches("input[type=radio]");
  const steps = { j: 1, k: -1, ...(radio ? {} : { ArrowRight: 1, ArrowLeft: -1 }), ...(inList ? { ArrowDown: 1, ArrowUp: -1 } : {}) };
  if (event.key in steps) move(steps[event.key]);
  else if (event.key === "/") { search.focus(); search.select(); }
  else if (event.key === "s") setShade(SHADES[(SHADES.indexOf(shade) + 1) % SHADES.length]);
  else return;
  event.preventDefault();
}

if (data.episodes.length) {
  byId("filters").hidden = byId("reader").hidden = false;
  search.addEventListener("input", filter);
  for (const button of tagButtons) button.addEventListener("click", () => { button.ariaPressed = String(button.ariaPressed !== "true"); filter(); });
  for (const radio of document.querySelectorAll("input[name=shade]")) radio.addEventListener("change", () => setShade(radio.value));
  document.addEventListener("keydown", onKey);
  const follow = () => {
    const place = Number(/^#episode-(\d+)$/.exec(location.hash)?.[1] ?? NaN);
    if (!data.episodes[place]) return;
    search.value = "";
    for (const button of tagButtons) button.ariaPressed = "false";
    current = place;
    filter();
    list.querySelector("[aria-current]").scrollIntoView({ block: "nearest", behavior: "instant" });
    view.scrollIntoView({ behavior: "instant" });
  };
  addEventListener("hashchange", follow);
  // Where the page was left is no place for who follows a link.
  if (location.hash.startsWith("#episode-")) history.scrollRestoration = "manual";
  filter();
  setShade(shade);
  requestAnimationFrame(follow);
}

// The values of every line at the step under the pointer.
document.querySelectorAll("svg.curve").forEach((svg, place) => {
  const { first, last, margin, left, series } = data.charts[place];
  const cursor = svg.querySelector(".cursor"), readout = svg.parentElement.querySelector(".readout");
  const width = svg.viewBox.baseVal.width, right = 14;
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const at = first + (last - first) * ((event.clientX - box.left) / box.width * width - left) / (width - left - right);
    const steps = [...new Set(series.flatMap((one) => one.steps))];
    const step = steps.reduce((best, one) => (Math.abs(one - at) < Math.abs(best - at) ? one : best));
    const x = left + (width - left - right) * (step - first) / Math.max(1, last - first);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.style.visibility = "visible";
    const name = margin ? `steps ${Math.ceil(step - margin)} to ${Math.min(last, Math.floor(step + margin))}` : `step ${step}`;
    readout.textContent = name + ": " + series.filter((one) => one.steps.includes(step)).map((one) => `${one.name} ${one.values.filter((_, at) => one.steps[at] === step).join(" → ")}`).join(", ");
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => { cursor.style.visibility = "hidden"; readout.textContent = "\u00a0"; });
});

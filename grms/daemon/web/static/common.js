// What the pages share: elements, words for numbers, and the line to the daemon.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an element with attributes and children; text is never read as markup. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for pictures. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** Returns a time span in words; small ones in milliseconds. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const sign = seconds < 0 ? "−" : "";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.9995) return `${sign}${(size * 1000).toPrecision(2) * 1} ms`;
  if (size < 99.5) return `${sign}${number(size, size < 9.95 ? 1 : 0)} s`;
  if (size < 5970) return `${sign}${Math.round(size / 60)} min`;
  if (size < 48 * 3600) return `${sign}${number(size / 3600, 1)} h`;
  return `${sign}${number(size / 86400, 1)} days`;
}

/** Returns a moment of the site's clock in words. */
export function moment(seconds, site) {
  if (seconds === null || seconds === undefined) return "–";
  if (site && site.clock !== "wall") return clockTime(seconds);
  const date = new Date(seconds * 1000);
  const day = new Date().toDateString() === date.toDateString() ? "" : `${date.toLocaleDateString("en-CA")} `;
  return day + date.toLocaleTimeString("en-GB");
}

function clockTime(seconds) {
  const days = Math.floor(seconds / 86400);
  const rest = Math.floor(seconds - days * 86400);
  const two = (value) => String(value).padStart(2, "0");
  const text = `${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
  return `day ${days} ${text}`;
}

/** Returns a day of the calendar. */
export function day(seconds) {
  return seconds === null || seconds === undefined ? "–" : new Date(seconds * 1000).toLocaleDateString("en-CA");
}

export async function get(address) {
  const answer = await fetch(address, { credentials: "same-origin" });
  if (!answer.ok && answer.status !== 404) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

/** Calls a function with what the daemon tells, and shows whether it can be heard. */
export function listen(told) {
  const live = document.getElementById("live");
  const source = new EventSource("events");
  const show = (on, text) => {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("on", on);
  };
  source.addEventListener("open", () => show(true, "live"));
  source.addEventListener("error", () => show(false, "not connected; trying again"));
  source.addEventListener("now", (event) => told(JSON.parse(event.data)));
  addEventListener("pagehide", () => source.close());
}

/** Returns a function that is called at most so often, the last call always among them. */
export function calm(action, pause = 500) {
  let due = 0;
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(
      async () => {
        try {
          await action();
        } catch {
          // The line to the daemon says whether it is there; what is shown stays meanwhile.
        }
        waiting = false;
        due = performance.now() + pause;
      },
      Math.max(0, due - performance.now()),
    );
  };
}

/** Replaces the children of an element, but not where nothing would change. */
export function replace(parent, ...children) {
  const next = document.createElement("div");
  next.append(...children);
  if (next.innerHTML === parent.innerHTML) return;
  const focused = document.activeElement?.dataset?.focus;
  parent.replaceChildren(...next.childNodes);
  if (focused) parent.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

/**
 * Returns a table.
 *
 * heads: names of the columns, each with the class of its cells.
 * rows: for each the content of its head, and of each cell attributes and content.
 */
export function table(kind, label, heads, rows) {
  const row = (cells) => el("tr", { role: "row" }, ...cells);
  const head = row(heads.map(([name, words]) => el("th", { scope: "col", role: "columnheader", class: words }, ...[name].flat())));
  const body = rows.map(([name, ...cells]) =>
    row([
      el("th", { scope: "row", role: "rowheader" }, ...[name].flat()),
      ...cells.map(([attributes, ...content]) => el("td", { role: "cell", ...attributes }, ...content)),
    ]),
  );
  return el("table", { class: kind, role: "table", "aria-labelledby": label }, el("thead", { role: "rowgroup" }, head), el("tbody", { role: "rowgroup" }, ...body));
}

/** Returns a figure of the row of figures below a headline. */
export function figure(name, value, small = "") {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value, small ? el("small", {}, small) : null));
}

/** Returns the class of a colour for a site; the own site has the first. */
export function tone(name, site, partners) {
  if (!name) return "t7";
  if (name === site) return "t0";
  const index = partners.indexOf(name);
  return index < 0 ? "t7" : `t${1 + (index % 6)}`;
}

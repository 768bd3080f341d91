// The page of a broker: when it plans next, what is planned, and how the workflows do.

import { el, figure, get, listen, moment, number, replace, span, svg, table } from "./common.js";

const page = (id) => document.getElementById(id);

let about = null;
let now = null;
let heard = 0;

/** Returns the broker's time now: what it told last, and what has passed since. */
function clock() {
  return now.now_s + ((performance.now() - heard) / 1000) * about.speed;
}

function showNext() {
  let text = "Nothing waits for a plan.";
  if (now.searching) text = `Plan ${now.searching} is being searched, because of ${now.reason}.`;
  else if (now.next_plan_s !== null) {
    const left = (now.next_plan_s - clock()) / about.speed;
    text = left > 0.5 ? `It plans again in ${span(Math.round(left))}.` : "It plans now.";
  }
  if (page("next").textContent !== text) page("next").textContent = text;
}

function show() {
  const plan = now.plan;
  const running = new Set(now.bars.filter((bar) => bar.state === "running").map((bar) => `${bar.workflow}/${bar.task}`));
  const figures = [
    ["Open tasks", number(now.tasks_open)],
    ["Running", number(running.size)],
    ["Last plan", plan ? `${number(plan.number)}` : "–"],
    ["Its fitness", plan && plan.fitness !== null ? number(plan.fitness) : "–"],
    ["Without a place", plan ? number(plan.unplanned.length) : "–"],
    ["Clock", moment(now.now_s, about)],
  ];
  replace(page("figures"), ...figures.map(([name, value]) => figure(name, value)));
  const notice = page("notice");
  notice.hidden = now.sites_down.length === 0;
  notice.textContent = notice.hidden ? "" : `These sites do not answer: ${now.sites_down.join(", ")}.`;
  const hidden = now.bars_all - now.bars.length;
  page("about").textContent = now.bars.length
    ? `A row for each resource; the line is now. Bars that are outlined are planned, full ones are reserved, run or have run.${now.transfers.length ? " Rows with an arrow are files on their way from one site to another." : ""}${hidden ? ` ${number(hidden)} later ones are not shown.` : ""}`
    : "Nothing is planned.";
  showChart();
  showWorkflows();
}

function showChart() {
  if (!now.bars.length) {
    replace(page("plan"));
    replace(page("legend"));
    return;
  }
  const resources = [...new Set(now.bars.map((bar) => bar.resource))].sort();
  const links = [...new Set(now.transfers.map((bar) => bar.link))].sort();
  const names = [...resources, ...links];
  const workflows = [...new Set(now.bars.map((bar) => bar.workflow))].sort();
  const all = [...now.bars, ...now.transfers];
  const from = Math.min(now.now_s, ...all.map((bar) => bar.begin_s));
  const to = Math.max(now.now_s, ...all.map((bar) => bar.end_s));
  const lanes = [
    ...resources.map((resource) => stacked(now.bars.filter((bar) => bar.resource === resource))),
    ...links.map((link) => stacked(now.transfers.filter((bar) => bar.link === link))),
  ];
  const width = Math.max(320, Math.round(page("plan").clientWidth));
  const left = Math.min(160, width * 0.28);
  const lane = 18;
  const gap = 8;
  const height = lanes.reduce((sum, each) => sum + each.count * lane + gap, 0) + 26;
  const x = (time) => left + ((time - from) / Math.max(1e-9, to - from)) * (width - left - 10);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${number(now.bars_all)} tasks on ${number(resources.length)} resources${links.length ? `, and ${number(now.transfers.length)} transfers` : ""}` });
  let top = 0;
  names.forEach((name, index) => {
    const { count, rows } = lanes[index];
    chart.append(
      svg("path", { class: "grid", d: `M0 ${top + count * lane + gap / 2}H${width}` }),
      svg("text", { class: "name", x: 0, y: top + 14 }, name.length > 20 ? `${name.slice(0, 19)}…` : name),
    );
    for (const [bar, row] of rows) {
      const what = bar.link ? `${bar.size} for ${bar.workflow}/${bar.task}, ${name}` : `${bar.workflow}/${bar.task} on ${name}`;
      const words = `${what}: ${bar.state}, ${moment(bar.begin_s, about)} to ${moment(bar.end_s, about)}${bar.reason ? `; ${bar.reason}` : ""}`;
      chart.append(
        svg(
          "rect",
          { class: `bar t${workflows.indexOf(bar.workflow) % 8} ${bar.state}`, x: x(bar.begin_s), y: top + row * lane + 2, width: Math.max(1.5, x(bar.end_s) - x(bar.begin_s)), height: lane - 4, rx: 2 },
          svg("title", {}, words),
        ),
      );
    }
    top += count * lane + gap;
  });
  chart.append(svg("path", { class: "here", d: `M${x(now.now_s)} 0V${top}` }));
  const ticks = width > 700 ? 4 : 1;
  for (let index = 0; index <= ticks; index += 1) {
    const time = from + ((to - from) * index) / ticks;
    chart.append(svg("text", { x: x(time), y: height - 6, "text-anchor": index === 0 ? "start" : index === ticks ? "end" : "middle" }, moment(time, about)));
  }
  replace(page("plan"), chart);
  replace(page("legend"), ...workflows.slice(0, 16).map((name, index) => el("span", {}, el("span", { class: `swatch t${index % 8}` }), name)));
}

/** Returns bars with the lane of each, so that none covers another. */
function stacked(bars) {
  const ends = [];
  const rows = bars.map((bar) => {
    let row = ends.findIndex((end) => end <= bar.begin_s);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = bar.end_s;
    return [bar, row];
  });
  return { count: ends.length, rows };
}

const COLUMNS = [
  ["state", (each) => (each.open ? `${each.state}, open` : each.state)],
  ["tasks ended", (each) => `${number(each.tasks_ended)} of ${number(each.tasks)}`],
  ["received", (each) => moment(each.submit_time_s, about)],
  ["due", (each) => moment(each.due_date_s, about)],
  ["ends", (each) => moment(each.end_time_s, about)],
];

function showWorkflows() {
  if (!now.workflows.length) {
    replace(page("workflows"), el("p", { class: "note" }, "There are none."));
    return;
  }
  const late = (each) => each.due_date_s !== null && each.end_time_s !== null && each.end_time_s > each.due_date_s;
  const rows = now.workflows.map((each) => [
    each.name,
    ...COLUMNS.map(([name, cell]) => {
      const bad = name === "ends" && late(each);
      return [{ "data-label": name }, el("span", { class: bad ? "bad" : false }, cell(each), bad ? " (late)" : "")];
    }),
  ]);
  replace(page("workflows"), table("cards", "workflows-title", [["workflow"], ...COLUMNS.map(([name]) => [name])], rows));
}

function take(told) {
  now = told;
  heard = performance.now();
  showNext();
  show();
}

async function begin() {
  about = await get("api/site");
  take(await get("api/plan"));
  setInterval(showNext, 500);
  addEventListener("resize", showChart);
  listen(take);
}

begin().catch((error) => {
  page("notice").textContent = `The broker's daemon does not answer: ${error.message}`;
  page("notice").hidden = false;
});

// The page of a site: its load, its partners, its jobs.

import { accountOverTime, overTime } from "./charts.js";
import { calm, day, el, figure, get, listen, moment, number, replace, span, svg, table, tone } from "./common.js";

const WINDOWS = [120, 900, 3600, 6 * 3600, 24 * 3600];
const KINDS = [["all", "all"], ["open", "not ended"], ["home", "at home"], ["away", "at partners"], ["guests", "of partners"]];
const page = (id) => document.getElementById(id);

let site = null;
let now = null;
let samples = [];
let jobs = null;
let account = null;
const chosen = { window: 0, kind: "all", limit: 60 };

function spanShown() {
  return WINDOWS[chosen.window] * site.speed;
}

// --- now -------------------------------------------------------------------------------------

function showNow() {
  const sample = now.sample;
  page("title").textContent = site.site;
  const transfer = [...new Set(Object.values(site.transfer))].join(", ") || "no partners";
  page("about").textContent = `${number(site.processors)} processors; transfer policy ${transfer}; partners are asked in the order ${site.location}.`;
  const notice = page("notice");
  const problems = [];
  if (now.draining) problems.push("The site takes no work: an operator has it drain.");
  if (now.lost) problems.push(`This page was too slow and has missed ${number(now.lost)} notes; stories may lack parts.`);
  if (site.certificate_end_s && site.certificate_end_s - site.wall_s < 14 * 86400) problems.push(`The site's certificate ends on ${day(site.certificate_end_s)}.`);
  notice.textContent = problems.join(" ");
  notice.hidden = problems.length === 0;
  const busy = sample && sample.processors !== null ? sample.processors - sample.processors_free : null;
  const guests = now.partners.reduce((sum, each) => sum + each.guests_open, 0);
  const away = now.partners.reduce((sum, each) => sum + each.open, 0);
  replace(
    page("figures"),
    figure("Processors busy", number(busy), busy === null ? "" : ` of ${number(sample.processors)}`),
    figure("Utilization", busy === null ? "–" : `${number((100 * busy) / sample.processors)} %`),
    figure("Processors waited for", sample ? number(sample.processors_waiting) : "–"),
    figure("Own jobs open", sample ? number(sample.jobs_open) : "–", away ? `, ${number(away)} at partners` : ""),
    figure("Partners' jobs here", number(guests)),
    figure("Clock", sample ? moment(sample.time_s, site) : "–"),
  );
}

// --- charts ----------------------------------------------------------------------------------

function showCharts() {
  const to = now.sample?.time_s ?? 0;
  const from = Math.max(to - spanShown(), Math.min(samples[0]?.time_s ?? to, to - 30 * site.speed));
  const width = Math.max(320, Math.round(page("charts").clientWidth));
  const rows = samples.filter((each) => each.time_s >= from);
  const share = rows.map((each) => ({
    time: each.time_s,
    value: each.processors ? (100 * (each.processors - each.processors_free)) / each.processors : null,
  }));
  const queue = rows.map((each) => ({ time: each.time_s, value: each.processors_waiting }));
  replace(
    page("charts"),
    overTime({ name: "Utilization", unit: " %", tone: "t0", points: share, from, to, most: 100, width, site }),
    overTime({ name: "Processors waited for", unit: "", tone: "t1", points: queue, from, to, width, site }),
  );
}

async function loadHistory() {
  samples = (await get(`api/history?span=${spanShown()}`)).samples;
  showCharts();
}

// --- the account of strict exchange ----------------------------------------------------------

const DAYS_SHOWN = 30;

function hours(value) {
  return value === null ? "–" : number(value, Math.abs(value) < 100 ? 1 : 0).replace("-", "−");
}

function showAccount() {
  const found = now.account;
  page("account").hidden = !found;
  if (!found) return;
  const turned = found.turned_owed_hours === null ? "" : `; then ${hours(found.turned_owed_hours)} h were lost by waiting jobs, ${hours(found.turned_saved_hours)} h saved`;
  const since = found.since_s === null ? "from the beginning" : `since ${moment(found.since_s, site)}${turned}. It has turned ${number(found.turns)}×`;
  const credit = el("span", { class: found.in_credit ? "good" : "bad" }, found.in_credit ? "in credit" : "not in credit");
  replace(page("account-words"), "The site is ", credit, ` ${since}. `, found.sentence);
  const times = (count) => (count ? `, ${number(count)}×` : "");
  replace(
    page("account-figures"),
    figure("Hours saved", hours(found.saved_hours)),
    figure("Hours lost by waiting jobs", hours(found.owed_hours)),
    figure("Guests protected", number(found.protected)),
    figure("Guests preemptible", number(found.preemptible), found.staying ? `, ${number(found.staying)} stay` : ""),
    figure("Processor hours lent", hours(found.lent_hours), `, ${hours(found.lent_lost_hours)} lost${times(found.guests_sent_home)}`),
    figure("Got from partners", hours(found.given_hours), `, ${hours(found.given_lost_hours)} lost${times(found.sent_home)}`),
  );
  if (!account) return;
  const to = account.points[account.points.length - 1]?.time_s ?? 0;
  const width = Math.max(320, Math.round(page("account-charts").clientWidth));
  replace(page("account-charts"), accountOverTime({ points: account.points, from: to - DAYS_SHOWN * 86400, to, every: account.point_s, width, site }));
  replace(
    page("account-legend"),
    ...[["credit", "in credit"], ["debt", "not in credit, at some look"], ["t1", "guests"], ["t0", "of them protected"]].map(([kind, words]) => el("span", {}, el("span", { class: `swatch ${kind}` }), words)),
  );
}

async function loadAccount() {
  account = await get("api/account");
  showAccount();
}

// --- partners --------------------------------------------------------------------------------

const COLUMNS = [
  ["state", "state", (each) => [el("span", { class: each.state === "reachable" ? "good" : "bad" }, each.state), each.problem ? el("small", {}, each.problem) : null]],
  ["asked", "asked", (each) => [number(each.asked)]],
  ["accepted", "accepted", (each) => [number(each.accepted)]],
  ["declined", "declined", (each) => [number(each.declined)]],
  ["open there", "open", (each) => [number(each.open)]],
  ["its offers", "guests", (each) => [number(each.guests_offered)]],
  ["taken", "taken", (each) => [number(each.guests_accepted)]],
  ["its jobs here", "here", (each) => [number(each.guests_open)]],
  ["promise", "promise", (each) => each.suspended_until_s === null ? [each.breaches ? `broken ${number(each.breaches)}×` : "–"] : [el("span", { class: "bad" }, "suspended"), el("small", {}, `until ${day(each.suspended_until_s)}, broken ${number(each.breaches)}×`)]],
  ["latency", "latency", (each) => [span(each.latency_s)]],
  ["response", "awrt", (each) => [each.awrt_s ? span(each.awrt_s) : "–"]],
  ["certificate ends", "certificate", (each) => [day(each.certificate_end_s)]],
];

function showPartners() {
  if (!now.partners.length) {
    replace(page("partners"), el("p", { class: "note" }, "There are none."));
    return;
  }
  const words = (key) => (key === "state" ? "words" : false);
  const names = now.partners.map((each) => each.name);
  const rows = now.partners.map((each) => [
    [el("span", { class: `swatch ${tone(each.name, site.site, names)}` }), each.name, each.processors ? ` (${number(each.processors)})` : ""],
    ...COLUMNS.map(([name, key, cell]) => [{ "data-label": name, class: words(key) }, el("span", {}, ...cell(each).filter(Boolean))]),
  ]);
  replace(page("partners"), table("cards", "partners-title", [["partner"], ...COLUMNS.map(([name, key]) => [name, words(key)])], rows));
}

// --- jobs ------------------------------------------------------------------------------------

async function loadJobs() {
  const query = new URLSearchParams({ search: page("search").value, kind: chosen.kind, limit: chosen.limit });
  jobs = await get(`api/jobs?${query}`);
  showJobs();
}

function showJobs() {
  if (!jobs) return;
  const shown = jobs.jobs.length;
  const partial = jobs.partial ? " Some stories lack their beginning." : "";
  page("count").textContent = `${number(jobs.matching)} of ${number(jobs.known)} jobs that are remembered; ${shown < jobs.matching ? `the last ${number(shown)} to change are shown` : "all are shown"}.${partial}`;
  page("more").hidden = shown >= jobs.matching || chosen.limit >= 500;
  const to = Math.max(now?.sample?.time_s ?? 0, ...jobs.jobs.map((job) => job.submit_time_s));
  const from = Math.max(to - spanShown(), Math.min(to - 30 * site.speed, ...jobs.jobs.map((job) => job.submit_time_s)));
  const names = (now?.partners ?? []).map((each) => each.name);
  const wide = page("timeline").clientWidth > 700;
  const ticks = [0, 0.25, 0.5, 0.75, 1].filter((part) => wide || part === 0 || part === 1);
  const marks = ticks.map((part) => {
    const mark = el("span", {}, moment(from + (to - from) * part, site));
    mark.style.left = `${100 * part}%`;
    return mark;
  });
  const heads = [["job", "words"], ["user", "words"], ["where", "words"], ["processors"], ["state", "words"], [el("span", { class: "ticks", "aria-label": "time" }, ...marks), "time words"]];
  replace(page("timeline"), table("bars", "jobs-title", heads, jobs.jobs.map((job) => jobRow(job, from, to, names))));
  const places = [...new Set(jobs.jobs.map((job) => job.place).filter(Boolean))].sort();
  replace(page("legend"), el("span", {}, el("span", { class: "swatch waits" }), "waits"), ...places.map((place) => el("span", {}, el("span", { class: `swatch ${tone(place, site.site, names)}` }), `runs at ${place}`)));
}

function jobRow(job, from, to, names) {
  const where = job.home === site.site ? job.place || (job.asking ? `asking ${job.asking}` : "–") : `here, of ${job.home}`;
  const state = job.outcome || job.state;
  return [
    [el("a", { href: `job.html?key=${encodeURIComponent(job.key)}`, "data-focus": job.key }, job.job_id), job.name ? ` ${job.name}` : ""],
    [{ class: "words wide" }, job.user || "–"],
    [{ class: "words" }, where],
    [{ class: "wide" }, number(job.processors)],
    [{ class: `words ${job.outcome && job.outcome !== "completed" ? "bad" : ""}` }, state],
    [{ class: "time" }, bar(job, from, to, names)],
  ];
}

function bar(job, from, to, names) {
  const end = job.end_time_s ?? to;
  const start = job.start_time_s ?? end;
  const part = (begin, until, kind) => {
    const left = Math.max(0, Math.min(1, (begin - from) / (to - from)));
    const right = Math.max(0, Math.min(1, (until - from) / (to - from)));
    if (until < from || right < left) return null;
    return svg("rect", { class: kind, x: `${(100 * left).toFixed(2)}%`, width: `${Math.max(0.3, 100 * (right - left)).toFixed(2)}%`, y: kind === "waits" ? 5 : 2, height: kind === "waits" ? 8 : 14 });
  };
  const words = job.start_time_s === null ? `waits ${span(end - job.submit_time_s)}` : `waited ${span(start - job.submit_time_s)}, ${job.end_time_s === null ? "runs" : "ran"} ${span(end - start)}`;
  return svg(
    "svg",
    { class: tone(job.place, site.site, names), role: "img", "aria-label": words },
    svg("title", {}, words),
    part(job.submit_time_s, start, "waits"),
    job.start_time_s === null ? null : part(start, end, "runs"),
  );
}

// --- what can be chosen ----------------------------------------------------------------------

function choices(parent, names, current, choose) {
  parent.replaceChildren(
    ...names.map(([key, name]) => {
      const button = el("button", { type: "button", "aria-pressed": key === current }, name);
      button.setAttribute("aria-pressed", String(key === current));
      button.addEventListener("click", () => {
        for (const other of parent.children) other.setAttribute("aria-pressed", String(other === button));
        choose(key);
      });
      return button;
    }),
  );
}

const againJobs = calm(loadJobs, 700);
const againHistory = calm(loadHistory, 5000);
const againAccount = calm(loadAccount, 2000);

async function begin() {
  site = await get("api/site");
  now = site.now;
  document.title = `${site.site}: Hanse`;
  // A fast clock is looked at to see something move.
  chosen.window = site.clock === "wall" ? 1 : 0;
  choices(page("windows"), WINDOWS.map((each, index) => [index, span(each * site.speed)]), chosen.window, (index) => {
    chosen.window = index;
    loadHistory();
    showJobs();
  });
  choices(page("kinds"), KINDS, chosen.kind, (kind) => {
    chosen.kind = kind;
    chosen.limit = 60;
    loadJobs();
  });
  page("search").addEventListener("input", againJobs);
  page("more").addEventListener("click", () => {
    chosen.limit = Math.min(500, chosen.limit + 140);
    loadJobs();
  });
  addEventListener("resize", calm(() => { showCharts(); showAccount(); showJobs(); }, 200));
  showNow();
  showAccount();
  showPartners();
  await Promise.all([loadHistory(), loadJobs(), now.account ? loadAccount() : null]);
  let revision = now.revision;
  listen((told) => {
    const looked = told.account && told.account.last_look_s !== (account ? now.account?.last_look_s : null);
    now = told;
    if (looked) againAccount();
    if (told.sample && told.sample.time_s > (samples[samples.length - 1]?.time_s ?? -Infinity)) samples.push(told.sample);
    if (samples.length > 1500) againHistory();
    showNow();
    showAccount();
    showPartners();
    showCharts();
    if (told.revision !== revision) {
      revision = told.revision;
      againJobs();
    } else showJobs();
  });
}

begin().catch((error) => {
  page("notice").textContent = `The site's daemon does not answer: ${error.message}`;
  page("notice").hidden = false;
});

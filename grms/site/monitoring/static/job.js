// The story of one job: who was asked, what was answered, and by which rule.

import { fits, memberships } from "./charts.js";
import { calm, el, figure, get, listen, moment, number, replace, span, table } from "./common.js";

const page = (id) => document.getElementById(id);
const key = new URLSearchParams(location.search).get("key") ?? "";
const TONES = { asked: "t1", declined: "t5", accepted: "t2", kept: "t0", taken: "t2", started: "t0", ended: "t7" };

let site = null;
let revision = -1;

async function load() {
  const job = await get(`api/job?key=${encodeURIComponent(key)}`);
  if (job.problem) {
    page("title").textContent = key || "No job";
    page("notice").textContent = `This site's dashboard does not remember that job: ${job.problem}.`;
    page("notice").hidden = false;
    return;
  }
  page("notice").hidden = true;
  page("title").textContent = job.name ? `${job.job_id} (${job.name})` : job.job_id;
  document.title = `${job.job_id}: Hanse`;
  page("summary").textContent = job.summary;
  showFacts(job);
  replace(page("story"), ...job.steps.map((step) => item(step, job)));
}

function showFacts(job) {
  const end = job.end_time_s;
  const facts = [
    ["User", job.user || `of ${job.home}`],
    ["Processors", number(job.processors)],
    ["May run", span(job.requested_time_s)],
    ["Received", moment(job.submit_time_s, site)],
    ["Waited", job.start_time_s === null ? "–" : span(job.start_time_s - job.submit_time_s)],
    ["Ran", end === null || job.start_time_s === null ? "–" : span(end - job.start_time_s)],
    ["Where", job.place || "–"],
    ["State", job.outcome || job.state],
  ];
  replace(page("facts"), ...facts.map(([name, value]) => figure(name, value)));
}

function item(step, job) {
  const after = step.time_s - job.submit_time_s;
  return el(
    "li",
    { class: TONES[step.kind] ?? "t7", "data-kind": step.kind },
    el("time", {}, `${moment(step.time_s, site)}${after > 0 ? `, ${span(after)} after it came` : ""}`),
    el("p", { class: "said" }, step.text),
    step.decision ? decision(step.decision) : null,
  );
}

function decision(made) {
  const box = el("div", { class: "decision" });
  if (made.load) {
    box.append(
      el("p", {}, `At that moment ${number(made.load.processors_free)} of ${number(made.load.processors)} processors were free, and jobs waited for ${number(made.load.processors_waiting)}.`),
    );
  }
  const policy = made.policy;
  if (policy) {
    box.append(el("p", {}, `Policy ${policy.name}. ${policy.words}`));
    if (policy.kind === "rule base") box.append(...ruleBase(policy));
    else if (policy.needed !== undefined) {
      box.append(
        fits({ needed: policy.needed, free: policy.free, processors: made.load.processors }),
        el("p", {}, el("b", {}, policy.runs_here ? "It fitted: run here." : "It did not fit: let go.")),
      );
    }
  }
  if (made.passed_over.length) {
    box.append(
      el("p", {}, "Not asked:"),
      el("ul", { class: "passed" }, ...made.passed_over.map((each) => el("li", {}, `${each.partner}: ${each.why}.`))),
    );
  }
  return box.childNodes.length ? box : null;
}

function ruleBase(policy) {
  const rows = policy.rules.map((rule, index) => [
    [el("span", { class: `swatch t${index % 7}` }), String(index + 1)],
    ...[rule.nwp.membership, rule.njp.membership, rule.weight].map((value) => [{}, value.toFixed(3)]),
    [{}, rule.runs_here ? "run here" : "let go"],
  ]);
  const hidden = policy.rules_all - policy.rules.length;
  return [
    el(
      "div",
      { class: "pair" },
      memberships({ name: "Waiting processors / processors of the site", rules: policy.rules, key: "nwp", value: policy.nwp, unit: "" }),
      memberships({ name: "The job's processors, % of the site", rules: policy.rules, key: "njp", value: policy.njp, unit: " %" }),
    ),
    el("p", { class: "note" }, "Solid curves: rules that say “run here”; dashed: “let go”. The vertical line is this job at that moment."),
    table(false, false, [["rule"], ["waiting"], ["width"], ["weight"], ["says"]], rows),
    hidden ? el("p", { class: "note" }, `${number(hidden)} more rules are not shown.`) : null,
    el("p", {}, el("b", {}, `Sum ${policy.output.toPrecision(3).replace("-", "−")}: ${policy.runs_here ? "run here" : "let go"}.`)),
  ].filter(Boolean);
}

async function begin() {
  site = await get("api/site");
  await load();
  const again = calm(load, 500);
  listen((told) => {
    if (told.revision !== revision) {
      revision = told.revision;
      again();
    }
  });
}

begin().catch((error) => {
  page("notice").textContent = `The site's daemon does not answer: ${error.message}`;
  page("notice").hidden = false;
});

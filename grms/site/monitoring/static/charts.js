// Utilization and queue over time, and memberships.

import { moment, number, svg } from "./common.js";

const LEFT = 52;
const RIGHT = 12;

/** Returns round values from 0 to at least the greatest. */
export function steps(greatest, count = 3) {
  if (!(greatest > 0)) return [0, 1];
  const rough = greatest / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
  const found = [];
  for (let value = 0; value < greatest + step * 0.999; value += step) found.push(value);
  return found;
}

/** Returns a chart of a value over time, which holds until the next sample. */
export function overTime({ name, unit, tone, points, from, to, most, width, site }) {
  const height = 150;
  const top = 24;
  const bottom = height - 24;
  const marks = most ? [0, most / 2, most] : steps(Math.max(0, ...points.map((p) => p.value ?? 0)));
  const greatest = marks[marks.length - 1];
  const x = (time) => LEFT + ((time - from) / Math.max(1e-9, to - from)) * (width - LEFT - RIGHT);
  const y = (value) => bottom - (value / greatest) * (bottom - top);
  const last = points[points.length - 1];
  const label = last ? `${name} now ${number(last.value, 1)}${unit}; ${moment(from, site)} to ${moment(to, site)}` : `${name}: nothing yet`;
  const chart = svg("svg", { class: `chart ${tone}`, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  chart.append(svg("text", { class: "name", x: 0, y: 14 }, name));
  for (const mark of marks) {
    chart.append(
      svg("path", { class: mark ? "grid" : "axis", d: `M${LEFT} ${y(mark)}H${width - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end" }, `${number(mark, 1)}${unit}`),
    );
  }
  const ticks = Math.max(2, Math.min(6, Math.floor(width / 190)));
  for (let index = 0; index <= ticks; index += 1) {
    const time = from + ((to - from) * index) / ticks;
    const anchor = index === 0 ? "start" : index === ticks ? "end" : "middle";
    chart.append(svg("text", { x: x(time), y: height - 6, "text-anchor": anchor }, moment(time, site)));
  }
  const known = points.filter((point) => point.value !== null);
  if (known.length) {
    let line = `M${x(Math.max(from, known[0].time)).toFixed(1)} ${y(known[0].value).toFixed(1)}`;
    for (const point of known.slice(1)) line += `H${x(point.time).toFixed(1)}V${y(point.value).toFixed(1)}`;
    line += `H${x(to).toFixed(1)}`;
    const begin = x(Math.max(from, known[0].time)).toFixed(1);
    chart.append(
      svg("path", { class: "area", d: `${line}V${bottom}H${begin}Z` }),
      svg("path", { class: "stroke", d: line }),
    );
  }
  return chart;
}

/**
 * Returns a picture of a site's account of itself: its balance, whether the site was in credit, and its guests.
 *
 * Where nobody looked for longer than `every` seconds nothing is drawn.
 */
export function accountOverTime({ points, from, to, every, width, site }) {
  const height = 250;
  const top = 24;
  const bottom = 150;
  const band = { y: bottom + 8, height: 10 };
  const floor = height - 24;
  const ceiling = band.y + 34;
  const known = points.filter((each) => each.balance_hours !== null);
  const values = known.map((each) => each.balance_hours);
  const marks = around(Math.min(0, ...values), Math.max(0, ...values));
  const [low, high] = [marks[0], marks[marks.length - 1]];
  const most = Math.max(1, ...points.map((each) => each.guests));
  const x = (time) => LEFT + ((time - from) / Math.max(1e-9, to - from)) * (width - LEFT - RIGHT);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  const last = known[known.length - 1];
  const words = last ? `balance now ${number(last.balance_hours, 1)} hours` : "no own job compared yet";
  const chart = svg("svg", { class: "chart t2", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Account in 30 days: ${words}; ${moment(from, site)} to ${moment(to, site)}` });
  chart.append(svg("text", { class: "name", x: 0, y: 14 }, "Balance, hours of own users' waiting"));
  for (const mark of marks) {
    chart.append(
      svg("path", { class: mark ? "grid" : "axis", d: `M${LEFT} ${y(mark)}H${width - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end" }, number(mark, 2).replace("-", "−")),
    );
  }
  chart.append(
    svg("text", { class: "name", x: 0, y: ceiling - 6 }, "Guests"),
    svg("text", { x: LEFT - 6, y: ceiling + 12, "text-anchor": "end" }, number(most)),
    svg("path", { class: "axis", d: `M${LEFT} ${floor}H${width - RIGHT}` }),
  );
  let line = "";
  points.forEach((each, index) => {
    // A look stands for the time before it, as far as the look before.
    const before = index ? points[index - 1].time_s : -Infinity;
    const gap = each.time_s - before > 1.5 * every;
    const tenth = (at) => Math.round(at * 10) / 10;  // so that each begins where the one before ends
    const begin = tenth(x(Math.max(from, gap ? each.time_s - every : before)));
    const end = tenth(x(each.time_s));
    const rect = (kind, at, size) => svg("rect", { class: kind, x: begin.toFixed(1), y: at.toFixed(1), width: Math.max(0.6, end - begin).toFixed(1), height: size.toFixed(1) });
    const scale = (count) => (count / most) * (floor - ceiling);
    chart.append(rect(each.in_credit === each.looks ? "credit" : "debt", band.y, band.height));
    if (each.guests) chart.append(rect("dot bare t1", floor - scale(each.guests), scale(each.guests)));
    if (each.protected) chart.append(rect("dot bare t0", floor - scale(each.protected), scale(each.protected)));
    if (each.balance_hours === null) return;
    line += gap || !line ? `M${begin.toFixed(1)} ${y(each.balance_hours).toFixed(1)}` : `V${y(each.balance_hours).toFixed(1)}`;
    line += `H${end.toFixed(1)}`;
  });
  if (line) chart.append(svg("path", { class: "stroke", d: line }));
  const ticks = Math.max(2, Math.min(6, Math.floor(width / 190)));
  for (let index = 0; index <= ticks; index += 1) {
    const time = from + ((to - from) * index) / ticks;
    const anchor = index === 0 ? "start" : index === ticks ? "end" : "middle";
    chart.append(svg("text", { x: x(time), y: height - 6, "text-anchor": anchor }, moment(time, site).split(" ").slice(0, site.clock === "wall" ? 1 : 2).join(" ")));
  }
  return chart;
}

/** Returns round values from at most the least, which is not above 0, to at least the greatest. */
function around(least, greatest) {
  const step = steps(greatest - least)[1];
  const found = [];
  for (let value = Math.floor(least / step) * step; value < greatest + step * 0.999; value += step) found.push(value);
  return found.length > 1 ? found : [0, 1];
}

/** Returns the memberships of a rule base over one feature, with the value of a decision. */
export function memberships({ name, rules, key, value, unit }) {
  const width = 460;
  const height = 190;
  const top = 30;
  const bottom = height - 34;
  const centres = rules.flatMap((rule) => [rule[key].gamma - Math.abs(rule[key].sigma), rule[key].gamma + Math.abs(rule[key].sigma)]);
  const low = Math.min(0, value);
  // A job is never wider than its site; of waiting there may be any amount.
  const high = unit ? 100 : Math.max(value * 1.15, 1e-6, ...centres.map((centre) => Math.min(centre, Math.max(value * 4, 10))));
  const x = (at) => 34 + ((at - low) / (high - low)) * (width - 46);
  const y = (at) => bottom - at * (bottom - top);
  const chart = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `Memberships over ${name}; this job's is ${number(value, 2)}${unit}`,
  });
  chart.append(svg("text", { class: "name", x: 0, y: 14 }, name));
  for (const mark of [0, 0.5, 1]) {
    chart.append(
      svg("path", { class: mark ? "grid" : "axis", d: `M34 ${y(mark)}H${width - 12}` }),
      svg("text", { x: 28, y: y(mark) + 4, "text-anchor": "end" }, number(mark, 1)),
    );
  }
  for (const mark of steps(high, 4).filter((each) => each <= high)) {
    chart.append(svg("text", { x: x(mark), y: bottom + 16, "text-anchor": "middle" }, `${number(mark, 2)}${unit}`));
  }
  rules.forEach((rule, index) => {
    const { gamma, sigma, membership } = rule[key];
    let line = "";
    for (let step = 0; step <= 120; step += 1) {
      const at = low + ((high - low) * step) / 120;
      line += `${step ? "L" : "M"}${x(at).toFixed(1)} ${y(Math.exp(-(((at - gamma) / sigma) ** 2))).toFixed(1)}`;
    }
    chart.append(
      svg("path", { class: `stroke t${index % 7} ${rule.runs_here ? "" : "let"}`, d: line }),
      svg("circle", { class: `dot t${index % 7}`, cx: x(value), cy: y(membership), r: 4.5 }),
    );
  });
  const end = x(value) > width * 0.7 ? "end" : "start";
  chart.append(
    svg("path", { class: "here", d: `M${x(value)} ${top - 6}V${bottom}` }),
    svg("text", { class: "name", x: x(value) + (end === "end" ? -6 : 6), y: top + 2, "text-anchor": end }, `${number(value, 2)}${unit}`),
  );
  return chart;
}

/** Returns how many processors a job needs beside how many were free. */
export function fits({ needed, free, processors }) {
  const width = 460;
  const scale = (count) => (count / Math.max(processors, needed)) * (width - 130);
  const row = (text, count, index, tone) => [
    svg("text", { class: "name", x: 0, y: 22 + 30 * index }, text),
    svg("rect", { class: `dot ${tone}`, x: 70, y: 8 + 30 * index, width: Math.max(1, scale(count)), height: 20 }),
    svg("text", { x: 76 + scale(count), y: 22 + 30 * index }, number(count)),
  ];
  return svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} 70`, role: "img", "aria-label": `It needs ${needed} processors; ${free} of ${processors} were free` },
    ...row("needs", needed, 0, "t1"),
    ...row("free", free, 1, "t2"),
  );
}

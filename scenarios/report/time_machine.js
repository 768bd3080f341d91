(async () => {
  const holder = document.getElementById("time-machine-data");
  if (!holder || !("DecompressionStream" in window)) return;
  const data = JSON.parse(holder.textContent);
  const byId = (name) => document.getElementById(name);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const {
    sites, lanes, count, span, submit, start, end, home, place, number, processors, alone, charts, longest, busyMeans, waitingThen, givenThen,
  } = await timeMachineRun(data);
  const { moment, duration, grouped, many } = timeMachineWords(data);
  const named = (lane) => (lane < lanes ? sites[lane].name : "another site");

  // ---- State, and what follows from it ----

  const view = { from: 0, to: span, at: 0, job: -1, brush: null, playing: false, then: 0 };
  const narrowest = Math.max(10 * data.unit, Math.min(span, Math.max(span / 1e5, 1)));
  const paint = { fixed: true, asked: false };

  function redraw(fixed = false) {
    paint.fixed ||= fixed;
    if (paint.asked) return;
    paint.asked = true;
    requestAnimationFrame((now) => {
      paint.asked = false;
      if (view.playing) advance(now);
      draw();
      if (view.playing) redraw();
    });
  }

  /** Looks at a part of the run. */
  function look(from, to) {
    const width = Math.min(span, Math.max(narrowest, to - from));
    view.from = Math.max(0, Math.min(span - width, from));
    view.to = view.from + width;
    view.at = Math.max(view.from, Math.min(view.to, view.at));
    redraw(true);
  }

  function zoom(factor) {
    const width = (view.to - view.from) * factor;
    const share = (view.at - view.from) / (view.to - view.from);
    look(view.at - width * share, view.at + width * (1 - share));
  }

  function goTo(time) {
    view.at = Math.max(0, Math.min(span, time));
    const width = view.to - view.from;
    if (view.at < view.from || view.at > view.to) look(view.at - width / 4, view.at + width * 0.75);
    redraw();
  }

  function play(on) {
    if (on && view.at >= span) goTo(0);
    if (on && view.at >= view.to) view.at = view.from;
    view.playing = on;
    view.then = 0;
    byId("tm-play").textContent = on ? "Pause" : "Play";
    redraw();
  }

  function advance(now) {
    const passed = view.then ? now - view.then : 0;
    // Who wants no motion is shown one picture a second.
    if (still.matches && view.then && passed < 1000) return;
    view.then = now;
    const width = view.to - view.from;
    view.at += (Math.min(passed, 1000) / 1000 / Number(byId("tm-speed").value)) * width;
    if (view.at < view.to) return;
    view.at = Math.min(view.at, span);
    if (view.to < span) look(view.to, view.to + width);
    else {
      view.at = span;
      play(false);
    }
  }

  /** Returns what each site does at the moment, and who has given what to whom by then. */
  function figures() {
    const busy = new Float64Array(lanes);
    const waiting = new Float64Array(lanes);
    const given = new Map();
    if (data.complete) {
      for (let job = 0; job < count && submit[job] <= view.at; job += 1) {
        const lane = place[job];
        if (start[job] > view.at) waiting[lane] += 1;
        else if (end[job] > view.at) busy[lane] += processors[job];
        if (home[job] !== lane && home[job] < lanes) {
          const pair = `${home[job]}-${lane}`;
          given.set(pair, (given.get(pair) ?? 0) + 1);
        }
      }
    } else {
      const bin = Math.min(data.bins - 1, Math.floor((view.at / span) * data.bins));
      for (let lane = 0; lane < lanes; lane += 1) {
        busy[lane] = busyMeans[lane][bin];
        waiting[lane] = waitingThen[lane][bin];
      }
      for (const [pair, values] of Object.entries(givenThen)) if (values[bin]) given.set(pair, values[bin]);
    }
    return { busy, waiting, given };
  }

  const totals = new Map();
  if (data.complete) {
    for (let job = 0; job < count; job += 1) {
      if (home[job] === place[job] || home[job] === lanes) continue;
      const pair = `${home[job]}-${place[job]}`;
      totals.set(pair, (totals.get(pair) ?? 0) + 1);
    }
  } else for (const [pair, values] of Object.entries(givenThen)) totals.set(pair, values[data.bins - 1]);
  const most = Math.max(1, ...totals.values());

  // ---- Pictures ----

  const canvases = [...document.querySelectorAll(".tm-lane canvas")];
  const notes = [...document.querySelectorAll(".tm-lane small")];
  const overview = byId("tm-overview");
  const axis = byId("tm-axis");
  const ribbons = byId("tm-ribbons");
  const slider = byId("tm-moment");
  const pictures = canvases.map(() => document.createElement("canvas"));
  let colors = {};

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const found = (name) => style.getPropertyValue(`--${name}`).trim();
    colors = { sites: sites.map((site) => found(`site-${site.color}`)) };
    for (const name of ["ink", "muted", "grid", "paper", "panel", "federated", "alone"]) colors[name] = found(name);
  }

  /** Returns the context of a canvas as large as its place on the page, in CSS pixels. */
  function context(canvas, like = canvas) {
    const ratio = window.devicePixelRatio || 1;
    const width = like.clientWidth;
    const height = like.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      paint.fixed = true;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { pen, width, height };
  }

  function area(pen, values, most, from, to, width, height) {
    pen.beginPath();
    const first = Math.max(0, Math.floor((from / span) * data.bins));
    const last = Math.min(data.bins, Math.ceil((to / span) * data.bins));
    const x = (bin) => (((bin / data.bins) * span - from) / (to - from)) * width;
    pen.moveTo(x(first), height);
    for (let bin = first; bin < last; bin += 1) {
      const y = height - (values[bin] / most) * height;
      pen.lineTo(x(bin), y);
      pen.lineTo(x(bin + 1), y);
    }
    pen.lineTo(x(last), height);
    pen.fill();
  }

  /** Draws the jobs of a lane, whatever the moment. */
  function drawJobs(lane) {
    const { pen, width, height } = context(pictures[lane], canvases[lane]);
    pen.fillStyle = colors.panel;
    pen.fillRect(0, 0, width, height);
    const { job: jobs, low, size } = charts[lane];
    if (!data.complete) {
      pen.fillStyle = colors.alone;
      pen.globalAlpha = 0.4;
      area(pen, busyMeans[lane], sites[lane].processors, view.from, view.to, width, height);
      pen.globalAlpha = 1;
    }
    const scale = width / (view.to - view.from);
    const unit = height / sites[lane].processors;
    const begin = firstFrom(jobs.length, (piece) => start[jobs[piece]], view.from - longest[lane]);
    let color = -1;
    for (let piece = begin; piece < jobs.length && start[jobs[piece]] < view.to; piece += 1) {
      const job = jobs[piece];
      if (end[job] <= view.from) continue;
      if (home[job] !== color) {
        color = home[job];
        pen.fillStyle = color < lanes ? colors.sites[color] : colors.alone;
      }
      const left = (start[job] - view.from) * scale;
      const wide = Math.max(0.4, (end[job] - start[job]) * scale);
      const tall = size[piece] * unit;
      const gapX = wide > 4 ? 0.7 : 0;
      const gapY = tall > 4 ? 0.7 : 0;
      pen.fillRect(left, height - (low[piece] + size[piece]) * unit, wide - gapX, tall - gapY);
    }
  }

  function outline(pen, lane, width, height) {
    const scale = width / (view.to - view.from);
    const x = (time) => (time - view.from) * scale;
    const { job: jobs, low, size } = charts[lane];
    const unit = height / sites[lane].processors;
    pen.strokeStyle = colors.ink;
    pen.lineWidth = 2;
    let top = height;
    for (let piece = 0; piece < jobs.length; piece += 1) {
      if (jobs[piece] !== view.job) continue;
      const y = height - (low[piece] + size[piece]) * unit;
      top = Math.min(top, y);
      pen.strokeRect(x(start[view.job]), y, Math.max(3, (end[view.job] - start[view.job]) * scale), Math.max(3, size[piece] * unit));
    }
    // Its wait, as a line that leads to it.
    pen.beginPath();
    pen.setLineDash([3, 3]);
    pen.moveTo(x(submit[view.job]), top + 1);
    pen.lineTo(x(start[view.job]), top + 1);
    pen.stroke();
    pen.setLineDash([]);
  }

  function drawLane(lane, time) {
    const { pen, width, height } = context(canvases[lane]);
    pen.drawImage(pictures[lane], 0, 0, width, height);
    const x = ((time - view.from) / (view.to - view.from)) * width;
    pen.fillStyle = colors.paper;
    pen.globalAlpha = 0.72;
    pen.fillRect(x, 0, width - x, height);
    pen.globalAlpha = 1;
    if (view.brush) {
      const [a, b] = view.brush.map((each) => ((each - view.from) / (view.to - view.from)) * width);
      pen.fillStyle = colors.federated;
      pen.globalAlpha = 0.25;
      pen.fillRect(Math.min(a, b), 0, Math.abs(b - a), height);
      pen.globalAlpha = 1;
    }
    if (view.job >= 0 && place[view.job] === lane) outline(pen, lane, width, height);
    pen.fillStyle = colors.ink;
    pen.fillRect(x - 0.75, 0, 1.5, height);
  }

  function drawOverview() {
    const { pen, width, height } = context(overview);
    pen.fillStyle = colors.panel;
    pen.fillRect(0, 0, width, height);
    const all = sites.reduce((sum, site) => sum + site.processors, 0);
    const together = new Float64Array(data.bins);
    for (const values of busyMeans) for (let bin = 0; bin < data.bins; bin += 1) together[bin] += values[bin];
    pen.fillStyle = colors.alone;
    area(pen, together, all, 0, span, width, height);
    const x = (time) => (time / span) * width;
    pen.fillStyle = colors.paper;
    pen.globalAlpha = 0.7;
    const [from, to] = view.span ? [Math.min(...view.span), Math.max(...view.span)] : [view.from, view.to];
    pen.fillRect(0, 0, x(from), height);
    pen.fillRect(x(to), 0, width - x(to), height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colors.federated;
    pen.lineWidth = 2;
    pen.strokeRect(Math.min(width - 4, x(from)) + 1, 1, Math.max(2, x(to) - x(from) - 2), height - 2);
    pen.fillStyle = colors.ink;
    pen.fillRect(x(view.at) - 0.75, 0, 1.5, height);
  }

  function drawAxis() {
    const { pen, width, height } = context(axis);
    pen.clearRect(0, 0, width, height);
    const wide = view.to - view.from;
    const steps = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 7776000, 31536000, 315360000];
    const step = steps.find((each) => (wide / each) * 84 <= width) ?? wide;
    pen.fillStyle = colors.muted;
    pen.font = "11px system-ui, sans-serif";
    const days = data.begin + span >= 86400;
    for (let tick = Math.ceil((data.begin + view.from) / step) * step; tick <= data.begin + view.to; tick += step) {
      const x = ((tick - data.begin - view.from) / wide) * width;
      const whole = `day ${grouped(Math.floor(tick / 86400))}`;
      const clock = moment(tick - data.begin).split(", ").pop();
      const words = !days ? clock : step >= 86400 || tick % 86400 === 0 ? whole : step >= 60 ? clock.slice(0, 5) : clock;
      pen.fillRect(x, 0, 1, 4);
      const room = pen.measureText(words).width;
      pen.fillText(words, Math.max(0, Math.min(width - room, x - room / 2)), 15);
    }
  }

  /** Returns the four points of the ribbon from a lane to another. */
  function ribbon(from, to, width) {
    const top = ribbons.getBoundingClientRect().top;
    const middle = (lane) => {
      const box = canvases[lane].getBoundingClientRect();
      return box.top - top + box.height / 2;
    };
    const down = to > from;
    const reach = width * (0.35 + 0.6 * (Math.abs(to - from) / Math.max(1, lanes - 1))) * (down ? 1.25 : 0.85);
    const shift = down ? 8 : -8;
    const [a, b] = [middle(from) + shift, middle(to) + (down ? -2 : 2)];
    return [[2, a], [reach, a], [reach, b], [2, b]];
  }

  function along([p, q, r, s], share) {
    const rest = 1 - share;
    const [a, b, c, d] = [rest ** 3, 3 * rest * rest * share, 3 * rest * share * share, share ** 3];
    return [0, 1].map((k) => a * p[k] + b * q[k] + c * r[k] + d * s[k]);
  }

  function drawRibbons(given) {
    const { pen, width, height } = context(ribbons);
    pen.clearRect(0, 0, width, height);
    pen.lineCap = "round";
    const paths = new Map();
    for (const [pair, total] of totals) {
      const [from, to] = pair.split("-").map(Number);
      const path = ribbon(from, to, width);
      paths.set(pair, path);
      const thickness = (value) => 1 + 7 * Math.sqrt(value / most);
      for (const [value, alpha] of [[total, 0.18], [given.get(pair) ?? 0, 0.6]]) {
        if (!value) continue;
        pen.globalAlpha = alpha;
        pen.strokeStyle = colors.sites[from];
        pen.lineWidth = thickness(value);
        pen.beginPath();
        pen.moveTo(...path[0]);
        pen.bezierCurveTo(...path[1], ...path[2], ...path[3]);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    if (still.matches) return 0;
    const flight = (view.to - view.from) * 0.04;
    const first = firstFrom(count, (job) => submit[job], view.at - flight);
    const flying = [];
    for (let job = first; job < count && submit[job] <= view.at; job += 1) {
      if (home[job] !== place[job] && home[job] < lanes) flying.push(job);
    }
    const every = Math.ceil(flying.length / 200);
    for (let index = 0; index < flying.length; index += every) {
      const job = flying[index];
      const [x, y] = along(paths.get(`${home[job]}-${place[job]}`), (view.at - submit[job]) / flight);
      pen.fillStyle = colors.sites[home[job]];
      pen.strokeStyle = colors.paper;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.arc(x, y, Math.min(7, 2.5 + Math.sqrt(processors[job]) / 3), 0, 7);
      pen.fill();
      pen.stroke();
    }
    return flying.length;
  }

  function draw() {
    const { busy, waiting, given } = figures();
    for (const canvas of canvases) context(canvas);
    if (paint.fixed) {
      for (let lane = 0; lane < lanes; lane += 1) drawJobs(lane);
      drawAxis();
      paint.fixed = false;
    }
    for (let lane = 0; lane < lanes; lane += 1) {
      drawLane(lane, view.at);
      const about = data.complete ? "" : "about ";
      notes[lane].textContent = `${about}${grouped(busy[lane])} of ${grouped(sites[lane].processors)} processors busy, ${many(waiting[lane], "job")} waiting`;
    }
    drawOverview();
    const flying = lanes > 1 ? drawRibbons(given) : 0;
    ribbons.dataset.flying = flying;
    byId("tm-now").textContent = moment(view.at);
    slider.value = Math.round(((view.at - view.from) / (view.to - view.from)) * 1000);
    slider.setAttribute("aria-valuetext", moment(view.at));
    const flows = [...given].sort((a, b) => b[1] - a[1]).slice(0, 12);
    byId("tm-given").textContent = lanes < 2 ? "" : `Given so far: ${flows.map(([pair, value]) => {
      const [from, to] = pair.split("-").map(Number);
      return `${named(from)} to ${named(to)} ${grouped(value)}`;
    }).join("; ") || "nothing"}.`;
  }

  // ---- What people do ----

  const timeAt = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    return view.from + ((event.clientX - box.left) / box.width) * (view.to - view.from);
  };

  /** Returns the job that is drawn at a place of a lane; -1 for none. */
  function jobAt(lane, event) {
    const box = canvases[lane].getBoundingClientRect();
    const time = timeAt(canvases[lane], event);
    const reach = ((view.to - view.from) / box.width) * 1.5;
    const processor = (1 - (event.clientY - box.top) / box.height) * sites[lane].processors;
    const { job: jobs, low, size } = charts[lane];
    let found = -1;
    let nearest = reach;
    for (let piece = firstFrom(jobs.length, (each) => start[jobs[each]], time - longest[lane] - reach); piece < jobs.length; piece += 1) {
      const job = jobs[piece];
      if (start[job] > time + reach) break;
      if (processor < low[piece] || processor > low[piece] + size[piece]) continue;
      const distance = Math.max(start[job] - time, time - end[job], 0);
      if (distance < nearest) [found, nearest] = [job, distance];
    }
    return found;
  }

  const titled = (job) => `Job ${number[job]} of ${named(home[job])}`;

  /** Tells the story of a job, and marks it. */
  function tell(job) {
    view.job = job;
    const box = byId("tm-story");
    box.replaceChildren();
    redraw();
    if (job < 0) return;
    const head = document.createElement("h3");
    head.textContent = titled(job);
    const list = document.createElement("ul");
    const wait = start[job] - submit[job];
    const without = alone[job];
    const sooner = without - wait;
    const where = home[job] === place[job] ? `stayed at ${named(home[job])}` : `went to ${named(place[job])}, which took it`;
    const said = [
      `Arrived on ${moment(submit[job])}; asked for ${many(processors[job], "processor")} and ${where}.`,
      wait > 0 ? `Waited ${duration(wait)}, until ${moment(start[job])}.` : "Started at once.",
      `Ran for ${duration(end[job] - start[job])}, until ${moment(end[job])}.`,
      `With ${named(home[job])} alone it would have ${without > 0 ? `waited ${duration(without)}` : "started at once"}: ${
        Math.abs(sooner) < data.unit / 2 ? "no difference" : `${duration(Math.abs(sooner))} ${sooner > 0 ? "sooner" : "later"} by the exchange`
      }.`,
    ];
    for (const words of said) {
      const item = document.createElement("li");
      item.textContent = words;
      list.append(item);
    }
    const closer = document.createElement("button");
    closer.type = "button";
    closer.textContent = "Look closer";
    closer.addEventListener("click", () => {
      const width = Math.max((end[job] - submit[job]) * 2, narrowest);
      view.at = start[job];
      look(submit[job] - width / 4, submit[job] + (width * 3) / 4);
    });
    box.append(head, list, closer);
  }

  function step(lane, by) {
    const { jobs } = charts[lane];
    if (!jobs.length) return;
    let index = jobs.indexOf(view.job);
    if (index < 0) index = Math.min(jobs.length - 1, firstFrom(jobs.length, (each) => start[jobs[each]], view.at) - (by > 0 ? by : 0));
    const job = jobs[Math.max(0, Math.min(jobs.length - 1, index + by))];
    goTo(start[job]);
    tell(job);
  }

  const tip = byId("tm-tip");
  function hover(lane, event) {
    const job = event && !view.brush ? jobAt(lane, event) : -1;
    tip.hidden = job < 0;
    if (job < 0) return;
    tip.textContent = `${titled(job)}: ${many(processors[job], "processor")}, ran ${duration(end[job] - start[job])}, waited ${duration(start[job] - submit[job])}`;
    const stage = tip.parentElement.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(event.clientX - stage.left + 12, stage.width - tip.offsetWidth))}px`;
    tip.style.top = `${event.clientY - stage.top + 16}px`;
  }

  canvases.forEach((canvas, lane) => {
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      from = event.clientX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from !== null && Math.abs(event.clientX - from) > 5) {
        const box = canvas.getBoundingClientRect();
        const begin = view.from + ((from - box.left) / box.width) * (view.to - view.from);
        view.brush = [begin, Math.max(view.from, Math.min(view.to, timeAt(canvas, event)))];
        redraw();
      }
      hover(lane, event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const brush = view.brush;
      view.brush = null;
      if (from === null) return;
      from = null;
      if (brush) {
        view.at = Math.min(...brush);
        look(Math.min(...brush), Math.max(...brush));
        return;
      }
      const job = jobAt(lane, event);
      if (job < 0) goTo(timeAt(canvas, event));
      tell(job);
    });
    canvas.addEventListener("pointercancel", () => {
      from = null;
      view.brush = null;
      redraw();
    });
    canvas.addEventListener("pointerleave", () => hover(lane, null));
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const does = {
        ArrowLeft: () => step(lane, -1),
        ArrowRight: () => step(lane, 1),
        Home: () => step(lane, -count),
        End: () => step(lane, count),
        "+": () => zoom(0.5),
        "-": () => zoom(2),
        0: () => look(0, span),
        Escape: () => tell(-1),
      }[event.key];
      if (!does) return;
      event.preventDefault();
      does();
    });
  });

  let chosen = null;
  const wholeTime = (event) => {
    const box = overview.getBoundingClientRect();
    return Math.max(0, Math.min(span, ((event.clientX - box.left) / box.width) * span));
  };
  overview.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    chosen = wholeTime(event);
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", (event) => {
    if (chosen === null) return;
    view.span = [chosen, wholeTime(event)];
    redraw();
  });
  const chose = (event) => {
    if (chosen === null) return;
    const [from, to] = [Math.min(chosen, wholeTime(event)), Math.max(chosen, wholeTime(event))];
    const width = view.to - view.from;
    const far = ((to - from) / span) * overview.clientWidth > 5;
    chosen = null;
    view.span = null;
    view.at = from;
    if (far) look(from, to);
    else look(from - width / 2, from + width / 2);
  };
  overview.addEventListener("pointerup", chose);
  overview.addEventListener("pointercancel", () => {
    chosen = null;
    view.span = null;
    redraw();
  });

  slider.addEventListener("input", () => goTo(view.from + (Number(slider.value) / 1000) * (view.to - view.from)));
  byId("tm-play").addEventListener("click", () => play(!view.playing));
  byId("tm-in").addEventListener("click", () => zoom(0.5));
  byId("tm-out").addEventListener("click", () => zoom(2));
  byId("tm-whole").addEventListener("click", () => look(0, span));

  byId("time-machine").hidden = false;
  ribbons.hidden = lanes < 2;
  readColors();
  dark.addEventListener("change", () => {
    readColors();
    redraw(true);
  });
  new ResizeObserver(() => {
    tip.hidden = true;
    redraw(true);
  }).observe(byId("time-machine"));
  // A while into the run there is something to see.
  view.at = span / 3;
  redraw(true);
})();

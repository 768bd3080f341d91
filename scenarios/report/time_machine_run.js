"use strict";

/** Returns the run that a page holds, from the document of `data` in time_machine.py. */
async function timeMachineRun(data) {
  /** Returns the whole numbers of a column; see `packed` in time_machine.py. */
  async function unpacked(text, count) {
    const small = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([small]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const values = new Float64Array(count);
    let place = 0;
    for (let index = 0; index < count; index += 1) {
      let value = 0;
      let factor = 1;
      let byte;
      do {
        byte = bytes[place];
        place += 1;
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte & 128);
      values[index] = value % 2 ? -(value + 1) / 2 : value / 2;
    }
    return values;
  }

  const sites = data.sites;
  const lanes = sites.length;
  const count = data.count;
  const columns = {};
  for (const [name, text] of Object.entries(data.columns)) columns[name] = await unpacked(text, count);
  const span = data.end - data.begin;
  const submit = new Float64Array(count);
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const home = new Uint8Array(count);
  const place = new Uint8Array(count);
  const number = new Float64Array(count);
  {
    let time = 0;
    const last = new Float64Array(lanes + 1);
    for (let job = 0; job < count; job += 1) {
      time += columns.submit[job];
      submit[job] = time * data.unit;
      start[job] = submit[job] + columns.wait[job] * data.unit;
      end[job] = start[job] + columns.run[job] * data.unit;
      home[job] = Math.floor(columns.pair[job] / (lanes + 1));
      place[job] = columns.pair[job] % (lanes + 1);
      last[home[job]] += columns.job[job];
      number[job] = last[home[job]];
    }
  }
  const busyMeans = await Promise.all(data.busy.map((text) => unpacked(text, data.bins)));
  const summed = async (text) => {
    const values = await unpacked(text, data.bins);
    for (let bin = 1; bin < data.bins; bin += 1) values[bin] += values[bin - 1];
    return values;
  };
  const waitingThen = data.complete ? [] : await Promise.all(data.waiting.map(summed));
  const givenThen = {};
  for (const [pair, text] of Object.entries(data.given ?? {})) givenThen[pair] = await summed(text);

  /** Gives each job of a lane the lowest processors that are free, in pieces where need be. */
  function placed(lane) {
    const jobs = [];
    for (let job = 0; job < count; job += 1) if (place[job] === lane) jobs.push(job);
    jobs.sort((a, b) => start[a] - start[b] || a - b);
    const ends = jobs.slice().sort((a, b) => end[a] - end[b] || a - b);
    const taken = new Map();
    let free = [[0, sites[lane].processors]];
    const pieces = { job: [], low: [], size: [] };
    let due = 0;
    for (const job of jobs) {
      const back = [];
      while (due < ends.length && end[ends[due]] <= start[job] && taken.has(ends[due])) {
        back.push(...taken.get(ends[due]));
        taken.delete(ends[due]);
        due += 1;
      }
      if (back.length) {
        const merged = [];
        for (const [low, high] of free.concat(back).sort((a, b) => a[0] - b[0])) {
          const before = merged[merged.length - 1];
          if (before && before[1] === low) before[1] = high;
          else merged.push([low, high]);
        }
        free = merged;
      }
      let missing = columns.processors[job];
      const own = [];
      while (missing > 0 && free.length) {
        const [low, high] = free[0];
        const size = Math.min(missing, high - low);
        own.push([low, low + size]);
        pieces.job.push(job);
        pieces.low.push(low);
        pieces.size.push(size);
        missing -= size;
        if (low + size === high) free.shift();
        else free[0] = [low + size, high];
      }
      taken.set(job, own);
    }
    return { jobs, ...pieces };
  }
  const charts = sites.map((_, lane) => placed(lane));
  const longest = charts.map(({ jobs }) => jobs.reduce((most, job) => Math.max(most, end[job] - start[job]), 0));

  return {
    sites, lanes, count, span, submit, start, end, home, place, number, charts, longest, busyMeans, waitingThen, givenThen,
    processors: columns.processors,
    alone: columns.alone.map((wait) => wait * data.unit),
  };
}

/** Returns how the page says moments, durations and numbers; `begin` is what moments are counted from. */
function timeMachineWords({ begin, end: last }) {
  const two = (value) => String(value).padStart(2, "0");
  const grouped = (value) => Math.round(value).toLocaleString("en-US");

  /** Returns a moment, in seconds since the begin, as people say it. */
  function moment(time) {
    let rest = Math.round(begin + time);
    const sign = rest < 0 ? "\u2212" : "";
    rest = Math.abs(rest);
    const clock = `${two(Math.floor((rest % 86400) / 3600))}:${two(Math.floor((rest % 3600) / 60))}:${two(rest % 60)}`;
    return last < 86400 ? sign + clock : `${sign}day ${grouped(Math.floor(rest / 86400))}, ${clock}`;
  }

  /** Returns a number of seconds in its two largest units. */
  function duration(seconds) {
    if (seconds < 60) return `${Math.round(seconds * 10) / 10} s`;
    const rest = Math.round(seconds);
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const first = units.findIndex(([, size]) => rest >= size);
    const found = [];
    let left = rest;
    for (const [name, size] of units.slice(first, first + 2)) {
      if (left >= size) found.push(`${Math.floor(left / size)} ${name}`);
      left %= size;
    }
    return found.join(" ");
  }

  const many = (value, word) => `${grouped(value)} ${word}${value === 1 ? "" : "s"}`;

  return { moment, duration, grouped, many };
}

/** Returns the first index of which `key` is at least `value`; keys increase. */
function firstFrom(size, key, value) {
  let low = 0;
  let high = size;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(middle) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The interactive Gantt chart, first part of three: what gantt.py packed, read back; constants; times as text.
"use strict";

const JOB_COLOURS = ["#0072B2", "#56B4E9", "#009E73", "#7FC9AE", "#3B5BA5", "#9DB4DC", "#1B7F8C", "#B5D3E7"];
const WAIT_COLOURS = ["#C6DBEF", "#9ECAE1", "#6BAED6", "#3182BD", "#08519C", "#08306B"];
const WAIT_LIMITS = [60, 600, 3600, 6 * 3600, 86400]; // s; above the last is the last colour
const OUTCOMES = ["completed", "killed at its walltime", "still running at the end"];
const OUTCOME_COLOURS = ["#0072B2", "#D55E00", "#009E73"];
const LEFT = 52, BOTTOM = 22, PIXELS = 1.6e6, YEAR = 31536000; // YEAR: of 365 days, s

const colour = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

async function unpack(chart) {
  const packed = Uint8Array.from(atob(chart.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
  const c = {};
  let at = 0;
  for (const [name, kind, length] of chart.columns) {
    const size = length * Number(kind[1]);
    c[name] = new kinds[kind](bytes.slice(at, at + size));
    at += size;
  }
  const text = new TextDecoder().decode(bytes.slice(at));
  const seconds = (deltas, lengths) => {
    const from = new Float64Array(deltas.length), to = new Float64Array(deltas.length);
    for (let i = 0, tick = 0; i < deltas.length; i++) {
      tick += deltas[i];
      from[i] = chart.origin + tick * chart.tick;
      to[i] = from[i] + lengths[i] * chart.tick;
    }
    return [from, to];
  };
  const [start, finish] = seconds(c.start, c.duration);
  const [stateFrom, stateTo] = seconds(c.state_from, c.state_duration);
  const job = new Uint32Array(c.low.length);
  for (let i = 0, k = 0; i < c.segments.length; i++) for (let n = c.segments[i]; n > 0; n--) job[k++] = i;
  return { ...chart, ...c, users: chart.users, states: chart.states, ids: start.length ? text.split("\n") : [], start, finish, stateFrom, stateTo, job, data: null };
}

function duration(s) {
  if (s < 60) return `${Math.round(s * 1000) / 1000} s`;
  const two = (x) => String(x).padStart(2, "0");
  const t = Math.round(s), days = Math.floor(t / 86400);
  const clock = `${two(Math.floor(t / 3600) % 24)}:${two(Math.floor(t / 60) % 60)}:${two(t % 60)}`;
  return days ? `${days} d ${clock}` : clock;
}

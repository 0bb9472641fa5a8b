// The interactive Gantt chart, second part of three: one chart on its canvas, and the details of what is pointed at.
//
// Drawing is exact at every zoom: a rectangle adds to each pixel the share of the pixel that it covers, so that thousands of jobs in one pixel
// leave their mean colour there. Jobs and node states do not overlap (computing is where the jobs are), so shares add up to at most one.

class Pane {
  constructor(gantt, box) {
    this.gantt = gantt;
    this.title = box.querySelector(".gantt-title");
    this.canvas = box.querySelector("canvas.gantt-chart");
    this.mark = box.querySelector("canvas.gantt-mark");
    this.notes = box.querySelector(".gantt-notes");
    this.box = box;
    this.data = null;
    this.hover = -1;
    this.listen();
  }

  async show(chart) {
    this.data = await unpack(chart);
    this.title.textContent = this.data.name;
    this.canvas.setAttribute("aria-label", `Gantt chart of ${this.data.name}: ${this.data.start.length} jobs on ${this.data.nodes} nodes`);
    this.notes.textContent = this.data.start.length || this.data.state.length ? this.data.notes.join(" ") : "Nothing ran: there is nothing to draw.";
    this.box.hidden = false;
    this.paint();
  }

  // Size in CSS pixels of the drawing area.
  get width() { return Math.max(this.canvas.clientWidth - LEFT, 1); }
  get height() { return Math.max(this.canvas.clientHeight - BOTTOM, 1); }
  x(t) { const v = this.gantt.view; return ((t - v.t0) / (v.t1 - v.t0)) * this.width; }
  y(n) { const v = this.gantt.view; return ((n - v.y0) / (v.y1 - v.y0)) * this.height; }

  // The vertical extent of segment k in node units, within its node where it shares it.
  extent(k, node) {
    const d = this.data;
    if (d.lanes[k] < 2) return [d.low[k], d.low[k] + d.more[k] + 1];
    return [node + d.lane[k] / d.lanes[k], node + (d.lane[k] + 1) / d.lanes[k]];
  }

  paint() {
    const d = this.data;
    if (!d) return;
    const began = performance.now();
    const scale = Math.min(window.devicePixelRatio || 1, Math.sqrt(PIXELS / (this.width * this.height)));
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.mark]) {
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(canvas.clientHeight * ratio);
    }
    const W = Math.max(Math.round(this.width * scale), 1), H = Math.max(Math.round(this.height * scale), 1);
    const picture = this.raster(W, H);
    const small = document.createElement("canvas");
    small.width = W;
    small.height = H;
    small.getContext("2d").putImageData(picture, 0, 0);
    const ctx = this.canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = getComputedStyle(document.body).backgroundColor; // so that a page printed from a dark screen keeps readable labels
    ctx.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(small, LEFT, 0, this.width, this.height);
    this.labels(ctx);
    this.axes(ctx);
    this.highlight();
    this.gantt.drawn = performance.now() - began;
  }

  raster(W, H) {
    const d = this.data, v = this.gantt.view, sum = this.cleared(W * H * 4);
    const sx = W / (v.t1 - v.t0), sy = H / (v.y1 - v.y0);
    const gap = sy > 5 ? 0.06 : 0; // a line between rows once they are tall enough
    const add = (i, c, rgb) => {
      sum[i] += c * rgb[0];
      sum[i + 1] += c * rgb[1];
      sum[i + 2] += c * rgb[2];
      sum[i + 3] += c;
    };
    const box = (t0, t1, n0, n1, rgb) => {
      const x0 = t0 > v.t0 ? (t0 - v.t0) * sx : 0, x1 = t1 < v.t1 ? (t1 - v.t0) * sx : W;
      const y0 = n0 > v.y0 ? (n0 - v.y0) * sy : 0, y1 = n1 < v.y1 ? (n1 - v.y0) * sy : H;
      const left = Math.floor(x0), last = Math.min(Math.ceil(x1), W) - 1, low = Math.min(Math.ceil(y1), H);
      for (let y = Math.floor(y0); y < low; y++) {
        const cy = (y + 1 < y1 ? y + 1 : y1) - (y > y0 ? y : y0), row = 4 * y * W;
        if (last <= left) add(row + 4 * left, cy * (x1 - x0), rgb);
        else {
          add(row + 4 * left, cy * (left + 1 - x0), rgb);
          for (let i = row + 4 * left + 4; i < row + 4 * last; i += 4) add(i, cy, rgb);
          add(row + 4 * last, cy * (x1 - last), rgb);
        }
      }
    };
    const stateColours = d.states.map((s) => colour(this.gantt.colours[s]));
    for (let i = 0; i < d.state.length; i++) {
      const from = d.stateFrom[i];
      if (from >= v.t1) break;
      if (d.stateTo[i] <= v.t0 || d.state_low[i] >= v.y1 || d.state_low[i] + d.state_more[i] + 1 <= v.y0) continue;
      if (!gap) box(from, d.stateTo[i], d.state_low[i], d.state_low[i] + d.state_more[i] + 1, stateColours[d.state[i]]);
      else for (let n = d.state_low[i]; n <= d.state_low[i] + d.state_more[i]; n++) box(from, d.stateTo[i], n + gap, n + 1 - gap, stateColours[d.state[i]]);
    }
    const paint = this.jobColours();
    for (let k = 0; k < d.low.length; k++) {
      const j = d.job[k];
      if (d.start[j] >= v.t1) break;
      if (d.finish[j] <= v.t0 || d.low[k] >= v.y1 || d.low[k] + d.more[k] + 1 <= v.y0) continue;
      const rgb = paint(j);
      if (!gap && d.lanes[k] < 2) box(d.start[j], d.finish[j], d.low[k], d.low[k] + d.more[k] + 1, rgb);
      else {
        const part = (1 - 2 * gap) / d.lanes[k];
        for (let n = d.low[k]; n <= d.low[k] + d.more[k]; n++) {
          const top = n + gap + part * d.lane[k];
          box(d.start[j], d.finish[j], top, top + part, rgb);
        }
      }
    }
    return this.composed(sum, W, H);
  }

  // The buffer of sums, kept from one frame to the next.
  cleared(length) {
    if (!this.sum || this.sum.length !== length) this.sum = new Float32Array(length);
    else this.sum.fill(0);
    return this.sum;
  }

  composed(sum, W, H) {
    const picture = new ImageData(W, H), out = picture.data;
    const base = colour(getComputedStyle(this.canvas).getPropertyValue("--gantt-base").trim() || "#ffffff");
    for (let i = 0; i < sum.length; i += 4) {
      const c = sum[i + 3], rest = c < 1 ? 1 - c : 0, over = c > 1 ? 1 / c : 1;
      out[i] = sum[i] * over + rest * base[0];
      out[i + 1] = sum[i + 1] * over + rest * base[1];
      out[i + 2] = sum[i + 2] * over + rest * base[2];
      out[i + 3] = 255;
    }
    return picture;
  }

  jobColours() {
    const d = this.data, jobs = JOB_COLOURS.map(colour), waits = WAIT_COLOURS.map(colour), outcomes = OUTCOME_COLOURS.map(colour);
    const by = {
      job: (j) => jobs[(j * 5) % jobs.length],
      user: (j) => jobs[d.user[j] % jobs.length],
      outcome: (j) => outcomes[d.outcome[j]],
      wait: (j) => {
        const wait = d.wait[j] * d.tick;
        let k = 0;
        while (k < WAIT_LIMITS.length && wait > WAIT_LIMITS[k]) k++;
        return waits[k];
      },
    };
    return by[this.gantt.colourBy];
  }

  // Job ids inside rectangles that have room for them.
  labels(ctx) {
    const d = this.data, v = this.gantt.view, width = this.width, height = this.height; // asked for once: the browser lays out anew to tell
    const sx = width / (v.t1 - v.t0), sy = height / (v.y1 - v.y0), colours = this.jobColours();
    if (sy < 11) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(LEFT, 0, width, height);
    ctx.clip();
    ctx.font = "10px sans-serif";
    ctx.textBaseline = "middle";
    let left = 400;
    for (let k = 0; k < d.low.length && left; k++) {
      const j = d.job[k];
      if (d.start[j] >= v.t1) break;
      if (d.finish[j] <= v.t0 || d.low[k] >= v.y1 || d.low[k] + d.more[k] + 1 <= v.y0) continue;
      const x0 = Math.max((d.start[j] - v.t0) * sx, 0), x1 = Math.min((d.finish[j] - v.t0) * sx, width);
      if (x1 - x0 < 12) continue;
      const [top, bottom] = this.extent(k, d.low[k]);
      if (bottom <= v.y0 || top >= v.y1 || (bottom - top) * sy < 11) continue;
      const [r, g, b] = colours(j);
      ctx.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000" : "#fff";
      if (ctx.measureText(d.ids[j]).width > x1 - x0 - 6) continue;
      ctx.fillText(d.ids[j], LEFT + x0 + 3, ((top + Math.min(bottom, d.low[k] + 1)) / 2 - v.y0) * sy);
      left--;
    }
    ctx.restore();
  }

  axes(ctx) {
    const v = this.gantt.view, ink = getComputedStyle(this.canvas).color;
    ctx.fillStyle = ink;
    ctx.strokeStyle = ink;
    ctx.font = "11px sans-serif";
    ctx.lineWidth = 1;
    ctx.strokeRect(LEFT + 0.5, 0.5, this.width - 1, this.height - 1);
    const steps = [1e-3, 1e-2, 0.1, 1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, YEAR];
    const step = steps.find((s) => ((v.t1 - v.t0) / s) * 90 <= this.width) || YEAR * Math.ceil(((v.t1 - v.t0) * 90) / (this.width * YEAR));
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    for (let t = Math.ceil(v.t0 / step) * step; t <= v.t1; t += step) {
      const x = LEFT + this.x(t);
      ctx.fillRect(Math.round(x), this.height, 1, 4);
      if (x > LEFT + 25 && x < LEFT + this.width - 20) ctx.fillText(step >= 86400 ? `${Math.round(t / 86400)} d` : duration(t), x, this.height + 6);
    }
    const rows = v.y1 - v.y0, every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((n) => (rows / n) * 16 <= this.height) || 10000;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (let n = Math.ceil(v.y0 / every) * every; n < v.y1 && n < this.data.nodes; n += every) {
      const y = this.y(n + 0.5);
      if (y > 5 && y < this.height - 4) ctx.fillText(String(n), LEFT - 6, y);
    }
    ctx.save();
    ctx.translate(10, this.height / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.fillText("node", 0, 0);
    ctx.restore();
  }

  // The job at a point, or the state of the node there, as lines for the tooltip.
  at(px, py) {
    const d = this.data, v = this.gantt.view;
    const t = v.t0 + ((px - LEFT) / this.width) * (v.t1 - v.t0), y = v.y0 + (py / this.height) * (v.y1 - v.y0), n = Math.floor(y);
    if (px < LEFT || py > this.height || n < 0 || n >= d.nodes) return null;
    for (let k = 0; k < d.low.length; k++) {
      const j = d.job[k];
      if (d.start[j] > t) break;
      if (d.finish[j] <= t || n < d.low[k] || n > d.low[k] + d.more[k]) continue;
      const [top, bottom] = this.extent(k, n);
      if (y >= top && y < bottom) return { job: j, lines: this.jobLines(j) };
    }
    for (let i = 0; i < d.state.length; i++) {
      if (d.stateFrom[i] > t) break;
      if (d.stateTo[i] > t && n >= d.state_low[i] && n <= d.state_low[i] + d.state_more[i])
        return { job: -1, lines: [["node", n], ["state", d.states[d.state[i]].replace("_", " ")], ["from", duration(d.stateFrom[i])], ["to", duration(d.stateTo[i])]] };
    }
    return null;
  }

  jobLines(j) {
    const d = this.data, wait = d.wait[j] * d.tick, nodes = [];
    for (let k = 0; k < d.low.length && nodes.length < 12; k++)
      if (d.job[k] === j) nodes.push(d.more[k] ? `${d.low[k]}-${d.low[k] + d.more[k]}` : `${d.low[k]}`);
    const lines = [["job", d.ids[j]], ["user", d.users[d.user[j]] || "–"], ["cores", d.cores[j]], ["submit", duration(d.start[j] - wait)]];
    lines.push(["start", duration(d.start[j])], ["finish", duration(d.finish[j])], ["wait", duration(wait)], ["ran", duration(d.finish[j] - d.start[j])]);
    lines.push(["outcome", OUTCOMES[d.outcome[j]]], ["nodes", nodes.join(" ") + (nodes.length === 12 ? " …" : "")]);
    return lines;
  }

  highlight() {
    const ctx = this.mark.getContext("2d"), ratio = window.devicePixelRatio || 1, d = this.data;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, this.mark.clientWidth, this.mark.clientHeight);
    if (!d || this.hover < 0 || this.hover >= d.start.length) return;
    ctx.beginPath();
    ctx.rect(LEFT, 0, this.width, this.height);
    ctx.clip();
    ctx.strokeStyle = "#D55E00";
    ctx.lineWidth = 2;
    const x = LEFT + this.x(d.start[this.hover]), w = Math.max(this.x(d.finish[this.hover]) + LEFT - x, 2);
    for (let k = 0; k < d.low.length; k++) {
      if (d.job[k] !== this.hover) continue;
      for (let n = d.low[k]; n <= d.low[k] + d.more[k]; n++) {
        const [top, bottom] = this.extent(k, n);
        ctx.strokeRect(x, this.y(top), w, Math.max(this.y(bottom) - this.y(top), 2));
        if (d.lanes[k] < 2) break; // one frame around the whole interval
      }
    }
  }

  // Where a job is on the screen (its middle, on its first node), in client coordinates.
  locate(id) {
    const d = this.data, j = d.ids.indexOf(id), k = d.job.indexOf(j);
    if (j < 0 || k < 0) return null;
    const rect = this.canvas.getBoundingClientRect(), [top, bottom] = this.extent(k, d.low[k]);
    return { job: j, x: rect.left + LEFT + this.x((d.start[j] + d.finish[j]) / 2), y: rect.top + this.y((top + Math.min(bottom, d.low[k] + 1)) / 2) };
  }

  listen() {
    const c = this.canvas, g = this.gantt;
    let drag = null;
    c.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, y: e.clientY, view: { ...g.view } }; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointerup", () => { drag = null; });
    c.addEventListener("pointercancel", () => { drag = null; });
    c.addEventListener("pointerleave", () => { this.hover = -1; this.highlight(); g.tip.hidden = true; });
    c.addEventListener("pointermove", (e) => {
      if (!this.data) return;
      if (!drag) return this.point(e);
      const v = drag.view, dt = ((e.clientX - drag.x) / this.width) * (v.t1 - v.t0), dn = ((e.clientY - drag.y) / this.height) * (v.y1 - v.y0);
      g.look({ t0: v.t0 - dt, t1: v.t1 - dt, y0: v.y0 - dn, y1: v.y1 - dn });
    });
    c.addEventListener("wheel", (e) => {
      if (document.activeElement !== c && !e.ctrlKey) return; // the page scrolls until the chart was clicked
      e.preventDefault();
      const rect = c.getBoundingClientRect(), factor = Math.exp(Math.max(-60, Math.min(60, e.deltaY || e.deltaX)) / 150);
      if (e.shiftKey) g.zoom(1, factor, 0.5, (e.clientY - rect.top) / this.height);
      else g.zoom(factor, 1, (e.clientX - rect.left - LEFT) / this.width, 0.5);
    }, { passive: false });
    c.addEventListener("dblclick", () => g.reset());
    c.addEventListener("keydown", (e) => {
      const move = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[e.key];
      if (move) g.shift(...move);
      else if (e.key === "+" || e.key === "=") g.zoom(0.7, e.shiftKey ? 0.7 : 1);
      else if (e.key === "-") g.zoom(1 / 0.7, 1);
      else if (e.key === "Home" || e.key === "0") g.reset();
      else return;
      e.preventDefault();
    });
  }

  point(e) {
    const rect = this.canvas.getBoundingClientRect(), found = this.at(e.clientX - rect.left, e.clientY - rect.top), tip = this.gantt.tip;
    this.hover = found ? found.job : -1;
    this.highlight();
    tip.hidden = !found;
    if (!found) return;
    tip.replaceChildren(...found.lines.flatMap(([name, value]) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name;
      dd.textContent = value;
      return [dt, dd];
    }));
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(Math.min(e.clientX + 14, room), 0) + window.scrollX}px`;
    const below = e.clientY + 14 + tip.offsetHeight <= document.documentElement.clientHeight;
    tip.style.top = `${(below ? e.clientY + 14 : Math.max(e.clientY - 10 - tip.offsetHeight, 0)) + window.scrollY}px`;
  }
}

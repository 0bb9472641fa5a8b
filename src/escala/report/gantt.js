// The interactive Gantt chart, third part of three: the view that its charts share, and the controls.

class Gantt {
  constructor(root, charts) {
    this.root = root;
    this.charts = charts;
    this.colours = JSON.parse(root.dataset.colours);
    this.tip = root.querySelector(".gantt-tip");
    this.colourBy = "job";
    this.pending = false;
    this.drawn = 0;
    this.whole = { t0: Math.min(...charts.map((c) => c.origin)), t1: Math.max(...charts.map((c) => c.end)), y0: 0, y1: Math.max(...charts.map((c) => c.nodes), 1) };
    this.view = { ...this.whole };
    this.panes = [...root.querySelectorAll(".gantt-pane")].map((box) => new Pane(this, box));
    this.controls();
    this.ready = this.panes[0].show(charts[0]);
  }

  controls() {
    const on = (name, event, act) => { const e = this.root.querySelector(`[data-gantt="${name}"]`); if (e) e.addEventListener(event, () => act(e)); };
    on("first", "change", (e) => this.panes[0].show(this.charts[e.value]));
    on("second", "change", (e) => {
      if (e.value === "") { this.panes[1].box.hidden = true; this.panes[1].data = null; } else this.panes[1].show(this.charts[e.value]);
    });
    on("colour", "change", (e) => { this.colourBy = e.value; this.repaint(); });
    on("in", "click", () => this.zoom(0.5, 1));
    on("out", "click", () => this.zoom(2, 1));
    on("all", "click", () => this.reset());
    on("find", "change", (e) => this.find(e));
    window.addEventListener("resize", () => this.repaint());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  find(input) {
    const pane = this.panes[0], j = pane.data ? pane.data.ids.indexOf(input.value.trim()) : -1;
    input.setCustomValidity(j < 0 && input.value ? "no such job is drawn" : "");
    input.reportValidity();
    if (j < 0) return;
    const d = pane.data, margin = Math.max(d.finish[j] - d.start[j], 60) * 2;
    pane.hover = j;
    this.look({ ...this.view, t0: d.start[j] - margin, t1: d.finish[j] + margin });
  }

  // Set the view, kept within the whole and no narrower than a tick and half a row.
  look(view) {
    const clamp = (a, b, low, high, least) => {
      const size = Math.min(Math.max(b - a, least), high - low), from = Math.min(Math.max(a, low), high - size);
      return [from, from + size];
    };
    const [t0, t1] = clamp(view.t0, view.t1, this.whole.t0, this.whole.t1, Math.min(0.01, this.whole.t1 - this.whole.t0));
    const [y0, y1] = clamp(view.y0, view.y1, this.whole.y0, this.whole.y1, 0.5);
    this.view = { t0, t1, y0, y1 };
    this.repaint();
  }

  zoom(ft, fn, at = 0.5, row = 0.5) {
    const v = this.view, t = v.t0 + at * (v.t1 - v.t0), n = v.y0 + row * (v.y1 - v.y0);
    this.look({ t0: t - (t - v.t0) * ft, t1: t + (v.t1 - t) * ft, y0: n - (n - v.y0) * fn, y1: n + (v.y1 - n) * fn });
  }

  shift(dt, dn) {
    const v = this.view, t = dt * (v.t1 - v.t0), n = dn * (v.y1 - v.y0);
    this.look({ t0: v.t0 + t, t1: v.t1 + t, y0: v.y0 + n, y1: v.y1 + n });
  }

  reset() { this.look({ ...this.whole }); }

  repaint() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.panes.forEach((p) => p.paint()); });
  }
}

for (const root of document.querySelectorAll(".gantt")) {
  if (!("DecompressionStream" in window)) {
    root.querySelector(".gantt-notes").textContent = "This browser is too old to draw the chart (it lacks DecompressionStream).";
    root.querySelector(".gantt-pane").hidden = false;
  } else root.gantt = new Gantt(root, JSON.parse(root.querySelector("script").textContent));
}

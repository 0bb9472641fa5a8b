// Figures that can be read: where the pointer is on the axes, and the value of every line there. Lines are read off the drawing itself.

class Readout {
  constructor(svg, tip) {
    this.svg = svg;
    this.tip = tip;
    this.axes = JSON.parse(svg.dataset.axes);
    this.guide = document.createElementNS("http://www.w3.org/2000/svg", "line");
    this.guide.setAttribute("class", "guide");
    svg.append(this.guide);
    svg.addEventListener("pointermove", (e) => this.show(e));
    svg.addEventListener("pointerleave", () => this.hide());
  }

  hide() {
    this.tip.hidden = true;
    this.guide.setAttribute("visibility", "hidden");
  }

  show(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const axes = this.axes.find(({ box: [l, t, r, b] }) => at.x >= l && at.x <= r && at.y >= t && at.y <= b);
    if (!axes) { this.hide(); return; }
    const lines = axes.lines.map((line) => [line.name, line.colour, this.height(line, at.x)]).filter((line) => line[2] !== null);
    const rows = [[axes.x.name, "", read(axes.x, (at.x - axes.box[0]) / (axes.box[2] - axes.box[0]))]];
    const up = (y) => read(axes.y, (axes.box[3] - y) / (axes.box[3] - axes.box[1]));
    if (lines.length) rows.push([axes.y.name, "", ""], ...lines.map(([name, colour, y]) => [name, colour, up(y)]));
    else rows.push([axes.y.name, "", up(at.y)]);
    this.tip.replaceChildren(...rows.flatMap(([name, colour, value]) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name;
      dd.textContent = value;
      if (colour) dt.style.borderLeft = `4px solid ${colour}`;
      if (colour) dt.style.paddingLeft = "5px";
      return [dt, dd];
    }));
    for (const [name, value] of [["x1", at.x], ["x2", at.x], ["y1", axes.box[1]], ["y2", axes.box[3]]]) this.guide.setAttribute(name, value);
    this.guide.removeAttribute("visibility");
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth, left = event.pageX + 16;
    this.tip.style.left = `${left + wide > document.documentElement.clientWidth ? event.pageX - wide - 16 : left}px`;
    this.tip.style.top = `${event.pageY + 12}px`;
  }

  // The height of a line at x, in the drawing's units; null where it is not drawn.
  height(line, x) {
    if (!line.points) {
      const path = document.getElementById(line.id)?.querySelector("path");
      line.points = path ? [...path.getAttribute("d").matchAll(/[ML]\s*(-?[\d.]+)\s+(-?[\d.]+)/g)].map((m) => [+m[1], +m[2]]) : [];
    }
    const p = line.points;
    if (p.length < 2 || x < p[0][0] || x > p[p.length - 1][0]) return null;
    let low = 0, high = p.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (p[middle][0] <= x) low = middle; else high = middle;
    }
    const [[x0, y0], [x1, y1]] = [p[low], p[high]];
    return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y0;
  }
}

function read(axis, share) {
  const [low, high] = axis.log ? axis.range.map(Math.log10) : axis.range;
  const value = low + (high - low) * share, shown = axis.log ? 10 ** value : value;
  return Number(shown.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 }).replaceAll(",", "\u202f").replace("-", "\u2212");
}

for (const svg of document.querySelectorAll("svg[data-axes]")) svg.readout = new Readout(svg, document.querySelector(".figure-tip"));

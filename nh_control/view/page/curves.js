// Plots over time that share the time range and the current time.
import { below } from "./vectors.js";

const N_COLORS = 8; // of page.css, which has them for light and dark mode
const named = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const LEFT = 52, RIGHT = 18, TOP = 6, BOTTOM = 18, OPEN_PLOTS = 4, OPEN_CURVES = 8, DECADES = 12;

export class Plots {
  constructor(parent, data, seek) {
    this.data = data; this.seek = seek; this.all = [data.times[0], data.times.at(-1)];
    this.range = this.all;
    this.plots = data.curves.map((curve, i) => new Plot(parent, this, curve, i < OPEN_PLOTS));
    if (!(this.all[1] > this.all[0])) this.range = this.all = [this.all[0], this.all[0] + 1];
  }

  draw(now) {
    this.now = now;
    for (const plot of this.plots) plot.draw(now);
  }

  zoom(time, factor) {
    const [a, b] = this.range.map((t) => time + (t - time) * factor);
    this.range = [Math.max(a, this.all[0]), Math.min(b, this.all[1])];
    this.draw(this.now);
  }

  whole() { this.range = this.all; this.draw(this.now); }
}

class Plot {
  constructor(parent, plots, curve, open) {
    this.plots = plots; this.values = curve.values; this.logarithmic = curve.logarithmic;
    this.n = curve.names.length; this.on = curve.names.map((_, s) => s < OPEN_CURVES);
    const figure = this.figure = parent.appendChild(document.createElement("figure"));
    const caption = figure.appendChild(document.createElement("figcaption"));
    const title = button(caption, curve.label, "title", "show or hide this plot");
    title.onclick = () => { this._open(figure.classList.contains("closed")); };
    this.names = curve.names.map((name, s) => {
      const entry = button(caption, name, "name", "show or hide this curve");
      entry.style.color = `var(--series-${s % N_COLORS})`;
      entry.onclick = () => { this.on[s] = !this.on[s]; this._mark(); plots.draw(plots.now); };
      return { entry, name };
    });
    this.canvas = figure.appendChild(document.createElement("canvas"));
    this.canvas.setAttribute("aria-label", `plot of ${curve.label}`);
    this.canvas.title = "click: go to this time; wheel: zoom; double click: show all times";
    this._handle();
    this._mark();
    figure.classList.toggle("closed", !open);
    title.setAttribute("aria-expanded", String(open));
    this.title = title;
  }

  _open(open) {
    this.figure.classList.toggle("closed", !open);
    this.title.setAttribute("aria-expanded", String(open));
    this.plots.draw(this.plots.now);
  }

  _mark() {
    this.names.forEach(({ entry }, s) => entry.setAttribute("aria-pressed", String(this.on[s])));
  }

  _handle() {
    const c = this.canvas, { plots } = this, at = (e) => this._time(e.offsetX);
    c.onpointerdown = (e) => { c.setPointerCapture(e.pointerId); plots.seek(at(e)); };
    c.onpointermove = (e) => { if (e.buttons & 1) plots.seek(at(e)); };
    c.ondblclick = () => plots.whole();
    c.addEventListener("wheel", (e) => {
      e.preventDefault(); plots.zoom(at(e), Math.exp(e.deltaY / 500));
    }, { passive: false });
  }

  _time(x) {
    const [a, b] = this.plots.range, width = this.canvas.clientWidth - LEFT - RIGHT;
    return a + (x - LEFT) / width * (b - a);
  }

  draw(now) {
    const k = below(this.plots.data.times, now);
    this.names.forEach(({ entry, name }, s) => {
      const text = this.on[s] ? `${name} ${short(this.values[k * this.n + s])}` : name;
      if (entry.textContent !== text) entry.textContent = text;
    });
    if (this.figure.classList.contains("closed")) return;
    const c = this.canvas, d = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [c.clientWidth, c.clientHeight];
    if (w < LEFT + RIGHT + 20 || h < TOP + BOTTOM + 10) return;
    if (c.width !== Math.round(w * d) || c.height !== Math.round(h * d)) {
      c.width = Math.round(w * d); c.height = Math.round(h * d);
    }
    const g = c.getContext("2d");
    g.setTransform(d, 0, 0, d, 0, 0); g.clearRect(0, 0, w, h);
    g.font = "11px system-ui, sans-serif";
    this._paint(g, w, h, now);
  }

  _paint(g, w, h, now) {
    const { data, range: [a, b] } = this.plots, { times } = data;
    const i0 = below(times, a), i1 = Math.min(times.length - 1, below(times, b) + 1);
    const [low, high] = this._extent(i0, i1);
    const X = (t) => LEFT + (t - a) / (b - a) * (w - LEFT - RIGHT);
    const Y = (v) => h - BOTTOM - (v - low) / (high - low) * (h - TOP - BOTTOM);
    for (const { start, stop, color } of data.intervals) {
      g.fillStyle = color; g.fillRect(X(start), TOP, X(stop) - X(start), h - TOP - BOTTOM);
    }
    this._axes(g, w, h, [low, high], X, Y);
    g.save(); g.beginPath(); g.rect(LEFT, TOP, w - LEFT - RIGHT, h - TOP - BOTTOM); g.clip();
    g.lineWidth = 1.5; g.lineJoin = "round";
    const stride = Math.max(1, Math.floor((i1 - i0) / (2 * w)));
    for (let s = this.n - 1; s >= 0; s--) { // the first curve is on top
      if (!this.on[s]) continue;
      g.strokeStyle = named(`--series-${s % N_COLORS}`);
      g.setLineDash(s < N_COLORS ? [] : [5, 3]);
      g.beginPath();
      for (let k = i0; k <= i1; k += stride) {
        const v = this._height(this.values[k * this.n + s]);
        if (Number.isFinite(v)) g.lineTo(X(times[k]), Y(v));
      }
      g.stroke();
    }
    g.setLineDash([]); g.strokeStyle = named("--now"); g.lineWidth = 1;
    g.beginPath(); g.moveTo(X(now), TOP); g.lineTo(X(now), h - BOTTOM); g.stroke();
    g.restore();
  }

  _height(v) { return this.logarithmic ? (v > 0 ? Math.log10(v) : NaN) : v; }

  _extent(i0, i1) {
    let low = Infinity, high = -Infinity;
    for (let k = i0; k <= i1; k++) for (let s = 0; s < this.n; s++) {
      const v = this.on[s] ? this._height(this.values[k * this.n + s]) : NaN;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (!(high >= low)) return [-1, 1];
    if (this.logarithmic) {
      const top = Math.max(Math.ceil(high), Math.floor(low) + 1);
      return [Math.max(Math.floor(low), top - DECADES) - 0.01, top];
    }
    const flat = high - low < 1e-9 * Math.max(1, Math.abs(high));
    const margin = flat ? 0.5 : 0.06 * (high - low);
    return [low - margin, high + margin];
  }

  _axes(g, w, h, [low, high], X, Y) {
    g.strokeStyle = named("--grid"); g.fillStyle = named("--axis"); g.lineWidth = 1;
    g.textAlign = "right"; g.textBaseline = "middle";
    const whole = (v) => !this.logarithmic || Math.abs(v - Math.round(v)) < 1e-9;
    const heights = ticks(low, high, Math.max(2, h / 40)), step = heights[1] - heights[0];
    for (const v of heights.filter(whole)) {
      g.beginPath(); g.moveTo(LEFT, Y(v)); g.lineTo(w - RIGHT, Y(v)); g.stroke();
      g.fillText(this.logarithmic ? `1e${Math.round(v)}` : rounded(v, step), LEFT - 5, Y(v));
    }
    g.textAlign = "center"; g.textBaseline = "top";
    const [a, b] = this.plots.range;
    for (const v of ticks(a, b, w / 80)) {
      g.beginPath(); g.moveTo(X(v), TOP); g.lineTo(X(v), h - BOTTOM); g.stroke();
      g.fillText(`${short(v)} s`, X(v), h - BOTTOM + 4);
    }
  }
}

export function button(parent, text, kind, title) {
  const out = parent.appendChild(document.createElement("button"));
  out.type = "button"; out.textContent = text; out.className = kind; out.title = title;
  return out;
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw)), out = [];
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step)
    out.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return out;
}

// A number of an axis, with as many digits as distinguish it from the next one.
function rounded(v, step) {
  const digits = Math.ceil(-Math.log10(step) - 1e-9);
  if (!Number.isFinite(digits) || digits > 7 || Math.abs(v) >= 1e6) return short(v);
  return v.toFixed(Math.max(0, digits));
}

function short(v) {
  if (v === undefined || Number.isNaN(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  return size < 1e-3 || size >= 1e5 ? v.toExponential(1) : String(+v.toPrecision(4));
}

// A plant that is running: appends the states that the server sends, says how it is, and asks.
import { button } from "./curves.js";

const WINDOW = 1200, RETRY_MS = 1000, SILENT_MS = 3000, NEAR_S = 0.5;

// The last rows of numbers, at most WINDOW, one after another in memory.
class Rolling {
  constructor(width, Kind = Float32Array) {
    this.width = width; this.kept = new Kind(2 * WINDOW * width); this.start = this.end = 0;
  }

  push(row) {
    const w = this.width;
    if (this.end === 2 * WINDOW) {
      this.kept.copyWithin(0, this.start * w, this.end * w);
      this.end -= this.start; this.start = 0;
    }
    this.kept.set(row.map((v) => v ?? NaN), w * this.end++);
    this.start = Math.max(this.start, this.end - WINDOW);
    return this.kept.subarray(this.start * w, this.end * w);
  }
}

class Live {
  constructor({ data, scene, plots, timeline }) {
    Object.assign(this, { data, scene, plots, timeline, last: NaN, heard: performance.now() });
    const poses = new Array(2).fill(7 * data.frames.length);
    const widths = [...poses, data.cables.length, data.arrows.length];
    this.names = ["run", "reference", "loads", "arrowLengths"];
    this.parts = widths.map((width) => new Rolling(width));
    this.times = new Rolling(1, Float64Array);
    this.curves = data.curves.map((curve) => new Rolling(curve.names.length));
    // playing at the end is to follow; what was before can be looked at meanwhile
    timeline.seek = (t) => { timeline.playing = t >= timeline.last - 1e-6; timeline.show(t); };
    timeline.loops = false; timeline.playing = true;
    const header = document.querySelector("header");
    const made = (kind, given) =>
      Object.assign(header.appendChild(document.createElement(kind)), given);
    this.plant = made("p", { id: "plant", role: "status" });
    for (const [text, request] of Object.entries(data.requests))
      button(header, text, "request", "").onclick = () => this._ask(request);
    const field = data.goals ? made("input", { id: "goal" }) : {};
    field.placeholder = field.ariaLabel = "goal: x y z";
    field.onchange = () =>
      this._ask({ name: "goal", position: field.value.trim().split(/[\s,]+/).map(Number) });
    this.answer = made("p", { id: "answer", role: "status" });
    setInterval(() => {
      const silent = performance.now() - this.heard;
      if (silent > SILENT_MS) this._say(`no answer for ${(silent / 1000).toFixed(0)} s`);
    }, SILENT_MS / 3);
    this._connect();
  }

  _say(text) { this.plant.textContent = text; }

  async _ask(request) {
    const asked = { method: "POST", body: JSON.stringify(request) };
    const answer = await fetch("/requests", asked).catch(() => null);
    const { done, message } = answer?.ok ? await answer.json()
      : { message: answer ? await answer.text() : "the view does not answer" };
    this.answer.textContent = `${done ? "" : "refused: "}${message}`;
  }

  _connect() {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/states`);
    socket.onmessage = (event) => this._take(JSON.parse(event.data));
    socket.onclose = () => setTimeout(() => this._connect(), RETRY_MS);
  }

  _take({ status: { state, factor, silent }, frame }) {
    this.heard = performance.now();
    if (frame && frame.time !== this.last) this._append(frame);
    this._say(state + (silent > 1 ? ` for ${silent.toFixed(0)} s` : "")
      + (factor === null ? "" : `, ${factor.toFixed(2)}× real time`));
  }

  _append(frame) {
    const { data, scene, plots, timeline } = this, first = !(frame.time > this.last);
    const follows = first || (timeline.playing && timeline.now >= timeline.last - NEAR_S);
    if (first) // of all, or after a reset
      for (const one of [this.times, ...this.parts, ...this.curves]) one.start = one.end = 0;
    this.last = frame.time;
    data.times = timeline.times = this.times.push([frame.time]);
    this.names.forEach((name, i) => { data[name] = this.parts[i].push(frame[name]); });
    this.curves.forEach((curve, i) => { plots.plots[i].values = curve.push(frame.curves[i]); });
    const whole = [data.times[0], Math.max(frame.time, data.times[0] + 1)];
    if (plots.range === plots.all || first) plots.range = whole;
    plots.all = whole;
    if (scene) scene.path = undefined;
    const slider = document.getElementById("time");
    slider.min = whole[0]; slider.max = frame.time;
    timeline.show(follows ? frame.time : timeline.now);
  }
}

window.page.live = new Live(window.page);

// A running plant: appends the states that the server sends, shows the status, sends requests.
import { norm, sub, unit } from "./vectors.js";

const WINDOW = 1200, RETRY_MS = 1000, SILENT_MS = 3000, NEAR_S = 0.5, PULL_MS = 50, GRAZING = 0.15;
const PULL = [0.85, 0.2, 0.5, 1], GOAL = [0.9, 0.7, 0.1, 1];

// The last rows of numbers, at most WINDOW, contiguous in memory.
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
    // playing at the end follows the plant; earlier times can be viewed meanwhile
    timeline.seek = (t) => { timeline.playing = t >= timeline.last - 1e-6; timeline.show(t); };
    timeline.loops = false; timeline.playing = true;
    const all = (selector) => document.querySelectorAll(selector);
    for (const one of all("[data-ask]"))
      one.onclick = () => this._ask(JSON.parse(one.dataset.ask));
    const change = (parameter, value) => this._ask({ name: "change", parameter, value });
    for (const one of all("[data-change]"))
      one.onchange = () => change(one.dataset.change, one.value.trim());
    const speed = document.getElementById("speed");
    if (data.paces) speed.onchange = () => change("speed_factor", speed.value);
    for (const field of all("#goal"))
      field.onchange = () => this._go(field.value.trim().split(/[\s,]+/).map(Number));
    if (scene) this._mouse(scene.renderer.canvas);
    setInterval(() => {
      const silent = performance.now() - this.heard;
      if (silent > SILENT_MS) this._say(`no answer for ${(silent / 1000).toFixed(0)} s`);
    }, SILENT_MS / 3);
    this._connect();
  }

  // Drags of the selected mouse mode; they take precedence over the camera's.
  _mouse(canvas) {
    const { scene, data } = this, down = { pull: (e) => this._grab(e), goal: () => this._aim() };
    const handle = (type, act) => canvas.addEventListener(type, (e) => {
      const chosen = document.querySelector("[name=mouse]:checked")?.value ?? "turn";
      if (chosen === "turn" && !this.drag) return;
      e.stopImmediatePropagation();
      act(e, chosen);
      this.timeline.dirty = true;
    }, true);
    const move = (e) => {
      if (!this.drag) return;
      const { mark, from, normal } = this.drag, at = scene.under([e.offsetX, e.offsetY], from(),
        e.shiftKey && mark.at ? sub(scene.placed.eye, scene.placed.at).with(2, 0) : normal);
      if (!at) return;
      if (mark.at) mark.at = e.shiftKey ? mark.at.with(2, at[2]) : at; else mark.to = at;
    };
    handle("pointerdown", (e, chosen) => {
      canvas.setPointerCapture(e.pointerId);
      this.drag = down[chosen](e);
      scene.marks = [this.drag.mark];
      move(e);
    });
    handle("pointermove", move);
    handle("pointerup", () => {
      const { mark, done } = this.drag ?? {};
      this.drag = null;
      done?.(mark);
    });
    handle("pointercancel", () => { this.drag = null; scene.marks = []; });
    setInterval(() => this.drag?.pull?.(), PULL_MS);
    this.place = (frame) => scene.pose(data.run, frame, this.timeline.now).slice(0, 3);
  }

  // Pull the nearest drawn body with a force that grows with the distance to the mouse.
  _grab(e) {
    const { scene, data } = this, { project } = scene.renderer;
    const far = ([, frame]) => {
      const [x, y] = project.call(scene.renderer, this.place(frame));
      return Math.hypot(x - e.offsetX, y - e.offsetY);
    };
    const [target, frame] = Object.entries(data.pulled).sort((a, b) => far(a) - far(b))[0];
    const mark = { frame, to: this.place(frame), color: PULL };
    const ask = (force) => this._ask({ name: "pull", target, force });
    const pull = () => {
      const way = sub(mark.to, this.place(frame)), long = norm(way) || 1;
      const size = (this.bounds?.[target] ?? 0) * Math.min(1, 2 * long / data.view.size);
      if (!this.asking) ask(way.map((v) => v / long * size));
    };
    const done = () => { scene.marks = []; ask([0, 0, 0]); };
    return { mark, pull, done, from: () => this.place(frame),
      normal: sub(scene.placed.eye, scene.placed.at) };
  }

  // Move the goal, or else the body of the trail, at its current height; across the view if
  // the camera is near that height.
  _aim() {
    const { goal = this.place(this.data.trail ?? 0) } = this, mark = { at: goal, color: GOAL };
    const back = unit(sub(this.scene.placed.eye, goal));
    const normal = Math.abs(back[2]) > GRAZING ? [0, 0, 1] : back;
    return { mark, from: () => mark.at, normal, done: () => this._go(mark.at) };
  }

  async _go(position) {
    const shown = { at: position, color: GOAL }, kept = this.goal;
    this.goal = position;
    if (this.scene && position.length === 3) this.scene.marks = [shown];
    if (await this._ask({ name: "goal", position })) return;
    this.goal = kept;
    if (this.scene) this.scene.marks = [];
    this.timeline.dirty = true;
  }

  _say(text) { document.getElementById("plant").textContent = text; }

  async _ask(request) {
    const asked = { method: "POST", body: JSON.stringify(request) };
    this.asking = true;
    const answer = await fetch("/requests", asked).catch(() => null);
    this.asking = false;
    const { done, message } = answer?.ok ? await answer.json()
      : { message: answer ? await answer.text() : "the view does not answer" };
    const text = `${done ? "" : "refused: "}${message}`, className = done ? "" : "error";
    Object.assign(document.getElementById("answer"), { textContent: text, className });
    return done;
  }

  _connect() {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/states`);
    socket.onmessage = (event) => this._take(JSON.parse(event.data));
    socket.onclose = () => setTimeout(() => this._connect(), RETRY_MS);
  }

  _take({ status: { state, factor, silent, nodes, missed, bounds, scenario }, frame }) {
    this.heard = performance.now();
    if (scenario && scenario !== (this.scenario ??= scenario)) location.reload();
    if (nodes) {
      Object.assign(this, { bounds, missed });
      document.getElementById("nodes").replaceChildren(...nodes.map(([name, level, text]) =>
        Object.assign(document.createElement("li"),
          { className: level, textContent: `${name}: ${text}` })));
    }
    if (frame && frame.time !== this.last) this._append(frame);
    this._say(state + (silent > 1 ? ` for ${silent.toFixed(0)} s` : "")
      + (factor === null ? "" : `, ${factor.toFixed(2)}× real time`)
      + (this.missed ? `, ${this.missed} missed steps` : ""));
  }

  _append(frame) {
    const { data, scene, plots, timeline } = this, first = !(frame.time > this.last);
    const follows = first || (timeline.playing && timeline.now >= timeline.last - NEAR_S);
    if (first) // the first state, also after a reset
      for (const one of [this.times, ...this.parts, ...this.curves]) one.start = one.end = 0;
    this.last = frame.time;
    data.times = timeline.times = this.times.push([frame.time]);
    this.names.forEach((name, i) => { data[name] = this.parts[i].push(frame[name]); });
    this.curves.forEach((curve, i) => { plots.plots[i].values = curve.push(frame.curves[i]); });
    const whole = [data.times[0], Math.max(frame.time, data.times[0] + 1)];
    if (plots.range === plots.all || first) plots.range = whole;
    plots.all = whole;
    if (scene) scene.path = undefined;
    Object.assign(document.getElementById("time"), { min: whole[0], max: frame.time });
    timeline.show(follows ? frame.time : timeline.now);
  }
}

window.page.live = new Live(window.page);

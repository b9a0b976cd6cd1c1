// The current time: playing, seeking, keys, and the link that contains time and camera.
import { below, clamp } from "./vectors.js";

const LINK_MS = 300;

export class Timeline {
  constructor(times, draw) {
    this.times = times; this.draw = draw; this.now = times[0]; this.speed = 1;
    this.playing = false; this.dirty = this.loops = true;
  }

  get last() { return this.times[this.times.length - 1]; }

  seek(time) {
    this.playing = false;
    this.show(time);
  }

  show(time) {
    this.now = clamp(time, this.times[0], this.last);
    this.dirty = true;
  }

  // Moves by frames; from between two frames to the next one on that side.
  step(frames) {
    const k = below(this.times, this.now), between = this.times[k] < this.now - 1e-6;
    const row = k + frames + (between && frames < 0 ? 1 : 0);
    this.seek(this.times[clamp(row, 0, this.times.length - 1)]);
  }

  toggle() {
    if (!this.playing && this.loops && this.now >= this.last) this.now = this.times[0];
    this.playing = !this.playing;
    this.dirty = true;
  }

  start() {
    const tick = (before) => (at) => {
      if (this.playing) {
        const next = this.now + (at - before) / 1000 * this.speed;
        this.show(this.loops && next > this.last ? this.times[0] : next);
      }
      if (this.dirty) { this.dirty = false; this.draw(this.now); }
      requestAnimationFrame(tick(at));
    };
    requestAnimationFrame((at) => tick(at)(at));
  }
}

// Actions of the page by the names of their keys in events.
export const KEYS = {
  " ": "play", ArrowLeft: "back", ArrowRight: "forward", Home: "start", End: "end",
  r: "reference", t: "trail", f: "follow", h: "home", p: "picture",
  "+": "faster", "-": "slower",
};

export function onKeys(actions) {
  document.addEventListener("keydown", (event) => {
    const action = KEYS[event.key];
    const typing = event.target.matches?.("select, input:not([type=range]):not([type=checkbox])");
    const pressing = event.key === " " && event.target.matches?.("button, input[type=checkbox]");
    if (!action || typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[action](event.shiftKey ? 10 : 1);
  });
}

// Time and camera in the part of the address after #.
export const Link = {
  read() {
    const found = new URLSearchParams(location.hash.slice(1));
    const camera = (found.get("camera") ?? "").split(",").map(Number), time = found.get("t");
    return {
      time: Number.isFinite(parseFloat(time)) ? +time : null, run: +(found.get("run") ?? 0),
      camera: camera.length === 6 && camera.every(Number.isFinite) ? camera : null,
    };
  },

  write(time, camera, done) {
    clearTimeout(this.later);
    if (location.protocol === "about:") return; // a frame in a notebook has no address
    this.later = setTimeout(() => {
      const { yaw = 0, pitch = 0, distance = 1, at = [0, 0, 0] } = camera ?? {};
      const text = [yaw, pitch, distance, ...at].map((v) => +v.toFixed(4)).join(",");
      const run = document.getElementById("runs")?.selectedIndex ?? 0;
      history.replaceState(null, "", `#t=${time.toFixed(3)}&camera=${text}&run=${run}`);
      done?.();
    }, LINK_MS);
  },
};

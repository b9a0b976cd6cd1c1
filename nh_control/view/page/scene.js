// The drawing of an animation at a time: shapes, cables, arrows, trails, and the camera.
import { add, below, clamp, cross, dot, norm, posed, product, rod, sub, unit } from "./vectors.js";

const GHOST = 0.28, THROUGH = 0.5, TRAIL_S = 5, NEAR = 0.003;
const ARROW = [0.1, 0.6, 0.25, 1], SLACK = [0.45, 0.47, 0.5];
const TRAIL = [0.95, 0.45, 0.05, 1], PATH = [0.45, 0.5, 0.6, 0.7], OUTLINE = [0.55, 0.57, 0.6, 1];

export class Scene {
  constructor(renderer, data) {
    this.renderer = renderer; this.data = data; this.shown = { reference: true, trail: true };
    this.marks = []; // balls {at, color} and arrows {frame, to, color} that are added
    this.shapes = data.shapes.map((s) => ({
      mesh: renderer.mesh[s.mesh], frame: s.frame, color: [...s.color, s.opacity],
      local: posed([...s.offset, Math.cos(s.roll / 2), Math.sin(s.roll / 2), 0, 0], s.extents),
    }));
    this.home();
  }

  home() {
    const { center, yaw, pitch, field, follow } = this.data.view;
    this.camera = { at: [...center], yaw, pitch, distance: this._fitting(), field };
    this.shown.follow = follow;
    if (follow) this.camera.distance *= 0.3;
  }

  // The distance at which the whole motion is visible in a canvas of this shape.
  _fitting() {
    const { clientWidth, clientHeight } = this.renderer.canvas;
    const aspect = clientHeight ? clientWidth / clientHeight : 16 / 9;
    const { aspects, distances } = this.data.view, k = below(aspects, aspect);
    const next = Math.min(k + 1, aspects.length - 1), step = aspects[next] - aspects[k];
    const part = step > 0 ? clamp((aspect - aspects[k]) / step, 0, 1) : 0;
    return (1 - part) * distances[k] + part * distances[next];
  }

  // Numbers [x, y, z, qw, qx, qy, qz] of a frame at a time.
  pose(poses, frame, time) {
    const { times, frames } = this.data, k = below(times, time), width = 7 * frames.length;
    const next = Math.min(k + 1, times.length - 1), step = times[next] - times[k];
    const part = step > 0 ? clamp((time - times[k]) / step, 0, 1) : 0;
    const out = [], a = width * k + 7 * frame, b = width * next + 7 * frame;
    for (let i = 0; i < 7; i++) out.push((1 - part) * poses[a + i] + part * poses[b + i]);
    const length = Math.hypot(out[3], out[4], out[5], out[6]);
    for (let i = 3; i < 7; i++) out[i] /= length;
    return out;
  }

  draw(time) {
    const { data, renderer, camera } = this, solid = [], ghost = [], ribbons = [];
    const of = (poses) => {
      const kept = new Map();
      return (frame) => {
        if (!kept.has(frame)) kept.set(frame, this.pose(poses, frame, time));
        return kept.get(frame);
      };
    };
    const run = of(data.run), other = data.reference && this.shown.reference && of(data.reference);
    for (const s of this.shapes) {
      const model = product(posed(run(s.frame)), s.local);
      solid.push({ mesh: s.mesh, color: s.color, model });
      if (!other) continue;
      this._ghost(ghost, s.mesh, s.color, model, product(posed(other(s.frame)), s.local));
    }
    data.cables.forEach((c, i) => {
      const rope = (at) => rod(at(c.start).slice(0, 3), at(c.end).slice(0, 3), c.diameter);
      const model = rope(run), color = [...this._heat(i, time), 1], mesh = renderer.mesh.cylinder;
      solid.push({ mesh, color, model });
      if (other) this._ghost(ghost, mesh, [...SLACK, 1], model, rope(other));
    });
    this._arrows(solid, run, time);
    for (const { frame, at, to, color } of this.marks) {
      const d = new Array(3).fill(0.06 * data.view.size), { sphere } = renderer.mesh;
      if (at) solid.push({ mesh: sphere, color, model: posed([...at, 1, 0, 0, 0], d) });
      else this._arrow(solid, run(frame).slice(0, 3), to, color);
    }
    this._outline(solid, run);
    this._trails(ribbons, time);
    renderer.draw(this.placed = this._placed(run), data.view, solid, ghost, ribbons);
  }

  _ghost(ghost, mesh, color, model, expected) {
    const apart = Math.max(...expected.map((v, i) => Math.abs(v - model[i])));
    if (apart < NEAR * this.data.view.size) return; // at the same place they would only flicker
    ghost.push({ mesh, color: [...color.slice(0, 3), GHOST * color[3]], model: expected });
  }

  _arrows(solid, run, time) {
    const { arrows, arrowLengths, times } = this.data, row = below(times, time);
    arrows.forEach((arrow, i) => {
      const pose = run(arrow.frame), m = posed(pose), z = [m[8], m[9], m[10]];
      const start = add(pose.slice(0, 3), z, arrow.offset);
      this._arrow(solid, start, add(start, z, arrowLengths[row * arrows.length + i]), ARROW);
    });
  }

  _arrow(solid, start, end, color) {
    const thick = 0.012 * this.data.view.size + 0.008, along = sub(end, start), long = norm(along);
    if (!(long > thick / 4)) return;
    const neck = add(end, along, -Math.min(1, 4 * thick / long));
    const { cylinder, cone } = this.renderer.mesh, through = [...color.slice(0, 3), THROUGH];
    solid.push({ mesh: cylinder, color, model: rod(start, neck, thick), through });
    solid.push({ mesh: cone, color, model: rod(neck, end, 2.5 * thick), through });
  }

  // The point under a pixel in the plane through a point with this normal; null if not visible.
  under([x, y], point, normal) {
    const { placed: { eye, at, field }, camera, renderer } = this, back = unit(sub(eye, at));
    const { clientWidth: w, clientHeight: h } = renderer.canvas, t = 2 * Math.tan(field / 2) / h;
    const right = unit(cross([0, 0, 1], back));
    const ray = add(add(sub([0, 0, 0], back), right, (x - w / 2) * t),
      cross(back, right), (h / 2 - y) * t);
    const far = dot(sub(point, eye), normal) / dot(ray, normal);
    return far > 0 && far < 20 * camera.distance ? add(eye, ray, far) : null;
  }

  _outline(solid, run) {
    const { outline, view } = this.data;
    outline.forEach((frame, i) => {
      const ends = [frame, outline[(i + 1) % outline.length]].map((f) => run(f).slice(0, 3));
      const model = rod(...ends, 0.004 * view.size);
      solid.push({ mesh: this.renderer.mesh.cylinder, color: OUTLINE, model });
    });
  }

  _trails(ribbons, time) {
    const { trail, times, run, reference } = this.data;
    if (trail === null || !this.shown.trail) return;
    const k = below(times, time), from = below(times, times[k] - TRAIL_S);
    const path = reference ?? run, thick = 0.004 * this.camera.distance;
    this.path ??= this._track(path, 0, times.length - 1);
    ribbons.push({ points: this.path, width: 0.6 * thick, color: PATH, fade: false });
    const points = [...this._track(run, from, k), ...this.pose(run, trail, time).slice(0, 3)];
    ribbons.push({ points, width: thick, color: TRAIL, fade: true });
  }

  _track(poses, from, to) {
    const width = 7 * this.data.frames.length, at = 7 * this.data.trail, out = [];
    for (let k = from; k <= to; k++)
      for (let j = 0; j < 3; j++) out.push(poses[k * width + at + j]);
    return out;
  }

  // Blue for the lowest load of a cable, red for the highest, gray for one that is slack.
  _heat(cable, time) {
    const { cables, loads, times, loadRange } = this.data;
    const load = loads[below(times, time) * cables.length + cable];
    if (!loadRange || !(load > 0)) return SLACK;
    const part = clamp((load - loadRange[0]) / (loadRange[1] - loadRange[0] || 1), 0, 1);
    return [0.16 + 0.69 * part, 0.35 - 0.2 * part, 0.8 - 0.7 * part];
  }

  // The camera {eye, at, ...}, which may follow the trail.
  _placed(run) {
    const c = this.camera, { trail, run: poses } = this.data;
    let at = c.at;
    if (this.shown.follow && trail !== null) {
      const start = Array.from(poses.slice(7 * trail, 7 * trail + 3));
      at = add(add(at, sub(start, this.data.view.center)), sub(run(trail).slice(0, 3), start));
    }
    const flat = Math.cos(c.pitch) * c.distance;
    const eye = add(at, [flat * Math.cos(c.yaw), flat * Math.sin(c.yaw),
      Math.sin(c.pitch) * c.distance]);
    return { ...c, at, eye };
  }

  turn(dx, dy) {
    this.camera.yaw -= 0.006 * dx;
    this.camera.pitch = clamp(this.camera.pitch + 0.006 * dy, -0.3, 1.55);
  }

  shift(dx, dy) {
    const c = this.camera, s = 0.0012 * c.distance, right = [-Math.sin(c.yaw), Math.cos(c.yaw), 0];
    c.at = add(add(c.at, right, -dx * s), [0, 0, 1], dy * s);
  }

  zoom(factor) {
    const { size } = this.data.view;
    this.camera.distance = clamp(this.camera.distance * factor, 0.02 * size, 50 * size);
  }
}

// The page: unpacks the animation and connects scene, plots, timeline and controls.
import { dark, Renderer } from "./renderer.js";
import { Scene } from "./scene.js";
import { Plots } from "./curves.js";
import { Link, onKeys, Timeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const PACKED = ["times", "run", "reference", "loads", "arrowLengths"];

// The numbers that page.py packed: deflated bytes of floats, grouped by significance.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer()), n = planes.length / 4;
  const out = new Uint8Array(4 * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < 4; j++) out[4 * i + j] = planes[j * n + i];
  return new Float32Array(out.buffer);
}

async function unpack(text) {
  const data = JSON.parse(text);
  for (const name of PACKED) if (data[name] !== null) data[name] = await unpacked(data[name]);
  for (const curve of data.curves) curve.values = await unpacked(curve.values);
  for (const mesh of Object.values(data.meshes))
    for (const part in mesh) mesh[part] = await unpacked(mesh[part]);
  return data;
}

function sceneOf(data) {
  try {
    return new Scene(new Renderer($("scene"), data.meshes), data);
  } catch (error) {
    $("message").textContent = `${error.message} The plots also work without the scene.`;
    $("message").hidden = false;
    document.body.classList.add("flat");
    return null;
  }
}

function mouse(canvas, scene, changed) {
  canvas.onpointerdown = (e) => canvas.setPointerCapture(e.pointerId);
  const pressed = new Map(); // touches by number, for two fingers
  canvas.onpointerup = canvas.onpointercancel = (e) => pressed.delete(e.pointerId);
  canvas.onpointermove = (e) => {
    if (!e.buttons) return;
    const [x, y] = pressed.get(e.pointerId) ?? [e.clientX, e.clientY], before = [x, y];
    const moved = [e.clientX - x, e.clientY - y];
    if (pressed.size === 2) {
      const [other] = [...pressed].filter(([id]) => id !== e.pointerId).map(([, at]) => at);
      const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]) || 1;
      scene.zoom(apart(before) / apart([e.clientX, e.clientY]));
    } else if (e.buttons & 2 || e.shiftKey) scene.shift(...moved);
    else scene.turn(...moved);
    pressed.set(e.pointerId, [e.clientX, e.clientY]);
    changed();
  };
  canvas.oncontextmenu = (e) => e.preventDefault();
  canvas.ondblclick = () => { scene.home(); changed(); };
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault(); scene.zoom(Math.exp(e.deltaY / 800)); changed();
  }, { passive: false });
}

// Keys that move the camera while the scene has the focus, in pixels of the mouse.
const CAMERA = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ZOOMS = { PageUp: 1 / 1.1, PageDown: 1.1 }, STEP_PX = 20;

function keyboard(canvas, scene, changed) {
  canvas.addEventListener("keydown", (e) => {
    const [x, y] = (CAMERA[e.key] ?? [0, 0]).map((n) => STEP_PX * n), zoom = ZOOMS[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey || !(zoom || x || y)) return;
    e.preventDefault(); e.stopPropagation();
    if (zoom) scene.zoom(zoom);
    else if (e.shiftKey) scene.shift(x, y);
    else scene.turn(x, y);
    changed();
  });
}

function saved(name, url) {
  const link = document.createElement("a");
  link.href = url; link.download = name; link.click();
}

function film(canvas, timeline, done) {
  const kept = [], recorder = new MediaRecorder(canvas.captureStream(30));
  recorder.ondataavailable = (e) => kept.push(e.data);
  recorder.onstop = () => done(URL.createObjectURL(new Blob(kept, { type: "video/webm" })));
  timeline.show(timeline.times[0]); timeline.playing = true;
  recorder.start();
  const whole = (timeline.last - timeline.times[0]) / timeline.speed;
  setTimeout(() => { recorder.stop(); timeline.seek(timeline.last); }, 1000 * whole);
}

const runs = document.querySelectorAll(".run"), link = Link.read();
const data = await unpack((runs[link.run - 1] ?? $("data")).textContent);
const scene = sceneOf(data), canvas = $("scene");
const plots = new Plots($("plots"), data, (t) => timeline.seek(t));
const timeline = new Timeline(data.times, (now) => {
  $("time").value = now; $("clock").textContent = `${now.toFixed(2)} s`;
  $("play").textContent = timeline.playing ? "Pause" : "Play";
  plots.draw(now);
  if (!scene) return;
  for (const name of ["reference", "trail", "follow"]) $(name).checked = scene.shown[name];
  scene.draw(now);
  if (!timeline.playing) Link.write(now, scene.camera);
});
const redraw = () => { timeline.dirty = true; };
const flip = (name) => () => { if (scene) scene.shown[name] = !scene.shown[name]; redraw(); };
const speeds = [...$("speed").options].map((option) => option.value);
const faster = (by) => {
  const at = Math.min(speeds.length - 1, Math.max(0, $("speed").selectedIndex + by));
  $("speed").selectedIndex = at; $("speed").onchange();
};
const picture = () => { scene.draw(timeline.now); saved("scene.png", canvas.toDataURL()); };
const actions = {
  play: () => timeline.toggle(),
  back: (n) => timeline.step(-n), forward: (n) => timeline.step(n),
  start: () => timeline.seek(data.times[0]), end: () => timeline.seek(timeline.last),
  reference: flip("reference"), trail: flip("trail"), follow: flip("follow"),
  home: () => { scene?.home(); redraw(); }, picture: () => scene && picture(),
  faster: () => faster(1), slower: () => faster(-1),
};

$("title").textContent = data.title;
$("time").min = data.times[0]; $("time").max = timeline.last;
$("time").oninput = () => timeline.seek(+$("time").value);
$("play").onclick = actions.play; $("picture").onclick = actions.picture;
$("film").onclick = () => scene && film(canvas, timeline, (url) => saved("scene.webm", url));
$("speed").onchange = () => { timeline.speed = +$("speed").value; };
for (const name of ["reference", "trail", "follow"]) $(name).onchange = actions[name];
$("reference").disabled = !scene || data.reference === null;
$("trail").disabled = $("follow").disabled = !scene || data.trail === null;
$("picture").disabled = $("film").disabled = !scene;
onKeys(actions);
new ResizeObserver(redraw).observe(document.body);
dark.addEventListener("change", redraw);
if (runs.length) {
  $("runs").selectedIndex = link.run;
  $("runs").onchange = () => Link.write(timeline.now, scene?.camera, () => location.reload());
}
if (scene) {
  mouse(canvas, scene, redraw);
  keyboard(canvas, scene, redraw);
  if (link.camera) {
    const [yaw, pitch, distance, ...at] = link.camera;
    Object.assign(scene.camera, { yaw, pitch, distance, at });
  }
}
if (link.time === null) timeline.playing = true; else timeline.seek(link.time);
timeline.start();
window.page = { data, scene, plots, timeline };

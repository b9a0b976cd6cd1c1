// A small WebGL 2 renderer: lit solids and ribbons over a ground with shadows.
import { add, cross, look, orthographic, perspective, product, sub, unit } from "./vectors.js";
import { solids, SQUARE } from "./solids.js";

const BACKGROUND = [0.975, 0.98, 0.99], SHADOW_PX = 1024;
const SOLID = 0, GROUND = 1, RIBBON = 2, DEPTH = 3;
const UNIFORMS = ["model", "view", "light", "raw", "color", "eye", "sun", "center", "extent",
  "kind", "shadows", "bias", "background", "grid"];

const VERTEX = `#version 300 es
layout(location=0) in vec3 place; layout(location=1) in vec3 normal;
layout(location=2) in float fade;
uniform mat4 model, view, light; uniform bool raw; uniform float bias;
out vec3 world, n; out vec4 lit; out float visible;
void main() {
  vec4 w = raw ? vec4(place, 1.) : model * vec4(place, 1.);
  world = w.xyz; visible = raw ? fade : 1.;
  n = raw ? vec3(0., 0., 1.) : mat3(model) * (normal / vec3(dot(model[0].xyz, model[0].xyz),
    dot(model[1].xyz, model[1].xyz), dot(model[2].xyz, model[2].xyz)));
  lit = light * vec4(w.xyz + bias * normalize(n), 1.);  // off the surface: no shade on itself
  gl_Position = view * w;
  if (raw) gl_Position.z -= 2e-3 * gl_Position.w;  // lines on the ground lie above it
}`;

const FRAGMENT = `#version 300 es
precision highp float; precision highp sampler2DShadow;
in vec3 world, n; in vec4 lit; in float visible;
uniform vec4 color; uniform vec3 eye, sun, center, background; uniform float extent, grid;
uniform int kind; uniform sampler2DShadow shadows;
out vec4 pixel;
float line(float step, float width) {
  vec2 p = world.xy / step, w = fwidth(p), d = abs(fract(p - .5) - .5) / max(w, 1e-5);
  return (1. - min(min(d.x, d.y) / width, 1.)) * clamp(1.2 - 3. * max(w.x, w.y), 0., 1.);
}
float sunlight() {
  vec3 p = lit.xyz / lit.w * .5 + .5; float s = 0.;
  if (any(greaterThan(abs(p - .5), vec3(.5)))) return 1.;
  for (int i = -1; i < 2; i++) for (int j = -1; j < 2; j++)
    s += texture(shadows, vec3(p.xy + vec2(i, j) * 1.2 / ${SHADOW_PX}., p.z - .0008));
  return s / 9.;
}
void main() {
  if (kind == ${DEPTH}) { pixel = vec4(1.); return; }
  if (kind == ${RIBBON}) { pixel = vec4(color.rgb, color.a * visible); return; }
  if (kind == ${GROUND}) {
    float far = clamp((length(world.xy - center.xy) - extent) / (2.5 * extent), 0., 1.);
    vec3 c = mix(vec3(.93, .94, .955), vec3(.72, .75, .79), .55 * line(grid, 1.2));
    c = mix(c, vec3(.80, .82, .85), .35 * line(grid / 4., 1.)) * mix(.72, 1., sunlight());
    pixel = vec4(mix(c, background, far), 1.); return;
  }
  vec3 m = normalize(n), v = normalize(eye - world), h = normalize(sun + v);
  vec3 c = pow(color.rgb, vec3(2.2));
  float d = max(dot(m, sun), 0.) * sunlight(), sky = .5 + .5 * m.z;
  vec3 o = c * (.22 + .33 * sky + .62 * d) + .12 * pow(max(dot(m, h), 0.), 40.) * d;
  o += c * .25 * pow(1. - max(dot(m, v), 0.), 3.);
  pixel = vec4(pow(o, vec3(1. / 2.2)), color.a);
}`;

export class Renderer {
  constructor(canvas) {
    const options = { antialias: true, alpha: false, preserveDrawingBuffer: true };
    const gl = this.gl = canvas.getContext("webgl2", options);
    if (!gl) throw new Error("This browser shows no WebGL 2, which the scene needs.");
    this.canvas = canvas;
    this._program();
    this.mesh = {};
    for (const [kind, numbers] of Object.entries({ ...solids(), ground: SQUARE }))
      this.mesh[kind] = this._buffer(new Float32Array(numbers), [3, 3]);
    this.ribbon = this._buffer(new Float32Array(0), [3, 0, 1]);
    this._shadows();
    gl.clearColor(...BACKGROUND, 1);
    gl.enable(gl.DEPTH_TEST); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  // One picture. Solids are {mesh, model, color (4)}, ribbons {points, width, color (4), fade};
  // the camera is {eye, at, field, distance}, bounds {center, size, ground, sun}.
  draw(camera, bounds, solid, ghost, ribbons) {
    const gl = this.gl, u = this.u, { size, sun } = bounds;
    const [w, h] = this._fit();
    const far = add(camera.at, sun, 4 * size);
    const light = product(orthographic(size, 8 * size), look(far, camera.at));
    const view = this.view = product(
      perspective(camera.field, w / h, camera.distance / 100, camera.distance * 20 + 10 * size),
      look(camera.eye, camera.at));
    gl.uniform3fv(u.center, camera.at); gl.uniform3fv(u.eye, camera.eye);
    gl.uniform3fv(u.sun, sun);
    gl.uniform3fv(u.background, BACKGROUND);
    gl.uniform1f(u.extent, Math.max(size, 0.7 * camera.distance));
    gl.uniform1f(u.bias, size / 170);
    gl.uniform1f(u.grid, 2 ** Math.round(Math.log2(camera.distance / 6)));
    gl.uniform1i(u.raw, 0); gl.uniform1i(u.shadows, 0); gl.uniformMatrix4fv(u.light, false, light);
    this._drawShadows(light, solid);
    gl.viewport(0, 0, w, h); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix4fv(u.view, false, view);
    gl.uniform1i(u.kind, GROUND);
    const wide = 6 * Math.max(size, camera.distance), [x, y] = camera.at;
    this._solid({ mesh: this.mesh.ground, color: [1, 1, 1, 1],
      model: [wide, 0, 0, 0, 0, wide, 0, 0, 0, 0, 1, 0, x, y, bounds.ground, 1] });
    gl.uniform1i(u.kind, SOLID);
    for (const s of solid) if (s.color[3] >= 1) this._solid(s);
    gl.enable(gl.BLEND);
    gl.depthMask(false); // what is seen through hides nothing
    this._ribbons(camera, ribbons);
    gl.uniform1i(u.kind, SOLID);
    gl.depthMask(true);
    const clear = [...solid.filter((s) => s.color[3] < 1), ...ghost];
    for (const mask of [false, true]) { // depth first: nothing shines through itself
      gl.colorMask(mask, mask, mask, mask); gl.depthFunc(mask ? gl.LEQUAL : gl.LESS);
      for (const s of clear) this._solid(s);
    }
    gl.depthFunc(gl.LESS); gl.disable(gl.BLEND);
  }

  // Where a point is on the canvas, in CSS pixels.
  project(p) {
    const v = this.view, w = v[3] * p[0] + v[7] * p[1] + v[11] * p[2] + v[15];
    const at = (i) => (v[i] * p[0] + v[4 + i] * p[1] + v[8 + i] * p[2] + v[12 + i]) / w;
    return [(0.5 + at(0) / 2) * this.canvas.clientWidth,
      (0.5 - at(1) / 2) * this.canvas.clientHeight];
  }

  _program() {
    const gl = this.gl, program = gl.createProgram();
    for (const [type, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, text); gl.compileShader(shader); gl.attachShader(program, shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS))
        throw new Error(`The scene's shader was refused: ${gl.getShaderInfoLog(shader)}`);
    }
    gl.linkProgram(program); gl.useProgram(program);
    this.u = Object.fromEntries(UNIFORMS.map((n) => [n, gl.getUniformLocation(program, n)]));
  }

  _shadows() {
    const gl = this.gl;
    this.map = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.map);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.DEPTH_COMPONENT24, SHADOW_PX, SHADOW_PX, 0,
      gl.DEPTH_COMPONENT, gl.UNSIGNED_INT, null);
    for (const [key, value] of [
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE],
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ]) gl.texParameteri(gl.TEXTURE_2D, key, value);
    this.shadowed = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowed);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.map, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  _drawShadows(light, solid) {
    const gl = this.gl;
    gl.bindTexture(gl.TEXTURE_2D, null);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowed);
    gl.viewport(0, 0, SHADOW_PX, SHADOW_PX); gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.uniform1i(this.u.kind, DEPTH); gl.uniformMatrix4fv(this.u.view, false, light);
    for (const s of solid) this._solid(s);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null); gl.bindTexture(gl.TEXTURE_2D, this.map);
  }

  _fit() {
    const c = this.canvas, d = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [c.clientWidth, c.clientHeight].map((n) => Math.max(1, Math.round(n * d)));
    if (c.width !== w || c.height !== h) { c.width = w; c.height = h; }
    return [w, h];
  }

  _buffer(numbers, sizes) {
    const gl = this.gl, array = gl.createVertexArray(), buffer = gl.createBuffer();
    gl.bindVertexArray(array); gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, numbers, gl.DYNAMIC_DRAW);
    const stride = 4 * sizes.reduce((a, b) => a + b);
    let offset = 0;
    sizes.forEach((n, i) => {
      if (!n) return;
      gl.enableVertexAttribArray(i);
      gl.vertexAttribPointer(i, n, gl.FLOAT, false, stride, offset);
      offset += 4 * n;
    });
    return { array, buffer, count: numbers.length * 4 / stride };
  }

  _solid({ mesh, model, color }) {
    const gl = this.gl;
    gl.uniformMatrix4fv(this.u.model, false, model); gl.uniform4fv(this.u.color, color);
    gl.bindVertexArray(mesh.array); gl.drawArrays(gl.TRIANGLES, 0, mesh.count);
  }

  _ribbons(camera, ribbons) {
    const gl = this.gl;
    gl.uniform1i(this.u.kind, RIBBON); gl.uniform1i(this.u.raw, 1);
    gl.bindVertexArray(this.ribbon.array);
    for (const { points, width, color, fade } of ribbons) {
      const n = points.length / 3, numbers = new Float32Array(8 * n);
      if (n < 2) continue;
      const at = (i) => [points[3 * i], points[3 * i + 1], points[3 * i + 2]];
      let side = [0, 0, 0];
      for (let i = 0; i < n; i++) {
        const along = sub(at(Math.min(n - 1, i + 1)), at(Math.max(0, i - 1)));
        const across = cross(along, sub(camera.eye, at(i)));
        if (Math.hypot(...across) > 0) side = unit(across);
        const seen = fade ? i / n : 1;
        numbers.set([...add(at(i), side, width / 2), seen, ...add(at(i), side, -width / 2), seen],
          8 * i);
      }
      gl.bindBuffer(gl.ARRAY_BUFFER, this.ribbon.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, numbers, gl.DYNAMIC_DRAW);
      gl.uniform4fv(this.u.color, color); gl.drawArrays(gl.TRIANGLE_STRIP, 0, 2 * n);
    }
    gl.uniform1i(this.u.raw, 0);
  }
}

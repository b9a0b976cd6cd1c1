// A small WebGL 2 renderer: lit solids and ribbons over a ground with shadows.
import { add, cross, look, orthographic, perspective, product, sub, unit } from "./vectors.js";

const SHADOW_PX = 1024;
const LIGHT = { background: [0.975, 0.98, 0.99], ground: [0.93, 0.94, 0.955],
  mark: [0.72, 0.75, 0.79] };
const DARK = { background: [0.09, 0.10, 0.12], ground: [0.15, 0.16, 0.185],
  mark: [0.34, 0.37, 0.41] };
export const dark = matchMedia("(prefers-color-scheme: dark)");
const SOLID = 0, GROUND = 1, RIBBON = 2, DEPTH = 3;
const UNIFORMS = ["model", "view", "light", "raw", "color", "eye", "sun", "center", "extent",
  "kind", "shadows", "bias", "background", "ground", "mark", "grid"];

export class Renderer {
  constructor(canvas, meshes) {
    const options = { antialias: true, alpha: false, preserveDrawingBuffer: true };
    const gl = this.gl = canvas.getContext("webgl2", options);
    if (!gl) throw new Error("This browser does not support WebGL 2, which the scene needs.");
    this.canvas = canvas;
    this._program();
    this.mesh = {};
    for (const [name, { corners, triangles }] of Object.entries(meshes))
      this.mesh[name] = this._buffer(corners, [3, 3], Uint32Array.from(triangles));
    this.ribbon = this._buffer(new Float32Array(0), [3, 0, 1]);
    this._shadows();
    gl.enable(gl.DEPTH_TEST); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  // One picture. Solids are {mesh, model, color (4), through (color behind others)}, ribbons
  // {points, width, color, fade}; camera {eye, at, field, distance}, bounds {center, size, ...}.
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
    const colors = dark.matches ? DARK : LIGHT;
    for (const name in colors) gl.uniform3fv(u[name], colors[name]);
    gl.clearColor(...colors.background, 1);
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
    gl.depthMask(false); // transparent solids hide nothing
    this._ribbons(camera, ribbons);
    gl.uniform1i(u.kind, SOLID);
    gl.depthMask(true);
    const clear = [...solid.filter((s) => s.color[3] < 1), ...ghost];
    for (const mask of [false, true]) { // depth first: a solid is not seen through itself
      gl.colorMask(mask, mask, mask, mask); gl.depthFunc(mask ? gl.LEQUAL : gl.LESS);
      for (const s of clear) this._solid(s);
    }
    gl.depthFunc(gl.GREATER); gl.depthMask(false); // parts that are seen through bodies
    for (const s of solid) if (s.through) this._solid({ ...s, color: s.through });
    gl.depthMask(true); gl.depthFunc(gl.LESS); gl.disable(gl.BLEND);
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
    const both = [[gl.VERTEX_SHADER, "vertex"], [gl.FRAGMENT_SHADER, "fragment"]];
    for (const [type, id] of both) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, document.getElementById(id).textContent);
      gl.compileShader(shader); gl.attachShader(program, shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS))
        throw new Error(`The scene's shader does not compile: ${gl.getShaderInfoLog(shader)}`);
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

  _buffer(numbers, sizes, triangles = []) {
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
    if (triangles.length) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, triangles, gl.STATIC_DRAW);
    }
    return { array, buffer, count: triangles.length };
  }

  _solid({ mesh, model, color }) {
    const gl = this.gl;
    gl.uniformMatrix4fv(this.u.model, false, model); gl.uniform4fv(this.u.color, color);
    gl.bindVertexArray(mesh.array);
    gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
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

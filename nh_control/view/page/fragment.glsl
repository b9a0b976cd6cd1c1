#version 300 es
precision highp float; precision highp sampler2DShadow;
const int GROUND = 1, RIBBON = 2, DEPTH = 3, SHADOW_PX = 1024;  // as in renderer.js
in vec3 world, n; in vec4 lit; in float visible;
uniform vec4 color; uniform vec3 eye, sun, center, background, ground, mark; uniform float extent, grid;
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
    s += texture(shadows, vec3(p.xy + vec2(i, j) * 1.2 / float(SHADOW_PX), p.z - .0008));
  return s / 9.;
}
void main() {
  if (kind == DEPTH) { pixel = vec4(1.); return; }
  if (kind == RIBBON) { pixel = vec4(color.rgb, color.a * visible); return; }
  if (kind == GROUND) {
    float far = clamp((length(world.xy - center.xy) - extent) / (2.5 * extent), 0., 1.);
    vec3 c = mix(ground, mark, .55 * line(grid, 1.2));
    c = mix(c, mix(ground, mark, .6), .35 * line(grid / 4., 1.)) * mix(.72, 1., sunlight());
    pixel = vec4(mix(c, background, far), 1.); return;
  }
  vec3 m = normalize(n), v = normalize(eye - world), h = normalize(sun + v);
  vec3 c = pow(color.rgb, vec3(2.2));
  float d = max(dot(m, sun), 0.) * sunlight(), sky = .5 + .5 * m.z;
  vec3 o = c * (.22 + .33 * sky + .62 * d) + .12 * pow(max(dot(m, h), 0.), 40.) * d;
  o += c * .25 * pow(1. - max(dot(m, v), 0.), 3.);
  pixel = vec4(pow(o, vec3(1. / 2.2)), color.a);
}

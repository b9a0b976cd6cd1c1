// Vectors (3), unit quaternions (w, x, y, z) and matrices (16, by columns); z is up, lengths in m.

export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const add = (a, b, t = 1) => [a[0] + t * b[0], a[1] + t * b[1], a[2] + t * b[2]];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) =>
  [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const norm = (a) => Math.hypot(...a);
export const unit = (a) => { const n = norm(a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };
export const clamp = (v, low, high) => Math.min(high, Math.max(low, v));

export const product = (a, b) => Array.from({ length: 16 }, (_, i) =>
  [0, 1, 2, 3].reduce((sum, k) => sum + a[4 * k + i % 4] * b[(i & 12) + k], 0));

// The matrix of a pose [x, y, z, qw, qx, qy, qz] with axes scaled by s.
export function posed([x, y, z, w, a, b, c], s = [1, 1, 1]) {
  return [
    (1 - 2 * (b * b + c * c)) * s[0], 2 * (a * b + c * w) * s[0], 2 * (a * c - b * w) * s[0], 0,
    2 * (a * b - c * w) * s[1], (1 - 2 * (a * a + c * c)) * s[1], 2 * (b * c + a * w) * s[1], 0,
    2 * (a * c + b * w) * s[2], 2 * (b * c - a * w) * s[2], (1 - 2 * (a * a + b * b)) * s[2], 0,
    x, y, z, 1];
}

// The matrix that makes a solid of unit length along z reach from a to b with a diameter.
export function rod(a, b, diameter) {
  const d = sub(b, a), length = norm(d), z = length > 0 ? unit(d) : [0, 0, 1];
  const x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z)), y = cross(z, x);
  return [...x.map((v) => v * diameter), 0, ...y.map((v) => v * diameter), 0,
    ...z.map((v) => v * length), 0, ...add(a, d, 0.5), 1];
}

export function look(eye, at) {
  const f = unit(sub(eye, at)), r = unit(cross([0, 0, 1], f)), u = cross(f, r);
  return [r[0], u[0], f[0], 0, r[1], u[1], f[1], 0, r[2], u[2], f[2], 0,
    -dot(r, eye), -dot(u, eye), -dot(f, eye), 1];
}

export function perspective(field, aspect, near, far) {
  const f = 1 / Math.tan(field / 2), d = 1 / (near - far);
  const depth = (near + far) * d, last = 2 * near * far * d;
  return [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, depth, -1, 0, 0, last, 0];
}

export const orthographic = (size, far) =>
  [1 / size, 0, 0, 0, 0, 1 / size, 0, 0, 0, 0, -2 / far, 0, 0, 0, -1, 1];

// The last index whose time is not after t.
export function below(times, t) {
  let a = 0, b = times.length;
  while (b - a > 1) {
    const middle = (a + b) >> 1;
    if (times[middle] <= t + 1e-6) a = middle; else b = middle;
  }
  return a;
}

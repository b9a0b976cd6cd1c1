// Triangles of solids of unit size about the origin: places and normals, six numbers a corner.

const RING = 36, ROWS = 18;

export function solids() {
  return { box: box(), cylinder: turned(cylinder), cone: turned(cone), sphere: turned(sphere) };
}

export const SQUARE = [
  -1, -1, 0, 0, 0, 1, 1, -1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1,
  -1, -1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, -1, 1, 0, 0, 0, 1];

function box() {
  const out = [];
  for (let axis = 0; axis < 3; axis++) {
    for (const side of [-1, 1]) {
      const normal = [0, 0, 0];
      normal[axis] = side;
      const corner = (u, v) => {
        const p = [0, 0, 0];
        p[axis] = side / 2; p[(axis + 1) % 3] = u * side / 2; p[(axis + 2) % 3] = v / 2;
        return p;
      };
      quad(out, [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)], () => normal);
    }
  }
  return out;
}

// Profiles (radius, height, and the normal's two parts) from below to above.
const cylinder = [
  [[0, -0.5, 0, -1], [0.5, -0.5, 0, -1]], [[0.5, -0.5, 1, 0], [0.5, 0.5, 1, 0]],
  [[0.5, 0.5, 0, 1], [0, 0.5, 0, 1]]];
const cone = [
  [[0, -0.5, 0, -1], [0.5, -0.5, 0, -1]], [[0.5, -0.5, 0.9, 0.45], [0, 0.5, 0.9, 0.45]]];
const sphere = Array.from({ length: ROWS }, (_, j) => [j, j + 1].map((row) => {
  const t = Math.PI * row / ROWS - Math.PI / 2;
  return [Math.cos(t) / 2, Math.sin(t) / 2, Math.cos(t), Math.sin(t)];
}));

function turned(profile) {
  const out = [];
  for (let i = 0; i < RING; i++) {
    const [a, b] = [i, i + 1].map((k) => 2 * Math.PI * k / RING);
    for (const [low, high] of profile) {
      const corners = [[low, a], [low, b], [high, b], [high, a]];
      quad(out, corners.map(([p, angle]) => around(p[0], p[1], angle)),
        (k) => { const [p, angle] = corners[k]; return around(p[2], p[3], angle); });
    }
  }
  return out;
}

const around = (r, z, angle) => [r * Math.cos(angle), r * Math.sin(angle), z];

function quad(out, corners, normal) {
  for (const k of [0, 1, 2, 0, 2, 3]) out.push(...corners[k], ...normal(k));
}

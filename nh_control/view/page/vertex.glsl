#version 300 es
layout(location=0) in vec3 place; layout(location=1) in vec3 normal;
layout(location=2) in float fade;
uniform mat4 model, view, light; uniform bool raw; uniform float bias;
out vec3 world, n; out vec4 lit; out float visible;
void main() {
  vec4 w = raw ? vec4(place, 1.) : model * vec4(place, 1.);
  world = w.xyz; visible = raw ? fade : 1.;
  n = raw ? vec3(0., 0., 1.) : mat3(model) * (normal / vec3(dot(model[0].xyz, model[0].xyz),
    dot(model[1].xyz, model[1].xyz), dot(model[2].xyz, model[2].xyz)));
  lit = light * vec4(w.xyz + bias * normalize(n), 1.);  // off the surface: no shadow on itself
  gl_Position = view * w;
  if (raw) gl_Position.z -= 2e-3 * gl_Position.w;  // lines on the ground lie above it
}

"""Two quadrotors with a payload, 13 degrees of freedom: this package's compiled step and exact
linearization against MuJoCo's, in one run.

    pip install mujoco
    python test/benchmark/payload_mujoco.py

MuJoCo gets the model with the fewest possible unknowns: three slides, two hinges per link (13
degrees of freedom as here; singular if a link lies along the first hinge) and a ball joint per
quadrotor; contacts and constraints are switched off. Both are called from Python, step by step.
"""

from __future__ import annotations

import time

import casadi as ca
import mujoco
import numpy as np
from sizes import sized

from nh_control.integrators import midpoint
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters, quadrotor_payload

mujoco.set_mju_user_warning(
    lambda text: print(f"  MuJoCo: {text}")
)  # by default it leaves a log file in the working directory

P = QuadrotorPayloadParameters()
H = 0.01
TINY = 1e-12
"""Mass (kg) and inertia (kg m^2) of what is massless: MuJoCo asks for some."""


def mjcf(links: str) -> str:
    """The model as MJCF; `links` is "hinges" or "balls" (two more, massless degrees of freedom, no
    singularity).
    """
    joints = {
        "hinges": '<joint type="hinge" axis="1 0 0"/><joint type="hinge" axis="0 1 0"/>',
        "balls": '<joint type="ball"/>',
    }[links]
    gears = ("0 0 1 0 0 0", "0 0 0 1 0 0", "0 0 0 0 1 0", "0 0 0 0 0 1")
    bodies, actuators = "", ""
    for i, l in enumerate(P.lengths, 1):
        bodies += f"""
          <body>{joints}
            <inertial pos="0 0 {l}" mass="{P.quadrotor_mass}" diaginertia="{TINY} {TINY} {TINY}"/>
            <body name="quad{i}" pos="0 0 {l}"><joint type="ball"/>
              <inertial pos="0 0 0" mass="{TINY}" diaginertia="{P.Jx} {P.Jy} {P.Jz}"/>
              <site name="quad{i}"/>
            </body>
          </body>"""
        actuators += "".join(f'<general site="quad{i}" gear="{g}"/>' for g in gears)
    slides = "".join(f'<joint type="slide" axis="{a}"/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
    return f"""
      <mujoco>
        <compiler inertiafromgeom="false"/>
        <option timestep="{H}" gravity="0 0 {-P.g}"><flag contact="disable" constraint="disable"/></option>
        <worldbody>
          <body name="payload">{slides}
            <inertial pos="0 0 0" mass="{P.payload_mass}" diaginertia="{TINY} {TINY} {TINY}"/>{bodies}
          </body>
        </worldbody>
        <actuator>{actuators}</actuator>
      </mujoco>"""


class Mujoco:
    """A MuJoCo model with its data, and its states in the format of this package."""

    def __init__(self, links: str, integrator: str = "EULER", h: float = H):
        self.model = mujoco.MjModel.from_xml_string(mjcf(links))
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
        self.model.opt.timestep = h
        self.data = mujoco.MjData(self.model)
        self.quads = [
            mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, f"quad{i + 1}")
            for i in range(P.n)
        ]

    def set(self, qpos, qvel, ctrl=0.0):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:], self.data.ctrl[:] = qpos, qvel, ctrl
        mujoco.mj_forward(self.model, self.data)

    def step(self):
        mujoco.mj_step(self.model, self.data)

    def ours(self):
        """Configuration (17) and velocity (15) as `quadrotor_payload` stores them."""
        m, d = self.model, self.data
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_comVel(m, d)
        y, y_dot = d.qpos[:3].copy(), d.qvel[:3].copy()
        turns, omegas, directions, rates, moving = [], [], [], [], np.zeros(6)
        for quad, l in zip(self.quads, P.lengths):
            directions.append((d.xpos[quad] - y) / l)
            turns.append(d.xquat[quad].copy())
            mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_BODY, quad, moving, 0)
            rates.append((moving[3:] - y_dot) / l)
            mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_BODY, quad, moving, 1)
            omegas.append(moving[:3].copy())
        return np.concatenate([y, *turns, *directions]), np.concatenate([y_dot, *omegas, *rates])


def swing(rate: float = 2.0, spin: float = 0.5):
    """Return positions and velocities for the model with hinges: links 30 degrees from the
    vertical swing at about `rate`, quadrotors rotate at about `spin` (rad/s). The rotation is
    mostly about the first hinges, to avoid their singularity.
    """
    ball = np.array([0.9, 0.3, -0.2, 0.1]) / np.linalg.norm([0.9, 0.3, -0.2, 0.1])
    qpos = np.concatenate([np.zeros(3), [0.5, 0.1], ball, [-0.5, -0.15], ball * [1, -1, 1, 1]])
    omega = spin * np.array([0.8, -1.0, 0.7])
    qvel = np.concatenate(
        [[0.2, -0.1, 0.3], [rate, 0.1 * rate], omega, [-0.8 * rate, 0.05 * rate], -omega]
    )
    return qpos, qvel


def as_balls(start):
    """Return the same start for the model with ball joints."""
    hinges, balls = Mujoco("hinges"), Mujoco("balls")
    hinges.set(*start)
    d = hinges.data
    qpos, qvel = [d.qpos[:3]], [d.qvel[:3]]
    for i in range(len(hinges.quads)):
        at_q, at_v = 3 + 6 * i, 3 + 5 * i
        a, b = d.qpos[at_q : at_q + 2]
        turn = np.array(
            [
                np.cos(a / 2) * np.cos(b / 2),
                np.sin(a / 2) * np.cos(b / 2),
                np.cos(a / 2) * np.sin(b / 2),
                np.sin(a / 2) * np.sin(b / 2),
            ]
        )
        a_dot, b_dot = d.qvel[at_v : at_v + 2]
        qpos += [turn, d.qpos[at_q + 2 : at_q + 6]]
        qvel += [[a_dot * np.cos(b), b_dot, a_dot * np.sin(b)], d.qvel[at_v + 2 : at_v + 5]]
    balls.set(np.concatenate(qpos), np.concatenate(qvel))
    for one, other in zip(hinges.ours(), balls.ours()):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
    return np.concatenate(qpos), np.concatenate(qvel)


HOVERING = np.array([10.0, 0.02, -0.03, 0.01, 9.0, -0.01, 0.02, -0.02])


def warm_step(system):
    """A discrete system whose functions have been called once."""
    dsys = midpoint(system, H)
    x = dsys.state(system.space.origin, np.zeros(system.space.nw))
    dsys.linearize(x, HOVERING), dsys.energy(x)
    return dsys


def timed(calls: dict, repeats: int, batch: int, restart=lambda: None) -> dict[str, np.ndarray]:
    """Return microseconds per call of this thread's processor time, (repeats,) each, in
    alternating batches on the same machine.

    Processor time is independent of other programs. `restart` is called before every batch.
    """
    times = {name: [] for name in calls}
    repeats, batch = sized((repeats, batch), (1, 1))
    for _ in range(repeats):
        restart()
        for name, call in calls.items():
            wait_for_compiler()
            start = time.thread_time()
            for _ in range(batch):
                call()
            times[name].append((time.thread_time() - start) / batch * 1e6)
    return {name: np.array(t) for name, t in times.items()}


def report(title: str, times: dict, ours: str) -> None:
    """Print medians, least and largest values, and ratios of medians to this package's."""
    print(f"\n{title}, us: median (least ... largest)")
    for name, t in times.items():
        print(
            f"  {name:34s} {np.median(t):8.2f} ({t.min():.2f} ... {t.max():.2f})   "
            f"{np.median(t) / np.median(times[ours]):6.2f} of ours"
        )


def require_equal_models(links, system):
    """The mass matrix in the joints' velocities, and half a second of motion under thrusts:
    both at 1 and 0.5 ms, extrapolated to h = 0. (RK4 of MuJoCo 3.14 has order 2 here.)
    """
    other = Mujoco(links, "RK4", 1e-3)
    start = swing() if links == "hinges" else as_balls(swing())
    other.set(*start, HOVERING)
    q, v = other.ours()
    m, nv = other.model, other.model.nv
    expected = np.zeros((nv, nv))
    mujoco.mj_fullM(m, expected, other.data.qM) if hasattr(other.data, "qM") else mujoco.mj_fullM(
        m, other.data, expected
    )
    columns = []
    for e in np.eye(nv):
        other.data.qvel[:] = e
        columns.append(other.ours()[1])
    columns = np.array(columns).T
    qs, vs = ca.SX.sym("q", system.space.nq), ca.SX.sym("v", system.space.nw)
    kinetic = system.numeric.lagrangian_at(qs, vs)
    mass = ca.Function("mass", [qs], [ca.hessian(kinetic, vs)[0]])(q).full()
    np.testing.assert_allclose(columns.T @ mass @ columns, expected, rtol=0, atol=1e-11)

    ends = []
    for divisor in (1, 2):
        ours, other = midpoint(system, 1e-3 / divisor), Mujoco(links, "RK4", 1e-3 / divisor)
        end = ours.simulate(ours.state(q, v), np.tile(HOVERING, (500 * divisor, 1))).states[-1]
        other.set(*start, HOVERING)
        for _ in range(500 * divisor):
            other.step()
        theirs = np.concatenate(other.ours())
        for turn in (slice(3 + 4 * i, 7 + 4 * i) for i in range(P.n)):
            theirs[turn] *= np.sign(theirs[turn] @ end[turn])
        ends.append([np.concatenate([ours.configuration(end), ours.velocity(end)]), theirs])
    ours, theirs = (4 * np.array(ends[1]) - ends[0]) / 3
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8)


def time_steps(dsys):
    first, fourth, state = Mujoco("hinges", "EULER"), Mujoco("hinges", "RK4"), [None]

    def step():
        state[0] = dsys.step(state[0], HOVERING)

    def restart():
        for other in (first, fourth):
            other.set(*swing(), HOVERING)
        state[0] = dsys.state(*first.ours())

    calls = {"ours": step, "MuJoCo, semi-implicit Euler": first.step, "MuJoCo, RK4": fourth.step}
    report("step", timed(calls, 60, 100, restart), "ours")


def time_linearizations(dsys):
    """mjd_transitionFD knows no RK4, so this is the derivative of its first-order step."""
    other = Mujoco("hinges", "EULER")
    other.set(*swing(), HOVERING)
    x, n = dsys.state(*other.ours()), other.model.nv
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, other.model.nu))
    calls = {
        "ours, step and exact A, B": lambda: dsys.linearize(x, HOVERING),
        "mjd_transitionFD, forward": lambda: mujoco.mjd_transitionFD(
            other.model, other.data, 1e-6, False, A, B, None, None
        ),
        "mjd_transitionFD, centered": lambda: mujoco.mjd_transitionFD(
            other.model, other.data, 1e-6, True, A, B, None, None
        ),
    }
    report("step + linearization", timed(calls, 40, 50), "ours, step and exact A, B")


def energies(dsys, start, steps):
    """Return the largest energy errors over the run in J: of this package, and of MuJoCo with
    hinges and with balls; this package's formula gives all energies.
    """
    q, v = ca.SX.sym("q", dsys.system.space.nq), ca.SX.sym("v", dsys.system.space.nw)
    energy = ca.Function("energy", [q, v], [dsys.system.numeric.mechanics.energy(q, v)])
    first = Mujoco("hinges")
    first.set(*start)
    states = dsys.simulate(dsys.state(*first.ours()), np.zeros((steps, dsys.nu))).states
    ours = np.array([dsys.energy(x) for x in states])
    out = {"ours": np.abs(ours - ours[0]).max()}
    for links in ("hinges", "balls"):
        for integrator in ("EULER", "RK4"):
            other = Mujoco(links, integrator)
            other.set(*(start if links == "hinges" else as_balls(start)))
            values = []
            for k in range(steps + 1):
                if k % 10 == 0:
                    values.append(float(energy(*other.ours())))
                other.step()
            out[f"MuJoCo, {integrator}, {links}"] = np.abs(np.array(values) - values[0]).max()
    return out, ours[0]


SWINGS = ((2.0, 0.5), (6.0, 2.0), (10.0, 10.0))
"""Rates in rad/s of links and quadrotors: a lazy, a brisk and a wild motion."""


def compare_energies(dsys, rate, spin):
    """Print energy errors of 100 s at h = 0.01 without thrust, while the links swing around the
    falling payload. The model with 13 degrees of freedom comes near its singularity there. On slow
    motions RK4 with balls gains by its order what it loses by drifting.
    """
    steps = sized(10_000, 20)
    errors, at_start = energies(dsys, swing(rate, spin), steps)
    print(
        f"\nenergy error over {H * steps:g} s, links at {rate:g} rad/s, quadrotors at {spin:g} rad/s, J "
        f"(energy at the start {at_start:.3g} J)"
    )
    for name, error in errors.items():
        print(f"  {name:34s} {error:.2e}   {error / errors['ours']:.3g} of ours")


if __name__ == "__main__":
    payload = quadrotor_payload(P)
    for links in ("hinges", "balls"):
        require_equal_models(links, payload)
    stepping = warm_step(payload)
    time_steps(stepping)
    time_linearizations(stepping)
    for rate, spin in SWINGS:
        compare_energies(stepping, rate, spin)

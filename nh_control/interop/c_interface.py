"""A discrete system's documented C header, and an example program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

from nh_control.control.estimation import KalmanFilter
from nh_control.control.feedback_law import FeedbackLaw
from nh_control.control.tracking import LqrTracker
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics import newton

MEANINGS = {
    "CONVERGED": "the call succeeded",
    "NOT_FINITE": "a number overflowed, or an argument was not finite",
    "SINGULAR": "the equations of the step, or the covariance of an innovation, are singular",
    "STALLED": "the equations of the step have no solution nearby: reduce the step or the input",
    "EXHAUSTED": "Newton's iteration does not converge: reduce the step or the input",
    "OUTSIDE": "the step leaves the domain of the model",
    "HALF_TURN": "something turns by half a turn or more in a step",
    "NO_IMPULSES": "no contact impulses keep the gaps open: reduce the step",
}
"""Meanings of a step's statuses."""
STEP = """
/* x1 (NX) becomes the state after a step from x (NX) under the input u (NU). */
int {n}_step(const double *x, const double *u, double *x1);

/* The same with the exact derivatives A (NDX, NDX), B (NDX, NU) in local coordinates:
 * local(x1, f(retract(x, dx), u + du)) = A dx + B du + ... */
int {n}_linearize(const double *x, const double *u, double *x1, double *A, double *B);

/* The change dx (NDX) that leads from x0 to x1 (NX), and back: x1 = retract(x0, dx). */
void {n}_local(const double *x0, const double *x1, double *dx);
void {n}_retract(const double *x0, const double *dx, double *x1);

/* The state x (NX) of a configuration q (NQ) and velocity v (NW), whose part outside the velocity
 * constraints is dropped, and the velocity of a state. Its configuration is its first NQ numbers.
 * A call that fails changes nothing. */
int {n}_state(const double *q, const double *v, double *x);
int {n}_velocity(const double *x, double *v);
"""
FILTER = """
/* Extended Kalman filter: the true state is retract(x, e), e of mean zero and covariance P (NDX,
 * NDX). Prediction by a step under u with process noise of covariance W (NDX, NDX); correction by
 * a measurement y (NY), {measurement},
 * with noise of covariance V (NE, NE); the measurement of a state without noise. x and P change in
 * place; a call that fails leaves them. */
int {n}_predict(double *x, double *P, const double *u, const double *W);
int {n}_update(double *x, double *P, const double *y, const double *V);
void {n}_measure(const double *x, double *y);
"""
TARGET = """
#define {N}_STEPS {steps}L /* steps of the reference {reference} */
#define {N}_HOLD {hold} /* whether its last state is held past the end */

/* x (NX) becomes the state of the reference at step k, past the end its last one. */
void {n}_target(long k, double *x);
"""
TRACK = """
/* u (NU) becomes the input of step k of the reference at the state x (NX), the LQR law
 * u = u_d - K local(x_d, x) within the limits; past the end {past}. */
void {n}_track(long k, const double *x, double *u);
"""
INTEGRAL = """
#define {N}_NM {memory} /* numbers of the memory of a tracker */

/* u (NU) becomes the input of step k of the reference at the state x (NX), the LQR law
 * u = u_d - K local(x_d, x) - K_d d within the limits; past the end {past}.
 * The disturbance d of the momenta is estimated from the differences between the states and those
 * that the model expects under the limited inputs. The memory (NM), zeros at the start, is for the
 * next call, of step k + 1; set its first number to 0 if steps are skipped. */
void {n}_track(long k, const double *x, double *memory, double *u);
"""
EXAMPLE = """/* cc -std=c99 {n}_example.c {n}.c -lm && ./a.out */
#include <stdio.h>

#include "{n}.h"

int main(void)
{{
    double x[{N}_NX] = {{{start}}};
    double u[{N}_NU + 1] = {{{inputs}}};
    double P[{N}_NDX * {N}_NDX] = {{0}}, W[{N}_NDX * {N}_NDX] = {{0}}, V[{N}_NE * {N}_NE] = {{0}};
    double y[{N}_NY], estimate[{N}_NX]{memory};
    for (int i = 0; i < {N}_NDX; ++i) P[{N}_NDX * i + i] = 1e-2, W[{N}_NDX * i + i] = 1e-8;
    for (int i = 0; i < {N}_NE; ++i) V[{N}_NE * i + i] = 1e-4;
    for (int i = 0; i < {N}_NX; ++i) estimate[i] = x[i];
    for (int k = 0; k < {steps}; ++k) {{
        int status = {N}_CONVERGED;
        {n}_measure(x, y); /* replaces the sensors */
        status |= {n}_update(estimate, P, y, V);
{track}        status |= {n}_step(x, u, x); /* replaces the robot */
        status |= {n}_predict(estimate, P, u, W);
        if (status != {N}_CONVERGED) return printf("step %d failed: %d\\n", k, status), 1;
    }}
    for (int i = 0; i < {N}_NX; ++i) printf("%.17g\\n", x[i]);
    return 0;
}}
"""


@dataclass(frozen=True)
class CInterface:
    """The public interface of a discrete system's C code. The filter's innovations have
    `n_measured` components. The tracker, if there is one, uses the `law`.
    """

    dsys: DiscreteSystem
    name: str
    n_measured: int
    law: FeedbackLaw | None = None

    def header(self, kalman: KalmanFilter, tracker: LqrTracker | None) -> str:
        """The text of NAME.h."""
        d, capital, parts = self.dsys, self.name.upper(), [STEP, FILTER]
        space = d.system.space
        n_y = len(kalman.expected(d.state_space.origin))
        # dimensions that a caller needs to allocate arrays
        sizes = {"NX": d.nx, "NDX": d.ndx, "NQ": space.nq, "NW": space.nw, "NU": d.nu}
        sizes |= {"NY": n_y, "NE": self.n_measured}
        meanings = {
            "NX": "numbers of a state",
            "NDX": "local coordinates of a change of state",
            "NQ": "numbers of a configuration",
            "NW": "numbers of a velocity",
            "NU": "inputs",
            "NY": "numbers of a measurement",
            "NE": "numbers of its noise",
        }
        words = {"n": self.name, "N": capital}
        words["measurement"] = (
            "the configuration, the first numbers of x"
            if kalman.measures_configuration
            else "a function of x"
        )
        # a tracker adds its table and functions
        if tracker is not None and self.law is not None:
            parts += [TARGET, TRACK if self.law.K_d is None else INTEGRAL]
            words["reference"] = repr(tracker.reference.name or "of the tracker")
            words["steps"], words["hold"] = str(self.n_gains), str(int(self.law.hold))
            words["memory"] = str(1 + d.nx + d.system.nrho)
            words["past"] = (
                "its last state is held" if tracker.hold else "there are no forces: stop there"
            )
        defined = "".join(
            f"#define {capital}_{key} {value} /* {meanings[key]} */\n"
            for key, value in sizes.items()
        )
        statuses = f"enum {self.name}_status {{\n{_commas(newton.STATUS, capital)}}};\n"
        functions = "".join(parts).format_map(words)
        return (
            f"{self._explanation(tracker)}#ifndef {capital}_H\n#define {capital}_H\n"
            f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{defined}\n'
            f"/* How a call ends: 0, or why it failed. */\n{statuses}{functions}\n"
            f"#ifdef __cplusplus\n}}\n#endif\n#endif\n"
        )

    @property
    def n_gains(self) -> int:
        """Number of gains in the tracker's table."""
        return 0 if self.law is None else len(self.law.feedforward)

    def example(self, tracker: LqrTracker | None) -> str:
        """The text of NAME_example.c, a closed loop of filter, tracker and plant."""
        d = self.dsys
        if tracker is None:
            space = d.system.space
            # without a reference, the example starts at rest
            x = d.measured_state(d.system.nominal_configuration, [0.0] * space.nw)
            u, track, memory = d.idle(x), "", ""
        else:
            x, u = tracker.reference.states[0], tracker.reference.inputs[0]
            memory, passed = "", ""
            if self.law is not None and self.law.K_d is not None:
                memory, passed = f", memory[{self.name.upper()}_NM] = {{0}}", "memory, "
            track = f"        {self.name}_track(k, estimate, {passed}u);\n"
        return EXAMPLE.format(
            n=self.name,
            N=self.name.upper(),
            start=", ".join(repr(float(value)) for value in x),
            inputs=", ".join(repr(float(value)) for value in u) or "0.0",
            steps=min(100, self.n_gains) if self.n_gains > 1 else 100,
            track=track,
            memory=memory,
        )

    def _explanation(self, tracker: LqrTracker | None) -> str:
        d, space = self.dsys, self.dsys.system.space
        parameters = zip(d.system.parameter_names, d.system.parameter_values)
        values = ", ".join(f"{name} = {value:.6g}" for name, value in parameters)
        lines = [
            f"{self.name}.h: {d}, written by nh_control.",
            "C99 that allocates no memory: no malloc, all arrays on the stack of a call; math.h, "
            "float.h, stdint.h, stddef.h and string.h. Units are SI: m, kg, s, rad, N, N m. "
            "Matrices are stored row by row. Calls may run in parallel.",
            f"Step: {d.h!r} s. Parameters: {values or 'none'}.",
            f"State x ({d.nx}): {_listed(d.state_names)}.",
            f"Local coordinates dx ({d.ndx}): {_listed(d.state_space.tangent_names)}.",
            f"Velocity v ({space.nw}): {_listed(space.velocity_names)}.",
            f"Inputs u ({d.nu}): {_listed(d.inputs)}.",
        ]
        if any("quaternion" in name or name.endswith("_qw") for name in d.state_names):
            lines.append("Quaternions are (w, x, y, z).")
        if tracker is not None:
            # numbers in a row: target, feedforward, gains
            columns = d.ndx if self.law is None or self.law.K_d is None else d.ndx + d.system.nrho
            size = 8 * self.n_gains * (d.nx + d.nu + d.nu * columns)
            lines.append(f"The table of the tracker takes {size} bytes.")
        lines.append(
            f"cc -std=c99 -O2 -c {self.name}.c; {self.name}_example.c shows the use. With "
            "-ffp-contract=off, which -std=c99 implies, results are those of nh_control to the "
            "bit, or to round-off where matrices are multiplied."
        )
        text = "\n".join(
            fill(line, 95, initial_indent=" * ", subsequent_indent=" *   ") for line in lines
        )
        return f"/*\n{text}\n */\n"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{i} {name}" for i, name in enumerate(names)) or "none"


def _commas(statuses: Sequence[str], capital: str) -> str:
    last = len(statuses) - 1
    return "".join(
        f"    {capital}_{status}{'' if i == last else ','} /* {MEANINGS[status]} */\n"
        for i, status in enumerate(statuses)
    )

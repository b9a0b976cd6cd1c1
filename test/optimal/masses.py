"""A mass of 1 kg on a line."""

import nh_control as nh


def mass(inputs=("push",), end=None):
    """A mass that is pushed by the sum of its inputs, with a step that fails beyond x = end."""
    domain = {} if end is None else {"domain": lambda q: end - q[0]}
    return nh.System(
        name="mass",
        space=nh.Rn("x"),
        lagrangian=lambda q, v: v[0] ** 2 / 2,
        inputs=inputs,
        force=lambda q, v, u: sum(u[i] for i in range(len(inputs))),
        **domain,
    )

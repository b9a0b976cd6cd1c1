"""Scenarios as environments of Gymnasium: a policy tracks the scenario's reference, and its reward
is the negative stage cost of the LQR tracker.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control import scenarios
from nh_control.control.parallel_steps import step_all
from nh_control.control.weights import state_weights
from nh_control.scenarios import Scenario

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as missing:
    raise ImportError(
        "nh_control.gym needs the package gymnasium: pip install gymnasium, or the extra 'gym'"
    ) from missing

FAILURE_REWARD = -1e4
"""Default reward of a step that fails."""


class _Tracking:
    """A scenario's tracking task for n states at once: at step k in state x, with the reference
    (x_d, u_d), observations `[x, local(x_d, x)]` and rewards
    `-(dx1' Q dx1 + du' R du)`, `dx1 = local(x_d(k + 1), f(x, u))`, `du = u - u_d(k)`.
    """

    def __init__(self, scenario: str | Scenario, reference: str, failure_reward: float):
        self.scenario = scenarios.get(scenario) if isinstance(scenario, str) else scenario
        self.dsys = self.scenario.model()
        self.reference = self.scenario.reference(self.dsys, reference)
        self.failure_reward = float(failure_reward)
        tracker = self.scenario.tracker(self.dsys, self.reference)
        Q, R, _ = tracker.weights
        self._weights = state_weights(self.dsys, "Q", Q, self.reference.states), np.asarray(R)
        self._bounds = tracker.limits.T
        n = self.dsys.nx + self.dsys.ndx
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (n,), np.float64)
        self.action_space = gymnasium.spaces.Box(*self._bounds, dtype=np.float64)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The reference's first state with the scenario's initial error, in random directions,
        with sizes multiplied by random factors from 0 to 1.
        """
        error = self.scenario.perturbation
        changes = {
            field.name: rng.uniform() * size
            for field in fields(error)
            if isinstance(size := getattr(error, field.name), float)
        }
        if "seed" in {field.name for field in fields(error)}:
            changes["seed"] = int(rng.integers(2**31))
        drawn = replace(error, **changes)
        return self.scenario.perturb(self.dsys, self.reference.states[0], drawn)

    def checked(self, state: ArrayLike) -> np.ndarray:
        """A start state (nx); raises ValueError for another shape."""
        x = np.array(state, dtype=float)
        if x.shape != (self.dsys.nx,) or not np.isfinite(x).all():
            raise ValueError(
                f"{self.dsys}: options['state'] must be a finite state of shape "
                f"({self.dsys.nx},), got {x}"
            )
        return x

    def observe(self, k: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Observations (n, nx + ndx) of the states x (n, nx) at steps k (n)."""
        return np.hstack([x, self.dsys.local(self.reference.states[k], x)])

    def advance(
        self, k: np.ndarray, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[int, Exception]]:
        """The next states (n, nx), the rewards (n) and the errors of failed steps by row, from
        states x (n, nx) at steps k (n) under inputs u (n, nu), clipped to the limits. A failed
        row keeps its state.
        """
        u = u.clip(*self._bounds)
        after, failures = step_all(self.dsys, x, u)
        going = np.setdiff1d(np.arange(len(x)), list(failures))
        following, rewards = x.copy(), np.full(len(x), self.failure_reward)
        following[going] = after[going]
        Q, R = self._weights
        dx = self.dsys.local(self.reference.states[k[going] + 1], following[going])
        du = u[going] - self.reference.inputs[k[going]]
        errors = np.einsum("ni,nij,nj->n", dx, Q[k[going] + 1], dx)
        rewards[going] = -(errors + np.einsum("ni,ij,nj->n", du, R, du))
        return following, rewards, failures


class TrackingEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A scenario's tracking task; each step is one of its model.

    The action is the input u (nu) within its limits; the observation is the state and its tracking
    error, `[x, local(x_d, x)]` (nx + ndx), in the scenario's units; the reward is
    `-(dx1' Q dx1 + du' R du)` with the diagonal weights of the scenario's LQR tracker. Episodes
    are truncated at the reference's end, and terminated by a failed step, with `failure_reward`
    and the reason in `info["failure"]`.

    `reset` draws an initial error up to the scenario's, or starts from `options={"state": x}`, and
    raises ValueError for another shape.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (of gymnasium)

    def __init__(
        self,
        scenario: str | Scenario,
        reference: str = "",
        failure_reward: float = FAILURE_REWARD,
    ):
        self._task = _Tracking(scenario, reference, failure_reward)
        self.observation_space = self._task.observation_space
        self.action_space = self._task.action_space
        self._k, self._x = 0, self._task.reference.states[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; returns the first observation."""
        super().reset(seed=seed)
        given = (options or {}).get("state")
        task = self._task
        self._k = 0
        self._x = task.start(self.np_random) if given is None else task.checked(given)
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step of the model."""
        u, k = np.asarray(action, dtype=float)[None], np.array([self._k])
        following, rewards, failures = self._task.advance(k, self._x[None], u)
        self._x, self._k = following[0], self._k + 1
        info = {"failure": str(failures[0])} if failures else {}
        truncated = self._k == len(self._task.reference)
        return self._observation(), float(rewards[0]), bool(failures), truncated, info

    def _observation(self) -> np.ndarray:
        return self._task.observe(np.array([self._k]), self._x[None])[0]


class TrackingVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies of `TrackingEnv`, stepped together on all processors; an ended copy
    starts again in the next step, whose action it does not take.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (of gymnasium)

    def __init__(
        self,
        scenario: str | Scenario,
        num_envs: int,
        reference: str = "",
        failure_reward: float = FAILURE_REWARD,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self._task = task = _Tracking(scenario, reference, failure_reward)
        self.num_envs = num_envs
        self.single_observation_space = task.observation_space
        self.single_action_space = task.action_space
        self.observation_space = batch_space(task.observation_space, num_envs)
        self.action_space = batch_space(task.action_space, num_envs)
        self._k, self._ended = np.zeros(num_envs, dtype=int), np.zeros(num_envs, dtype=bool)
        self._x = np.tile(task.reference.states[0], (num_envs, 1))

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in all environments; returns their first observations. Raises
        ValueError for a list of seeds.
        """
        if isinstance(seed, list):
            raise ValueError(f"expected one seed for all {self.num_envs} environments, got a list")
        super().reset(seed=seed)
        self._begin(np.ones(self.num_envs, dtype=bool))
        return self._task.observe(self._k, self._x), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of the model in all environments that have not ended; the others begin again,
        with reward 0.
        """
        ended, going = self._ended, np.flatnonzero(~self._ended)
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        if len(going):
            given = np.asarray(actions, dtype=float)[going]
            self._x[going], rewards[going], failures = self._task.advance(
                self._k[going], self._x[going], given
            )
            self._k[going] += 1
            terminated[going[sorted(failures)]] = True
        self._begin(ended)
        truncated = self._k == len(self._task.reference)
        self._ended = terminated | truncated
        return self._task.observe(self._k, self._x), rewards, terminated, truncated, {}

    def _begin(self, which: np.ndarray) -> None:
        """Begin an episode in some environments (num_envs)."""
        for i in np.flatnonzero(which):
            self._x[i] = self._task.start(self.np_random)
        self._k[which], self._ended[which] = 0, False


def make(scenario: str | Scenario, **options: Any) -> TrackingEnv:
    """The environment of a scenario, by name or itself; `options` go to `TrackingEnv`.
    Raises UnknownName for a scenario or reference.
    """
    return TrackingEnv(scenario, **options)


def make_vec(scenario: str | Scenario, num_envs: int, **options: Any) -> TrackingVectorEnv:
    """`num_envs` environments of a scenario, stepped together; `options` go to
    `TrackingVectorEnv`. Raises UnknownName for a scenario or reference.
    """
    return TrackingVectorEnv(scenario, num_envs, **options)

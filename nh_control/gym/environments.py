"""Scenarios as Gymnasium environments. A policy tracks the scenario's reference, and the reward is
the negative stage cost of the LQR tracker.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control import scenarios
from nh_control.control.parallel_steps import step_all
from nh_control.control.weights import state_weights
from nh_control.discrete.lanes import Vectorization
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
"""Default reward for a failed step."""
NAMESPACE = "nh_control"
"""Namespace of the registered environment ids."""


class _Tracking:
    """A scenario's tracking task for n states at once.

    At step k in state x, with the reference (x_d, u_d), the observation is `[x, local(x_d, x)]`
    and the reward is `-(dx1' Q dx1 + du' R du)` with `dx1 = local(x_d(k + 1), f(x, u))` and
    `du = u - u_d(k)`.
    """

    def __init__(
        self,
        scenario: str | Scenario,
        reference: str,
        failure_reward: float,
        normalize_actions: bool = False,
    ):
        self.scenario = scenarios.get(scenario) if isinstance(scenario, str) else scenario
        self.dsys = self.scenario.model()
        self.reference = self.scenario.reference(self.dsys, reference)
        self.failure_reward = float(failure_reward)
        tracker = self.scenario.tracker(self.dsys, self.reference)
        Q, R, _ = tracker.weights
        self._weights = state_weights(self.dsys, "Q", Q, self.reference.states), np.asarray(R)
        self._bounds = tracker.limits.T
        self._normalized = normalize_actions
        if normalize_actions and not np.isfinite(self._bounds).all():
            unlimited = [
                name
                for name, limits in zip(self.dsys.inputs, self._bounds.T)
                if not np.isfinite(limits).all()
            ]
            raise ValueError(
                f"{self.scenario.name}: normalized actions require limits for all inputs, but "
                f"{', '.join(unlimited)} has none; omit normalize_actions"
            )
        n = self.dsys.nx + self.dsys.ndx
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (n,), np.float64)
        ones = np.ones(self.dsys.nu)
        low, high = (-ones, ones) if normalize_actions else self._bounds
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The first state of the reference plus the scenario's initial error. The error has random
        directions, and its sizes are scaled by random factors between 0 and 1.
        """
        error = self.scenario.perturbation
        changes = {
            field.name: rng.uniform() * size
            for field in fields(error)
            if isinstance(size := getattr(error, field.name), float)
        }
        if "seed" in {field.name for field in fields(error)}:
            changes["seed"] = int(rng.integers(2**31))
        # the sizes of the error are uniform between 0 and those of the scenario
        drawn = replace(error, **changes)
        return self.scenario.perturb(self.dsys, self.reference.states[0], drawn)

    def checked(self, state: ArrayLike) -> np.ndarray:
        """The initial state (nx) as an array. Raises ValueError unless it is finite and has this
        shape.
        """
        x = np.array(state, dtype=float)
        if x.shape != (self.dsys.nx,) or not np.isfinite(x).all():
            raise ValueError(
                f"{self.dsys}: options['state'] must be a finite state of shape "
                f"({self.dsys.nx},), got {x}"
            )
        return x

    def errors(self, k: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Tracking errors (n, ndx) of the states x (n, nx) at steps k (n)."""
        return self.dsys.local(self.reference.states[k], x)

    def advance(
        self, k: np.ndarray, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, Exception]]:
        """Step the states x (n, nx) at steps k (n) under the actions u (n, nu), which are clipped
        to the limits.

        Returns the next states (n, nx), their tracking errors (n, ndx), the rewards (n) and, by
        row, the exceptions of failed steps. If the step of a row fails, the row keeps its state.
        """
        low, high = self._bounds
        if self._normalized:  # -1 ... 1 spans the range of the limits
            u = (low + high) / 2 + (high - low) / 2 * u
        u = u.clip(low, high)
        following, failures = step_all(self.dsys, x, u)
        failed = list(failures)
        # a failed row keeps its state, so the observation stays finite
        following[failed] = x[failed]
        Q, R = self._weights
        # stage cost dx1' Q dx1 + du' R du of every row
        dx, du = self.errors(k + 1, following), u - self.reference.inputs[k]
        costs = np.einsum("ni,nij,nj->n", dx, Q[k + 1], dx) + np.einsum("ni,ij,nj->n", du, R, du)
        rewards = -costs
        rewards[failed] = self.failure_reward
        return following, dx, rewards, failures


class TrackingEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A scenario's tracking task. Each step of the environment is one step of the model.

    The action is the input u (nu) within its limits; with `normalize_actions`, -1 ... 1 spans the
    range of the limits. The observation is the state and its tracking error,
    `[x, local(x_d, x)]` (nx + ndx), in the scenario's units. The reward is
    `-(dx1' Q dx1 + du' R du)` with the diagonal weights of the scenario's LQR tracker. Episodes
    are truncated at the end of the reference. A failed step terminates the episode, with the
    reward `failure_reward` and the reason in `info["failure"]`.

    `reset` draws a random initial error that is at most as large as the scenario's, or starts from
    `options={"state": x}`. It raises ValueError if x has the wrong shape. With the `render_mode`
    "rgb_array", `render` returns an image (360, 640, 3) of the current state.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (of gymnasium)

    def __init__(
        self,
        scenario: str | Scenario,
        reference: str = "",
        failure_reward: float = FAILURE_REWARD,
        normalize_actions: bool = False,
        render_mode: str | None = None,
    ):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be 'rgb_array' or None, got {render_mode!r}")
        self.render_mode = render_mode
        self._task = _Tracking(scenario, reference, failure_reward, normalize_actions)
        self.metadata = {
            **self.metadata,
            "render_fps": 1 / self._task.dsys.h,
        }  # one image per step
        self.observation_space = self._task.observation_space
        self.action_space = self._task.action_space
        self._k, self._x = 0, self._task.reference.states[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode and return the first observation."""
        super().reset(seed=seed)
        state = (options or {}).get("state")
        task = self._task
        self._k = 0
        self._x = task.start(self.np_random) if state is None else task.checked(state)
        error = task.errors(np.array([self._k]), self._x[None])
        return np.hstack([self._x, error[0]]), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take one step of the model."""
        u, k = np.asarray(action, dtype=float)[None], np.array([self._k])
        following, errors, rewards, failures = self._task.advance(k, self._x[None], u)
        self._x, self._k = following[0], self._k + 1
        info = {"failure": str(failures[0])} if failures else {}
        truncated = self._k == len(self._task.reference)
        observation = np.hstack([self._x, errors[0]])
        return observation, float(rewards[0]), bool(failures), truncated, info

    def render(self) -> np.ndarray | None:
        """An image of the current state, or None without a render mode."""
        return None if self.render_mode is None else self._pictures(self._x)

    @cached_property
    def _pictures(self) -> Any:
        import nh_control  # drawing is in a higher subpackage, which is loaded lazily

        task = self._task
        visual = task.scenario.visual_model(None, task.reference.name)
        parameters = task.scenario.parameters
        return nh_control.view.StatePictures(task.reference, visual, parameters)


class TrackingVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies of `TrackingEnv`, stepped together on all processors. A copy whose episode
    has ended starts a new one in the next step and ignores the action of that step.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (of gymnasium)

    def __init__(
        self,
        scenario: str | Scenario,
        num_envs: int,
        reference: str = "",
        failure_reward: float = FAILURE_REWARD,
        normalize_actions: bool = False,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self._task = task = _Tracking(scenario, reference, failure_reward, normalize_actions)
        self.num_envs = num_envs
        self.single_observation_space = task.observation_space
        self.single_action_space = task.action_space
        self.observation_space = batch_space(task.observation_space, num_envs)
        self.action_space = batch_space(task.action_space, num_envs)
        self._k, self._ended = np.zeros(num_envs, dtype=int), np.zeros(num_envs, dtype=bool)
        self._x = np.tile(task.reference.states[0], (num_envs, 1))

    @property
    def vectorization(self) -> Vectorization:
        """How many copies are stepped at once (see `DiscreteSystem.vectorization`)."""
        return self._task.dsys.vectorization

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in all environments and return their first observations. Raises
        ValueError for a list of seeds.
        """
        if isinstance(seed, list):
            raise ValueError(f"expected one seed for all {self.num_envs} environments, got a list")
        super().reset(seed=seed)
        errors = np.empty((self.num_envs, self._task.dsys.ndx))
        self._begin(np.ones(self.num_envs, dtype=bool), errors)
        return np.hstack([self._x, errors]), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one step of the model in all environments whose episodes have not ended. The other
        environments begin a new episode, with reward 0.
        """
        ended, going = self._ended, np.flatnonzero(~self._ended)
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        errors = np.empty((self.num_envs, self._task.dsys.ndx))
        if len(going):
            u = np.asarray(actions, dtype=float)[going]
            self._x[going], errors[going], rewards[going], failures = self._task.advance(
                self._k[going], self._x[going], u
            )
            self._k[going] += 1
            terminated[going[sorted(failures)]] = True
        # autoreset in the next step: ended copies get a new first observation
        self._begin(ended, errors)
        truncated = self._k == len(self._task.reference)
        self._ended = terminated | truncated
        return np.hstack([self._x, errors]), rewards, terminated, truncated, {}

    def _begin(self, which: np.ndarray, errors: np.ndarray) -> None:
        """Begin an episode in the environments that the mask `which` (num_envs) selects, and write
        their tracking errors.
        """
        for i in np.flatnonzero(which):
            self._x[i] = self._task.start(self.np_random)
        self._k[which], self._ended[which] = 0, False
        if which.any():
            errors[which] = self._task.errors(self._k[which], self._x[which])


def make(scenario: str | Scenario, **options: Any) -> TrackingEnv:
    """The environment of a scenario, which is passed by name or as an object. The `options` are
    passed to `TrackingEnv`. Raises UnknownName for an unknown scenario or reference.
    """
    return TrackingEnv(scenario, **options)


def make_vec(scenario: str | Scenario, num_envs: int, **options: Any) -> TrackingVectorEnv:
    """`num_envs` environments of a scenario, stepped together. The `options` are passed to
    `TrackingVectorEnv`. Raises UnknownName for an unknown scenario or reference.
    """
    return TrackingVectorEnv(scenario, num_envs, **options)


def register() -> None:
    """Register the scenarios as `nh_control/NAME-v0` for `gymnasium.make` and
    `gymnasium.make_vec`. These functions pass their options to `TrackingEnv` and
    `TrackingVectorEnv`. Importing nh_control.gym calls `register`.
    """
    for name in scenarios.names():
        if (identifier := f"{NAMESPACE}/{name}-v0") not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point=f"{__name__}:TrackingEnv",
                vector_entry_point=f"{__name__}:TrackingVectorEnv",
                kwargs={"scenario": name},
            )

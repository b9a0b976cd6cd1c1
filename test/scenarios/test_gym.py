"""Scenarios as environments of Gymnasium."""

import numpy as np
import pytest

import nh_control as nh

gymnasium = pytest.importorskip("gymnasium", reason="the extra `gym`")


@pytest.fixture(scope="module")
def cart_pole():
    return nh.gym.make("cart_pole")


@pytest.mark.filterwarnings("ignore:.*observation space (min|max)imum value.*infinity")
@pytest.mark.parametrize(
    "name", ["cart_pole", "snakeboard", pytest.param("quadrotor_payload", marks=pytest.mark.slow)]
)
def test_gymnasium_accepts_the_environment(name):
    from gymnasium.utils.env_checker import check_env

    check_env(nh.gym.make(name), skip_render_check=True)


def tracker_of(env):
    task = env._task
    return task.scenario.tracker(task.dsys, task.reference)


def test_the_lqr_tracker_as_a_policy_runs_as_in_a_simulation_and_is_paid_by_its_cost(cart_pole):
    env, tracker = cart_pole, tracker_of(cart_pole)
    dsys, n = tracker.dsys, len(tracker.reference)
    observation, _ = env.reset(seed=3)
    x0, rewards, truncated = observation[: dsys.nx], [], False
    while not truncated:
        k, x = len(rewards), observation[: dsys.nx]
        observation, reward, terminated, truncated, info = env.step(tracker.command(k, x).u)
        rewards.append(reward)
        assert not terminated and not info
    run = nh.rollout(dsys, x0, tracker)
    np.testing.assert_allclose(observation[: dsys.nx], run.states[0, -1], atol=1e-12)
    np.testing.assert_allclose(observation[dsys.nx :], run.errors[0, -1], atol=1e-12)
    Q, R, _ = env._task.scenario.weights
    du = run.inputs[0] - tracker.reference.inputs
    cost = np.einsum("ki,ij,kj", run.errors[0, 1:], Q, run.errors[0, 1:])
    cost += np.einsum("ki,ij,kj", du, R, du)
    assert len(rewards) == n and -sum(rewards) == pytest.approx(cost, rel=1e-10) and cost > 0.1


def test_a_reset_repeats_with_its_seed_and_starts_where_it_is_told(cart_pole):
    first, again, other = (cart_pole.reset(seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    start = np.array([0.1, 0.2, 0.3, 0.4])
    observation, _ = cart_pole.reset(options={"state": start})
    np.testing.assert_array_equal(observation[:4], start)
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        cart_pole.reset(options={"state": start[:3]})


def test_inputs_are_clipped_to_their_limits(cart_pole):
    high = cart_pole.action_space.high
    after = []
    for action in (high, 10 * high):
        cart_pole.reset(seed=1)
        after.append(cart_pole.step(action)[0])
    np.testing.assert_array_equal(*after)


def test_a_step_that_the_model_cannot_make_ends_the_episode():
    env = nh.gym.make("cart_pole", failure_reward=-7.0)
    env.reset(options={"state": [0.0, 0.0, 1e160, 1e160]})
    observation, reward, terminated, truncated, info = env.step(np.zeros(1))
    assert terminated and not truncated and reward == -7.0 and info["failure"]
    np.testing.assert_array_equal(observation[:4], [0.0, 0.0, 1e160, 1e160])


def test_many_environments_are_as_many_single_ones(cart_pole):
    tracker = tracker_of(cart_pole)
    envs, n = nh.gym.make_vec("cart_pole", 3), len(tracker.reference)
    observations, _ = envs.reset(seed=5)
    starts = observations[:, :4].copy()
    for k in range(n):
        actions = np.array([tracker.command(k, x).u for x in observations[:, :4]])
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        assert rewards.shape == (3,) and (truncated == (k == n - 1)).all()
    assert not terminated.any()
    for start, observation, reward in zip(starts, observations, rewards):
        run = nh.rollout(tracker.dsys, start, tracker)
        np.testing.assert_allclose(observation[:4], run.states[0, -1], atol=1e-12)
        assert reward < 0
    ended = observations.copy()
    observations, rewards, terminated, truncated, _ = envs.step(actions)
    assert (rewards == 0).all() and not truncated.any() and not terminated.any()
    assert (np.abs(observations - ended).max(axis=1) > 1e-3).all()


def test_an_environment_that_failed_alone_begins_again():
    envs = nh.gym.make_vec("cart_pole", 2)
    envs.reset(seed=1)
    envs._x[1] = [0.0, 0.0, 1e160, 1e160]
    _, rewards, terminated, truncated, _ = envs.step(np.zeros((2, 1)))
    assert terminated.tolist() == [False, True] and not truncated.any()
    assert rewards[1] == -1e4 < rewards[0]
    observations, rewards, terminated, _, _ = envs.step(np.zeros((2, 1)))
    assert not terminated.any() and rewards[0] < rewards[1] == 0
    assert np.abs(observations[1]).max() < 10


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nh.gym.make("no_such"), "cart_pole"),
        (lambda: nh.gym.make("cart_pole", reference="no_such"), "balance|rest|swing"),
        (lambda: nh.gym.make_vec("cart_pole", 0), "at least 1"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(make, words):
    with pytest.raises(ValueError, match=words):
        make()

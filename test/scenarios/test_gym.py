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


# As Gymnasium and its users expect --------------------------------------------------------------


def test_scenarios_are_registered_with_options_and_pictures(cart_pole):
    """Of the built-in ones each has an id; single and vector environments take the options."""
    for name in nh.scenarios.built_in():
        assert f"nh_control/{name}-v0" in gymnasium.registry
    env = gymnasium.make("nh_control/cart_pole-v0", render_mode="rgb_array")
    env.reset(options={"state": [0.0, 0.1, 0.0, 0.0]})
    first = env.render()
    assert first.shape == (360, 640, 3) and first.dtype == np.uint8 and first.std() > 5
    np.testing.assert_array_equal(env.render(), first)
    env.reset(options={"state": [0.5, 0.1, 0.0, 0.0]})
    moved = (env.render() != first).any(axis=2)
    assert 0.005 < moved.mean() < 0.3  # the cart is elsewhere, before the same ground
    assert cart_pole.render() is None
    envs = gymnasium.make_vec(
        "nh_control/cart_pole-v0", 2, vectorization_mode="vector_entry_point", failure_reward=-1.0
    )
    assert isinstance(envs.unwrapped, nh.gym.TrackingVectorEnv)
    with pytest.raises(ValueError, match="render_mode must be 'rgb_array' or None, got 'human'"):
        nh.gym.make("cart_pole", render_mode="human")


def test_normalized_actions_are_shares_of_the_limits(cart_pole):
    normal, plain = nh.gym.make("cart_pole", normalize_actions=True), cart_pole
    low, high = plain.action_space.low, plain.action_space.high
    np.testing.assert_array_equal(normal.action_space.low, [-1.0])
    for share in (-1.0, 0.25, 3.0):
        after = []
        for env, action in ((normal, [share]), (plain, (low + high + share * (high - low)) / 2)):
            env.reset(options={"state": [0.0, 0.1, 0.0, 0.0]})
            after.append(env.step(np.asarray(action))[0])
        np.testing.assert_allclose(*after, rtol=1e-14)
    unlimited = "pendulum_swing_up: normalized actions require limits for all inputs, but torque"
    with pytest.raises(ValueError, match=unlimited):
        nh.gym.make("pendulum_swing_up", reference="free:theta=0.1", normalize_actions=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ppo_of_stable_baselines_improves_its_policy_of_the_cart_pole():
    """The mean return from the same ten starts, of the policy before and after 20 000 steps."""
    sb3 = pytest.importorskip("stable_baselines3", reason="pip install stable-baselines3")
    import torch

    torch.set_num_threads(1)
    name = "nh_control.gym:nh_control/cart_pole-v0"
    env = gymnasium.make(name, normalize_actions=True, failure_reward=-100.0)
    model = sb3.PPO("MlpPolicy", env, seed=0, n_steps=1024, batch_size=256, device="cpu")

    def returns():
        totals = []
        for seed in range(10):
            (observation, _), ended, total = env.reset(seed=seed), False, 0.0
            while not ended:
                action, _ = model.predict(observation, deterministic=True)
                observation, reward, terminated, truncated, _ = env.step(action)
                ended, total = terminated or truncated, total + reward
            totals.append(total)
        return np.array(totals)

    before = returns()
    model.learn(20_000)
    gains = returns() - before
    print(before.mean(), gains)
    assert gains.mean() > 3 * gains.std(ddof=1) / np.sqrt(len(gains))

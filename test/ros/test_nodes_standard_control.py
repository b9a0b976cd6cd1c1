"""A plant under simulation_interfaces, by real calls of its services and action; skipped where it
is not installed.
"""

import pytest

pytest.importorskip("simulation_interfaces", reason="simulation_interfaces is not installed")

GIVEN = {"duration_s": 3.0, "fallback": "damp"}


class Client:
    """Calls the standard services of a plant in a namespace."""

    def __init__(self, probe, namespace=""):
        self._probe, self._namespace = probe, namespace

    def call(self, name, **request):
        """The response of `name`, in the words of the type's name."""
        from simulation_interfaces import srv

        kind = getattr(srv, name)
        service = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:]
        client = self._probe.node.create_client(kind, f"{self._namespace}/{service}")
        self._probe.wait(client.service_is_ready, f"service {service}")
        self._probe.meet(f"{self._namespace}/plant")
        future = client.call_async(kind.Request(**request))
        self._probe.wait(future.done, f"answer of {service}")
        return future.result()

    def to(self, state):
        """Change the state of the simulation; the result's code and message."""
        from simulation_interfaces.msg import SimulationState

        result = self.call("SetSimulationState", state=SimulationState(state=state)).result
        return result.result, result.error_message

    @property
    def state(self):
        """State of the simulation."""
        return self.call("GetSimulationState").state.state


STOPPED, PLAYING, PAUSED, QUITTING = range(4)
OK, FAILED, ALREADY = 1, 4, 101


@pytest.mark.slow
def test_states_steps_and_resets(nodes, probe):
    from probe import time_ns

    nodes.start("tracker")
    plant, client = nodes.start("plant", GIVEN), Client(probe)
    probe.wait_step(20, 0.01)
    features = client.call("GetSimulatorFeatures").features.features
    assert {10, 11, 12, 20, 21, 22, 24, 25, 26, 31, 32, 33} == set(features)
    assert client.state == PLAYING and client.to(PLAYING)[0] == ALREADY
    assert client.to(PAUSED)[0] == OK and client.state == PAUSED
    probe.wait_mode("paused")
    at = int(probe.values()["step"])
    assert client.call("StepSimulation", steps=25).result.result == OK
    probe.wait(lambda: time_ns(probe.clock[-1]) == (at + 25) * 10**7, "steps")
    assert client.call("ResetSimulation", scope=2).result.result == OK  # of the state
    probe.wait(lambda: time_ns(probe.clock[-1]) == (at + 26) * 10**7, "state one step later")
    assert client.call("ResetSimulation", scope=1).result.result == OK  # of time
    probe.wait(lambda: time_ns(probe.clock[-1]) == 0, "time 0")
    assert client.to(STOPPED)[0] == OK and client.state == STOPPED
    assert client.to(QUITTING)[0] == OK
    assert plant.wait() == 0


@pytest.mark.slow
def test_an_inactive_plant_refuses_and_one_that_is_configured_again_has_one_action(nodes, probe):
    from test_nodes_life import Manager

    nodes.start("plant", {**GIVEN, "wait_for_tracker": False})
    client, manage = Client(probe), Manager(probe, "plant")
    assert client.call("GetEntityState", entity="base_link").result.result == OK
    assert manage("deactivate")
    for name, given in (
        ("GetEntityState", {"entity": "base_link"}),
        ("GetEntitiesStates", {}),
        ("StepSimulation", {"steps": 2}),
        ("ResetSimulation", {}),
    ):
        result = client.call(name, **given).result
        assert (result.result, result.error_message) == (FAILED, "the plant is not active")
    for _ in range(2):
        assert manage("cleanup") and manage("configure")
    assert manage("activate")
    served = "/simulate_steps/_action/send_goal"
    probe.wait(lambda: probe.node.count_services(served) == 1, "one action")
    assert (
        client.to(PAUSED)[0] == OK and client.call("StepSimulation", steps=2).result.result == OK
    )


@pytest.mark.slow
def test_the_action_tells_of_its_steps_and_can_be_cancelled(nodes, probe):
    from action_msgs.msg import GoalStatus
    from rclpy.action import ActionClient
    from simulation_interfaces.action import SimulateSteps

    nodes.start("tracker")
    nodes.start("plant", {**GIVEN, "on_finish": "continue"})
    probe.wait_step(20, 0.01)
    assert probe.call("pause", True).success
    client, told = ActionClient(probe.node, SimulateSteps, "/simulate_steps"), []
    probe.wait(client.server_is_ready, "action")
    probe.meet("/plant")

    def begun(steps):
        told.clear()
        goal = SimulateSteps.Goal(steps=steps)
        future = client.send_goal_async(goal, lambda message: told.append(message.feedback))
        probe.wait(future.done, "acceptance")
        return future.result()

    result = begun(20).get_result_async()
    probe.wait(result.done, "result")
    assert result.result().status == GoalStatus.STATUS_SUCCEEDED
    assert result.result().result.result.result == OK
    probe.wait(lambda: told and told[-1].completed_steps == 20, "last feedback")
    assert told[-1].remaining_steps == 0 and len(told) > 5
    assert all(one.completed_steps + one.remaining_steps == 20 for one in told)

    handle = begun(1000)
    probe.wait(lambda: len(told) > 3, "feedback")
    # meanwhile other services answer
    assert Client(probe).state == PLAYING
    cancelled, result = handle.cancel_goal_async(), handle.get_result_async()
    probe.wait(lambda: cancelled.done() and result.done(), "end")
    assert result.result().status == GoalStatus.STATUS_CANCELED
    assert "of 1000 steps made" in result.result().result.result.error_message
    probe.wait_mode("paused")

"""A plant under simulation_interfaces, where it is installed."""

import pytest
from action_msgs.msg import GoalStatus
from probe import time_ns
from rclpy.action import ActionClient
from test_nodes_life import Manager

pytest.importorskip("simulation_interfaces", reason="simulation_interfaces is not installed")

STOPPED, PLAYING, PAUSED, QUITTING = range(4)
OK, FAILED, ALREADY = 1, 4, 101


class Client:
    """Calls the standard services of a plant."""

    def __init__(self, probe):
        self._probe = probe

    def call(self, name, **request):
        """The response of `name`, in the words of the type's name."""
        from simulation_interfaces import srv

        kind = getattr(srv, name)
        service = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:]
        client = self._probe.node.create_client(kind, f"/{service}")
        self._probe.wait(client.service_is_ready, f"service {service}")
        self._probe.meet("/plant")
        return self.done(client.call_async(kind.Request(**request)))

    def done(self, future):
        self._probe.wait(future.done, "answer")
        return future.result()

    def to(self, state):
        """Change the state of the simulation; the result's code."""
        from simulation_interfaces.msg import SimulationState

        return self.call("SetSimulationState", state=SimulationState(state=state)).result.result

    @property
    def state(self):
        return self.call("GetSimulationState").state.state


@pytest.mark.slow
def test_states_steps_resets_and_an_action_that_is_canceled(nodes, probe):
    from simulation_interfaces.action import SimulateSteps

    nodes.start("tracker")
    plant = nodes.start("plant", {"duration_s": 30.0, "fallback": "damp"})
    client, manage = Client(probe), Manager(probe, "plant")
    probe.wait_step(20, 0.01)
    features = client.call("GetSimulatorFeatures").features.features
    assert {10, 11, 12, 20, 21, 22, 24, 25, 26, 31, 32, 33} == set(features)
    assert client.state == PLAYING and client.to(PLAYING) == ALREADY
    assert client.to(PAUSED) == OK and client.state == PAUSED
    probe.wait_mode("paused")
    at = int(probe.values()["step"])
    assert client.call("StepSimulation", steps=25).result.result == OK
    probe.wait(lambda: time_ns(probe.clock[-1]) == (at + 25) * 10**7, "steps")
    assert client.call("ResetSimulation", scope=2).result.result == OK  # of the state
    probe.wait(lambda: time_ns(probe.clock[-1]) == (at + 26) * 10**7, "state one step later")
    assert client.call("ResetSimulation", scope=1).result.result == OK  # of time
    probe.wait(lambda: time_ns(probe.clock[-1]) == 0, "time 0")

    action, told = ActionClient(probe.node, SimulateSteps, "/simulate_steps"), []
    probe.wait(action.server_is_ready, "action")
    probe.meet("/plant")

    def begun(steps):
        told.clear()
        goal = SimulateSteps.Goal(steps=steps)
        keep = lambda message: told.append(message.feedback)
        return client.done(action.send_goal_async(goal, keep))

    result = client.done(begun(20).get_result_async())
    assert result.status == GoalStatus.STATUS_SUCCEEDED and result.result.result.result == OK
    probe.wait(lambda: told and told[-1].completed_steps == 20, "last feedback")
    assert all(one.completed_steps + one.remaining_steps == 20 for one in told)
    handle = begun(1000)
    probe.wait(lambda: len(told) > 3, "feedback")
    assert client.state == PLAYING  # meanwhile other services answer
    client.done(handle.cancel_goal_async())
    result = client.done(handle.get_result_async())
    assert result.status == GoalStatus.STATUS_CANCELED
    assert "of 1000 steps made" in result.result.result.error_message
    probe.wait_mode("paused")

    assert manage("deactivate")
    refused = client.call("StepSimulation", steps=2).result
    assert (refused.result, refused.error_message) == (FAILED, "the plant is not active")
    assert manage("cleanup") and manage("configure") and manage("activate")
    served = "/simulate_steps/_action/send_goal"
    probe.wait(lambda: probe.node.count_services(served) == 1, "one action")
    assert client.to(STOPPED) == OK and client.state == STOPPED
    assert client.to(QUITTING) == OK and plant.wait() == 0

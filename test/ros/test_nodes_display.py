"""The display alone: what it draws of a state and of a target, in whatever order they come."""

import pytest


@pytest.mark.slow
def test_a_target_that_comes_after_the_last_state_moves_the_ghost(nodes, probe):
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    nodes.start("display", {"scenario": "cart_pole"})
    markers = probe.listen(MarkerArray, "markers")
    state, target = (
        probe.node.create_publisher(JointState, prefix + "joint_states", 10)
        for prefix in ("", "reference/")
    )
    for publisher in (state, target):
        probe.wait(publisher.get_subscription_count, "the display's subscriptions")

    def places(name):
        """Where the parts of a drawing are along the track, by number, drawn last."""
        return {m.id: m.pose.position.x for m in markers[-1].markers if m.ns == name}

    message = JointState(name=["cart_joint", "pole_joint"], velocity=[0.0, 0.0])
    message.position = [0.0, 0.0]
    probe.wait(lambda: state.publish(message) or markers, "markers")
    plant, ghost = places("plant"), places("reference")
    message.position = [0.5, 0.0]
    moved = {part: pytest.approx(x + 0.5) for part, x in ghost.items() if x < 1}
    assert moved

    def seen():
        target.publish(message)
        return any(places("reference")[part] == x for part, x in moved.items())

    probe.wait(seen, "the ghost at the target")
    assert places("plant") == plant

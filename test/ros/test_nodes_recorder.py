"""The recorder over DDS, where the disk is full."""

import resource


def test_a_full_disk_ends_the_recorder_with_one_line_and_a_recording_that_is_read(
    nodes, probe, tmp_path
):
    import numpy as np
    from rosbags.rosbag2 import Reader
    from std_msgs.msg import UInt8MultiArray

    from nh_control.runs.node_process import NOT_RECORDED

    given = {"output": str(tmp_path / "run"), "topics": "['noise:std_msgs/msg/UInt8MultiArray']"}
    recorder = nodes.start("recorder", given)
    publisher = probe.node.create_publisher(UInt8MultiArray, "noise", 10)
    probe.wait(publisher.get_subscription_count, "the recorder's subscription")
    _, most = resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (4_000_000, most))
    rng, message = np.random.default_rng(0), UInt8MultiArray()

    def ended():
        message.data = rng.bytes(50_000)
        publisher.publish(message)
        return recorder.process.poll() is not None

    probe.wait(ended, "end of the recorder")
    assert recorder.wait() == NOT_RECORDED
    with Reader(tmp_path / "run") as run:
        count = len(list(run.messages()))
        assert count == run.message_count > 10
    (error,) = (line for line in recorder.log.splitlines() if "ERROR" in line)
    assert f"recorded {count} messages" in error and "could not be written" in error
    assert "Traceback" not in recorder.log

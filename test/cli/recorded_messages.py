"""Messages as the reader of recordings gives them: those of rosbags."""

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.LATEST)
TYPES = STORE.types


def message(kind, *fields):
    """A message of a kind, `package/name`."""
    package, name = kind.split("/")
    return TYPES[f"{package}/msg/{name}"](*fields)


def write(folder, recorded):
    """Write (topic, message, time of its arrival in ns) into a recording, in this order."""
    arrived, connections = 0, {}
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        for topic, one, ns in recorded:
            arrived, kind = max(arrived, round(ns)), one.__msgtype__
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=STORE)
            bag.write(connections[topic], arrived, STORE.serialize_cdr(one, kind))


def stamp(ns):
    return message("builtin_interfaces/Time", *divmod(round(ns), 10**9))


def header(ns, frame="odom"):
    return message("std_msgs/Header", stamp(ns), frame)


def vector(x=0.0, y=0.0, z=0.0):
    return message("geometry_msgs/Vector3", x, y, z)


def quaternion(wxyz):
    w, x, y, z = wxyz
    return message("geometry_msgs/Quaternion", x, y, z, w)


def joint_state(ns, names, position=(), velocity=(), effort=()):
    arrays = (np.array(values, float) for values in (position, velocity, effort))
    return message("sensor_msgs/JointState", header(ns), list(names), *arrays)


def odometry(ns, position, wxyz, linear=(), angular=(), known=True):
    """The pose of a body, and its twist with a covariance that says whether it is known."""
    unknown = np.zeros(36)
    unknown[0] = 0.0 if known else -1.0
    pose = message(
        "geometry_msgs/Pose", message("geometry_msgs/Point", *position), quaternion(wxyz)
    )
    twist = message("geometry_msgs/Twist", vector(*linear), vector(*angular))
    return message(
        "nav_msgs/Odometry",
        header(ns),
        "base_link",
        message("geometry_msgs/PoseWithCovariance", pose, np.zeros(36)),
        message("geometry_msgs/TwistWithCovariance", twist, unknown),
    )


def multi_dof_joint_state(ns, frames, positions, wxyz, linear, angular):
    """Poses and twists of bodies, by frame."""
    transforms = [
        message("geometry_msgs/Transform", vector(*place), quaternion(turn))
        for place, turn in zip(positions, wxyz, strict=True)
    ]
    twists = [
        message("geometry_msgs/Twist", vector(*v), vector(*w))
        for v, w in zip(linear, angular, strict=True)
    ]
    return message(
        "sensor_msgs/MultiDOFJointState", header(ns), list(frames), transforms, twists, []
    )


def diagnostics(*statuses):
    """Of (name, message, values)."""
    made = [
        message(
            "diagnostic_msgs/DiagnosticStatus",
            0,
            name,
            text,
            "",
            [message("diagnostic_msgs/KeyValue", *pair) for pair in values.items()],
        )
        for name, text, values in statuses
    ]
    return message("diagnostic_msgs/DiagnosticArray", header(0), made)

"""The sensors on a plant's craft, which their flight controllers read."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.autopilots.autopilot import Sample
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.sensing import Sensors
from nh_control.scenarios.craft_sensors import GRAVITY, SensorErrors
from nh_control.scenarios.flight import Craft


class CraftSensors:
    """The sensors on all of a plant's craft, and their last values. `samples` combines the values
    into samples for the flight controllers. `factor` scales the sensors' noise.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        crafts: Sequence[Craft],
        errors: SensorErrors = SensorErrors(),
        factor: float = 1.0,
        seed: int = 0,
    ):
        self._crafts = tuple(crafts)
        sensors = [sensor for craft in crafts for sensor in errors.sensors(craft.name, factor)]
        self._sensors = Sensors(sensors, dsys, dsys.h, seed)
        self._last: dict[str, np.ndarray] = {}
        space, parameters = dsys.system.space, dsys.system.parameters
        self._all = dsys.outputs(*(sensor.output for sensor in sensors))
        q, v = ca.SX.sym("q", space.nq), ca.SX.sym("v", space.nw)
        rows = [
            ca.vertcat(
                craft.position(q, parameters), craft.attitude(q), craft.velocity(q, v, parameters)
            )
            for craft in crafts
        ]
        self._true = ca.Function("true", [q, v], [ca.horzcat(*rows)])

    def measure(self, step: int, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Store the measurements at a step under the inputs u (nu)."""
        for measurement in self._sensors.measure(step, q, v, u):
            self._last[measurement.sensor.name] = measurement.values

    def start(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Begin with the exact values, as if the craft had been in the given state for a long
        time.
        """
        self._sensors.reset()
        values, start = self._all.values(q, v, u), 0
        for sensor, output in zip(self._sensors.sensors, self._all.outputs):
            self._last[sensor.name] = values[start : start + len(output.names)]
            start += len(output.names)

    def hold(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Store the exact values of craft that are held at rest. Their accelerometers measure only
        gravity.
        """
        self.start(q, v, u)
        for craft, values in zip(self._crafts, np.asarray(self._true(q, v)).T):
            up = quat2mat(values[3:7]).T @ [0.0, 0.0, GRAVITY]  # specific force R^T (0, 0, g)
            self._last[f"{craft.name}_imu"] = np.concatenate([np.zeros(3), up])

    def samples(self, time: float, q: np.ndarray, v: np.ndarray) -> list[Sample]:
        """The samples for all craft's flight controllers at the given time. They contain the last
        measurements, and the true attitude, position and velocity, which simulators also send.
        """
        samples = []
        for craft, values in zip(self._crafts, np.asarray(self._true(q, v)).T):
            # angular velocity and specific force, and geodetic position and velocity
            imu, gps = self._last[f"{craft.name}_imu"], self._last[f"{craft.name}_gps"]
            samples.append(
                Sample(
                    time,
                    imu[:3],
                    imu[3:],
                    values[3:7],
                    values[:3],
                    values[7:],
                    float(self._last[f"{craft.name}_barometer"][0]),
                    self._last[f"{craft.name}_magnetometer"],
                    gps[:3],
                    gps[3:],
                )
            )
        return samples

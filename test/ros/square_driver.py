"""A teleoperator that knows nothing of the package: it drives a square by velocity commands and
odometry, and ends.
"""

from __future__ import annotations

import math
import sys

import rclpy
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node

PERIOD_S = 0.05
NEAR_M, NEAR_RAD = 5e-3, 5e-3
REST_M_S, REST_RAD_S = 0.01, 0.01
GAIN, DELAY_S = 1.5, 0.15


class SquareDriver(Node):
    """Drives `side` m ahead and turns left by 90 degrees, four times."""

    def __init__(self) -> None:
        super().__init__("square_driver")
        declare = lambda name, value: self.declare_parameter(name, value).value  # noqa: E731
        self._side, self._speed = declare("side", 1.0), declare("speed", 0.8)
        self._turn, self._stamped = declare("turn", 1.5), declare("stamped", True)
        self._leg, self._turning, self._corner = 0, False, None
        self._pose, self._at_rest, self.over = None, False, False
        kind = TwistStamped if self._stamped else Twist
        self._publisher = self.create_publisher(kind, "cmd_vel", 1)
        self.create_subscription(Odometry, "odom", self._on_odometry, 10)
        self.create_timer(PERIOD_S, self._drive)

    def _on_odometry(self, message: Odometry) -> None:
        pose, twist = message.pose.pose, message.twist.twist
        yaw = 2 * math.atan2(pose.orientation.z, pose.orientation.w)
        forward, rate = twist.linear.x, twist.angular.z
        self._at_rest = abs(forward) < REST_M_S and abs(rate) < REST_RAD_S
        # where the robot will be when the next command takes effect
        self._pose = (
            pose.position.x + DELAY_S * forward * math.cos(yaw),
            pose.position.y + DELAY_S * forward * math.sin(yaw),
            yaw + DELAY_S * rate,
        )

    def _drive(self) -> None:
        if self._pose is None or self.over:
            return
        x, y, yaw = self._pose
        angle = self._leg * math.pi / 2
        cosine, sine = math.cos(angle), math.sin(angle)
        if self._corner is None:
            self._corner = x + self._side * cosine, y + self._side * sine
        way = self._corner[0] - x, self._corner[1] - y
        ahead, aside = way[0] * cosine + way[1] * sine, way[1] * cosine - way[0] * sine
        # a leg ends where the robot stands at its corner, a turn where it stands at its heading
        if self._turning:
            turn = math.remainder(angle + math.pi / 2 - yaw, math.tau)
            self._send(0.0, self._slow(turn, self._turn))
            if self._at_rest and abs(turn) <= NEAR_RAD:
                self._leg, self._turning, self.over = self._leg + 1, False, self._leg == 3
                angle = self._leg * math.pi / 2
                self._corner = (
                    self._corner[0] + self._side * math.cos(angle),
                    self._corner[1] + self._side * math.sin(angle),
                )
        else:
            turn = math.remainder(angle - yaw, math.tau)
            self._send(self._slow(ahead, self._speed), 0.5 * turn + 0.5 * aside)
            self._turning = self._at_rest and abs(ahead) <= NEAR_M

    @staticmethod
    def _slow(left: float, largest: float) -> float:
        return max(-largest, min(largest, GAIN * left))

    def _send(self, forward: float, turn: float) -> None:
        twist = Twist()
        twist.linear.x, twist.angular.z = forward, turn
        message = TwistStamped(twist=twist) if self._stamped else twist
        self._publisher.publish(message)


def main() -> None:
    rclpy.init()
    driver = SquareDriver()
    while not driver.over:
        rclpy.spin_once(driver, timeout_sec=0.1)
    print("the square is done", flush=True)
    rclpy.shutdown()


if __name__ == "__main__":
    sys.exit(main())

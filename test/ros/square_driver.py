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
GAIN, DELAY_S = 2.5, 0.15


class SquareDriver(Node):
    """Drives `side` m ahead and turns left by 90 degrees, four times."""

    def __init__(self) -> None:
        super().__init__("square_driver")
        declare = lambda name, value: self.declare_parameter(name, value).value  # noqa: E731
        self._side, self._speed = declare("side", 1.0), declare("speed", 0.8)
        self._turn, self._stamped = declare("turn", 1.5), declare("stamped", True)
        self._corner, self._turning, self._goal = 0, False, None
        self._pose, self.over = None, False
        kind = TwistStamped if self._stamped else Twist
        self._publisher = self.create_publisher(kind, "cmd_vel", 1)
        self.create_subscription(Odometry, "odom", self._on_odometry, 10)
        self.create_timer(PERIOD_S, self._drive)

    def _on_odometry(self, message: Odometry) -> None:
        pose, turn = message.pose.pose, message.twist.twist
        yaw = 2 * math.atan2(pose.orientation.z, pose.orientation.w)
        forward, rate = turn.linear.x, turn.angular.z
        self._pose = (
            pose.position.x + DELAY_S * forward * math.cos(yaw),
            pose.position.y + DELAY_S * forward * math.sin(yaw),
            yaw + DELAY_S * rate,
        )

    def _drive(self) -> None:
        if self._pose is None:
            return
        x, y, yaw = self._pose
        angle = self._corner * math.pi / 2
        if self._goal is None:
            ahead = self._side * math.cos(angle), self._side * math.sin(angle)
            self._goal = x + ahead[0], y + ahead[1]
        way = self._goal[0] - x, self._goal[1] - y
        left = way[0] * math.cos(angle) + way[1] * math.sin(angle)
        turn = math.remainder(angle - yaw, math.tau)
        if not self._turning:
            if abs(left) > NEAR_M:
                aside = way[1] * math.cos(angle) - way[0] * math.sin(angle)
                self._send(self._slow(left, self._speed), 0.5 * turn + 0.5 * aside)
                return
            self._turning, self._corner = True, self._corner + 1
        elif abs(turn) > NEAR_RAD:
            self._send(0.0, self._slow(turn, self._turn))
            return
        elif self._corner < 4:
            self._turning, self._goal = False, None
            return
        self._send(0.0, 0.0)
        self.over = self._corner == 4 and abs(turn) <= NEAR_RAD

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

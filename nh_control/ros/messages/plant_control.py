"""Control of a plant by other nodes: commands and wrenches on topics, and services for its time
and state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from geometry_msgs.msg import WrenchStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from nh_control.loop.command_validator import Rejection
from nh_control.loop.reports import Unusable
from nh_control.loop.saved_state import SavedState
from nh_control.loop.simulation_loop import Refused, SimulationLoop
from nh_control.loop.wrenches import Wrenches
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.state_publisher import CommandLatency
from nh_control.ros.runtime.callback_errors import ThrottledLog
from nh_control.ros.runtime.inbox import Inbox, Response, answer
from nh_control.ros.runtime.parameters import Parameters

COMMAND_QUEUE = WRENCH_QUEUE = 10


class CommandReader:
    """Takes commands on `joint_commands` for the loop, whose `interface` is the field of the
    messages that counts: effort, position or velocity.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        loop: SimulationLoop,
        latency: CommandLatency,
        interface: str,
    ):
        self._loop, self._latency, self._interface = loop, latency, interface
        self._template = Template(conversions.command_message(loop.validator.names.inputs))
        inbox.subscribe(JointState, "joint_commands", self._on_command, COMMAND_QUEUE, raw=True)

    def _on_command(self, data: bytes) -> None:
        try:
            message = self._template.decode(data)
        except conversions.ConversionError as reason:
            self._loop.validator.refuse(Rejection.UNREADABLE, str(reason))
        else:
            names, values, stamp = conversions.read_command(message, self._interface)
            self._loop.command(names, values, stamp)
            self._latency.accepted(self._loop.validator)


class PlantControl:
    """`~/pause`, `~/step`, `~/reset`, `~/reset_state`, `~/save_state` and `~/load_state` of the
    loop, which answer when they are done. States are stored in the file of the parameter
    `state_file`, or in memory if it is empty.
    """

    def __init__(self, node: Node, inbox: Inbox, loop: SimulationLoop, parameters: Parameters):
        self._node, self._inbox, self._loop, self._parameters = node, inbox, loop, parameters
        self._kept: SavedState | None = None
        node.create_service(
            SetBool,
            "~/pause",
            lambda request, response: self._answer(
                response, loop.pause if request.data else loop.resume
            ),
        )
        requests = {
            "reset": loop.reset,
            "reset_state": loop.reset_state,
            "save_state": self._save,
            "load_state": self._load,
        }
        for name, request in requests.items():
            node.create_service(Trigger, f"~/{name}", self._handler(request))
        group = ReentrantCallbackGroup()  # steps take their time, meanwhile others are served
        node.create_service(Trigger, "~/step", self._on_step, callback_group=group)

    def _handler(
        self, request: Callable[[], None]
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        return lambda _, response: self._answer(response, request)

    def _answer(self, response: Response, request: Callable[[], None]) -> Response:
        return answer(self._inbox, response, request, self._present, (Refused,))

    def _present(self) -> str:
        return f"{self._loop.mode.value} at step {self._loop.plant.step}"

    async def _on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        requested, steps = self._parameters["step_count"], Steps(self._node)
        self._answer(response, lambda: self._loop.step(requested, steps.progress))
        if response.success:
            while not await steps.next():
                continue
            response.success, response.message = steps.made == requested, self._present()
        if response.success or not steps.made:
            return response
        response.message = f"{steps.made} of {requested} steps made, {response.message}"
        return response

    def _save(self) -> None:
        self._kept = saved = SavedState.of(self._loop)
        file = self._parameters["state_file"]
        if file:
            try:
                saved.write(Path(file).expanduser(), self._loop.plant.dsys)
            except OSError as error:
                raise Refused(f"parameter 'state_file': {error}") from error

    def _load(self) -> None:
        file, saved = self._parameters["state_file"], self._kept
        try:
            if file:
                saved = SavedState.read(Path(file).expanduser(), self._loop.plant.dsys)
            if saved is None:
                raise Refused("no state was saved, and the parameter 'state_file' is empty")
            saved.restore(self._loop)
        except (ValueError, OSError) as error:
            raise Refused(f"parameter 'state_file': {error}") from error


class Steps:
    """Steps that the working thread takes for a coroutine in the executor of `node`; `made` so
    far.
    """

    def __init__(self, node: Node):
        self._node, self.made = node, 0
        self._next: Future[bool] = self._future()

    def progress(self, made: int, over: bool) -> None:
        """From the working thread: the number of steps made, and whether it was the last."""
        self.made, done = made, self._next
        if not over:
            self._next = self._future()
        done.set_result(over)

    async def next(self) -> bool:
        """Wait for one or more steps that `made` has not counted before; whether they are over."""
        return bool(await self._next)

    def _future(self) -> Future[bool]:
        future: Future[bool] = Future()
        future.add_done_callback(lambda _: self._wake())
        return future

    def _wake(self) -> None:
        """Wake the executor for waiting requests."""
        executor = self._node.executor
        if executor is not None:
            executor.wake()


class WrenchInterface:
    """Takes wrenches for the plant's `wrenches`, each on the target that its frame names, from the
    present step on. Refused ones are in the diagnostics, and, at a limited rate, in the log.
    """

    def __init__(self, node: Node, inbox: Inbox, loop: SimulationLoop, wrenches: Wrenches):
        log = node.get_logger()
        self._loop, self._wrenches = loop, wrenches
        self._warn = ThrottledLog(lambda text: log.warning(text))
        inbox.subscribe(WrenchStamped, "wrench", self._on_wrench, WRENCH_QUEUE)

    def _on_wrench(self, message: WrenchStamped) -> None:
        parts = (message.wrench.force, message.wrench.torque)
        values = [number for part in parts for number in conversions.xyz(part).tolist()]
        try:
            self._wrenches.offer(message.header.frame_id, values, self._loop.plant.step)
        except Unusable as reason:
            self._warn(f"wrench refused: {reason}")

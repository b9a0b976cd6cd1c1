"""Control of a plant by other nodes, through commands and wrenches on topics, and through services
for the plant's time and state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from nh_control.ros.runtime.inbox import Inbox, Local, Response, answer
from nh_control.ros.runtime.parameters import Parameters

COMMAND_QUEUE = WRENCH_QUEUE = 10


class CommandReader:
    """Receives commands on `joint_commands` for the loop. A command contains efforts or, for the
    joints in `kinds`, position or velocity targets.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        loop: SimulationLoop,
        latency: CommandLatency,
        kinds: Mapping[str, str],
    ):
        self._node, self._loop, self._latency, self._kinds = node, loop, latency, kinds
        self._told = False
        # with several publishers, different answers to one state are an error
        topic = node.resolve_topic_name("joint_commands")
        loop.validator.several = lambda: node.count_publishers(topic) > 1
        # the usual message, which is decoded fast, while rclpy decodes others
        self._template = Template(conversions.command_message(loop.validator.names.inputs))
        inbox.subscribe(
            JointState,
            "joint_commands",
            self._on_command,
            COMMAND_QUEUE,
            raw=True,
            local=None if kinds else Local(self._on_local),
        )

    def _on_command(self, data: bytes) -> None:
        try:
            message = self._template.decode(data)
        except conversions.ConversionError as reason:
            self._loop.validator.refuse(Rejection.UNREADABLE, str(reason))
            return
        if self._kinds:
            names, values, rates, stamp = conversions.read_targets(message, self._kinds)
            self._offer(names, values, stamp, rates)
        else:
            names, values, stamp = conversions.read_command(message)
            self._offer(names, values, stamp)

    def _on_local(self, command: tuple[list[str], Sequence[float], int]) -> None:
        """Handle a command from a tracker in this process."""
        names, values, stamp = command
        self._offer(names, values, stamp)

    def _offer(
        self, names: list[str], values: Sequence[float], stamp: int, rates: Sequence[float] = ()
    ) -> None:
        answer = self._loop.command(names, values, stamp, rates)
        if answer is Rejection.NO_COMMAND and not self._told:
            self._told = True
            self._node.get_logger().info(
                "joint_commands contains NaN for all joints: no controller commands them yet"
            )
        self._latency.accepted(self._loop.validator)


class PlantControl:
    """The services `~/pause`, `~/step`, `~/reset`, `~/reset_state`, `~/save_state` and
    `~/load_state` of the loop. Each service answers when it is done. States are stored in the file
    that the parameter `state_file` names, or in memory if the parameter is empty.
    """

    def __init__(self, node: Node, inbox: Inbox, loop: SimulationLoop, parameters: Parameters):
        self._node, self._inbox, self._loop, self._parameters = node, inbox, loop, parameters
        self._saved_state: SavedState | None = None
        node.create_service(
            SetBool,
            "~/pause",
            lambda request, response: self._answer(
                response, loop.pause if request.data else loop.resume
            ),
        )
        # services that answer when the loop has handled the request
        requests = {
            "reset": loop.reset,
            "reset_state": loop.reset_state,
            "save_state": self._save,
            "load_state": self._load,
        }
        for name, request in requests.items():
            node.create_service(Trigger, f"~/{name}", self._handler(request))
        group = ReentrantCallbackGroup()  # other services must be served during long steps
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
        # the loop takes the steps while this coroutine waits for them
        requested, steps = self._parameters["step_count"], Steps(self._node)
        self._answer(response, lambda: self._loop.step(requested, steps.progress))
        if response.success:
            # progress wakes the coroutine, but only the completion matters here
            while not await steps.next():
                continue
            response.success, response.message = steps.completed == requested, self._present()
        if response.success or not steps.completed:
            return response
        response.message = f"{steps.completed} of {requested} steps taken, {response.message}"
        return response

    def _save(self) -> None:
        self._saved_state = saved = SavedState.of(self._loop)
        file = self._parameters["state_file"]
        if file:
            try:
                saved.write(Path(file).expanduser(), self._loop.plant.dsys)
            except OSError as error:
                raise Refused(f"parameter 'state_file': {error}") from error

    def _load(self) -> None:
        file, saved = self._parameters["state_file"], self._saved_state
        try:
            if file:
                saved = SavedState.read(Path(file).expanduser(), self._loop.plant.dsys)
            if saved is None:
                raise Refused("no state was saved, and the parameter 'state_file' is empty")
            saved.restore(self._loop)
        except (ValueError, OSError) as error:
            raise Refused(f"parameter 'state_file': {error}") from error


class Steps:
    """Steps that the working thread takes for a coroutine in the executor of `node`. `completed`
    is the number of steps taken so far.
    """

    def __init__(self, node: Node):
        self._node, self.completed = node, 0
        self._next: Future[bool] = self._future()

    def progress(self, completed: int, over: bool) -> None:
        """Set the number of completed steps, and whether all steps have been taken. Called by the
        working thread.
        """
        self.completed, done = completed, self._next
        if not over:
            self._next = self._future()  # before the coroutine can ask for it
        done.set_result(over)

    async def next(self) -> bool:
        """Wait until `completed` has changed. Returns whether all steps have been taken."""
        return bool(await self._next)

    def _future(self) -> Future[bool]:
        future: Future[bool] = Future()
        future.add_done_callback(lambda _: self._wake())
        return future

    def _wake(self) -> None:
        """Wake the executor so that it resumes the waiting coroutine."""
        executor = self._node.executor
        if executor is not None:
            executor.wake()


class WrenchInterface:
    """Receives wrenches for the plant's `wrenches`. From the current step onward, each wrench acts
    on the target that its frame names. Refused wrenches are counted in the diagnostics and logged
    at a limited rate.
    """

    def __init__(self, node: Node, inbox: Inbox, loop: SimulationLoop, wrenches: Wrenches):
        log = node.get_logger()
        self._loop, self._wrenches = loop, wrenches
        self._warn = ThrottledLog(lambda text: log.warning(text))
        inbox.subscribe(WrenchStamped, "wrench", self._on_wrench, WRENCH_QUEUE)

    def _on_wrench(self, message: WrenchStamped) -> None:
        # the components, in the same order as the target's bounds
        parts = (message.wrench.force, message.wrench.torque)
        values = [number for part in parts for number in conversions.xyz(part).tolist()]
        try:
            self._wrenches.offer(message.header.frame_id, values, self._loop.plant.step)
        except Unusable as reason:
            self._warn(f"wrench refused: {reason}")

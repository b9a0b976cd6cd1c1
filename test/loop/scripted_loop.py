"""The plant's loop in the test's own thread, by a clock that passes only while the loop waits."""

import types

import numpy as np

from nh_control.integrators import midpoint
from nh_control.loop import plant_report, simulation_loop
from nh_control.loop.clocks import Pacer, StepClock
from nh_control.loop.command_validator import CommandNames, CommandValidator
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.loop.simulation_loop import Options, SimulationLoop
from nh_control.scenarios.fault import parse
from nh_control.systems import pendulum

H = 0.01
CLOCK = StepClock(H)
START = np.array([0.2, 0.5])
MODEL, HALVED = (midpoint(pendulum(), h) for h in (H, H / 2))
LIGHT = midpoint(pendulum().with_parameters(m=1e-6), H / 2)
TOO_MUCH = 1e308
"""A torque under which the light pendulum's step fails."""
NEVER, ALWAYS = (-1.0, -1.0), (0.0, 1e9)


def period(x, torque):
    return HALVED.step(HALVED.step(x, [torque]), [torque])


class ScriptedLoop:
    """A loop with its inbox, output and controller, which answers every new state k with the
    torque 0.1 k after `delay_s`, for 0 within `publish`, but not while it is `away` (from, to).

    `shown` are the (time, step) of what was published, `states` and `inputs` are those of the
    steps, `told` the modes, `waited` what was said of waits, `placed` the (start, shown) at which
    a start was told. `present` and `late` say whether all subscribers are there, and whether
    others came late.
    """

    def __init__(self, monkeypatch, *faults, dsys=HALVED, speed=1.0, fallback="zero", strict=True,
                 timeout_steps=1, lockstep=False, wait=True, last_step=10**6, delay_s=1e-3,
                 answer_s=0.0, away=NEVER, limit=np.inf):  # fmt: skip
        self.now, self.delay_s, self.away, self.closed = 0.0, delay_s, away, False
        self._end, self._events = 0.0, []
        self.shown, self.states, self.inputs, self.told, self.placed_at = [], {}, {}, [], []
        self.present, self.late, self.waited, self.controlled = True, False, [], True
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(simulation_loop, "time", clock)
        monkeypatch.setattr(plant_report, "time", clock)
        faulty = PlantFaults(MODEL, [parse(text) for text in faults])
        self.plant = SimulatedPlant(dsys, START, substeps=2, faults=faulty)
        validator = CommandValidator(
            CommandNames(("torque",)), np.array([[-limit, limit]]), CLOCK, timeout_steps, fallback,
            strict=strict,
        )  # fmt: skip
        self.pacer = Pacer(H, speed, clock=clock.monotonic)
        options = Options(lockstep, wait, last_step, answer_s)
        self.loop = SimulationLoop(self.plant, validator, self.pacer, options, self, self)

    def at(self, time_s, action):
        """What happens at a time, in the order in which it was said."""
        self._events.append((time_s, action))
        self._events.sort(key=lambda event: event[0])

    def answer(self, step, torque=0.0):
        return self.loop.command(("torque",), (torque,), CLOCK.stamp(step))

    def run(self, until_s):
        self._end, self.closed = until_s, self.now >= until_s
        self.loop.run()

    @property
    def missed(self):
        return self.pacer.statistics().missed

    @property
    def phase(self):
        return self.loop.mode.value, self.loop.reason

    # The inbox -----------------------------------------------------------------------------------

    def serve(self, timeout_s):
        """The next event, or none in this time; closed at the end."""
        until = self.now + timeout_s
        event = bool(self._events) and self._events[0][0] <= until
        if event:
            time_s, action = self._events.pop(0)
            self.now = max(self.now, time_s)
            action()
        else:
            self.now = min(until, max(self.now, self._end))
        self.closed = self.now >= self._end
        return event

    # The output ----------------------------------------------------------------------------------

    def publish(self):
        """Keep what is shown; the controller answers it."""
        step = self.plant.step
        self.shown.append((round(self.now, 6), step))
        self.states[step], self.inputs[step] = self.plant.state, float(self.plant.inputs[0])
        if not self.away[0] <= self.now < self.away[1]:
            measured = self.plant.measured_step
            if not self.delay_s:
                self.answer(measured, 0.1 * measured)
                return
            self.at(self.now + self.delay_s, lambda: self.answer(measured, 0.1 * measured))

    def changed(self):
        self.told.append(self.loop.mode)

    def missing(self):
        return "" if self.present else "the probe"

    def has_controller(self):
        return self.controlled

    def waits(self, text, over):
        self.waited.append((round(self.now, 6), text, over))

    def late_subscribers(self):
        late, self.late = self.late, False
        return late

    def placed(self):
        self.placed_at.append((self.loop.start_step, len(self.shown)))

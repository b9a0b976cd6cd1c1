"""Stand-ins for the parts of launch and launch_ros that the launch files use. Both packages come
with a ROS installation and are not on PyPI.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace


class DeclareLaunchArgument:
    """Sets the argument's default, and refuses a value outside its choices."""

    def __init__(self, name, default_value, choices=None, description=""):
        assert not choices or default_value in choices, (name, default_value, choices)
        self.name, self.default_value = name, default_value
        self.choices, self.description = choices, description

    def execute(self, context):
        """Declare it."""
        value = context.launch_configurations.setdefault(self.name, self.default_value)
        if self.choices and value not in self.choices:
            raise RuntimeError(
                f'Argument "{self.name}" provided value "{value}" is not valid. Valid options '
                f"are: {list(self.choices)}"
            )


class LaunchConfiguration:
    """The value of an argument."""

    def __init__(self, name):
        self._name = name

    def perform(self, context):
        """Look it up."""
        return context.launch_configurations[self._name]


class LaunchContext:
    """Values of arguments, and whether the launch is ending."""

    def __init__(self):
        self.launch_configurations, self.is_shutdown = {}, False


class LaunchDescription:
    """A list of actions."""

    def __init__(self, entities):
        self.entities = entities


class Kept(SimpleNamespace):
    """An object with the fields of its constructor."""


def parameter_value(value, value_type):
    """Return a value with a type."""
    return Kept(value=value, value_type=value_type)


def modules():
    """Return the stand-in modules by name."""
    contents = {
        "launch": {"LaunchContext": LaunchContext, "LaunchDescription": LaunchDescription},
        "launch.actions": {
            "DeclareLaunchArgument": DeclareLaunchArgument,
            **dict.fromkeys(
                ("ExecuteProcess", "LogInfo", "OpaqueFunction", "Shutdown", "TimerAction"), Kept
            ),
        },
        "launch.events": {},
        "launch.events.process": {"ProcessExited": Kept},
        "launch.logging": {"launch_config": Kept(log_dir="")},
        "launch.substitutions": {"LaunchConfiguration": LaunchConfiguration},
        "launch_ros": {},
        "launch_ros.actions": {"Node": Kept},
        "launch_ros.parameter_descriptions": {"ParameterValue": parameter_value},
        "ament_index_python": {"get_packages_with_prefixes": dict},
    }
    made = {}
    for name, content in contents.items():
        module = made[name] = ModuleType(name)
        module.__path__ = []  # a package
        for key, value in content.items():
            setattr(module, key, value)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, module)
    return made

"""The table of parameters in nh_control/ros/README.md, as the nodes declare them; `python
test/cli/readme_table.py` prints it.
"""

from nh_control.mechanics.parameters import Declaration
from nh_control.ros.runtime.declared import (
    DISPLAY,
    MODEL_PARAMETERS,
    PERTURBATION,
    PLANT,
    PLANT_PARAMETERS,
    RECORDER,
    SHADOW,
    SHARED,
    TRACKER,
    VIEW,
    WEIGHT_FACTORS,
    WEIGHTS,
)

HEADER = "| parameter | node | default | meaning |"


def rows() -> list[str]:
    """Lines of the table."""
    nodes = {
        "plant": PLANT,
        "tracker": TRACKER,
        "display": DISPLAY,
        "view": VIEW,
        "recorder": RECORDER,
        "shadow": SHADOW,
    }
    # by name: some can be changed in one node alone
    declared = {node: [spec.name for spec in specs] for node, specs in nodes.items()}
    known = {spec.name: spec for specs in (SHARED, *nodes.values()) for spec in specs}
    body = [
        _row(", ".join(node for node, names in declared.items() if name in names), spec)
        for name, spec in known.items()
    ]
    body.append(
        f"| `{PLANT_PARAMETERS}<field>` | plant, shadow | the scenario's | Physical parameter of "
        f"the plant, or of the shadow's model; `nh_control list SCENARIO` shows the fields. |"
    )
    of_models = "plant, tracker, display, view"
    body.append(
        f"| `{MODEL_PARAMETERS}<field>` | {of_models} | the scenario's | Physical parameter of "
        f"the model, and of a plant without its own. |"
    )
    body.append(
        f"| `{WEIGHT_FACTORS}<name>` | {of_models} | 1 | Factor on the scenario's weight of a "
        f"coordinate of the error, or of an input. |"
    )
    body.append(
        f"| `{PERTURBATION}<field>` | plant | 0, seed -1 | Initial error; `nh_control list "
        f"SCENARIO` shows the fields. |"
    )
    body.append(
        f"| `{WEIGHTS}<name>` | tracker | the scenario's | LQR weight of a local coordinate or an "
        f"input. |"
    )
    return [HEADER, "|---|---|---|---|", *body]


def _row(node: str, spec: Declaration) -> str:
    default = (
        {True: "true", False: "false", "": '""'}.get(spec.value, spec.value)
        if isinstance(spec.value, (bool, str))
        else spec.value
    )
    choices = (
        f" One of {', '.join(f'`{c}`' for c in spec.choices if c)}."
        if len(spec.choices) > 1
        else ""
    )
    return f"| `{spec.name}` | {node} | `{default}` | {spec.sentence}{choices} |"


if __name__ == "__main__":
    print("\n".join(rows()))

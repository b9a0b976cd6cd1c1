"""Studies as YAML files, with the same texts as the options of `nh_control study`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nh_control import scenarios
from nh_control.runs.settings import ORIGIN
from nh_control.scenarios import UnknownName
from nh_control.studies import variation
from nh_control.studies.sampling import GRID, MONTE_CARLO
from nh_control.studies.study import SUCCESS, Study

COUNTS = ("points", "seeds", "seed")
SETTINGS = ("vary", "set", "disturb", "fault")
KEYS = (
    *ORIGIN,
    *SETTINGS,
    *("sampling", *COUNTS, "same_noise", "require", "success", "monitor"),
)


def read(path: str | Path) -> dict[str, Any]:
    """Read a YAML file, with all values kept as text, because YAML would read 1:30 as 90.

    Raises OSError, and ValueError if the file is not a mapping with keys in KEYS.
    """
    try:
        data = yaml.load(Path(path).read_text(encoding="utf-8"), yaml.BaseLoader)  # no conversion
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected a mapping with the keys {', '.join(KEYS)}")
    for key in data:
        if key not in KEYS:
            raise UnknownName(f"key in {path}", str(key), KEYS)
    for key in ("vary", "set"):
        if not isinstance(data.get(key, {}), dict):
            raise ValueError(f"{path}: {key} must be a mapping of settings to values")
    return data


def make_study(data: Mapping[str, Any]) -> Study:
    """Make a study from texts, given by their KEYS. The default sampling is a grid if all ranges
    have a count, and Monte Carlo otherwise.

    Raises ValueError, and any errors from finding and building the scenario.
    """
    if "scenario" not in data:
        raise ValueError("a study needs a scenario")
    scenario = scenarios.of_origin(data)
    vary = tuple(
        variation.parse(name, ",".join(text) if isinstance(text, list) else text)
        for name, text in data.get("vary", {}).items()
    )
    disturb, fault, require = (
        _texts(data.get(key, [])) for key in ("disturb", "fault", "require")
    )
    counts = {key: _integer(key, data[key]) for key in COUNTS if key in data}
    # A number of points or a range without a count excludes a grid.
    drawn = counts.get("points") or not all(v.levels for v in vary)
    study = Study(
        tuple(scenario.origin.items()),
        vary,
        tuple((name, variation.value(text)) for name, text in data.get("set", {}).items()),
        disturb,
        fault,
        data.get("sampling", MONTE_CARLO if drawn else GRID),
        same_noise=_truth("same_noise", data.get("same_noise", "false")),
        require=require,
        success=_number("success", data.get("success", str(SUCCESS))),
        monitor=_truth("monitor", data.get("monitor", "false")),
        points=counts.get("points", 0),
        seeds=counts.get("seeds", 0),
        seed=counts.get("seed", 0),
    )
    study.check()
    return study


def to_yaml(study: Study) -> str:
    """Return the study as YAML that `read` accepts."""
    data: dict[str, Any] = {
        **dict(study.scenario),
        "vary": {v.name: str(v) for v in study.vary},
        "set": dict(study.fixed),
        "disturb": list(study.disturb),
        "fault": list(study.fault),
        "sampling": study.sampling,
        **{key: getattr(study, key) for key in COUNTS},
        **({"same_noise": True} if study.same_noise else {}),
        "require": list(study.require),
        "success": study.success,
        **({"monitor": True} if study.monitor else {}),
    }
    return yaml.safe_dump({k: v for k, v in data.items() if v not in ({}, [])}, sort_keys=False)


def differences(ours: Study, theirs: Study) -> str:
    """Return the differences between two studies by key, or "" if they are equal."""
    texts = [yaml.load(to_yaml(study), yaml.BaseLoader) for study in (ours, theirs)]
    # Requirements on the study may differ, because they judge the same runs.
    for text, study in zip(texts, (ours, theirs)):
        text.pop("require", None)
        if study.run_requirements:
            text["require"] = [requirement.text for requirement in study.run_requirements]
    return "; ".join(
        f"{key}: {texts[0].get(key, 'none')} here, {texts[1].get(key, 'none')} there"
        for key in KEYS
        if texts[0].get(key) != texts[1].get(key)
    )


def _texts(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _integer(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{key} must be an integer, got {text!r}") from None


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{key} must be a number, got {text!r}") from None


def _truth(key: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{key} must be true or false, got {text!r}")
    return text == "true"

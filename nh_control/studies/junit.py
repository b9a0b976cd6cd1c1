"""A study's results as JUnit XML, which continuous integration servers display."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from nh_control.numerics.files import whole_file
from nh_control.studies.statistics import Columns, accepted
from nh_control.studies.study import Study
from nh_control.studies.worker import command

COMMANDS = 20
"""Maximum number of failed runs whose commands are written."""


def write(path: str | Path, study: Study, columns: Columns, numbers: dict[str, Any]) -> None:
    """Write two suites: the study's requirements and its runs.

    An unsuccessful run is a failure if the study is not accepted. Otherwise, it is reported as
    skipped. Hence, there are failures if and only if a requirement is not met or all runs failed.
    Raises OSError.
    """
    name = study.settings.scenario.name
    root = ElementTree.Element("testsuites", name=f"nh_control study {name}")
    requirements = _suite(root, f"{name}.requirements")
    for requirement in numbers["requirements"]:
        case = _case(requirements, requirement["text"], f"{name}.requirements", 0.0)
        if not requirement["met"]:
            text = f"{requirement['reason']}; {numbers['runs']} runs"
            _child(case, "failure", f"{requirement['text']} is not met: {text}", text)
    runs = _suite(root, f"{name}.runs")
    tolerated = accepted(numbers)
    shown = 0
    # A file with the commands of thousands of failed runs would be unreadable.
    for i, index in enumerate(columns["run"].tolist()):
        case = _case(runs, f"run {index}", f"{name}.runs", float(columns["wall_s"][i]))
        if columns["success"][i]:
            continue
        reason = _reason(study, columns, i)
        detail = reason
        if shown < COMMANDS:
            detail, shown = f"{reason}\n{command(study, index)}", shown + 1
        _child(case, "skipped" if tolerated else "failure", reason, detail)
    for suite in (requirements, runs):
        _count(suite)
    ElementTree.indent(root)
    with whole_file(path) as file:
        file.write(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _reason(study: Study, columns: Columns, i: int) -> str:
    """Return the reason why a run is not a success."""
    if columns["failure"][i]:
        return str(columns["failure"][i])
    if study.run_requirements:
        return str(columns["missed"][i])
    return f"final_error = {columns['final_error'][i]:.6g}, expected <= {study.success:g} (m, rad)"


def _suite(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(root, "testsuite", name=name)


def _case(suite: ElementTree.Element, name: str, owner: str, time_s: float) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", name=name, classname=owner, time=f"{time_s:.3f}"
    )


def _child(case: ElementTree.Element, kind: str, message: str, text: str) -> None:
    child = ElementTree.SubElement(case, kind, message=_plain(message))
    if kind == "failure":
        # In JUnit files, each failure has a type.
        child.set("type", "RequirementNotMet")
    child.text = _plain(text)


def _count(suite: ElementTree.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    suite.set("errors", "0")
    suite.set("time", f"{math.fsum(float(case.get('time', 0)) for case in cases):.3f}")


def _plain(text: str) -> str:
    """Return the text without control characters that XML forbids."""
    return "".join(c for c in text if c in "\n\t" or c >= " ")

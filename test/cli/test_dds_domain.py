"""Domains of runs: reserved for one run each, and free of other programs."""

import random
import socket

import pytest

from nh_control.cli import main
from nh_control.runs import dds_domain, launcher
from nh_control.runs.dds_domain import DomainInUse, domains_of_runs, fixed_domain, reserved_domain


def test_a_domain_is_reserved_once_and_free_again_afterwards():
    with reserved_domain() as first, reserved_domain() as second:
        assert first != second and {first, second} <= set(domains_of_runs())
        for number in (first, second):
            with (
                pytest.raises(DomainInUse, match=f"domain {number}, and"),
                reserved_domain(number),
            ):
                pass
    assert not {first, second} & set(domains_of_runs())
    with reserved_domain(first) as again:
        assert again == first


def test_a_domain_in_which_a_program_listens_is_left_out_unless_the_user_fixed_it(monkeypatch):
    with reserved_domain() as busy, reserved_domain() as quiet:
        pass
    with socket.socket(type=socket.SOCK_DGRAM) as node:
        node.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Fast DDS has it
        node.bind(("", 7400 + 250 * busy + 10))
        monkeypatch.setattr(random, "sample", lambda population, k: [busy, quiet])
        with reserved_domain() as chosen, reserved_domain(busy) as fixed:
            assert (chosen, fixed) == (quiet, busy)


def test_a_domain_is_fixed_by_the_number_or_the_environment(monkeypatch):
    monkeypatch.setenv(dds_domain.VARIABLE, "5")
    assert (fixed_domain(7), fixed_domain()) == (7, 5)
    monkeypatch.setenv(dds_domain.VARIABLE, "")
    assert fixed_domain() is None
    monkeypatch.setenv(dds_domain.VARIABLE, "seven")
    with pytest.raises(ValueError, match="ROS_DOMAIN_ID must be a DDS domain, .* got 'seven'"):
        fixed_domain()
    with pytest.raises(ValueError, match="--domain must be a DDS domain, 0 to 101, got '102'"):
        fixed_domain(102)


def test_node_asks_for_a_domain_where_several_runs_are(monkeypatch, capsys):
    monkeypatch.delenv(dds_domain.VARIABLE, raising=False)
    monkeypatch.setattr(dds_domain, "domains_of_runs", lambda: [71, 79])
    monkeypatch.setattr(launcher, "require_ros", lambda record: pytest.fail("asks too late"))
    assert main(["node", "list"]) == 2
    text = "several runs are active, in the DDS domains 71, 79: add --domain N; each run prints"
    assert text in capsys.readouterr().err

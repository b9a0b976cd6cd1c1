"""Results in the cache: by what determines them, once, as a whole, and announced."""

import logging
import os

import numpy as np
import pytest

from nh_control.numerics import result_cache
from nh_control.numerics.result_cache import cached_result


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NH_CONTROL_CACHE", str(folder))
    return folder


class Computation:
    """Counts how often it is made."""

    def __init__(self, result=3.0):
        self.made, self.result = 0, result

    def __call__(self):
        self.made += 1
        return {} if self.result is None else {"x": np.array([self.result]), "s": np.array("ok")}


def asked(computation, *key, announcement=""):
    return cached_result("sum", key, computation, announcement)


def test_it_is_computed_once_for_each_key(cache):
    compute, start = Computation(), np.arange(3.0)
    first = asked(compute, "text", start)
    again = asked(compute, "text", start.copy())
    assert compute.made == 1 and again["x"][0] == first["x"][0] == 3.0 and str(again["s"]) == "ok"
    for key in (("text", start + 1e-16 + 1.0), ("texts", start), ("tex", "t", start), ("text",)):
        asked(compute, *key)
    assert compute.made == 5
    asked(compute, "text", start)
    assert compute.made == 5
    nothing = Computation(result=None)
    assert asked(nothing, "nothing") == asked(nothing, "nothing") == {} and nothing.made == 2


def test_it_is_announced_before_and_only_if_it_is_computed(cache, caplog):
    caplog.set_level(logging.WARNING)
    seen = []

    def compute():
        seen.append(caplog.text)
        return Computation()()

    for _ in range(2):
        asked(compute, "a", announcement="a sum takes 3 s")
    assert len(seen) == 1 and "a sum takes 3 s; next time it is in the cache" in seen[0]
    assert caplog.text.count("a sum takes") == 1


def test_a_damaged_file_is_computed_again(cache, caplog):
    compute = Computation()
    asked(compute, "a")
    (stored,) = cache.glob("sum-*.npz")
    stored.write_bytes(stored.read_bytes()[:-20])
    assert asked(compute, "a")["x"][0] == 3.0 and compute.made == 2
    assert "is damaged, it is computed again" in caplog.text
    asked(compute, "a")
    assert compute.made == 2


def test_another_process_s_result_is_taken_after_the_lock(cache, monkeypatch):
    """The file appears while this process waits."""
    compute, other = Computation(), Computation(result=7.0)
    reads = []
    read = result_cache._read

    def late(path):
        reads.append(path)
        if len(reads) == 2:
            result_cache._write(path, other())
        return read(path)

    monkeypatch.setattr(result_cache, "_read", late)
    assert asked(compute, "a")["x"][0] == 7.0 and compute.made == 0


def test_a_cache_that_others_may_write_is_not_used(cache):
    cache.mkdir()
    os.chmod(cache, 0o777)
    compute = Computation()
    asked(compute, "a")
    asked(compute, "a")
    assert compute.made == 2 and not list(cache.iterdir())

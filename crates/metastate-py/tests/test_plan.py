"""Controlled chains: lists of episodes as gymnasium gives them, plans, what they say of themselves, and the same from a folder."""

from __future__ import annotations

import numpy as np
import pytest

import metastate as ms


def corridor(episodes: int, seed: int, label=lambda s: s):
    """Nine places in a row; a step goes where it should four times of five. The right end pays 1, and the episode ends there."""
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(episodes):
        state, steps = int(rng.integers(8)), []
        for _ in range(30):
            action = int(rng.integers(2))
            move = (1 if action else -1) * (1 if rng.random() < 0.8 else -1)
            following = min(max(state + move, 0), 8)
            ended = following == 8
            steps.append((label(state), "right" if action else "left", float(ended), label(following), ended))
            state = following
            if ended:
                break
        log.append(steps)
    return log


@pytest.fixture(scope="module")
def result():
    # As many meta-states as places: with fewer, the end and the place before it are one, and held-out records say that the claim is wrong.
    return ms.fit(corridor(400, 1), rank=9)


def test_episodes_become_a_plan_that_goes_right(result):
    plan = result.plan(discount=0.9)
    assert [plan(s) for s in range(8)] == ["right"] * 8
    assert plan("end") is None and plan.value("end") == 0.0
    assert all(plan.value(s) < plan.value(s + 1) for s in range(7))
    assert plan.summary["check"]["unit"] == "episodes" and plan.check["units"] == 400
    assert plan.check["low"] < plan.check["value"] < plan.check["high"]
    assert plan.check["log"] < plan.check["low"]
    assert plan.bound["loss"] > 0 and plan.discount == 0.9
    assert len(plan.q["value"]) == 16 and 8 not in plan
    assert "held out" in repr(plan)
    with pytest.raises(ms.InputError, match="does not know the state"):
        plan(99)


def test_states_of_any_kind_are_known_by_their_text():
    log = corridor(200, 2, label=lambda s: (s // 3, s % 3))
    plan = ms.fit(log, rank=6).plan(discount=0.9, check=False)
    assert plan((0, 0)) == "right" and plan.check is None
    assert "check=False" in plan.summary["not_checked"]


def test_a_saved_result_plans_the_same_and_needs_its_log_for_the_check(result, tmp_path):
    place = result.save(tmp_path / "out")
    again = ms.load(place)
    alone = again.plan(discount=0.9)
    assert alone.check is None and "memory" in alone.summary["not_checked"]
    assert alone.actions == result.plan(discount=0.9).actions
    checked = again.plan(discount=0.9, data=corridor(400, 1))
    assert checked.check == result.plan(discount=0.9).check
    with pytest.raises(ms.InputError, match="not the one that was fitted"):
        again.plan(discount=0.9, data=corridor(50, 3))


def test_what_is_wrong_is_said(result):
    with pytest.raises(ms.InputError, match="at least 0 and below 1"):
        result.plan(discount=1.0)
    with pytest.raises(ms.InputError, match="no \\(state, action, reward, next state\\)"):
        ms.fit([[(0, 0, 0.0, 1), (0, 0)]])
    with pytest.raises(ms.InputError, match="no result of a controlled chain"):
        ms.fit([0, 0, 1, 1] * 50 + [2, 2, 3, 3] * 50, lambda_ratio=0.5).plan(discount=0.9)

"""Questions over answers against the oracle."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from engines.playback import play
from sources.scenes import scenes_over_answers


@settings(max_examples=100, deadline=None)
@given(scene=scenes_over_answers())
def test_questions_over_answers_are_the_oracles(scene: Any) -> None:
    play(scene)

"""Questions over answers against the oracle."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from engines.streams import examples, play
from sources.scenes import scenes_over_answers


@examples(150)
@given(scene=scenes_over_answers())
def test_questions_over_answers_are_the_oracles(scene: Any) -> None:
    play(scene)

"""When a trial is given up: when it is worse than another one on the questions that both have been asked so far.

The test is Optuna's WilcoxonPruner, on the scores question by question. Questions are looked at in the trial's order,
whichever of them is answered first, so that the threads do not decide what comes of a trial.
"""

from __future__ import annotations

from collections.abc import Sequence

import optuna
from optuna.trial import TrialState, create_trial

from .sampler import quiet
from .study import Trial

_EVERY = 10  # questions, for a test takes 10 ms
_FIRST = 20  # questions, before the first test
_P = 0.05  # low, for there are many tests in a trial


class Pruning:
    """What one trial comes to, question by question.

    Args:
        order: The numbers of the questions in the order in which they are asked.
        rival: The trial that it is held against; None to give nothing up.

    Attributes:
        stopped: Whether the trial was given up.
    """

    def __init__(self, order: Sequence[int], rival: Trial | None) -> None:
        self._order, self._rival = order, rival
        self._scores: dict[int, float] = {}
        self._known = 0  # so many of the first questions are answered
        self.stopped = False

    @property
    def asked(self) -> list[int]:
        """The questions that count, in their order."""
        return list(self._order[: self._known])

    def goes_on(self, number: int, score: float) -> bool:
        """Told of each question as it is answered; returns whether to ask on."""
        self._scores[number] = score
        while self._known < len(self._order) and self._order[self._known] in self._scores:
            self._known += 1
            due = self._known >= _FIRST and self._known % _EVERY == 0 and self._known < len(self._order)
            if due and self._rival is not None and self._is_worse(self._rival):
                self.stopped = True
                return False
        return True

    def _is_worse(self, rival: Trial) -> bool:
        with quiet():
            study = optuna.create_study(direction="maximize")
            study.add_trial(create_trial(value=rival.score, intermediate_values=dict(rival.scores)))
            so_far = {number: self._scores[number] for number in self.asked}
            trial = create_trial(state=TrialState.RUNNING, intermediate_values=so_far)
            return bool(optuna.pruners.WilcoxonPruner(p_threshold=_P).prune(study, trial))

"""`randomize`: sanity checks of methods on a data set, on one model or several."""

from __future__ import annotations

from collections.abc import Sequence

from engine.evaluation.sample import Sample, drawn_sample
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.randomization.gathering import Gathering
from engine.randomization.keeping import keep, kept
from engine.randomization.parts import told
from engine.randomization.plan import THESIS, Plan, check
from engine.randomization.result import OfModel, Randomization
from engine.randomization.work import Work


def randomize(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str] = THESIS,
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> Randomization:
    """Every method on every model at every stage, on examples that the seed draws; `more`: other fields of `Plan`.

    A random order is beside the methods. Pieces of work are kept one by one, so that what was stopped goes on where it
    was, and another method, mode or seed costs only itself. An example that fails is left out with the reason. Errors:
    those of the plan, of a data set that cannot be read, and of a model that cannot be randomized.
    """
    plan = Plan(tuple(models), dataset, tuple(methods), **more)  # type: ignore[arg-type]
    return carry_out(plan, report, cancel)


def carry_out(plan: Plan, report: Report = silent, cancel: CancelToken | None = None) -> Randomization:
    """A whole plan: see `randomize`. What was found on a model is kept as a whole too, so that it opens at once."""
    check(plan)
    sample = sample_of(plan)
    with cancellable(cancel):
        return Randomization(plan, tuple(of_model(plan, model, sample, report) for model in plan.models))


def sample_of(plan: Plan) -> Sample:
    """The examples: the same as an evaluation draws with this seed. Errors: those of reading the data set."""
    return drawn_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def finished(plan: Plan) -> Randomization | None:
    """The whole from the cache, without a model; None while it holds nothing of one of its models."""
    check(plan)
    sample = sample_of(plan)
    found = [kept(plan, model, sample) for model in plan.models]
    there = tuple(one for one in found if one is not None)
    return Randomization(plan, there) if len(there) == len(found) else None


def of_model(plan: Plan, model: str, sample: Sample, report: Report = silent) -> OfModel:
    """What is found on one model, from the cache or worked out now; incomplete findings are tried again."""
    there = kept(plan, model, sample)
    if there is not None and there.complete:
        return there
    found = _worked_out(Work(plan, model, sample), report)
    keep(plan, model, sample, found)
    return found


def _worked_out(work: Work, report: Report) -> OfModel:
    gathering = Gathering(work)
    settings = work.settings()
    done, total = 0, len(settings) * len(work.chunks)
    for setting in settings:
        for chunk in work.chunks:
            check_cancelled()
            report(done, total, f"{told(setting[0])} randomized, {work.model}")
            asked = work.pieces(setting, chunk)
            made = work.done(asked)
            gathering.add(setting, {piece.method: made[piece.key] for piece in asked})
            done += 1
    work.check_untouched()
    report(total, total, "")
    return gathering.result()

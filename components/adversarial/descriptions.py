"""The sentences of the Adversarial page: about attacks, their results, and how to cite them. Not escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from components.numbers import count, percent, plain, plural, points, seconds, signed
from engine.attacks.attack import describe_epsilon
from engine.attacks.experiment_result import METRICS, AttackExperimentResult, AttackScore
from engine.attacks.plan import METHODS, MIXED, OBJECTIVES, PIXELS, TOLERANCE, AttackParams
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, FOOLED, ROBUST, AttackResult
from engine.format import count_text, join_names
from engine.home import product_version
from engine.params import LOGIT, PROBABILITY, from_mapping
from engine.registry import Explainer

ABOUT = "A small change of the input tries to replace the features with the highest scores and keep the prediction."
CAUTION = (
    "A map that can be fooled is not necessarily wrong on natural inputs: the changed input need not look like a real "
    "text or picture (Ghorbani, Abid and Zou, 2019, Interpretation of neural networks is fragile)."
)
CITED = (
    "The attack: A. Ghorbani, A. Abid and J. Zou (2019), Interpretation of neural networks is fragile, AAAI. "
    "Top-k form, both objectives and the measures: sections 2.3 and 3.5 of the thesis."
)
OBJECTIVE_TITLES = {OBJECTIVES[0]: "Unconstrained", OBJECTIVES[1]: "Constrained"}
QUANTITY_TITLES = {LOGIT: "Logit", PROBABILITY: "Probability", MIXED: "Mixed"}
QUANTITY_HELP = (
    "The quantity of map and penalty. Logit or probability: both are of the same. Mixed: the map is of the logit and "
    "the penalty of the probability. A model that gives a score and no class has the score alone."
)
BOTH = "both"
OBJECTIVE_HELP = (
    "Unconstrained: the top scores fall as far as they can while the predicted class stays. Constrained: changes of "
    "its probability or logit count against the attack too; the constraint is broken where the probability moves by "
    f"more than {TOLERANCE:g} or where the class changes. A model that gives a score and no class has the second alone."
)
METHOD_HELP = (
    "Attacked is the map of one method. Only a map that can be differentiated again can be attacked: "
    f"{', '.join(METHODS)}. How other methods take the attacked input stands below the result."
)
PLACE_TITLES = {"pixels": "Pixels", "embedding": "Patch embeddings"}
EMPTY = "This attack has not been run yet. Press **Run the attack** to watch it; you can stop it at any time."
STOPPED = "Stopped. Nothing was saved; the next run starts from the beginning."
WRONG_PREDICTION = (
    "The model is wrong about this example before the attack: it predicts {}, the label is {}. The attack keeps the "
    "predicted class."
)
NEAREST = "The words whose embeddings are nearest to each moved one, with the Euclidean distance."
GREY = "Gray is unchanged."
NO_COMMAND = "No command makes this again: `exegesis attack` takes examples of data sets, and this input is your own."
TRANSFER = "The maps of other methods of the same attacked input, with the share of the top places that changed."
NOT_ATTACKED = "A method need not be differentiable to be asked here, so attention, occlusion and LIME can be too."
TRANSFER_HELP = (
    "Does it transfer? The maps of these methods of each attacked input are compared with those of the input as it "
    "was, by rank change and sum change. A method that is attacked is always asked after its own attacks."
)
TRANSFER_LIMITS = "Of other methods' maps there are rank change and sum changes; the rest is of the model alone."
OWN_MAPS = "Each attacked method's own"
MANY_ABOUT = "Runs the attack above, with its settings, on random examples of the data set."
MANY_EMPTY = "Press **Attack them all** to start. The job continues while you use other pages."
MANY_FAILED = "Some attacks failed and are not in the numbers. The reasons are listed below."
NamedSentence = tuple[str, str]
"""A name and a sentence about it."""
SIGN = "✗"
PROBLEM_TITLES = {
    FAILED: f"{SIGN} Attack failed",
    CLASS_CHANGED: f"{SIGN} Class changed, not fooled",
    BROKEN: f"{SIGN} Constraint broken, not fooled",
}
"""Outcomes that do not count as fooled, with a sign, so that color is not all that tells them."""
FAILED_WORDS = (
    "the ascent left the class for good or broke off, and found nothing before. This says nothing about the map: "
    "it is not a robust one"
)
NO_SUM = "none: a map is zero everywhere, so it cannot be divided by its sum"
COUNTED_EXAMPLES = {"all": "", "right": " that the model gets right", "wrong": " that the model gets wrong"}
"""The rest of the noun "examples", by which of them count."""


def result_title(result: AttackResult) -> str:
    """The title of the input after this attack."""
    return f"After, {OBJECTIVE_TITLES[str(result.attack['objective'])].lower()}"


def headline(result: AttackResult) -> NamedSentence:
    """The main result: what became of the top features, and of the prediction."""
    name = OBJECTIVE_TITLES[str(result.attack["objective"])]
    if result.outcome == FAILED:
        return name, FAILED_WORDS
    return name, f"{_describe_top(result)}{_describe_answer(result)}"


def summarize_attacks(results: Sequence[AttackResult], title: str) -> str:
    """Whether the method of this title was fooled by any of the attacks, in one sentence."""
    fooled = [result for result in results if result.outcome == FOOLED]
    if any(map(replaced, fooled)):
        return f"{title} can be fooled here."
    if fooled:
        return f"{title} keeps its top {plural(_unit(fooled[0]))} here, but in another order."
    if any(result.outcome == ROBUST for result in results):
        return f"No attack that counts changed the top of {title} here; a stronger one might."
    return (
        f"Nothing can be concluded about {title} here: every attack failed, changed the class or broke its constraint."
    )


def summarize_fooled(scores: Sequence[AttackScore], titles: Mapping[str, str], which: str = "all") -> list[str]:
    """How many examples each attacked method was fooled on, a sentence for each model and objective.

    `which`: the examples that count, a key of `COUNTED_EXAMPLES`.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for score in scores:
        key = score.key
        if key.metric == FOOLED and key.attacked == key.method and score.value is not None:
            groups.setdefault((key.model, key.objective), []).append(_describe_fooled(score, titles, which))
    return [
        f"{OBJECTIVE_TITLES[objective]} attacks on {model} fooled {join_names(own)}."
        for (model, objective), own in groups.items()
    ]


def _describe_fooled(score: AttackScore, titles: Mapping[str, str], which: str) -> str:
    low, high = score.interval or (None, None)
    bounds = "no interval" if low is None or high is None else f"95% interval {percent(low)} to {percent(high)}"
    number = round((score.value or 0.0) * score.n)
    of = f"{number} of {count_text(score.n, 'example')}{COUNTED_EXAMPLES[which]}"
    return f"{titles.get(score.key.method, score.key.method)} on {of} ({bounds})"


def replaced(result: AttackResult) -> int:
    """How many features of the top k are no longer among the top k."""
    k = result.k
    return len(set(result.order_before[:k].tolist()) - set(result.order_after[:k].tolist()))


def _unit(result: AttackResult) -> str:
    return "token" if result.grid is None else "patch"


def _describe_top(result: AttackResult) -> str:
    """What became of the top k features."""
    left, k, unit = replaced(result), result.k, _unit(result)
    if k == 1:
        return f"the top {unit} {'was replaced' if left else 'did not change'}"
    units = plural(unit)
    if left == k:
        return f"all top-{k} {units} were replaced"
    if left:
        return f"{left} of the top {k} {units} {'was' if left == 1 else 'were'} replaced"
    return f"the top {k} {units} {'are the same in another order' if result.rank_change else 'did not change'}"


def titled_headline(result: AttackResult) -> NamedSentence:
    """The headline, with the reason why the attack does not count as fooled in its name."""
    name, sentence = headline(result)
    problem = PROBLEM_TITLES.get(result.outcome)
    return (f"{name}: {problem}" if problem else name), sentence


def _describe_answer(result: AttackResult) -> str:
    """What became of the prediction, as the rest of a sentence."""
    if result.class_kept is None:
        broken = f", but {_describe_break(result)}" if result.outcome == BROKEN else ""
        return broken or f"; score {_describe_probability(result)}"
    label = result.prediction.label
    if result.outcome == BROKEN:
        return f" and the prediction stayed {label}, but {_describe_break(result)}"
    if not result.class_kept:
        after = result.prediction_after
        return f", but the prediction changed from {label} to {after.labels[after.index]}"
    target = result.provenance.target
    before, after_share = result.prediction.probabilities[target], result.prediction_after.probabilities[target]
    return f" while the prediction stayed {label} ({percent(before)} before, {percent(after_share)} after)"


def measure_lines(result: AttackResult) -> Iterator[NamedSentence]:
    """The measures of the thesis in words, and how the attack went."""
    yield "Rank change", f"{percent(result.rank_change)}: {_describe_ranks(result)}"
    yield "Top-k sum change", f"{signed(result.top_k_sum_change)}: total drop in the top-k scores"
    normalized = result.top_k_sum_change_normalised
    yield (
        "Normalised sum",
        NO_SUM if normalized is None else f"{signed(normalized)}, each map divided by its sum of sizes",
    )
    yield "Score change" if result.prediction.regression else "Probability change", _describe_probability(result)
    if result.class_kept is not None:
        yield "Class", _describe_class(result)
    if result.attack["objective"] != "unconstrained":
        yield "Constraint", "kept" if result.constraint_kept else f"{SIGN} broken: {_describe_limit(result)}"
    yield "Moved", _describe_change(result)
    yield "Run", _describe_run(result)


def _describe_ranks(result: AttackResult) -> str:
    changed, unit = round(result.rank_change * result.k), "token" if result.grid is None else "patch"
    if result.k == 1:
        return f"{'another' if changed else 'the same'} {unit} ranks first"
    return f"another {unit} at {changed} of the first {result.k} ranks"


def _describe_probability(result: AttackResult) -> str:
    target = result.provenance.target
    if result.prediction.regression:
        return (
            f"{plain(result.prediction.logits[target])} before, {plain(result.prediction_after.logits[target])} after"
        )
    before, after = result.prediction.probabilities[target], result.prediction_after.probabilities[target]
    return f"{points(after - before)} points: {percent(before)} before, {percent(after)} after"


def _describe_class(result: AttackResult) -> str:
    now = result.prediction_after.labels[result.prediction_after.index]
    return f"kept: {now}" if result.class_kept else f"{SIGN} not kept: {now} now"


def _describe_break(result: AttackResult) -> str:
    what = "the score" if result.prediction.regression else "its probability"
    return f"{what} changed more than allowed ({_describe_probability(result)}; {_describe_limit(result)})"


def _describe_limit(result: AttackResult) -> str:
    """The change up to which the constraint counts as kept."""
    if result.prediction.regression:
        return f"at most {TOLERANCE:g} is allowed"
    return f"at most {100 * TOLERANCE:g} points and the same class are allowed"


def _describe_change(result: AttackResult) -> str:
    bound, largest = float(str(result.attack["epsilon"])), float(result.largest.max())
    what = "color (0 to 1)" if result.attack["place"] == PIXELS else "number of an embedding"
    reach = describe_epsilon(from_mapping(AttackParams, result.attack, "attack"), result.relative_epsilon)
    more = f". {reach[0].upper()}{reach[1:]}" if reach else ""
    return f"each {what} by at most ε = {plain(bound)}; the largest moved by {plain(largest)}{more}"


def _describe_run(result: AttackResult) -> str:
    kept = "the input as it was is kept" if result.best is None else f"step {result.best:,} is kept"
    source = "from the cache" if result.cached else seconds(result.seconds)
    starts = int(str(result.attack["starts"]))
    which = f", from start {result.start + 1} of {starts}" if starts > 1 else ""
    return f"{count(result.steps, 'step')}, {kept}{which}; {source}"


def describe_starts(starts: int) -> str:
    """The number of starts of each attack; empty where there is one."""
    return f" from {count(starts, 'start')} each" if starts > 1 else ""


def result_notes(results: Sequence[AttackResult]) -> list[str]:
    """The notes of the engine, each once; with its attack, where not of all."""
    by_note: dict[str, list[AttackResult]] = {}
    for result in results:
        for note in result.notes:
            by_note.setdefault(note, []).append(result)
    return [note if len(own) == len(results) else f"{result_title(own[0])}: {note}" for note, own in by_note.items()]


def describe_experiment(result: AttackExperimentResult, size: int) -> str:
    """The settings of the experiment, in one sentence."""
    params = result.plan.attack_params(result.plan.objectives[0])
    starts = f" from {count(params.starts, 'start')}" if params.starts > 1 else ""
    return (
        f"{count(size, 'example')}, at most {count(params.steps, 'step')} each{starts}; means over examples with 95% "
        "intervals."
    )


def summarize_means(scores: Sequence[AttackScore], titles: Mapping[str, str]) -> str:
    """The methods whose maps changed least and most, of means by one objective on one model."""
    scored = [score for score in scores if score.value is not None]
    first = scored[0].key if scored else None
    own = [one for one in scored if first and (one.key.model, one.key.objective) == (first.model, first.objective)]
    if first is None or len(own) < 2 or METRICS[first.metric].better == "neither":
        return ""
    ordered = sorted(own, key=lambda score: abs(score.value or 0.0))
    low, high = (
        f"{titles.get(one.key.method, one.key.method)} ({plain(one.value or 0.0)})" for one in (ordered[0], ordered[-1])
    )
    objective = OBJECTIVE_TITLES[first.objective].lower()
    return f"Smallest change ({objective}): {low}. Largest: {high}. A robust map is not necessarily a faithful one."


def excluded_lines(result: AttackExperimentResult, titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """For each reason: how many examples on each model, and by which methods."""
    examples: dict[tuple[str, str], set[int]] = {}
    methods: dict[tuple[str, str], dict[str, None]] = {}
    for skip in (*result.skips, *result.excluded):
        group = (skip.reason, skip.key.model)
        examples.setdefault(group, set()).add(skip.example)
        methods.setdefault(group, {})[titles.get(skip.key.method, skip.key.method)] = None
    return [
        (why, f"{count(len(places), 'example')} on {model}", ", ".join(methods[why, model]))
        for (why, model), places in examples.items()
    ]


def cite_attack(result: AttackResult) -> str:
    """One sentence on the model and the settings that gave these numbers."""
    origin = result.provenance
    settings = ", ".join(f"{name} = {value}" for name, value in result.attack.items() if name != "objective")
    return (
        f"Exegesis {product_version()}. Attack on {origin.method} of model {origin.model}, revision {origin.revision}, "
        f"{origin.dtype} on {origin.device}, seed {origin.seed}; {settings}."
    )


def attack_references(result: AttackResult, methods: Mapping[str, Explainer]) -> list[str]:
    """The attack, and the method that was attacked."""
    method = methods[result.provenance.method]
    return [CITED, f"{method.title} ({method.id}, version {method.version}): {method.citation.rstrip('.')}."]

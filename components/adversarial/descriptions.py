"""Sentences of the Adversarial page about attacks, their results and their citation. They are not escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from components.numbers import count, percent, plain, plural, points, seconds, signed
from engine.attacks.attack import describe_epsilon
from engine.attacks.experiment_result import METRICS, AttackExperimentResult, AttackScore
from engine.attacks.plan import METHODS, MIXED, OBJECTIVES, PIXELS, TOLERANCE, AttackParams
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, FOOLED, ROBUST, AttackResult
from engine.format import count_text, join_names, visible_token
from engine.home import product_version
from engine.params import LOGIT, PROBABILITY, from_mapping
from engine.registry import Explainer
from engine.result import predicted_name

CAUTION = (
    "The attack changes the input within its limits, to replace the top features of a map but keep the prediction. "
    "A map that can be fooled is not necessarily wrong on natural inputs: the changed input need not look like a real "
    "text or picture (Ghorbani, Abid and Zou, 2019, Interpretation of neural networks is fragile)."
)
CITED = (
    "The attack: A. Ghorbani, A. Abid and J. Zou (2019), Interpretation of neural networks is fragile, AAAI. "
    "Top-k form, both objectives and the measures: thesis, sections 2.3 and 3.5."
)
OBJECTIVE_TITLES = {OBJECTIVES[0]: "Unconstrained", OBJECTIVES[1]: "Constrained"}
QUANTITY_TITLES = {LOGIT: "Logit", PROBABILITY: "Probability", MIXED: "Mixed"}
QUANTITY_HELP = (
    "The quantity that the map explains and the penalty holds. Logit or probability: the same for both. Mixed: the map "
    "explains the logit, the penalty holds the probability. For models that predict a score it is always the score."
)
BOTH = "both"
OBJECTIVE_HELP = (
    "Unconstrained: lower the top scores as far as possible while the predicted class stays. Constrained: also "
    "penalize changes in its probability or logit; the constraint is broken if the probability changes by more than "
    f"{TOLERANCE:g} or the class changes. Models that predict a score support only the constrained objective."
)
METHOD_HELP = (
    f"The method whose map is attacked. Only differentiable maps can be attacked: {', '.join(METHODS)}. The maps of "
    "other methods for the attacked input are below the result."
)
PLACE_TITLES = {"pixels": "Pixels", "embedding": "Patch embeddings"}
EMPTY = "This attack has not been run yet. Press **Run the attack** to start; you can stop it at any time."
STOPPED = "Stopped. Nothing was saved; the next run starts from the beginning."
WRONG_PREDICTION = (
    "The model is wrong on this example before the attack: it predicts {}, the label is {}. The attack keeps the "
    "predicted class."
)
NEAREST = "Vocabulary words nearest to each changed embedding, with Euclidean distances."
NO_COMMAND = "No command reproduces this: `exegesis attack` reads data sets, and this input is your own."
TRANSFER = "Maps of other methods for the same attacked inputs, with the share of their top ranks that changed."
NOT_ATTACKED = "These methods need not be differentiable: attention, occlusion and LIME work too."
TRANSFER_HELP = (
    "Does the attack transfer? Compares the maps of these methods before and after each attack by rank change and sum "
    "change. An attacked method is always measured after its own attacks."
)
TRANSFER_LIMITS = "Other methods have only a rank change and sum changes; the other measures describe the model."
OWN_MAPS = "Each attacked method's own"
MANY_ABOUT = "The attack above, with the same settings, on random examples of the data set."
MANY_EMPTY = "Press **Attack all examples** to start. The job continues while you use other pages."
MANY_FAILED = "Some attacks ended with an error and are excluded. The reasons are listed below."
NamedSentence = tuple[str, str]
"""A name and a sentence about it."""
SIGN = "✗"
PROBLEM_TITLES = {
    FAILED: f"{SIGN} Attack failed",
    CLASS_CHANGED: f"{SIGN} Class changed, not fooled",
    BROKEN: f"{SIGN} Constraint broken, not fooled",
}
"""Outcomes that do not count as fooled, marked by a sign as well as by color."""
FAILED_WORDS = (
    "no solution was found: the search ended in another class or at a non-finite value. This says nothing about the map"
)
NO_SUM = "undefined: a map is zero everywhere"
LARGE_REACH = 1.0
"""Relative epsilon from which a change can replace an embedding by any other of the same norm."""
COUNTED_EXAMPLES = {"all": "", "right": " that the model gets right", "wrong": " that the model gets wrong"}
"""Completes the noun "examples" for each choice of examples."""


def result_title(result: AttackResult) -> str:
    """Title of the column after this attack."""
    return f"After, {OBJECTIVE_TITLES[str(result.attack['objective'])].lower()}"


def headline(result: AttackResult) -> NamedSentence:
    """Return the objective, and a clause about the top features and the prediction."""
    name = OBJECTIVE_TITLES[str(result.attack["objective"])]
    if result.outcome == FAILED:
        return name, FAILED_WORDS
    return name, f"{describe_top(result)}{_describe_answer(result)}"


def summarize_attacks(results: Sequence[AttackResult], title: str) -> str:
    """Say in one sentence whether any attack fooled the method, and by how much.

    `title`: title of the method. The sentence names the attack that replaced the most features; on ties the last one,
    which is the constrained attack.
    """
    fooled = [result for result in results if result.outcome == FOOLED]
    if any(map(replaced, fooled)):
        best = max(reversed(fooled), key=replaced)
        left, k, unit = replaced(best), best.k, _unit(best)
        what = f"the top {unit}" if k == 1 else f"{'all' if left == k else f'{left} of the'} top {k} {plural(unit)}"
        objective = OBJECTIVE_TITLES[str(best.attack["objective"])].lower()
        how = "with this large epsilon" if _reach([best]) >= LARGE_REACH else "here"
        return f"{title} can be fooled {how}: the {objective} attack replaced {what}{_describe_answer(best)}."
    if fooled:
        return f"{title} keeps its top {plural(_unit(fooled[0]))} here, but in a different order."
    if any(result.outcome == ROBUST for result in results):
        return f"No valid attack changed the top {plural(_unit(results[0]))} of {title} here; a stronger one might."
    return (
        f"Nothing can be concluded about {title} here: every attack failed, changed the class or broke its constraint."
    )


def _reach(results: Sequence[AttackResult]) -> float:
    """Return the largest epsilon of the attacks, relative to the median norm of the embeddings.

    0 for attacks on pixels, or if it is unknown.
    """
    attacks = (one for one in results if one.attack["place"] != PIXELS)
    return max((one.relative_epsilon or 0.0 for one in attacks), default=0.0)


def describe_reach(results: Sequence[AttackResult]) -> str:
    """Describe how far epsilon lets an embedding move, relative to the median norm of the embeddings.

    Empty for attacks on pixels, or if it is unknown.
    """
    reach = _reach(results)
    if not reach:
        return ""
    if reach < LARGE_REACH:
        return f"Epsilon lets an embedding move by up to {percent(reach)} of the median norm of the embeddings."
    return (
        f"Epsilon is large for this model: it lets an embedding move by up to {plain(reach)} times the median norm of "
        "the embeddings, so the attacked input need not resemble this one. A smaller epsilon tests the map near it."
    )


def summarize_fooled(scores: Sequence[AttackScore], titles: Mapping[str, str], which: str = "all") -> list[str]:
    """Return a sentence per model and objective: on how many examples each attacked method was fooled.

    `which`: the included examples, a key of `COUNTED_EXAMPLES`.
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
    """Number of top-k features that are no longer in the top k."""
    k = result.k
    return len(set(result.order_before[:k].tolist()) - set(result.order_after[:k].tolist()))


def _unit(result: AttackResult) -> str:
    return "token" if result.grid is None else "patch"


def describe_top(result: AttackResult) -> str:
    """Describe the change in the top k features."""
    left, k, unit = replaced(result), result.k, _unit(result)
    if k == 1:
        return f"the top {unit} {'was replaced' if left else 'did not change'}"
    units = plural(unit)
    if left == k:
        return f"all top-{k} {units} were replaced"
    if left:
        return f"{left} of the top {k} {units} {'was' if left == 1 else 'were'} replaced"
    return f"the top {k} {units} {'are the same in a different order' if result.rank_change else 'did not change'}"


def titled_headline(result: AttackResult) -> NamedSentence:
    """Return the headline. If the attack does not count as fooled, the name includes the reason."""
    name, sentence = headline(result)
    problem = PROBLEM_TITLES.get(result.outcome)
    return (f"{name}: {problem}" if problem else name), sentence


def _describe_answer(result: AttackResult) -> str:
    """Describe the change in the prediction, as the end of a sentence."""
    if result.class_kept is None:
        broken = f", but {_describe_break(result)}" if result.outcome == BROKEN else ""
        return broken or f"; score {_describe_probability(result)}"
    label = predicted_name(result.prediction)
    if result.outcome == BROKEN:
        return f" and the prediction stayed {label}, but {_describe_break(result)}"
    if not result.class_kept:
        before_name, after_name = (visible_token(one.label) for one in (result.prediction, result.prediction_after))
        return f", but the prediction changed from {before_name} to {after_name}"
    target = result.provenance.target
    before, after_share = result.prediction.probabilities[target], result.prediction_after.probabilities[target]
    return f" while the prediction stayed {label} ({percent(before)} before, {percent(after_share)} after)"


def measure_lines(result: AttackResult) -> Iterator[NamedSentence]:
    """Yield the measures of the thesis in words, and how the attack ended."""
    yield "Rank change", f"{percent(result.rank_change)}: {_describe_ranks(result)}"
    yield "Top-k sum change", f"{signed(result.top_k_sum_change)}: total drop in the top-k scores"
    normalized = result.top_k_sum_change_normalised
    yield (
        "Normalized sum change",
        NO_SUM if normalized is None else f"{signed(normalized)}: each map divided by its sum of absolute values",
    )
    yield "Score change" if result.prediction.regression else "Probability change", _describe_probability(result)
    if result.class_kept is not None:
        yield "Class", _describe_class(result)
    if result.attack["objective"] != "unconstrained":
        yield "Constraint", "met" if result.constraint_kept else f"{SIGN} broken ({_describe_limit(result)})"
    yield "Change", _describe_change(result)
    yield "Run", _describe_run(result)


def _describe_ranks(result: AttackResult) -> str:
    changed, unit = round(result.rank_change * result.k), "token" if result.grid is None else "patch"
    if result.k == 1:
        return f"{'another' if changed else 'the same'} {unit} ranks first"
    return f"another {unit} holds {changed} of the top {result.k} ranks"


def _describe_probability(result: AttackResult) -> str:
    target = result.provenance.target
    if result.prediction.regression:
        return (
            f"{plain(result.prediction.logits[target])} before, {plain(result.prediction_after.logits[target])} after"
        )
    before, after = result.prediction.probabilities[target], result.prediction_after.probabilities[target]
    return f"{points(after - before)} points: {percent(before)} before, {percent(after)} after"


def _describe_class(result: AttackResult) -> str:
    now = visible_token(result.prediction_after.label)
    return f"unchanged: {now}" if result.class_kept else f"{SIGN} changed to {now}"


def _describe_break(result: AttackResult) -> str:
    what = "the score" if result.prediction.regression else "its probability"
    return f"{what} changed more than allowed ({_describe_probability(result)}; {_describe_limit(result)})"


def _describe_limit(result: AttackResult) -> str:
    """Describe the largest change that meets the constraint."""
    if result.prediction.regression:
        return f"allowed: at most {TOLERANCE:g}"
    return f"allowed: at most {100 * TOLERANCE:g} points in the same class"


def _describe_change(result: AttackResult) -> str:
    bound, largest = float(str(result.attack["epsilon"])), float(result.largest.max())
    what = "color (0 to 1)" if result.attack["place"] == PIXELS else "number of an embedding"
    reach = describe_epsilon(from_mapping(AttackParams, result.attack, "attack"), result.relative_epsilon)
    more = f". {reach[0].upper()}{reach[1:]}" if reach else ""
    return f"at most ε = {plain(bound)} for each {what}; the largest is {plain(largest)}{more}"


def _describe_run(result: AttackResult) -> str:
    source = "cached" if result.cached else seconds(result.seconds)
    starts = int(str(result.attack["starts"]))
    which = f", start {result.start + 1} of {starts}" if starts > 1 else ""
    if result.best is None:
        return f"no improvement in {count(result.steps, 'step')}{which}; {source}"
    return f"best result at step {result.best:,} of {result.steps:,}{which}; {source}"


def describe_starts(starts: int) -> str:
    """Describe the number of starts of each attack; empty if there is only one."""
    return f", {count(starts, 'start')} each" if starts > 1 else ""


def result_notes(results: Sequence[AttackResult]) -> list[str]:
    """Return the engine's notes without duplicates; a note that does not apply to all attacks names its attack."""
    by_note: dict[str, list[AttackResult]] = {}
    for result in results:
        for note in result.notes:
            by_note.setdefault(note, []).append(result)
    return [note if len(own) == len(results) else f"{result_title(own[0])}: {note}" for note, own in by_note.items()]


def describe_experiment(result: AttackExperimentResult, size: int) -> str:
    """Describe the settings of the experiment in one sentence."""
    params = result.plan.attack_params(result.plan.objectives[0])
    starts = f" from {count(params.starts, 'start')}" if params.starts > 1 else ""
    return (
        f"{count(size, 'example')}, at most {count(params.steps, 'step')} each{starts}; means over examples with 95% "
        "intervals."
    )


def summarize_means(scores: Sequence[AttackScore], titles: Mapping[str, str]) -> str:
    """Name the methods with the smallest and the largest absolute mean, for the first model and objective.

    Empty with fewer than two means, or if neither direction of the metric is better.
    """
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
    """Return a row per reason and model: the reason, the number of examples, and the methods."""
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
    """Cite the model and the settings of the attack."""
    origin = result.provenance
    settings = ", ".join(f"{name} = {value}" for name, value in result.attack.items() if name != "objective")
    return (
        f"Exegesis {product_version()}. Attack on {origin.method} of model {origin.model}, revision {origin.revision}, "
        f"{origin.dtype} on {origin.device}, seed {origin.seed}; {settings}."
    )


def attack_references(result: AttackResult, methods: Mapping[str, Explainer]) -> list[str]:
    """Return the references of the attack and of the attacked method."""
    method = methods[result.provenance.method]
    return [CITED, f"{method.title} ({method.id}, version {method.version}): {method.citation.rstrip('.')}."]

"""Cache keys: of explanations by every method with every kind of parameter, predictions, disagreements, switched heads,
attacks and transfers. Each is frozen with what it was made of, so that a change shows which part of it changed.

Of embedded models only: their revisions are constant. No model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.frozen import doors
from tests.frozen.doors import AttackRequest, Example, HeadScales, Picture, Request
from tests.frozen.golden import summary

TEXT = Example("A quiet film, never dull: the ending is warm and funny.")
PAIR = Example("A man plays a guitar.", "Nobody makes music.")
MODELS = {"text": "reviews-minilm", "image": "scenes-vit"}
INPUTS = {"text": TEXT, "image": doors.picture()}
METHODS = {
    "text": "gradient gradient_l2 gradient_x_input smoothgrad integrated_gradients occlusion lime kernel_shap "
    "exact_shapley attention_mean attention_last_layer attention_head attention_logits attention_logits_last "
    "attention_rollout smat attention_x_gradient attn_lrp ensemble_all ensemble_top3 random",
    "image": "gradient gradient_l2 gradient_x_input smoothgrad integrated_gradients grad_cam occlusion lime "
    "kernel_shap exact_shapley attention_mean attention_last_layer attention_head attention_logits "
    "attention_logits_last attention_rollout smat attention_x_gradient attn_lrp ensemble_all ensemble_top3 random",
}
"""Those of the day of freezing: later ones are free to come."""
STRANGE = {
    "empty": "",
    "blanks": " \t\n ",
    "accents": "na\u00efve nai\u0308ve",
    "other scripts": "映画 קולנוע 🎬",
    "markup": '<b onclick="x">&amp;</b> \'; --',
    "null": "a\0b",
}
SHORT = 12

Case = tuple[str, Callable[[], str]]


def parts() -> dict[str, Callable[[], Any]]:
    """Each golden file of this subject."""
    return {"keys": lambda: {name: key_of(make) for name, make in cases()}}


def cases() -> Iterator[Case]:
    """What is asked for by name, and the function that forms its key."""
    yield from _methods()
    yield from _requests()
    yield from _predictions()
    yield from _attacks()


def key_of(make: Callable[[], str]) -> Any:
    """The key with its parts; of what has none, why."""
    with doors.key_parts() as formed:
        try:
            key = make()
        except doors.ExegesisError as error:
            return {"refused": doors.told(error)}
    return {"key": key, "of": told(formed[key])}


def told(value: Any) -> Any:
    """The parts of a key to be read: hashes by their first digits, long lists by a summary."""
    if isinstance(value, dict):
        return {name: told(one) for name, one in value.items()}
    if isinstance(value, list):
        return summary([told(one) for one in value], SHORT)
    return f"{value[:SHORT]}…" if isinstance(value, str) and len(value) == 64 else value


def _methods() -> Iterator[Case]:
    """Each method with its defaults, and with each parameter in turn at each of its other choices or limits."""
    for kind, methods in METHODS.items():
        for method in methods.split():
            for name, params in variants(doors.options(kind, method)):
                request = Request(MODELS[kind], method, INPUTS[kind], params)
                yield f"{kind}, {method}{name}", lambda request=request: doors.explanation_key(request)


def variants(options: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parameters to try, by a name."""
    yield "", {}
    for name, one in options.items():
        others = [choice for choice in one["choices"] or () if choice != one["default"]]
        others = others or [limit for limit in (one["low"], one["high"]) if limit is not None]
        for other in others[-2:]:
            yield f", {name} {other}", {name: other}
    if len(options) > 1:
        name, one = next(iter(options.items()))
        yield ", all named", {name: one["default"] for name, one in reversed(options.items())}


def _requests() -> Iterator[Case]:
    """All else that a request holds: model, texts, target, seed, precision, scaled heads."""

    def asked(name: str, **given: Any) -> Case:
        request = Request(**{"model": "reviews-minilm", "method": "gradient", "example": TEXT} | given)
        return f"explanation, {name}", lambda: doors.explanation_key(request)

    def switched(name: str, **given: Any) -> Case:
        request = Request(**{"model": "reviews-minilm", "method": "gradient", "example": TEXT} | given)
        return f"heads switched off, {name}", lambda: doors.switching_key(request)

    for model in doors.catalog.embedded_models():
        yield asked(f"text, {model}", model=model)
    for model in doors.catalog.embedded_image_models():
        yield asked(f"picture, {model}", model=model, example=doors.picture())
    for model in ("nli-minilm", "bert-nli", "t5-nli", "quality-minilm"):
        yield asked(f"pair, {model}", model=model, example=PAIR)
    for name, text in STRANGE.items():
        yield asked(f"text, {name}", example=Example(text))
    yield asked("an empty second text", example=Example("one", ""))
    yield asked("too long a text", example=Example("x" * 1_000_001))
    for target in (0, 1, "positive", "no such class", -1):
        yield asked(f"target {target!r}", target=target)
    for seed in (1, 2**63, -1, True):
        yield asked(f"seed {seed!r}", seed=seed)
    for dtype in ("bfloat16", "float16", "float64"):
        yield asked(f"precision {dtype}", dtype=dtype)
    yield asked("unknown model", model="no-such-model")
    yield asked("unknown method", method="no_such_method")
    yield asked("unknown parameter", method="lime", params={"samples": 3})
    yield asked("a parameter of another type", method="lime", params={"n_samples": "many"})
    yield asked("a parameter as text", method="lime", params={"n_samples": "256", "kernel_width": "5"})
    yield asked("a method of pictures on a text", method="grad_cam")
    yield asked("a text for a model of pictures", model="scenes-vit")
    off = HeadScales.off([(1, 3), (0, 2)])
    some = HeadScales.from_mapping({(2, 1): 0.5, (0, 0): 2, (4, 4): 1})
    for name, heads in {
        "heads off": off,
        "heads scaled": some,
        "heads scaled by 1": HeadScales.from_mapping({(1, 1): 1}),
    }.items():
        yield asked(name, heads=heads)
        yield switched(name, heads=heads)
    yield switched("of a text", target=1, seed=5)
    yield switched("of a pair", model="bert-nli", example=PAIR)
    yield switched("of a picture", model="scenes-vit", example=doors.picture())


def _predictions() -> Iterator[Case]:
    for name, model, example, more in (
        ("text", "reviews-minilm", TEXT, ()),
        ("pair", "nli-minilm", PAIR, ()),
        ("picture", "scenes-vit", doors.picture(), ()),
        ("small picture", "digits-vit", doors.picture(3, 2, 11), ()),
        ("text, float64", "bert-reviews", TEXT, ("float64",)),
        ("text, heads off", "bert-reviews", TEXT, ("float32", HeadScales.off([(0, 1)]))),
        ("text, unknown precision", "bert-reviews", TEXT, ("float8",)),
    ):
        asked = (model, [example], *more)
        yield f"prediction, {name}", lambda asked=asked: doors.prediction_keys(*asked)[0]
    digest = doors.picture().digest
    yield "prediction, picture by its digest", lambda: doors.keys_by_digest("scenes-vit", [digest])[0]
    for methods in (("gradient", "lime"), ("lime", "gradient"), ("attention_mean", "occlusion", "gradient_x_input"),
                    ("lime",), ("lime", "lime"), ("lime", "ensemble_all")):  # fmt: skip
        asked = ("reviews-minilm", [TEXT], methods)
        yield f"disagreement, {' '.join(methods)}", lambda asked=asked: doors.disagreement_keys(*asked)[0]
    usual = ("nli-minilm", [PAIR])
    yield "disagreement, usual methods", lambda: doors.disagreement_keys(*usual)[0]


def _attacks() -> Iterator[Case]:
    texts = {
        "usual": {},
        "constrained": {"attack": {"objective": "constrained", "alpha": 2, "beta": 30}},
        "few steps": {"attack": {"steps": 3, "starts": 1, "learning_rate": 0.5}},
        "wide": {"attack": {"epsilon": 4.5, "sign_steps": True, "specials": True}},
        "seed and precision": {"seed": 3, "dtype": "float64"},
        "a larger share": {"attack": {"top_k": 3}},
        "of the probability": {"method": "gradient_x_input", "attack": {"quantity": "probability"}},
        "of two quantities": {"method": "gradient_x_input", "params": {"quantity": "probability"}},
        "along a path": {"method": "integrated_gradients", "params": {"baseline": "zero"}},
        "of what has no gradient": {"method": "lime"},
        "unknown setting": {"attack": {"strength": 1}},
        "pixels of a text": {"attack": {"place": "pixels"}},
    }  # fmt: skip
    pictures = {
        "picture": {},
        "pixels": {"attack": {"place": "pixels"}},
        "pixels, constrained": {
            "attack": {"place": "pixels", "objective": "constrained"},
            "method": "gradient_x_input",
        },
    }
    for name, given in texts.items():
        request = _attack("reviews-minilm", TEXT, given)
        yield f"attack, {name}", lambda request=request: doors.attack_key(request)
    for name, given in pictures.items():
        request = _attack("scenes-vit", doors.picture(), given)
        yield f"attack, {name}", lambda request=request: doors.attack_key(request)
    for method, params in (("lime", {}), ("lime", {"n_samples": 64}), ("occlusion", {}), ("no_such_method", {})):
        asked = (_attack("reviews-minilm", TEXT, {}), method, params)
        yield f"transfer, {method} {params}", lambda asked=asked: doors.transfer_key(*asked)


def _attack(model: str, example: Example | Picture, given: dict[str, Any]) -> AttackRequest:
    return AttackRequest(**{"model": model, "method": "gradient", "example": example} | given)

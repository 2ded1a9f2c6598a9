"""Links: for each page the usual one, unusual ones and hostile ones, with the link that then stands in the address,
what is said to be wrong, and what is asked of the engine; the usual one in full, of all others what differs from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode

from tests.frozen import doors, golden

Values = dict[str, list[str | list[str]]]
"""By name in the link: values to try, one at a time. A list stands for a name that is said several times."""
MARKUP = "<img src=x onerror=alert(1)>"
DIGITS = "9" * 5000
HOSTILE: list[str | list[str]] = ["", [MARKUP, "no-such\0"]]
"""Tried with every name."""
NUMBERS: list[str | list[str]] = ["-1", "1.5", DIGITS, "٣"]
LONGEST = 120

MAPS: Values = {
    "method": ["lime", ["lime", "random", "lime"], "none", ["none", "lime"], ["lime", "no-such"]],
    "lime.n_samples": ["64", "512", "0", "many"],
    "integrated_gradients.steps": ["fixed", "never"],
    "lime.no_such": ["1"],
    "target": ["positive", "1"],
    "seed": ["7", "007", *NUMBERS],
    "pin": ["3,1,3", "1,", "x,2", ",".join(map(str, range(1025))), DIGITS],
    "open": ["browse", "questions,browse", "browse,no-such"],
    "question": ["agreement"],
    "removal": ["zero", "blur"],
    "measure": ["top_k", "ssim"],
    "find": ["good food", "x" * 201],
    "show": ["wrong", "rationale"],
    "label": ["negative"],
    "sort": ["mistakes", "long"],
    "gamma": ["0.5", "1.0", "0.333", "0.1", "nan", "inf"],
    "scale": ["shared", "common"],
}
TEXT: Values = {
    "model": ["bert-reviews", "no-such-model", " owner/name@rev ", "/etc/passwd"],
    "data": ["nli", "reviews-marked", "no-such-set", "/no/such/file.csv", "hub:no/such"],
    "index": ["2", "-1", "39", "40", "1.5", DIGITS],
    "digest": ["00000000"],
    "text": ["A film & a <b>half</b>.", "é 映画 + 100 %", ["one", "two"]],
    "text_sha": ["0" * 64, "x"],
    "pair": ["Nobody laughs."],
    "pair_sha": ["1" * 64],
}
PICTURE: Values = {
    "model": ["digits-vit", "no-such-model"],
    "data": ["digits", "scenes:count=3", "no-such-set", "/no/such/folder"],
    "split": ["train", "test", "no-such"],
    "index": ["2", *NUMBERS],
    "digest": ["00000000"],
    "picture_sha": ["0" * 64, "x"],
}
LOOK: dict[str, Values] = {
    "text": {
        "unit": ["word", "patch"],
        "edit": ["A dull film."],
        "edit_sha": ["2" * 64],
        "edit_pair": ["Everybody laughs."],
        "style": ["underline"],
        "values": ["on", "yes"],
        "layout": ["aligned"],
    },
    "images": {"opacity": ["0", "40", "101"], "outline": ["off"], "open": ["truth"], "sort": ["error"]},
}
SHARED_LOOK: Values = {
    "method": ["lime", "no-such"],
    "target": ["positive"],
    "seed": ["7"],
}
ATTENTION: Values = {
    **SHARED_LOOK,
    "score": ["entropy", "agreement"],
    "view": ["query", "received", "matrix"],
    "query": ["3", *NUMBERS],
    "order": ["score"],
    "scale": ["shared"],
    "between": ["a_to_b"],
    "special": ["off"],
    "detail": ["lines", "overlay"],
    "layers": ["0,2,1", "x"],
    "heads": ["3", "1,,2"],
    "head": ["1.2", "1", "12345.1"],
    "alone": ["on"],
    "against": ["kernel_shap", "lime"],
    "switched": ["1.2x0", "2.1x0.5,0.3x2", "1.2x1", "1.2x3", "1.2x0,1.2x1", "1.2"],
    "flow": ["rollout", "relevancy"],
    "residual": ["0", "0.25", "2", "nan"],
    "start_layer": ["1", "-1"],
    "threshold": ["0.05", "5"],
    "open": ["switch,flow", "browse"],
}
COMPARE: Values = {
    "column": [
        ["lime@reviews-minilm", "lime,n_samples=64@reviews-minilm"],
        ["lime,n_samples=64,ridge=2@bert-reviews", "random@no-such-model"],
        "none",
        "lime",
        "no_such@reviews-minilm",
        "lime,n_samples=x@reviews-minilm",
        [f"lime,n_samples={n}@reviews-minilm" for n in range(10, 20)],
        ["grad_cam@scenes-vit", "occlusion,window=2@scenes-vit"],
        ["random@a@b", "lime,removal=p%61d@m", "random@ "],
    ],
    "reference": ["B", "Z", "b"],
    "target": ["positive"],
    "seed": ["7", "-1"],
    "open": ["search", "no-such"],
    "unit": ["token"],
    "layout": ["text"],
    "shown": ["difference", "moves"],
    "scale": ["common"],
    "gamma": ["0.5", "9"],
    "measure": ["top_k"],
    "order": ["size"],
    "percent": ["25", "7"],
    "opacity": ["40", "101"],
    "examples": ["100", "7"],
}
EVALUATE: Values = {
    "model": [["bert-reviews", "gpt2-marked"], " bert-reviews ", [f"model-{n}" for n in range(41)]],
    "data": ["reviews-marked", "/no/such/file.csv", "digits"],
    "method": ["lime", ["occlusion", "lime"], "none", ["lime", "no-such"], "grad_cam"],
    "lime.n_samples": ["64", "0"],
    "metric": ["comprehensiveness", ["gt_overlap", "no_such"], ["sufficiency", "sufficiency"]],
    "examples": ["2", "0", "100001"],
    "split": ["test"],
    "seed": ["7", *NUMBERS],
    "unit": ["word", "patch"],
    "removal": ["pad", "blur"],
    "shares": ["10", "5, 10", "0", "5,5", "101", "x"],
    "view": ["curves", "scaling", "architecture", "plausibility", "cost", "slices", "strength"],
    "sort": ["comprehensiveness", "confident"],
    "y": ["sufficiency"],
    "x": ["evaluations"],
    "way": ["with_top"],
    "slice": ["length"],
    "inside": ["curves"],
    "cost": ["seconds"],
    "drawn": ["bert-reviews"],
    "family": ["bert"],
    "over": ["training"],
    "order": ["low"],
    "only": [["lime", "random"]],
    "column": [["sufficiency", "no_such"]],
    "point": [
        ["reviews-minilm", "lime", "comprehensiveness", "", "", ""],
        ["reviews-minilm", "lime", "comprehensiveness", "random", "20", "short"],
        ["reviews-minilm", "lime"],
        ["reviews-minilm", "lime", "comprehensiveness", "", "120", ""],
    ],
}
RANDOMIZATION: Values = {
    "model": [["bert-reviews", "gpt2-marked"]],
    "data": ["reviews-marked"],
    "method": ["lime", ["gradient", "random"], "none"],
    "integrated_gradients.n_steps": ["16", "x"],
    "mode": ["independent", ["cascading", "independent"], "upwards"],
    "head": ["on", "maybe"],
    "embeddings": ["on"],
    "examples": ["3", "0"],
    "seeds": ["1", "101", "0"],
    "split": ["test"],
    "seed": ["7", "-1"],
    "measure": ["spearman_abs", "top_k", "ssim"],
    "drawn": ["bert-reviews"],
    "only": [["lime", "gradient", "lime"]],
    "beside": [["abc", "def"]],
    "lines": ["gradient"],
    "of": ["bert-reviews"],
    "way": ["independent"],
    "stage": ["2", "10000", "x"],
    "example": ["5", "x"],
    "order": ["most", "high"],
    "by": ["lime"],
    "draw": ["2", "0"],
    "scale": ["shared"],
}
BEHAVIOR: Values = {
    "model": ["bert-reviews", "no-such-model"],
    "data": ["reviews-marked"],
    "method": ["lime", ["lime", "no_such"]],
    "examples": ["3", "0", "100001", "x"],
    "task": ["recourse", "feature", "other"],
    "edit": ["delete", "mask"],
    "draws": ["4", "0", "65"],
    "margin": ["0", "51", "x"],
    "feature": ["film,movie", ","],
    "size": ["1", "4"],
    "question": ["order", "other"],
    "example": ["3", "x"],
    "of": ["bert-reviews"],
}
ADVERSARIAL: Values = {
    "method": ["integrated_gradients", "lime", "no_such"],
    "objective": ["constrained", "unconstrained"],
    "place": ["pixels", "embedding"],
    "epsilon": ["8/255", "0.5", "1/0", "x", "-1"],
    "top_k": ["0.2", "3", "1.5", "0"],
    "quantity": ["probability", "mixed"],
    "alpha": ["2"],
    "beta": ["300", "-1"],
    "starts": ["1", "0", "101"],
    "steps": ["5", "500", "0"],
    "learning_rate": ["0.5", "1e-3", "nan"],
    "sign_steps": ["true", "True", "perhaps"],
    "specials": ["yes"],
    "seed": ["7", "-1"],
    "points": ["33", "0", "1025"],
    "start": ["zero", "mean", "blur"],
    "scale": ["own"],
    "open": ["others"],
    "examples": ["2", "0", "1001"],
    "measure": ["top_k_sum_change", "fooled"],
    "which": ["wrong"],
    "of": ["gradient", "lime"],
    "other": ["lime", "none", ["occlusion", "no-such"]],
    "on": [["bert-reviews", "reviews-minilm"], "none"],
    "attacked": [["gradient", "integrated_gradients"], "lime"],
    "bar": [["reviews-minilm", "gradient_l2", "constrained"], ["one", "two"]],
    "asked": [["lime", "random"], "none"],
}
SCAFFOLD: Values = {
    "model": ["bert-quality", "no-such-model"],
    "data": ["quality"],
    "setting": [["smat", "none"], ["none", "no-such"]],
    "sizes": ["50,100", "0", "5,5", "x"],
    "seeds": ["0", "0,9,11", "-1"],
    "base": ["minilm"],
    "split": ["test"],
    "recipe.epochs": ["3", "0", "x"],
    "recipe.normalisation": ["softmax", "sparsemax", "max"],
    "recipe.soft_targets": ["true"],
    "recipe.inner_rate": ["0.005"],
    "recipe.no_such": ["1"],
    "size": ["500", "x"],
    "curve": ["none", "lime"],
    "measure": ["loss"],
    "section": ["maps", "plausibility", "protocols", "normalisations"],
    "example": ["3", "0"],
    "scale": ["own"],
    "marks": ["reviews-marked"],
    "examples": ["10", "0"],
}
REPRODUCTION: Values = {
    "examples": ["20", "1", "1001", "x"],
    "seed": ["7", "-1"],
    "show": ["holds", "cannot be told", "undecided", ["fails", "holds", "no-such"]],
    "claim": ["families-gpt2-flat", ["no-such", "families-gpt2-flat"]],
    "paper": ["smat", "smat-data", "other"],
}
TRIED: dict[str, Values] = {
    "text": {**MAPS, **TEXT, **LOOK["text"]},
    "images": {**MAPS, **PICTURE, **LOOK["images"]},
    "attention, text": {**TEXT, **ATTENTION},
    "attention, picture": {**PICTURE, **ATTENTION},
    "compare, text": {**TEXT, **COMPARE},
    "compare, picture": {**PICTURE, **COMPARE},
    "evaluate, text": EVALUATE,
    "evaluate, picture": EVALUATE,
    "behavior, text": BEHAVIOR,
    "randomization, text": RANDOMIZATION,
    "randomization, picture": RANDOMIZATION,
    "adversarial, text": {**TEXT, **ADVERSARIAL},
    "adversarial, picture": {**PICTURE, **ADVERSARIAL},
    "scaffold, text": SCAFFOLD,
    "scaffold, picture": SCAFFOLD,
    "reproduction": REPRODUCTION,
}
TOGETHER: dict[str, list[str]] = {
    "text": [
        "model=bert-reviews&data=nli&index=3&method=lime&method=random&lime.n_samples=64&target=1&pin=2,3&open=questions",
        "text=A+film.&pair=A+story.&edit=A+dull+film.&edit_pair=None&pin=1&unit=word&layout=aligned&values=on&gamma=0.5",
        "data=reviews&index=3&digest=00000000&pin=1,2&edit=x",
        "text=&method=none",
    ],
    "images": ["data=digits&split=train&index=4&model=digits-vit&pin=3&method=grad_cam&opacity=40&gamma=1.7"],
    "attention, text": [
        "model=bert-nli&text=One.&pair=Two.&head=1.2&switched=1.2x0,0.1x0.5&flow=rollout&residual=0.25&open=switch,flow",
        "data=reviews&index=3&digest=00000000&query=4&head=0.1",
    ],
    "compare, text": [
        "text=A+film.&column=lime@reviews-minilm&column=random@bert-reviews&reference=B&shown=difference&percent=25",
    ],
    "evaluate, text": [
        "model=bert-marked&data=reviews-marked&method=lime&method=random&lime.n_samples=64&examples=3&shares=10,20&unit=word"
        "&metric=gt_overlap&view=curves&drawn=bert-marked&only=lime",
    ],
    "behavior, text": [
        "model=bert-marked&model=bert-reviews&data=reviews-marked&task=feature&of=bert-reviews&example=3",
    ],
    "randomization, text": [
        "model=bert-reviews&method=gradient&mode=independent&head=on&examples=2&seeds=1&seed=3&of=bert-reviews&stage=2",
    ],
    "adversarial, text": [
        "method=integrated_gradients&points=16&start=zero&objective=constrained&epsilon=1/2&steps=7&on=bert-reviews"
        "&attacked=integrated_gradients&asked=none&examples=2&bar=bert-reviews&bar=integrated_gradients&bar=constrained",
    ],
    "scaffold, text": ["model=bert-quality&data=quality&sizes=20&seeds=3&setting=smat&recipe.epochs=2"],
    "reproduction": ["show=cannot+be+told&show=holds&claim=families-gpt2-flat&seed=3&examples=20"],
}  # fmt: skip


def parts() -> dict[str, Callable[[], Any]]:
    """Each golden file of this subject."""
    return {"links": lambda: {name: _of_page(name) for name in TRIED}}


def _of_page(name: str) -> dict[str, Any]:
    page = doors.pages()[name]
    usual = _opened(page, {})
    others = {_short(urlencode(query, doseq=True)): _opened(page, query) for query in _queries(name)}
    return {"": usual, **{link: _differing(found, usual) for link, found in others.items()}}


def _queries(name: str) -> Iterator[dict[str, list[str]]]:
    for parameter, values in TRIED[name].items():
        for value in [*values, *HOSTILE]:
            yield {parameter: [value] if isinstance(value, str) else list(value)}
    for together in TOGETHER.get(name, []):
        yield parse_qs(together, keep_blank_values=True)
    yield {parameter: [MARKUP, DIGITS] for parameter in TRIED[name]}
    yield {"no_such": ["1"], "": [""]}


def _opened(page: doors.Page, query: dict[str, list[str]]) -> dict[str, Any]:
    state, said = page.read(query)
    link = page.write(state)
    again, said_again = page.read(link)
    found: dict[str, Any] = {"link": {name: [_short(one) for one in values] for name, values in link.items()}}
    found |= {"said": [_short(doors.scrubbed(one)) for one in said]} if said else {}
    if (page.write(again), said_again) != (link, []):
        found["reopened"] = [_short(urlencode(page.write(again), doseq=True)), said_again]
    return {**found, "asks": golden.as_json(_asked(page, state))}


def _differing(found: Any, usual: Any) -> Any:
    """What is not the same in the usual one; None for what is only there."""
    if not isinstance(found, dict) or not isinstance(usual, dict):
        return found
    names = dict.fromkeys([*found, *usual])
    return {one: _differing(found.get(one), usual.get(one)) for one in names if found.get(one) != usual.get(one)}


def _asked(page: doors.Page, state: Any) -> Any:
    try:
        return page.asks(state)
    except doors.ExegesisError as error:
        return f"refused: {doors.told(error)}"


def _short(value: str) -> str:
    """A long text by its beginning, its length and its hash."""
    if len(value) <= 2 * LONGEST:
        return value
    return f"{value[:LONGEST]}… ({len(value)} characters, {hashlib.sha256(value.encode()).hexdigest()[:12]})"

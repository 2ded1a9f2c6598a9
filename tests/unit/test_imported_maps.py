"""Imported maps: the format and its refusals, alignment by characters, and the set as a method everywhere."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.data.image_datasets import load_images
from engine.errors import ExegesisError, UsageError
from engine.evaluation.experiment import evaluate
from engine.explain import explain, key_of
from engine.maps import imported
from engine.maps.files import MOST_BYTES, MOST_MAPS, parse_maps, read_maps
from engine.models.loading import load_image_model, load_model
from engine.predictions import picture_digests
from engine.randomization.experiment import randomize
from engine.registry import all_explainers, explainer
from engine.request import Example, HeadScales, Picture, Request
from tests.tiny import save_causal, save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

TEXT = "good food, bad service, lovely view"
WORDS = [(0, 4), (5, 10), (11, 14), (15, 23), (24, 30), (31, 35)]
SCORES = [3.0, -1.0, 0.5, 2.0, -4.0, 1.5]
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def plain(*maps: dict[str, Any], **head: Any) -> dict[str, Any]:
    return {"tool": "other 1.0", "method": "Saliency", "maps": list(maps), **head}


def stored(model: str, *maps: dict[str, Any], name: str = "mine", **head: Any) -> imported.ImportedMaps:
    return imported.import_maps(parse_maps(plain(*maps, **head)), name, model)


def words(**more: Any) -> dict[str, Any]:
    return {"text": TEXT, "offsets": [list(span) for span in WORDS], "scores": SCORES, **more}


def word_sums(model: str, scores: np.ndarray, text: str = TEXT) -> list[float]:
    """The sum of the tokens inside each word, by hand."""
    tokens = load_model(model).encode(Example(text)).tokens
    return [
        sum(float(score) for token, score in zip(tokens, scores, strict=True)
            if not token.special and start <= token.start and token.end <= end)
        for start, end in WORDS
    ]  # fmt: skip


def test_a_words_score_is_shared_by_its_tokens_and_nothing_is_lost(model: str) -> None:
    stored(model, words())
    explained = explain(Request(model, "maps:mine", Example(TEXT)))
    assert word_sums(model, explained.scores) == pytest.approx(SCORES)
    assert explained.scores[[token.special for token in explained.tokens]].tolist() == [0.0, 0.0]
    assert explained.evaluations == 0
    assert "Imported from other 1.0 (Saliency), not recomputed." in explained.notes


def test_tokens_with_the_marks_of_tokenizers_are_found_in_the_text(model: str) -> None:
    encoded = load_model(model).encode(Example(TEXT))
    names = load_model(model).tokenizer.convert_ids_to_tokens(encoded.ids.tolist())
    scores = np.arange(len(names)) + 0.5
    stored(model, {"text": TEXT, "tokens": names, "scores": scores.tolist()}, name="all")
    expected = np.where(encoded.special, 0, scores)
    assert explain(Request(model, "maps:all", Example(TEXT))).scores.tolist() == expected.tolist()
    spaced = ["", "Good ", "Ġfood", ", ", "▁bad", " service", ",", "lovely ", "view</w>", ""]
    stored(model, {"text": TEXT, "tokens": spaced, "scores": [9.0, *[1.0] * 8, 9.0]}, name="marks")
    assert word_sums(model, explain(Request(model, "maps:marks", Example(TEXT))).scores) == [1, 2, 1, 2, 1, 1]
    stored(model, {"text": TEXT, "scores": scores[1:-1].tolist()}, name="bare")
    assert explain(Request(model, "maps:bare", Example(TEXT))).scores.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"offsets": [[0, 2], *map(list, WORDS[1:])]}, "span 1, 'go' at [0, 2], cuts the model's token"),
        ({"offsets": [[0, 4], [0, 10], *map(list, WORDS[2:])]}, "spans 1 and 2 both cover 'good'"),
        ({"offsets": [*map(list, WORDS[:-1]), [31, 99]]}, "span 6, [31, 99], ends after the text"),
        ({"offsets": [*map(list, WORDS[:-1]), [30, 31]]}, "span 6, ' ' at [30, 31], has a score"),
        ({"offsets": [*map(list, WORDS[:-1]), [30, 31]], "scores": [*SCORES[:-1], 0]}, "no span covers the model's"),
        ({"offsets": None, "scores": [1.0]}, "has 1 score, but the model reads"),
        ({"offsets": None, "tokens": ["good", "fool", "x", "x", "x", "x"]}, "token 2, 'fool', is not what follows"),
        ({"offsets": None, "tokens": ["good", "bad", "x", "x", "x", "x"]}, "token 2, 'bad', is not what follows in the "
         "text, ' food, bad service, '. Add offsets."),
        ({"target": "wonderful"}, "target: unknown name 'wonderful'"),
        ({"segments": [0, 0, 0, 0, 0, 1]}, "span 6, [31, 35], ends after the text"),
    ],
)  # fmt: skip
def test_the_first_place_that_does_not_match_is_named_and_nothing_is_stored(
    model: str, change: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError) as caught:
        stored(model, {"text": "a fine text", "scores": [1.0, 2.0, 3.0], "tokens": ["a", "fine", "text"]},
               words(**change))  # fmt: skip
    assert str(caught.value).startswith("map 2 (text 'good food")
    assert why in str(caught.value)
    assert imported.all_imported() == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scores": [1, float("nan")]}, "map 1: scores[1] must be a number between -1e30 and 1e30, got nan."),
        ({"scores": [1, float("inf")]}, "scores[1] must be a number between -1e30 and 1e30"),
        ({"scores": [10**400]}, "scores[0] must be a number between -1e30 and 1e30"),
        ({"scores": [-2e30]}, "scores[0] must be a number between"),
        ({"scores": [True]}, "scores[0] must be a number between -1e30 and 1e30, got True"),
        ({"scores": []}, "scores must be a list of numbers"),
        ({"scores": "many"}, "scores must be a list of numbers"),
        ({"text": None}, "its input must be dataset with example, or text"),
        ({"dataset": "reviews", "example": 1}, "its input must be dataset with example, or text"),
        ({"text": None, "dataset": "reviews", "example": -1}, "example must be a whole number from 0, got -1"),
        ({"text": 5}, "text must be a text, got 5"),
        ({"offsets": [[0, 4]]}, "offsets must be as many as the 6 scores, got 1"),
        ({"offsets": [[4, 0]] * 6}, "offsets[0] must be [start, end] in characters"),
        ({"offsets": [["0", 4]] * 6}, "offsets[0] must be [start, end]"),
        ({"tokens": [1] * 6}, "tokens must be a list of texts"),
        ({"segments": [2] * 6}, "segments must be 0 or 1 for each score"),
        ({"grid": [0.5, 2]}, "grid must be rows and columns"),
        ({"target": [1]}, "target must be a class or its number"),
        ({"color": "red"}, "its fields must be some of"),
    ],
)
def test_a_wrong_field_of_a_map_is_named(change: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_maps(plain({name: value for name, value in words(**change).items() if value is not None}))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (b"{", "a.json", "a.json': cannot be read as JSON"),
        (b"[" * 100_000, "a.json", "cannot be read as JSON"),
        (b"\xff", "a.json", "cannot be read as JSON"),
        (b"[]", "a.json", "must be a JSON object with tool, method and maps, got list"),
        (b"{}", "a.pkl", "file: must end in .json or .npz, got 'a.pkl'"),
        (b"nothing", "a.npz", "cannot be read as arrays without pickles"),
        (b" " * (MOST_BYTES + 1), "a.json", "must have at most 32 MB"),
        (json.dumps(plain()).encode(), "a.json", f"must be a list of 1 to {MOST_MAPS:,} maps, got 0"),
        (json.dumps(plain(words(), tool="<b>\n")).encode(), "a.json", "tool: must be a name of at most 80 characters"),
        (json.dumps(plain(words(), method="")).encode(), "a.json", "method: must be a name"),
        (json.dumps(plain(words(), signed=1)).encode(), "a.json", "signed: must be true or false, got 1"),
        (json.dumps(plain(words(), code="x")).encode(), "a.json", "maps: unknown fields 'code'"),
    ],
)
def test_a_file_that_is_none_is_refused(content: bytes, name: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_maps(content, name)
    assert why in str(caught.value)


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **{name: np.asarray(value) for name, value in arrays.items()})
    return file.getvalue()


def test_arrays_hold_the_same_maps_as_json() -> None:
    maps = ({"text": "good food", "scores": [1.0, 2.0], "tokens": ["good", "food"], "target": "positive"},
            {"text": "bad", "scores": [3.0], "tokens": ["bad"], "target": "negative"})  # fmt: skip
    content = npz(
        tool="other 1.0", method="Saliency", text=["good food", "bad"], lengths=[2, 1], scores=[1.0, 2.0, 3.0],
        tokens=["good", "food", "bad"], target=["positive", "negative"],
    )  # fmt: skip
    assert read_maps(content, "m.npz") == parse_maps(plain(*maps))
    grids = npz(tool="t", method="m", dataset="scenes", example=[0, 4], scores=np.arange(12.0).reshape(2, 2, 3))
    first, second = read_maps(grids, "m.npz").maps
    assert (first.dataset, first.example, first.grid, first.scores) == ("scenes", 0, (2, 3), (0, 1, 2, 3, 4, 5))
    assert (second.example, second.scores[-1]) == (4, 11.0)


def test_pickles_and_bombs_in_arrays_are_refused() -> None:
    pickled = npz(scores=[1.0], tool=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UsageError, match="cannot be read as arrays without pickles"):
        read_maps(pickled, "m.npz")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scores.npy", bytes(MOST_BYTES + 1))
    assert len(bomb.getvalue()) < 10**5
    with pytest.raises(UsageError, match="its arrays must have at most 32 MB"):
        read_maps(bomb.getvalue(), "m.npz")
    with pytest.raises(UsageError, match="lengths add up to 5, but there are 3 scores"):
        read_maps(npz(tool="t", method="m", text="a", scores=[1.0, 2, 3], lengths=[5]), "m.npz")
    with pytest.raises(UsageError, match="has no array named scores"):
        read_maps(npz(tool="t", method="m"), "m.npz")


def test_names_models_and_classes_are_checked(model: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name: must be letters"):
        stored(model, words(), name="../x")
    with pytest.raises(UsageError, match="does not name the model"):
        stored("", words())
    with pytest.raises(UsageError, match="two maps of this input"):
        stored(model, words(), words())
    first = stored(model, words(target="LABEL_1"), words(target="LABEL_0", scores=[1.0] * 6))
    with pytest.raises(UsageError, match="name: mine is taken"):
        stored(model, words())
    assert len(first.by_input) == 1
    one, other = (explain(Request(model, "maps:mine", Example(TEXT), target=at)).scores for at in (0, 1))
    assert word_sums(model, one) == pytest.approx([1.0] * 6)
    assert word_sums(model, other) == pytest.approx(SCORES)
    single = stored(model, words(target="LABEL_1"), name="single")
    with pytest.raises(ExegesisError, match=r"maps:single has a map of this input for 'LABEL_1', not for 'LABEL_0'"):
        explain(Request(model, single.id, Example(TEXT), target=0))
    another = str(save_checkpoint("bert", tmp_path / "other", seed=1))
    with pytest.raises(UsageError, match=r"maps:mine holds maps of .*tiny, not of .*other"):
        explain(Request(another, "maps:mine", Example(TEXT)))


def test_the_content_is_part_of_the_key_and_a_damaged_file_is_left_out(model: str, own_home: Path) -> None:
    request = Request(model, "maps:mine", Example(TEXT))
    assert stored(model, words()).id in all_explainers()
    key = key_of(request)
    imported.remove("mine")
    with pytest.raises(UsageError, match="method: unknown name 'maps:mine'"):
        explainer("maps:mine")
    stored(model, words(scores=[1.0] * 6))
    assert key_of(request) != key
    (own_home / "maps" / "mine.json").write_text("{}", encoding="utf-8")
    assert imported.all_imported() == []
    assert imported.damaged_sets()["mine"].startswith("maps mine: the file mine.json cannot be read (")
    assert "maps:mine" not in all_explainers()


DAMAGED_MAPS: list[dict[str, object]] = [
    {"input": "a", "label": "b", "probability": 0.5, "scores": [1.0], "source": "c", name: value}
    for name, value in (
        ("scores", [float("nan")]), ("scores", [[1.0]]), ("scores", []), ("scores", {}), ("scores", [10**400]),
        ("scores", [1e300]), ("probability", float("nan")), ("probability", "x"), ("label", ["b"]), ("input", 3),
        ("other", 1),
    )
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (None, "it is not JSON, or only a part of it"),
        ([], "it has another format"),
        ({"format": 0}, "it has another format"),
        ({"model": None}, "its model is missing or wrong"),
        ({"signed": "no"}, "its signed is missing or wrong"),
        ({"kind": "sound"}, "'sound' is no kind of input"),
        ({"maps": []}, "it holds no maps"),
        ({"maps": {}}, "it holds no maps"),
        ({"maps": [3]}, "its map 1 is damaged"),
        *(({"maps": [one]}, "its map 1 is damaged") for one in DAMAGED_MAPS),
    ],
)
def test_a_damaged_file_is_listed_with_a_plain_reason(model: str, change: Any, why: str) -> None:
    stored(model, words())
    path = imported.maps_folder() / "mine.json"
    whole = path.read_text(encoding="utf-8")
    damaged = {**json.loads(whole), **change} if isinstance(change, dict) else change
    path.write_text(whole[:-1] if change is None else json.dumps(damaged), encoding="utf-8")
    reason = f"maps mine: the file mine.json cannot be read ({why}). Import the maps again."
    assert imported.damaged_sets() == {"mine": reason}
    assert imported.all_imported() == []
    with pytest.raises(UsageError, match=re.escape(f"method: {reason}")):
        explainer("maps:mine")


def test_only_files_with_a_name_of_a_set_are_sets(model: str) -> None:
    folder = imported.maps_folder()
    (folder / "folder.json").mkdir(parents=True)
    (folder / "gone.json").symlink_to(folder / "nothing")
    stored(model, words())
    (folder / "mine.json").rename(folder / "a:b.json")
    assert list(imported.damaged_sets()) == ["a:b"]
    with pytest.raises(UsageError, match=r"name: a folder is called folder.json in .*Choose another name."):
        stored(model, words(), name="folder")


def test_a_map_with_other_scores_than_the_input_has_features_is_refused(model: str) -> None:
    stored(model, words())
    path = imported.maps_folder() / "mine.json"
    plain = json.loads(path.read_text(encoding="utf-8"))
    plain["maps"][0]["scores"] = [1.0]
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"maps:mine: its map has 1 score, but the input \d+ features"):
        explain(Request(model, "maps:mine", Example(TEXT)))


def test_the_maps_of_few_sets_are_in_memory_and_the_facts_of_all(model: str) -> None:
    for at in range(imported.IN_MEMORY + 1):
        stored(model, words(scores=[float(at)] * 6), name=f"set{at}")
    imported._stored_maps.cache_clear()
    sets = imported.all_imported()
    assert [(one.id, one.maps, one.inputs) for one in sets] == [(f"maps:set{at}", 1, 1) for at in range(len(sets))]
    assert imported._stored_maps.cache_info().currsize == 0, "a list reads no maps"
    for at, one in enumerate(sets):
        assert word_sums(model, explain(Request(model, one.id, Example(TEXT))).scores) == pytest.approx([at] * 6)
    assert imported._stored_maps.cache_info().currsize == imported.IN_MEMORY


def test_the_examples_that_a_set_has_maps_of_are_counted_without_the_model(model: str, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text(f'text,label\nbad,0\n,1\n"{TEXT}",1\n"{TEXT}",0\n', encoding="utf-8")
    one = stored(model, words())
    assert imported.count_covered(one, str(data)) == (2, 4)
    assert imported.count_covered(one, "reviews") == (0, 320)
    assert imported.count_covered(one, "reviews-generated:count=5001") is None
    assert [imported.has_map(one, Example(text)) for text in (TEXT, "bad")] == [True, False]
    path = imported.maps_folder() / "mine.json"
    plain = json.loads(path.read_text())
    maps = [{name: value for name, value in own.items() if name != "source"} for own in plain["maps"]]
    path.write_text(json.dumps({**plain, "maps": maps}))
    [old] = imported.all_imported()
    assert imported.count_covered(old, "reviews") is None, "of an older import it is not known"
    assert imported.has_map(old, Example("bad")) is None
    assert word_sums(model, explain(Request(model, "maps:mine", Example(TEXT))).scores) == pytest.approx(SCORES)


def test_what_would_have_to_be_computed_is_refused(model: str) -> None:
    stored(model, words())
    with pytest.raises(ExegesisError, match="has no map of this input, and maps imported from other 1"):
        explain(Request(model, "maps:mine", Example(TEXT + " here")))
    with pytest.raises(UsageError, match="maps:mine was imported, and its maps cannot be recomputed on a randomized"):
        randomize([model], "reviews", ["maps:mine"], examples=1)
    off = HeadScales.off([(layer, head) for layer in range(3) for head in range(4)])
    with pytest.raises(ExegesisError, match="Maps of a changed model"):
        explain(Request(model, "maps:mine", Example(TEXT), heads=off))


def test_evaluation_measures_imported_maps_as_those_of_a_method(model: str, tmp_path: Path) -> None:
    """The maps of our own gradient, exported and imported, have its removal curves and its other scores exactly."""
    texts = ["good food", TEXT, "the film is a quiet triumph"]
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f'"{text}",1\n' for text in texts), encoding="utf-8")
    maps = []
    for at, text in enumerate(texts):
        own = explain(Request(model, "gradient_l2", Example(text)))
        kept = [(token, score) for token, score in zip(own.tokens, own.scores, strict=True) if not token.special]
        maps.append({"dataset": str(data), "example": at, "offsets": [[t.start, t.end] for t, _ in kept],
                     "scores": [float(score) for _, score in kept]})  # fmt: skip
    stored(model, *maps[:2], signed=False)
    methods, metrics = ["gradient_l2", "maps:mine"], ["comprehensiveness", "complexity", "sensitivity"]
    [result] = evaluate([model], str(data), methods, metrics, examples=3).models
    values = {(row.of.method, row.of.metric, row.example): row.value for row in result.rows}
    for metric in metrics[:2]:
        for example in (0, 1):
            assert values["maps:mine", metric, example] == pytest.approx(values["gradient_l2", metric, example])
    reasons = {(skip.of.metric, skip.example): skip.reason for skip in result.skips if skip.of.method == "maps:mine"}
    assert set(reasons) == {*((metric, 2) for metric in metrics), ("sensitivity", 0), ("sensitivity", 1)}
    assert all("are not recomputed" in reason for reason in reasons.values())
    assert not explainer("maps:mine").is_signed({})


def test_a_language_models_map_is_of_a_token_and_its_contrast(tmp_path: Path) -> None:
    causal = str(save_causal("llama", tmp_path / "causal"))
    model = load_model(causal)
    encoded = model.encode(Example("good food"))
    count = len(encoded.features)
    stored(causal, {"text": "good food", "scores": [1.0] * count}, name="top")
    explained = explain(Request(causal, "maps:top", Example("good food")))
    assert explained.scores[explained.features].tolist() == [1.0] * count
    token = encoded.labels[3]
    stored(causal, {"text": "good food", "scores": [2.0] * count, "target": token}, name="third")
    assert explain(Request(causal, "maps:third", Example("good food"), target=token)).scores.sum() == 2 * count


def test_a_pictures_map_is_on_the_grid_of_its_model(tmp_path: Path) -> None:
    vit = str(save_vit(tmp_path / "vit"))
    picture = Picture(load_images("scenes", limit=1)[0].pixels)
    rows, columns = load_image_model(vit).encode(picture).grid
    scores = np.arange(rows * columns, dtype=float).reshape(rows, columns)
    one = {"dataset": "scenes", "example": 0, "grid": [rows, columns], "scores": scores.tolist()}
    assert stored(vit, one).kind == "image"
    assert "maps:mine" not in all_explainers("text")
    assert explain(Request(vit, "maps:mine", picture)).on_grid.tolist() == scores.tolist()
    few = load_images("scenes:count=3")
    assert imported.count_covered(imported.find_imported("mine"), "scenes:count=3") is None, "no picture was read yet"
    picture_digests(few)
    assert imported.count_covered(imported.find_imported("mine"), "scenes:count=3") == (1, 3)
    with pytest.raises(UsageError, match=f"the model has {rows} x {columns} patches, the map a grid of 1 x 2"):
        stored(vit, {**one, "grid": [1, 2], "scores": [1.0, 2.0]}, name="other")
    with pytest.raises(UsageError, match="the model reads pictures: name dataset and example"):
        stored(vit, {"text": "x", "scores": [1.0]}, name="other")

"""`exegesis.explain`: the numbers of the command and the page, loaded models, and inputs as people have them."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from PIL import Image
from typer.testing import CliRunner

import exegesis
from components.images.state import PictureState
from components.inputs.picture_choice import PictureFocus, read_uploaded_picture
from components.inputs.text_choice import TextFocus
from components.text.state import TextState
from engine.cli.root import app
from engine.explain import cached_explanation, key_of
from engine.models import catalog
from engine.request import Example, Picture, Prompt
from exegesis.models import MOST_SNAPSHOTS
from tests.tiny import save_causal, save_checkpoint
from tests.unit.vision.tiny_families import ZERO_SHOT, save_zero_shot

TEXT = "the film is a quiet triumph"
METHODS = ["gradient_x_input", "occlusion", "random"]


def explain(model: Any, text: Any, methods: Any = METHODS, **more: Any) -> exegesis.Explanations:
    return exegesis.explain(model, text, methods, progress=False, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint("bert", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def loaded(folder: Path) -> tuple[Any, Any]:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(str(folder))
    return model, transformers.AutoTokenizer.from_pretrained(str(folder))


def test_the_numbers_are_those_of_the_command_and_the_page(folder: Path) -> None:
    result = explain(folder, TEXT, {"integrated_gradients": {"steps": "fixed", "n_steps": 4}, "random": {}}, seed=3)
    arguments = ["explain", "--model", str(folder), "--method", "integrated_gradients,random", "--text", TEXT]
    arguments += ["--seed", "3", "--param", "n_steps=4", "--param", "steps=fixed", "--json"]
    printed = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert [one["cached"] for one in printed] == [True, True]
    assert [[f["score"] for f in one["features"]] for one in printed] == [one.scores.tolist() for one in result]
    params = {"integrated_gradients": {"steps": "fixed", "n_steps": "4"}}
    page = TextState(focus=TextFocus(str(folder), TEXT), methods=result.methods, params=params, seed=3)
    assert [key_of(page.request(one)) for one in result.methods] == [key_of(one) for one in result.requests]


def test_occlusion_of_a_loaded_model_is_that_of_plain_transformers(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    result = explain(model, TEXT, "occlusion", tokenizer=tokenizer)
    ids = tokenizer(TEXT, return_tensors="pt").input_ids
    with torch.inference_mode():
        whole = torch.softmax(model.eval()(ids).logits.double(), -1)[0]
        for position in result[0].features:
            without = ids.clone()
            without[0, position] = tokenizer.mask_token_id
            rest = torch.softmax(model(without).logits.double(), -1)[0, whole.argmax()]
            assert result[0].scores[position] == pytest.approx(float(whole.max() - rest), abs=1e-6)


def facts_of(model: Any) -> dict[str, Any]:
    """All that explaining a model could change."""
    parts = list(model.modules())
    return {
        "training": [part.training for part in parts],
        "gradients": [(p.requires_grad, p.grad is None, p.device, p.dtype) for p in model.parameters()],
        "weights": [(name, value.view(torch.uint8).numpy().tobytes()) for name, value in model.state_dict().items()],
        "hooks": [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in parts],
        "attention": model.config._attn_implementation,
        "config": {name: str(value) for name, value in vars(model.config).items()},
    }


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_loaded_model_equals_its_folder_and_stays_as_it_is(family: str, tmp_path: Path) -> None:
    from engine.models.loading import load_model

    place = save_checkpoint(family, tmp_path / "saved")
    shared = load_model(str(place))
    kind = type(shared.module)
    model = kind.from_pretrained(str(place)).train()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(place))
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    before = facts_of(model)
    methods = ["gradient_x_input", "attention_mean", "occlusion"]
    own, theirs = explain(model, TEXT, methods, tokenizer=tokenizer), explain(place, TEXT, methods)
    assert facts_of(model) == before
    assert all(before["training"])
    assert own.prediction == theirs.prediction
    for one, other in zip(own, theirs, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)


def test_hooks_and_classes_that_a_snapshot_would_leave_out_are_refused(tmp_path: Path) -> None:
    place = str(save_checkpoint("bert", tmp_path / "saved"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    model = transformers.BertForSequenceClassification.from_pretrained(place)
    handle = model.classifier.register_forward_hook(lambda _module, _inputs, logits: -logits)
    with pytest.raises(exegesis.ExegesisError, match=r"model: has 1 forward hook, which a snapshot .* Remove hooks"):
        explain(model, TEXT, "random", tokenizer=tokenizer)
    handle.remove()
    explain(model, TEXT, "random", tokenizer=tokenizer)
    inverted = type("Inverted", (torch.nn.Linear,), {"forward": lambda self, x: -torch.nn.Linear.forward(self, x)})
    model.classifier.__class__ = inverted
    with pytest.raises(exegesis.ExegesisError, match="the class 'Inverted' or its forward is not transformers' own"):
        explain(model, TEXT, "random", tokenizer=tokenizer)
    named = type("BertForSequenceClassification", (transformers.BertForSequenceClassification,), {"__module__": "mine"})
    with pytest.raises(exegesis.ExegesisError, match="is not transformers' own"):
        explain(named.from_pretrained(place), TEXT, "random", tokenizer=tokenizer)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_activation_function_that_a_snapshot_would_leave_out_is_refused(folder: Path, dtype: Any) -> None:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(str(folder), dtype=dtype).train()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    first = exegesis.wrap(model, tokenizer)
    model.bert.encoder.layer[0].intermediate.intermediate_act_fn = torch.nn.ReLU()
    before = facts_of(model)
    with pytest.raises(
        exegesis.ExegesisError, match=r"model: .* its logits differ .* by up to \d.*change only weights"
    ):
        explain(model, TEXT, "random", tokenizer=tokenizer)
    assert facts_of(model) == before
    model.bert.encoder.layer[0].intermediate.intermediate_act_fn = torch.nn.GELU()
    assert exegesis.wrap(model, tokenizer) == first, "as its config says"
    model.classifier = torch.nn.Linear(1, 2)
    with pytest.raises(exegesis.ExegesisError, match=r"its weights do not match its config\.json"):
        exegesis.wrap(model, tokenizer)


def test_a_loaded_classifier_of_a_family_of_language_models_equals_its_folder(tmp_path: Path) -> None:
    place = str(save_checkpoint("llama-classifier", tmp_path / "saved"))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(place)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    own = explain(model, TEXT, "gradient_x_input", tokenizer=tokenizer)
    np.testing.assert_array_equal(own[0].scores, explain(place, TEXT, "gradient_x_input")[0].scores)


def test_a_loaded_vision_transformer_equals_its_folder() -> None:
    place = str(catalog.locate("scenes-vit").folder)
    model = transformers.ViTForImageClassification.from_pretrained(place, dtype=torch.float32)
    processor = transformers.AutoImageProcessor.from_pretrained(place)
    activation, model.vit.layers[0].mlp.activation_fn = model.vit.layers[0].mlp.activation_fn, torch.nn.ReLU()
    with pytest.raises(exegesis.ExegesisError, match="model: on a short input its logits differ"):
        exegesis.wrap(model, processor)
    model.vit.layers[0].mlp.activation_fn = activation
    picture = exegesis.example("scenes", 1)
    own = explain(model, picture, "gradient_x_input", processor=processor)
    np.testing.assert_array_equal(own[0].scores, explain("scenes-vit", picture, "gradient_x_input")[0].scores)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_a_loaded_model_in_half_precision_are_those_of_its_folder(
    folder: Path, loaded: tuple[Any, Any], dtype: Any
) -> None:
    model, tokenizer = loaded
    own = explain(model.to(dtype), TEXT, "gradient_x_input", tokenizer=tokenizer)
    theirs = explain(folder, TEXT, "gradient_x_input", dtype=own[0].provenance.dtype)
    np.testing.assert_array_equal(own[0].scores, theirs[0].scores)


def test_logits_that_are_not_finite_are_named(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    torch.nn.init.constant_(model.classifier.weight, float("nan"))
    with pytest.raises(exegesis.ExegesisError, match="its logits are not finite numbers in float32"):
        explain(model, TEXT, "random", tokenizer=tokenizer)


def test_two_classes_of_a_family_that_has_three_by_default(tmp_path: Path) -> None:
    place = str(save_checkpoint("bart", tmp_path / "saved", labels=2))
    model = transformers.BartForSequenceClassification.from_pretrained(place, num_labels=2)
    own = explain(model, TEXT, "random", tokenizer=transformers.AutoTokenizer.from_pretrained(place))
    assert own.prediction.labels == ("LABEL_0", "LABEL_1")


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_a_loaded_zero_shot_model_takes_labels_in_the_name_of_its_snapshot(family: str, tmp_path: Path) -> None:
    place = str(save_zero_shot(tmp_path / "saved", family))
    model = transformers.AutoModel.from_pretrained(place).train()
    pictures = transformers.AutoImageProcessor.from_pretrained(place)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    kind = transformers.CLIPProcessor if family == "clip" else transformers.SiglipProcessor
    image = np.random.default_rng(0).integers(0, 255, (24, 24, 3)).astype(np.uint8)
    theirs = explain(f"{place}?labels=cat|dog", image, "gradient_x_input")
    for companions in ({"processor": kind(pictures, tokenizer)}, {"processor": pictures, "tokenizer": tokenizer}):
        name = f"{exegesis.wrap(model, **companions)}?labels=cat|dog"
        np.testing.assert_array_equal(explain(name, image, "gradient_x_input")[0].scores, theirs[0].scores)
    with pytest.raises(exegesis.UsageError, match=r"^processor: \w+ has no tokenizer; a \w+Model needs it\."):
        exegesis.wrap(model, pictures)
    model.vision_model.encoder.layers[0].mlp.activation_fn = torch.nn.ReLU()
    with pytest.raises(exegesis.ExegesisError, match="model: on a short input its logits differ"):
        exegesis.wrap(model, kind(pictures, tokenizer))


def test_a_loaded_language_model_explains_a_contrast(tmp_path: Path) -> None:
    place = str(save_causal("llama", tmp_path / "saved"))
    model = transformers.AutoModelForCausalLM.from_pretrained(place)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    first, second = (one for one in explain(place, TEXT, "random").prediction.labels[:2])
    own = explain(model, TEXT, "gradient_x_input", tokenizer=tokenizer, target=second, contrast=first)
    assert own.input == Prompt(TEXT, target=second, contrast=first)
    again = explain(place, TEXT, "gradient_x_input", target=second, contrast=first)
    np.testing.assert_array_equal(own[0].scores, again[0].scores)
    more, less = (second, first) if own.prediction.index == 0 else (first, second)
    assert f": {more!r} rather than {less!r} {own.prediction.confidence:.4f} of the two, explained:" in repr(own)
    assert "of these two tokens alone" in own.to_html()
    with torch.inference_mode():
        ids = tokenizer(TEXT, return_tensors="pt").input_ids
        logits = model.eval()(ids).logits[0, -1]
    shared = exegesis.explain(place, TEXT, "random", progress=False)
    log_odds = np.log(shared.prediction.probabilities[1] / shared.prediction.probabilities[0])
    assert own.prediction.logits[0] == pytest.approx(log_odds, abs=1e-4)
    assert float(logits.sort().values[-2] - logits.max()) == pytest.approx(log_odds, abs=1e-4)


def test_a_snapshot_is_named_after_the_weights_and_the_oldest_are_removed(loaded: tuple[Any, Any], home: Path) -> None:
    model, tokenizer = loaded
    first = exegesis.wrap(model, tokenizer)
    assert exegesis.wrap(model.half().float(), tokenizer) != first
    os.utime(first, (0, 0))
    with torch.no_grad():
        for _ in range(MOST_SNAPSHOTS):
            model.classifier.bias.add_(1.0)
            last = exegesis.wrap(model, tokenizer)
    assert last != first
    assert not Path(first).exists()
    assert len(list((home / "snapshots").iterdir())) == MOST_SNAPSHOTS


def test_the_precision_of_a_loaded_model_is_its_own(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    assert explain(model.bfloat16(), TEXT, "random", tokenizer=tokenizer)[0].provenance.dtype == "bfloat16"
    assert explain(model, TEXT, "random", tokenizer=tokenizer, dtype="float64")[0].provenance.dtype == "float64"


def test_a_pipeline_brings_its_tokenizer(loaded: tuple[Any, Any], folder: Path) -> None:
    model, tokenizer = loaded
    own = explain(transformers.pipeline("text-classification", model=model, tokenizer=tokenizer), TEXT, "occlusion")
    np.testing.assert_array_equal(own[0].scores, explain(folder, TEXT, "occlusion")[0].scores)


class _Adapted(torch.nn.Module):
    def merge_and_unload(self) -> None: ...


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (_Adapted(), {}, "model: is a PEFT model with an unmerged adapter. Pass model.merge_and_unload()."),
        (torch.nn.Linear(1, 1), {}, "model: must be a name, a folder or a loaded transformers model, got Linear"),
        ("bert-marked", {"tokenizer": "x"}, "tokenizer: bert-marked brings its own. Leave tokenizer and processor out"),
        ("nothing-here", {}, "model: unknown name 'nothing-here'"),
    ],
)
def test_models_that_cannot_be_explained(model: Any, more: Any, message: str) -> None:
    with pytest.raises(exegesis.UsageError) as error:
        explain(model, TEXT, **more)
    assert message in str(error.value)


def test_a_model_without_its_tokenizer_or_of_another_family_writes_nothing(loaded: tuple[Any, Any], home: Path) -> None:
    with pytest.raises(exegesis.UsageError, match=r"^tokenizer: is missing; a BertForSequenceClassification needs it"):
        explain(loaded[0], TEXT)
    other = transformers.XLNetForSequenceClassification(
        transformers.XLNetConfig(vocab_size=9, d_model=8, n_layer=1, n_head=2)
    )
    with pytest.raises(exegesis.ExegesisError, match="xlnet"):
        explain(other, TEXT, tokenizer=loaded[1])
    assert not list(home.rglob("*.safetensors"))


def test_a_home_that_cannot_be_written_is_named(
    loaded: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    with pytest.raises(exegesis.ExegesisError, match=r"model: its snapshot cannot be written to .*EXEGESIS_HOME"):
        exegesis.wrap(*loaded)
    with pytest.raises(exegesis.ExegesisError, match=r"dataset: .* cannot be written"):
        exegesis.dataset([TEXT])


def test_pictures_of_every_form_are_the_same_picture(tmp_path: Path) -> None:
    pixels = exegesis.example("scenes", 0).pixels  # type: ignore[attr-defined]
    file = tmp_path / "picture.png"
    Image.fromarray(pixels).save(file)
    for form in (file, str(file), Image.open(io.BytesIO(file.read_bytes())), pixels, Picture(pixels)):
        assert explain("scenes-vit", form, "random").input == Picture(pixels)
    page = PictureState(focus=PictureFocus("scenes-vit", picture_sha="x", chosen=_upload(pixels)), methods=("random",))
    assert cached_explanation(page.request("random")) is not None


def _upload(pixels: np.ndarray) -> Any:
    from engine.store import store_picture

    return read_uploaded_picture(store_picture(pixels))


@pytest.mark.parametrize(
    ("model", "text", "more", "message"),
    [
        ("bert-marked", 3, {}, "text: must be a text, a pair of texts, or for an image model a picture"),
        ("bert-marked", np.zeros((4, 4), np.uint8), {}, "text: bert-marked reads texts"),
        ("scenes-vit", np.zeros((4, 4)), {}, "image: must be an array of uint8"),
        ("scenes-vit", 3, {}, "image: must be a file, a PIL image or an array of uint8, got 3."),
        ("scenes-vit", "/no/such.png", {}, "image: no file '/no/such.png'"),
        ("bert-marked", TEXT, {"contrast": "a"}, "contrast: bert-marked is a classifier"),
        ("tiny-llama", TEXT, {"target": 3}, "target: must be a token of tiny-llama, such as ' yes', got 3."),
        ("bert-marked", TEXT, {"methods": []}, "methods: must name at least one, got none."),
        ("bert-marked", TEXT, {"methods": ["lim"]}, "method: unknown name 'lim'. Did you mean 'lime'? Known: "),
        ("bert-marked", TEXT, {"methods": {"lime": {"samples": 9}}}, "parameter of lime: unknown name 'samples'"),
        ("bert-marked", TEXT, {"methods": {"lime": 3}}, "methods: parameters of lime: must be names with values"),
        ("bert-marked", TEXT, {"target": "good"}, "target: unknown name 'good'"),
        ("bert-marked", TEXT, {"dtype": "int8"}, "dtype"),
    ],
)
def test_wrong_arguments_are_named(model: str, text: Any, more: Any, message: str) -> None:
    with pytest.raises(exegesis.UsageError) as error:
        explain(model, text, **more)
    assert str(error.value).startswith(message)


def test_pairs_and_default_methods() -> None:
    result = exegesis.explain("bert-nli", ("a man sleeps", "a man rests"), progress=False)
    assert result.input == Example("a man sleeps", "a man rests")
    assert result.methods[-1] == "random"
    assert {token.segment for token in result[0].tokens} == {-1, 0, 1}


class _HubDataset:
    """As `datasets.Dataset` is, as far as it is read."""

    column_names = ("sentence", "label")
    features = {"label": type("ClassLabel", (), {"names": ["bad", "good"]})()}  # noqa: RUF012

    def __iter__(self) -> Any:
        return iter([{"sentence": TEXT, "label": 1}, {"sentence": "a dull film", "label": 0}])


def test_data_of_every_form_is_a_file_named_after_its_content(home: Path) -> None:
    own = exegesis.dataset([TEXT, "a dull film"], ["good", "bad"])
    frame = pd.DataFrame({"text": [TEXT, "a dull film"], "label": ["good", "bad"], "more": [1.5, float("nan")]})
    assert exegesis.dataset(frame) == own
    assert exegesis.dataset(_HubDataset(), columns={"text": "sentence"}) == own
    rows = [json.loads(line) for line in Path(own).read_text(encoding="utf-8").splitlines()]
    assert rows == [{"text": TEXT, "label": "good"}, {"text": "a dull film", "label": "bad"}]
    assert exegesis.example(exegesis.dataset([("a", "b")]), 0) == Example("a", "b")
    spans = pd.DataFrame({"text": [TEXT], "label": np.array([1]), "rationale": [[[4, 8]]]})
    assert json.loads(Path(exegesis.dataset(spans)).read_text())["rationale"] == [[4, 8]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exegesis.dataset([]), "dataset: has no texts."),
        (lambda: exegesis.dataset(["a"], ["x", "y"]), "labels: must be 1, one for each text, got 2."),
        (lambda: exegesis.dataset([3]), "dataset: example 0: must be a text or a pair of texts, got 3."),
        (lambda: exegesis.dataset(7), "dataset: must be a name, a path, texts, a data frame or a datasets.Dataset"),
        (lambda: exegesis.dataset(["a"], columns={"text": "b"}), "columns: texts have none."),
        (lambda: exegesis.dataset(pd.DataFrame({"a": ["b"]})), "columns: text: unknown name 'text'. Known: a."),
        (lambda: exegesis.dataset(pd.DataFrame({"a": ["b"]}), columns={"txt": "a"}), "columns: unknown name 'txt'"),
        (lambda: exegesis.dataset(pd.DataFrame({"text": [None]})), "dataset: text of row 0: must be a text, got None."),
        (lambda: exegesis.dataset(pd.DataFrame({"text": ["a"]}), ["x"]), "labels: a table has them in its column"),
        (lambda: exegesis.example("reviews", -1), "index: must be a whole number from 0 to 319 in reviews, got -1."),
    ],
)
def test_wrong_data_is_named(call: Any, message: str) -> None:
    with pytest.raises(exegesis.UsageError) as error:
        call()
    assert str(error.value).startswith(message)

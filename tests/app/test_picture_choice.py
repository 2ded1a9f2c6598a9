"""The choice of a picture as a script: sets, splits, places, uploads that are kept or refused; the list of a set."""

from __future__ import annotations

import io
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from components.inputs.picture_choice import EXAMPLE_STAYS, FROM_DATA, LAST_PICTURE_STAYS, OWN, WIDGETS
from engine import jobs
from engine.data.image_datasets import load_images
from engine.predictions import cached_set_predictions
from engine.request import Picture
from engine.store import load_picture, result_store
from tests.alerts import errors
from tests.project import ROOT
from tests.unit.data.test_picture_files import png_header
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 120.0
LISTED = "picture_page.browse."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model of the classes cat, dog, eel."""
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty pictures of noise of cats and eels in turn, the labels being by chance for any model."""
    chance = np.random.default_rng(0)
    for i in range(60):
        place = tmp_path / "set" / ("cat", "eel")[i % 2] / f"{i // 2:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(place)
    return tmp_path / "set"


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "tests" / "browser" / "pictures_page.py"), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def link_of(page: AppTest) -> dict[str, str]:
    assert not page.exception
    return {name: page.query_params[name] for name in page.query_params}


def digest(page: AppTest) -> str:
    return next(one.value for one in page.text if one.value.startswith("digest")).removeprefix("digest ")


def told(page: AppTest) -> str:
    html = (unescape(element.proto.body) for element in page.get("html"))
    return " ".join([*html, *(element.value for element in (*page.caption, *page.info))])


def button(page: AppTest, label: str) -> object:
    """By its words, or by the hint of one that is an icon."""
    return next(one for one in page.button if label in (one.label, one.help))


def press(page: AppTest, label: str) -> AppTest:
    return button(page, label).click().run()  # type: ignore[attr-defined]


def choose(page: AppTest, name: str, value: str) -> AppTest:
    return page.selectbox(WIDGETS + name).set_value(value).run()


def source(page: AppTest, wanted: str) -> AppTest:
    return page.segmented_control(f"{WIDGETS}source").set_value(wanted).run()


def upload(page: AppTest, name: str, data: bytes, kind: str = "image/png") -> AppTest:
    return page.file_uploader(f"{WIDGETS}upload").set_value((name, data, kind)).run()


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def files_of(folder: Path) -> dict[str, int]:
    """Every file below a folder, and its bytes."""
    return {str(file): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def digest_of(name: str, index: int, split: str | None = None) -> str:
    return Picture(load_images(name, split)[index].pixels).digest


def test_a_set_its_split_and_a_place_are_chosen_and_stand_in_the_link() -> None:
    page = opened()
    assert digest(page) == digest_of("scenes", 0)
    page.number_input(f"{WIDGETS}index").set_value(1).run()
    assert digest(page) == digest_of("scenes", 1)
    choose(page, "split", "test")
    assert link_of(page) == {"model": "scenes-vit", "data": "scenes", "split": "test", "index": "0"}
    page.number_input(f"{WIDGETS}index").set_value(1999).run()
    assert digest(page) == digest_of("scenes", 1999, "test")
    assert page.number_input(f"{WIDGETS}index").max == 1999
    choose(page, "data", "digits")
    assert link_of(page) == {"model": "scenes-vit", "data": "digits", "index": "0"}
    assert digest(page) == digest_of("digits", 0)
    press(page, "Random")
    index = page.number_input(f"{WIDGETS}index").value
    assert digest(page) == digest_of("digits", int(index or 0))
    again = opened(**link_of(page))
    assert digest(again) == digest(page)


def test_marked_scenes_have_a_strength() -> None:
    page = opened(data="scenes-marked")
    page.number_input(f"{WIDGETS}strength").set_value(0.5).run()
    assert link_of(page)["data"] == "scenes-marked:strength=0.5"
    choose(page, "split", "unmarked")
    again = opened(**link_of(page))
    assert again.number_input(f"{WIDGETS}strength").value == 0.5
    assert digest(again) == digest_of("scenes-marked:strength=0.5", 0, "unmarked")
    again.number_input(f"{WIDGETS}strength").set_value(1.0).run()
    assert link_of(again)["data"] == "scenes-marked"


def test_a_set_that_cannot_be_had_is_said_until_another_is_chosen(folder: Path) -> None:
    page = opened(data="<b>nowhere</b>.zip", index="3")
    [sentence] = errors(page)
    assert "<b>nowhere</b>.zip" in sentence
    assert sentence.endswith("scenes is shown.")
    assert digest(page) == digest_of("scenes", 0)
    choose(page, "data", "digits")
    assert not errors(page)
    assert digest(page) == digest_of("digits", 0)
    own = opened(data=str(folder), index="1")
    choose(own, "model", "digits-vit")
    assert digest(own) == digest_of(str(folder), 1)
    assert link_of(own)["digest"] == digest(own)[:8]


def test_an_upload_is_kept_shown_and_found_again_by_its_link() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    page = opened(index="2")
    source(page, OWN)
    assert digest(page) == digest_of("scenes", 2)
    assert "Showing the data-set example until you upload a picture." in told(page)
    upload(page, "holiday.png", png(pixels))
    assert not errors(page)
    assert digest(page) == Picture(pixels).digest
    assert "40 × 30 pixels, resized to 64 × 64 (aspect ratio not kept)" in told(page).replace("\\", "")
    link = link_of(page)
    assert link == {"model": "scenes-vit", "index": "2", "picture_sha": digest(page)}
    again = opened(**link)
    assert again.segmented_control(f"{WIDGETS}source").value == OWN
    assert digest(again) == digest(page)
    source(again, FROM_DATA)
    assert digest(again) == digest_of("scenes", 2)
    assert link_of(again) == {"model": "scenes-vit", "data": "scenes", "index": "2"}
    source(again, OWN)
    assert digest(again) == digest(page)


REFUSED = (
    ("<b>x</b>.png", b"not a picture", "<b>x</b>.png is not a picture that can be read. Give a PNG"),
    ("cut.png", png(np.zeros((40, 40, 3), np.uint8))[:-30], "cut.png is damaged or truncated"),
    ("page.png", b"%PDF-1.7", "page.png is a PDF document"),
    ("drawing.png", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "drawing.png is an SVG drawing"),
    ("huge.png", png_header(50_000, 50_000), "huge.png must have at most 64 million pixels"),
    ("zero.png", png_header(0, 0), "zero.png has no pixels (0 x 0)."),
    ("empty.png", b"", "empty.png is empty."),
)


@pytest.mark.parametrize(("name", "data", "words"), REFUSED)
def test_a_bad_file_is_one_sentence_keeps_nothing_and_leaves_the_last_picture(
    name: str, data: bytes, words: str
) -> None:
    good = np.full((8, 8, 3), 7, dtype=np.uint8)
    page = upload(source(opened(), OWN), "good.png", png(good))
    before = result_store().stats().entries
    upload(page, name, data)
    [sentence] = errors(page)
    assert sentence.startswith(words)
    assert sentence.endswith(f". {LAST_PICTURE_STAYS}")
    assert digest(page) == Picture(good).digest
    assert result_store().stats().entries == before
    upload(page, "good.png", png(good + 1))
    assert not errors(page)
    assert digest(page) == Picture(good + 1).digest


def test_refused_files_leave_nothing_on_the_disk_and_the_example_stays(tmp_path: Path) -> None:
    page = source(opened(), OWN)
    before = files_of(tmp_path)
    for name, data, words in REFUSED:
        upload(page, name, data)
        [sentence] = errors(page)
        assert sentence.startswith(words)
        assert sentence.endswith(f". {EXAMPLE_STAYS}")
        assert digest(page) == digest_of("scenes", 0)
        assert files_of(tmp_path) == before
    upload(page, "good.png", png(np.full((8, 8, 3), 9, dtype=np.uint8)))
    assert len(files_of(tmp_path)) > len(before), "what is kept would be seen"


def test_a_picture_of_a_set_that_cannot_be_read_is_said_and_the_way_goes_on(folder: Path) -> None:
    (folder / "cat" / "00.png").write_bytes(b"%PDF-1.7")
    page = opened(data=str(folder))
    [sentence] = errors(page)
    assert "cat/00.png is a PDF document" in sentence
    assert digest(page) == "none"
    page.number_input(f"{WIDGETS}index").set_value(1).run()
    assert not errors(page)
    assert digest(page) == digest_of(str(folder), 1)


def test_the_camera_is_not_there_until_it_is_asked_for() -> None:
    page = source(opened(), OWN)
    assert not page.get("camera_input")
    page.toggle(f"{WIDGETS}camera_on").set_value(True).run()
    assert len(page.get("camera_input")) == 1
    assert load_picture(digest(page)) is None


def test_a_set_is_predicted_by_a_job_and_its_failure_cases_come_first(model: str, folder: Path) -> None:
    page = opened(model=model, data=str(folder), open="browse")
    assert "60 examples, none predicted yet." in told(page)
    assert "1 to 40 of 60 pictures" in told(page)
    press(page, "Predict all 60 pictures")
    [job] = jobs.list_jobs()
    assert jobs.wait(job.id, SECONDS).state == "done"
    page.run()
    data = load_images(folder)
    made = [one for one in cached_set_predictions(model, data) if one is not None]
    truth = [data.label_names[label or 0] for label in data.labels]
    wrong = [i for i, (one, name) in enumerate(zip(made, truth, strict=True)) if one.label != name]
    order = sorted(wrong, key=lambda i: -max(made[i].probabilities))
    assert f"{60 - len(wrong)} of 60 right, {len(wrong)} wrong" in told(page)
    page.selectbox(f"{LISTED}sort").set_value("mistakes").run()
    assert "1 to 40 of 60 pictures" in told(page)
    page.selectbox(f"{LISTED}show").set_value("wrong").run()
    page.number_input(f"{WIDGETS}index").set_value(order[3]).run()
    assert f"4 of {len(order)} in the list" in told(page)
    press(page, "Next")
    assert page.number_input(f"{WIDGETS}index").value == order[4]
    link = link_of(page)
    assert (link["show"], link["sort"], link["open"]) == ("wrong", "mistakes", "browse")
    again = opened(**link)
    assert f"5 of {len(order)} in the list" in told(again)


def test_pages_of_the_list_are_turned_and_follow_the_picture(folder: Path) -> None:
    page = opened(data=str(folder), open="browse")
    assert button(page, "Previous page").disabled  # type: ignore[attr-defined]
    press(page, "Next page")
    assert "41 to 60 of 60 pictures" in told(page)
    assert link_of(page)["index"] == "0"
    press(page, "Next")
    assert "1 to 40 of 60 pictures" in told(page)
    page.number_input(f"{WIDGETS}index").set_value(51).run()
    assert "41 to 60 of 60 pictures" in told(page)
    page.selectbox(f"{LISTED}label").set_value("eel").run()
    assert "26 of 30 in the list" in told(page)


def test_what_needs_labels_is_not_offered_without_them() -> None:
    page = opened(data="photos", open="browse")
    assert "12 examples, none predicted yet." in told(page)
    assert page.selectbox(f"{LISTED}show").options == ["All", "Unsure (confidence < 60%)"]
    assert "Failure cases first" not in page.selectbox(f"{LISTED}sort").options


def test_a_model_that_is_not_there_is_said_and_the_page_stays(folder: Path) -> None:
    page = opened(model="<i>none</i>", data=str(folder), open="browse")
    assert not page.exception
    assert any("<i>none</i>" in sentence for sentence in errors(page))
    assert digest(page) == digest_of(str(folder), 0)


def test_a_model_of_other_classes_is_told_with_one_that_fits_and_a_button_turns_to_it() -> None:
    page = opened(data="scenes", model="digits-vit", open="browse")
    assert "scenes\\-vit has more of this data set's classes than digits\\-vit." in told(page)
    offers = [one for one in page.button if one.label == "Use scenes\\-vit"]
    assert len(offers) == 2  # beside the choice, and beside Predict
    offers[1].click().run()
    assert link_of(page)["model"] == "scenes-vit"
    assert not [one for one in page.button if one.label.startswith("Use ")]
    choose(page, "data", "digits")
    press(page, "Use digits\\-vit")
    assert (link_of(page)["model"], link_of(page)["data"]) == ("digits-vit", "digits")

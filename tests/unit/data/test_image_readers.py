"""Picture sets from class folders, zips, arrays and parquet files, and what is wrong with such files."""

from __future__ import annotations

import json
import os
import stat
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

from engine.data import image_readers
from engine.data.examples import ImageExample, box_mask
from engine.data.image_datasets import image_card, image_names, is_images, load_images, register
from engine.data.image_readers import list_folder, walk_files
from engine.data.sources import load_source
from engine.errors import ExegesisError, UsageError
from tests.unit.data.conftest import COLORS, class_files, plain, saved, unpacked, zipped

Pack = Callable[[dict[str, bytes]], Path]


def test_class_folders_of_a_folder_and_of_a_zip(packed: Pack) -> None:
    data = load_images(packed(class_files(per_class=3)))
    assert (data.split, len(data), data.label_names) == ("test", 6, ("blue", "red"))
    assert data.labels == (0, 1, 0, 1, 0, 1)
    for example in data:
        wanted = COLORS[data.label_names[example.label or 0]]
        assert np.abs(example.pixels.mean((0, 1)) - wanted).max() < 15
    assert data[2].name == "set/test/blue/1.png"


def test_the_splits_share_their_label_numbers(packed: Pack) -> None:
    files = {name: data for name, data in class_files().items() if "/test/blue/" not in name}
    data = load_images(packed(files), split="test")
    assert data.label_names == ("blue", "red")
    assert set(data.labels) == {1}


def test_names_of_splits_and_the_limit(packed: Pack) -> None:
    place = packed(class_files(splits=("train", "val")))
    assert load_images(place).split == "validation"
    assert load_images(place, split="dev").labels == load_images(place, split="validation").labels
    assert load_images(place, split="train", limit=4).labels == (0, 1, 0, 1)
    with pytest.raises(UsageError, match=r"split: unknown name 'test'\. Known: train, validation\."):
        load_images(place, split="test")


def test_pictures_without_class_folders_have_no_labels(packed: Pack) -> None:
    data = load_images(packed({"mine/a.png": saved(plain()), "mine/b.jpg": saved(plain(), "JPEG")}))
    assert (data.label_names, data.labels, data.split) == ((), (None, None), "all")


def test_masks_lie_beside_their_pictures(packed: Pack) -> None:
    mask = np.zeros((8, 8), dtype=np.uint8)
    mask[2:5, 1:4] = 255
    files = class_files(per_class=2, splits=("train",))
    data = load_images(packed({**files, "set/masks/train/red/1.png": saved(Image.fromarray(mask))}))
    masks = {example.name: example.mask for example in data}
    marked = masks.pop("set/train/red/1.png")
    assert marked is not None
    assert np.array_equal(marked, mask > 0)
    assert set(masks.values()) == {None}


def test_boxes_stand_in_a_table(packed: Pack) -> None:
    table = b"file,x0,y0,x1,y1\ntrain/red/0.png,1,2,4,6\ntrain/red/0.png,6,0,8,1\n"
    data = load_images(packed({**class_files(splits=("train",)), "set/boxes.csv": table}))
    [mask] = [example.mask for example in data if example.mask is not None]
    assert mask.sum() == 3 * 4 + 2
    assert mask[2:6, 1:4].all()
    assert mask[0, 6:8].all()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"file,x0,y0\na.png,1,2\n", r"boxes\.csv, line 2: must have the columns file, x0, y0, x1, y1 with whole"),
        (b"file,x0,y0,x1,y1\na.png,1,2,3,wide\n", r"boxes\.csv, line 2: must have the columns"),
        (b"file,x0,y0,x1,y1\n\xff\xfe,1,2,3,4\n", r"boxes\.csv: is not a UTF-8 CSV file"),
    ],
)
def test_a_bad_table_of_boxes_is_reported(table: bytes, message: str, packed: Pack) -> None:
    with pytest.raises(ExegesisError, match=message):
        load_images(packed({**class_files(), "set/boxes.csv": table}))


def test_a_box_outside_its_picture_is_reported() -> None:
    with pytest.raises(
        UsageError, match=r"box: must be x0 < x1 <= 6 and y0 < y1 <= 4, none below 0, got \[0, 0, 7, 2\]"
    ):
        box_mask([(0, 0, 7, 2)], 4, 6)


def test_a_mask_of_another_size_is_reported() -> None:
    with pytest.raises(UsageError, match=r"^a\.png: mask: must have the size of its picture, 6 x 4, got 4 x 6"):
        ImageExample(np.zeros((4, 6, 3), dtype=np.uint8), mask=np.zeros((6, 4), dtype=bool), name="a.png")


def test_a_damaged_picture_is_reported_when_it_is_read_and_the_others_are_fine(packed: Pack) -> None:
    files = class_files(splits=("train",)) | {"set/train/red/0.png": b"\x89PNG\r\n\x1a\n"}
    data = load_images(packed(files))
    assert data[0].label == 0
    with pytest.raises(ExegesisError, match=r"set/train/red/0\.png is damaged or truncated"):
        data[1]


def test_the_revision_is_that_of_the_content(tmp_path: Path) -> None:
    files = class_files()
    first = load_images(unpacked(tmp_path / "a", files)).revision
    assert load_images(unpacked(tmp_path / "b", files)).revision == first
    changed = files | {"set/test/red/0.png": saved(plain())}
    renamed = {name.replace("/2.png", "/9.png"): data for name, data in files.items()}
    others = [load_images(unpacked(tmp_path / n, f)).revision for n, f in (("c", changed), ("d", renamed))]
    assert len({first, *others}) == 3


@pytest.mark.parametrize(
    "name", ["../out.png", "a/../../out.png", "/etc/out.png", "C:/out.png", "a\\..\\..\\out.png", "c:out.png"]
)
def test_a_zip_that_climbs_out_is_refused_whole(name: str, tmp_path: Path) -> None:
    place = zipped(tmp_path / "set.zip", {**class_files(), name: saved(plain())})
    with pytest.raises(
        ExegesisError, match=r"set\.zip: .* points outside the zip file and is refused\. Create the zip file again"
    ):
        load_images(place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["set.zip"]


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("set/train/red/link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ExegesisError, match="points outside the zip file"):
        load_images(tmp_path / "set.zip")


def test_a_link_out_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(saved(plain()))
    place = unpacked(tmp_path / "set", class_files())
    os.symlink(tmp_path / "secret.png", place / "set" / "train" / "red" / "link.png")
    with pytest.raises(ExegesisError, match=r"set: link\.png is a link out of the folder"):
        load_images(place)


def test_a_link_out_that_is_no_picture_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("out")
    place = unpacked(tmp_path / "set", class_files())
    before = load_images(place)
    os.symlink(tmp_path / "notes.txt", place / "set" / "train" / "red" / "notes.txt")
    assert (len(load_images(place)), load_images(place).revision) == (len(before), before.revision)
    (tmp_path / "empty").mkdir()
    os.symlink(tmp_path / "notes.txt", tmp_path / "empty" / "notes.gz")
    with pytest.raises(ExegesisError, match=r"^empty: holds no PNG, JPEG, WebP or GIF pictures\."):
        load_images(tmp_path / "empty")


@pytest.mark.parametrize("name", ["n" * 5000, "n" * 5000 + ".zip", "a/" + "n" * 5000])
def test_a_name_that_no_file_can_have_is_one_short_sentence(name: str) -> None:
    with pytest.raises(ExegesisError, match=r"^dataset: '.{30,40}….{30,40}' cannot be read \(File name too long\)\."):
        load_images(name)
    assert not is_images(name)


def test_a_zip_with_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    place = zipped(tmp_path / "set.zip", {"red/a.png": bytes(65 * 10**6), "blue/a.png": b""})
    assert place.stat().st_size < 10**6
    with pytest.raises(ExegesisError, match=r"'red/a\.png' must unpack to at most 64\.0 MB, got 65\.0 MB\. Leave"):
        load_images(place)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    place = zipped(tmp_path / "set.zip", {"red/a.png": bytes(10**6), "blue/a.png": saved(plain())})
    content = bytearray(place.read_bytes())
    # The uncompressed size stands 24 bytes into each entry of the central directory.
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    place.write_bytes(content)
    data = load_images(place)
    with pytest.raises(ExegesisError, match=r"'red/a\.png' (is damaged|is larger than it declares)"):
        data[1]


def test_a_locked_member_is_refused(tmp_path: Path) -> None:
    place = zipped(tmp_path / "set.zip", class_files())
    content = bytearray(place.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 8] |= 1
    place.write_bytes(content)
    with pytest.raises(ExegesisError, match=r"is password-protected\. Create the zip file without a password"):
        load_images(place)


@pytest.mark.parametrize("share", [0.3, 0.98])
def test_a_truncated_zip_is_reported(share: float, tmp_path: Path) -> None:
    place = zipped(tmp_path / "set.zip", class_files())
    content = place.read_bytes()
    place.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ExegesisError, match=r"set\.zip: cannot be read as a zip file\. Save or download it again"):
        load_images(place)


def test_a_zip_without_pictures_is_reported(packed: Pack) -> None:
    with pytest.raises(ExegesisError, match="holds no PNG, JPEG, WebP or GIF pictures"):
        load_images(packed({"set/readme.txt": b"nothing to see"}))


def test_many_threads_read_one_zip(tmp_path: Path) -> None:
    data = load_images(zipped(tmp_path / "set.zip", class_files(per_class=20, side=24)), split="train")
    wanted = [example.pixels for example in data]
    wrong: list[int] = []

    def read(offset: int) -> None:
        for i in range(len(data)):
            place = (i + offset) % len(data)
            if not np.array_equal(data[place].pixels, wanted[place]):
                wrong.append(place)

    threads = [threading.Thread(target=read, args=(7 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def arrays(path: Path, **changes: np.ndarray) -> Path:
    pixels = np.arange(4 * 5 * 6 * 3, dtype=np.uint8).reshape(4, 5, 6, 3)
    boxes = np.array([[0, 0, 1, 2], [1, 1, 5, 4], [0, 0, 0, 0], [2, 2, 2, 2]])
    content = {"images": pixels, "labels": np.array([0, 1, 1, 0]), "boxes": boxes}
    np.savez_compressed(path, **{name: array for name, array in (content | changes).items() if array is not None})
    return path


def test_arrays_with_boxes(tmp_path: Path) -> None:
    data = load_images(arrays(tmp_path / "mine.npz"))
    assert (data.labels, data.label_names) == ((0, 1, 1, 0), ("class 0", "class 1"))
    assert [None if e.mask is None else int(e.mask.sum()) for e in data] == [6, 20, None, 1]
    assert data[1].pixels[0, 0].tolist() == [90, 91, 92]


def test_a_folder_of_arrays_has_splits_and_named_classes(tmp_path: Path) -> None:
    for split in ("train", "val"):
        arrays(tmp_path / f"{split}.npz", class_names=np.array(["cat", "dog"]))
    data = load_images(tmp_path)
    assert (data.split, data.label_names) == ("validation", ("cat", "dog"))
    with pytest.raises(UsageError, match=r"split: unknown name 'test'\. Known: train, validation"):
        load_images(tmp_path, split="test")


@pytest.mark.parametrize(
    "changes",
    [
        {"images": np.zeros((4, 5, 6), dtype=np.uint8)},
        {"images": np.zeros((4, 5, 6, 3))},
        {"images": None},
        {"labels": np.zeros(3, dtype=int)},
        {"labels": np.array([0, 1, 2, -1])},
        {"labels": np.array(["a", "b", "c", "d"])},
        {"boxes": np.zeros((4, 3), dtype=int)},
        {"class_names": np.array(["only one"])},
    ],
)
def test_arrays_that_break_the_contract_are_reported(changes: dict[str, np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match=r"mine\.npz: must hold images \(n, height, width, 3\) of bytes, labels"):
        load_images(arrays(tmp_path / "mine.npz", **changes))


def test_arrays_that_hold_objects_are_never_unpickled(tmp_path: Path) -> None:
    place = arrays(tmp_path / "mine.npz", labels=np.array([{}, {}, {}, {}], dtype=object))
    with pytest.raises(ExegesisError, match=r"mine\.npz: cannot be read as a \.npz file"):
        load_images(place)


def test_what_counts_as_a_picture_set(tmp_path: Path) -> None:
    pictures = unpacked(tmp_path / "pictures", class_files())
    texts = unpacked(tmp_path / "texts", {"train.csv": b"text,label\na,0\n"})
    assert is_images(pictures)
    assert is_images(zipped(tmp_path / "set.zip", class_files()))
    assert is_images("scenes")
    assert is_images("scenes:seed=3")
    assert not is_images(texts)
    assert not is_images("sst2")


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"dataset: unknown name 'scene'\. Did you mean 'scenes'\? Known: cifar10"):
        load_images("scene")
    with pytest.raises(UsageError, match=r"dataset: unknown name 'nothing'"):
        image_card("nothing")
    with pytest.raises(UsageError, match=r"limit: must be a whole number of 1 or more, got 0"):
        load_images("scenes", limit=0)
    with pytest.raises(UsageError, match=r"index: must be 0 to 4 in scenes, got 5"):
        load_images("scenes", limit=5)[5]
    with pytest.raises(UsageError, match="dataset: 'scenes' is registered twice"):
        register("scenes")(lambda request: load_images("digits"))


@pytest.mark.parametrize("name", image_names())
def test_every_registered_set_has_a_whole_card(name: str) -> None:
    card = image_card(name)
    assert all(len(text) > 3 for text in vars(card).values())


def test_a_buffer_is_not_written_to(tmp_path: Path) -> None:
    example = load_images(arrays(tmp_path / "mine.npz"))[0]
    with pytest.raises(ValueError, match="read-only"):
        example.pixels[0, 0, 0] = 1


def test_a_folder_of_far_too_many_files_is_given_up_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_readers, "MAX_FILES", 3)
    unpacked(tmp_path, {f"{folder}/{i}.png": b"" for folder in "ab" for i in range(2)})
    walked = walk_files(tmp_path)
    assert len([next(walked), next(walked)]) == 2
    with pytest.raises(ExegesisError, match="must hold at most 3 files, got 4 or more"):
        list(walked)
    for refused in (lambda: list_folder(tmp_path), lambda: load_images(tmp_path)):
        with pytest.raises(ExegesisError, match="must hold at most 3 files"):
            refused()


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("scenes", ("validation", "test", "train")),
        ("scenes-marked", ("validation", "test", "train", "unmarked")),
        ("digits", ("test", "train")),
        ("photos", ()),
    ],
)
def test_a_set_says_its_splits_the_usual_one_first(name: str, splits: tuple[str, ...]) -> None:
    assert load_images(name, limit=1).splits == splits
    for split in splits:
        data = load_images(name, split, limit=1)
        assert (data.split, data.splits) == (split, splits)
    assert load_images(name, limit=1).split in (splits[:1] or ("all",))


def test_files_say_their_splits_in_the_same_order(packed: Pack, tmp_path: Path) -> None:
    assert load_images(packed(class_files(1))).splits == ("test", "train")
    (tmp_path / "npz").mkdir()
    for split in ("train", "val"):
        arrays(tmp_path / "npz" / f"{split}.npz")
    assert load_images(tmp_path / "npz").splits == ("validation", "train")


CLASSES = ["cat", "dog"]


def write(path: Path, rows: list[dict[str, object]], classes: dict[str, list[str]], group: int = 2) -> None:
    """A parquet file as `datasets` writes it: pictures as records of bytes and path, classes in the schema."""
    features = {name: {"names": names, "_type": "ClassLabel"} for name, names in classes.items()}
    table = pyarrow.Table.from_pylist(rows)
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, row_group_size=group)


def row(level: int, **labels: int) -> dict[str, object]:
    return {"img": {"bytes": saved(plain((level, level, level))), "path": "x.png"}, **labels}


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """Two training shards of two row groups each, and a test split without labels."""
    root = tmp_path / "toy"
    levels = [[row(10 * (5 * shard + i), label=i % 2) for i in range(4)] for shard in range(2)]
    for shard, rows in enumerate(levels):
        write(root / f"data/train-0000{shard}-of-00002.parquet", rows, {"label": CLASSES})
    write(root / "data/test-00000-of-00001.parquet", [row(7, label=-1)], {"label": CLASSES})
    return root


@pytest.fixture
def fetched(layout: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub that holds `layout` as toy/set; lists the files that were downloaded."""
    names = sorted(path.relative_to(layout).as_posix() for path in layout.rglob("*.parquet"))
    listed = SimpleNamespace(sha="c0ffee", siblings=[SimpleNamespace(rfilename=name) for name in names])
    fetched: list[str] = []

    def download(repo_id: str, filename: str, repo_type: str, revision: str) -> str:
        fetched.append(filename)
        return str(layout / filename)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, repo_id, revision=None: listed)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return fetched


def test_pictures_and_classes_of_all_shards(layout: Path) -> None:
    data = load_images(layout, split="train")
    assert (len(data), data.label_names, data.labels) == (8, ("cat", "dog"), (0, 1) * 4)
    assert [int(example.pixels[0, 0, 0]) for example in data] == [0, 10, 20, 30, 50, 60, 70, 80]
    assert [int(data[i].pixels[0, 0, 0]) for i in (7, 0, 4, 3)] == [80, 0, 50, 30]
    assert load_images(layout, split="test").labels == (None,)


def test_the_hub_gives_the_same_and_a_limit_fetches_no_more_than_it_needs(layout: Path, fetched: list[str]) -> None:
    assert is_images("hub:toy/set")
    fetched.clear()
    data = load_images("hub:toy/set", split="train", limit=3)
    assert [int(example.pixels[0, 0, 0]) for example in data] == [0, 10, 20]
    assert set(fetched) == {"data/train-00000-of-00002.parquet"}
    assert (data.id, data.split) == ("hub:toy/set", "train")
    assert load_images("hub:toy/set", split="train").labels == load_images(layout, split="train").labels


def test_columns_are_found_or_chosen(tmp_path: Path) -> None:
    rows = [row(5, fine_label=i, coarse_label=0) for i in range(2)]
    write(tmp_path / "train.parquet", rows, {"fine_label": ["ant", "bee"], "coarse_label": ["insect"]})
    assert load_images(tmp_path).label_names == ("ant", "bee")
    assert load_images(tmp_path, columns={"label": "coarse_label"}).label_names == ("insect",)
    with pytest.raises(UsageError, match=r"columns: unknown name 'kind'\. .*Known: coarse_label, fine_label, img"):
        load_images(tmp_path, columns={"label": "kind"})
    with pytest.raises(UsageError, match=r"columns: 'fine_label' holds no pictures\. Columns with pictures: img"):
        load_images(tmp_path, columns={"image": "fine_label"})
    with pytest.raises(UsageError, match=r"columns: unknown name 'text'"):
        load_images(tmp_path, columns={"text": "img"})


def test_masks_of_others_are_mapped_by_their_column(tmp_path: Path) -> None:
    rows = [{"segments": row(255)["img"], **row(5)}, {"segments": None, **row(6)}]
    write(tmp_path / "train.parquet", rows, {})
    assert load_images(tmp_path, columns={"image": "img"})[0].mask is None
    data = load_images(tmp_path, columns={"mask": "segments"})
    assert [int(one.pixels[0, 0, 0]) for one in data] == [5, 6]
    assert [one.mask is not None and bool(one.mask.all()) for one in data] == [True, False]


def test_texts_are_no_pictures_and_scores_no_classes(tmp_path: Path) -> None:
    write(tmp_path / "texts" / "train.parquet", [{"text": "a", "label": 0}], {})
    write(tmp_path / "scores" / "train.parquet", [{**row(1), "label": 0.5}], {})
    assert not is_images(tmp_path / "texts")
    assert is_images(tmp_path / "scores")
    with pytest.raises(ExegesisError, match="has no column of pictures among text, label"):
        load_images(tmp_path / "texts")
    with pytest.raises(ExegesisError, match="its column 'label' holds scores"):
        load_images(tmp_path / "scores")


def test_a_row_without_a_picture_or_with_a_broken_one_is_reported_when_it_is_read(tmp_path: Path) -> None:
    rows = [row(1, label=0), {"img": {"bytes": None, "path": "gone.png"}, "label": 1},
            {"img": {"bytes": b"\x89PNG broken", "path": "x.png"}, "label": 1}]  # fmt: skip
    write(tmp_path / "train.parquet", rows, {"label": CLASSES})
    data = load_images(tmp_path)
    assert data[0].label == 0
    with pytest.raises(ExegesisError, match="train row 1: has no picture in it, got"):
        data[1]
    with pytest.raises(ExegesisError, match="train row 2 is damaged or truncated"):
        data[2]


def test_a_single_file_is_read_without_splits(tmp_path: Path) -> None:
    file = tmp_path / "mine.parquet"
    write(file, [row(level, label=level % 2) for level in (4, 5, 6)], {"label": CLASSES})
    assert is_images(file)
    data = load_images(file)
    assert (data.split, data.splits, data.labels) == ("all", (), (0, 1, 0))
    assert [int(one.pixels[0, 0, 0]) for one in data] == [4, 5, 6]
    assert load_images(f"{file}:rows=1")[0].label == 1
    assert load_source("image", str(file)).count == 3
    with pytest.raises(UsageError, match=r"split: mine\.parquet is one file without splits"):
        load_images(file, split="train")
    with pytest.raises(UsageError, match=r"dataset: .*mine\.parquet holds pictures, but the models read texts"):
        load_source("text", str(file))
    texts = tmp_path / "texts.parquet"
    write(texts, [{"text": "a", "label": 0}], {})
    assert not is_images(texts)
    with pytest.raises(UsageError, match=r"dataset: .*texts\.parquet holds texts, but the models read pictures"):
        load_source("image", str(texts))


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", "null", "\xff", '{"info": null}', '{"info": {"features": [1]}}'),
        *(f'{{"info": {{"features": {{"label": {{"names": {names}}}}}}}}}' for names in ("3", "[1, 2]")),
    ],
)
def test_damaged_metadata_name_no_classes(content: str, tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist([row(level, label=level) for level in (0, 1)])
    parquet.write_table(
        table.replace_schema_metadata({"huggingface": content.encode("latin-1")}), tmp_path / "a.parquet"
    )
    assert load_images(tmp_path / "a.parquet", columns={"label": "label"}).label_names == ("0", "1")


def test_what_holds_no_picture_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pyarrow.schema([("image", pyarrow.binary())])
    parquet.write_table(pyarrow.Table.from_pylist([], schema), tmp_path / "empty.parquet")
    with pytest.raises(ExegesisError, match=r"empty\.parquet: has no examples"):
        load_images(tmp_path / "empty.parquet")
    (tmp_path / "texts.csv").write_text("text,label\na,0\n")
    with pytest.raises(ExegesisError, match=r"texts\.csv: holds no pictures\. Name a zip"):
        load_images(tmp_path / "texts.csv")
    monkeypatch.chdir(tmp_path)
    assert not is_images("")
    with pytest.raises(UsageError, match="unknown name ''"):  # not the current folder
        load_images("")

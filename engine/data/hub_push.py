"""Push data sets and tables of results to the Hugging Face hub, as Parquet files with a card.

`load("hub:owner/name")` and `load_images` read a data set back: texts, classes, scores and rationales; prompts with
their answers and foils; pictures with their classes and masks, as PNG. `extra` values are not pushed.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engine.data.examples import Dataset, ImageDataset, ImageExample
from engine.data.hub import open_parquet, parse_split
from engine.data.image_readers import MASK_COLUMN
from engine.errors import ExegesisError, excerpt, not_allowed
from engine.lazy import huggingface_hub, pyarrow

_REPO = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
SHARD = "data/{split}-00000-of-00001.parquet"
GROUP = 100
"""Number of pictures in a row group, as in the library `datasets`. A reader of one picture loads its row group."""


def push_dataset(data: Dataset | ImageDataset, repo: str, private: bool = True) -> str:
    """Push a data set, and return the address of its page on the hub.

    Errors: an invalid repository name; a picture that cannot be read; the hub refuses or cannot be reached.
    """
    check_repo(repo)
    with tempfile.TemporaryDirectory() as work:
        split = parse_split(f"{data.split}.parquet")
        file = Path(work) / SHARD.format(split=split)
        file.parent.mkdir()
        if isinstance(data, ImageDataset):
            write_pictures(data, file)
        else:
            pyarrow.parquet.write_table(dataset_table(data), file)
        note = f"\nPushed by Exegesis from `{data.id}`, split {data.split}, revision {data.revision}.\n"
        return _upload(Path(work), repo, private, f"{_front_matter(data.title)}{data.card.markdown()}{note}")


def push_table(file: Path, repo: str, private: bool = True) -> str:
    """Push a Parquet file of results unchanged, and return the address of its page on the hub.

    Errors: an invalid repository name; a file that cannot be read; the hub refuses or cannot be reached.
    """
    check_repo(repo)
    with open_parquet(file) as table:
        columns, rows = table.schema_arrow.names, table.metadata.num_rows
    with tempfile.TemporaryDirectory() as work:
        target = Path(work) / SHARD.format(split="train")
        target.parent.mkdir()
        shutil.copyfile(file, target)
        listed = ", ".join(f"`{name}`" for name in columns)
        card = f"# {file.stem}\n\nResults of Exegesis: {rows:,} rows with the columns {listed}.\n"
        return _upload(Path(work), repo, private, _front_matter(file.stem) + card)


def check_repo(repo: str) -> None:
    """Raise `UsageError` if the name of a repository is invalid."""
    if not _REPO.fullmatch(repo):
        raise not_allowed("repository", "owner/name on the hub", repo)


def dataset_table(data: Dataset) -> pyarrow.Table:
    """Convert the examples to a table of text, text_pair, label, answer, foil, rationale and rationale_pair.

    Columns without values are left out. Class names are in the metadata, as the library `datasets` writes them. Prompts
    have no label, as it is their answer.
    """
    spans, is_class = pyarrow.list_(pyarrow.list_(pyarrow.int64())), data.task == "classification"
    kinds = {
        "text": pyarrow.string(),
        "text_pair": pyarrow.string(),
        "label": pyarrow.int64() if is_class else pyarrow.float64(),
        "answer": pyarrow.string(),
        "foil": pyarrow.string(),
        "rationale": spans,
        "rationale_pair": spans,
    }
    rows = [
        {name: getattr(example, name) for name in kinds} | ({} if example.answer is None else {"label": None})
        for example in data.examples
    ]
    used = [name for name in kinds if any(row[name] not in (None, ()) for row in rows)]
    table = pyarrow.table({name: pyarrow.array([row[name] for row in rows], kinds[name]) for name in used})
    if not is_class or "label" not in used:
        return table
    return table.replace_schema_metadata(_features({"label": _class_label(data.label_names)}))


def write_pictures(data: ImageDataset, file: Path) -> None:
    """Write pictures in the format of the feature `Image` of the library `datasets`: PNG bytes and a name.

    Columns: image; label, if the data set has classes, with their names in the metadata; object_mask, white where the
    object is, if any picture has a mask. One row group of pictures is in memory at a time.
    """
    encoded = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    kinds: dict[str, Any] = {"image": (encoded, {"_type": "Image"})}
    if data.label_names:
        kinds["label"] = (pyarrow.int64(), _class_label(data.label_names))
    if any(one.mask is not None for one in data):
        kinds[MASK_COLUMN] = (encoded, {"_type": "Image"})
    schema = pyarrow.schema(
        [(name, kind) for name, (kind, _) in kinds.items()],
        metadata=_features({name: feature for name, (_, feature) in kinds.items()}),
    )
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, len(data), GROUP):
            examples = map(data.read, range(start, min(start + GROUP, len(data))))
            rows = [{name: cell for name, cell in _picture_cells(one) if name in kinds} for one in examples]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))


def _picture_cells(example: ImageExample) -> Iterator[tuple[str, Any]]:
    yield "image", {"bytes": _png(example.pixels), "path": example.name or None}
    yield "label", example.label
    if example.mask is not None:
        yield MASK_COLUMN, {"bytes": _png(example.mask.astype(np.uint8) * 255), "path": None}


def _png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _class_label(names: tuple[str, ...]) -> dict[str, Any]:
    return {"names": list(names), "_type": "ClassLabel"}


def _features(features: dict[str, Any]) -> dict[str, str]:
    """Return the metadata of a schema from which `datasets` reads the types of columns."""
    return {"huggingface": json.dumps({"info": {"features": features}})}


def _front_matter(title: str) -> str:
    """Return the YAML header of a card, which the hub reads. JSON strings are valid YAML."""
    return f"---\npretty_name: {json.dumps(title)}\ntags: [exegesis]\n---\n\n"


def _upload(folder: Path, repo: str, private: bool, card: str) -> str:
    (folder / "README.md").write_text(card, encoding="utf-8")
    api = huggingface_hub.HfApi()
    try:
        address = api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=folder, repo_type="dataset", commit_message="Push from Exegesis")
    except Exception as error:  # the hub's client has changed its transport library, and with it the error classes
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in (401, 403):
            raise ExegesisError(f"hub:{repo}: you may not write there. Log in with: hf auth login.") from None
        reason = excerpt(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise ExegesisError(f"hub:{repo}: was not pushed ({reason}). Check the network and the name.") from None
    return str(address)

"""Push data sets of texts and tables of results to the Hugging Face hub, as Parquet files with a card.

`load("hub:owner/name")` reads a data set back: texts, classes, scores and rationales. `extra` values are not pushed.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from engine.data.examples import Dataset
from engine.data.hub import open_parquet, parse_split
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed
from engine.lazy import huggingface_hub, pyarrow

_REPO = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
SHARD = "data/{split}-00000-of-00001.parquet"


def push_dataset(data: Dataset, repo: str, private: bool = True) -> str:
    """Push a data set of texts, and return the address of its page on the hub.

    Errors: not a name on the hub; prompts, which the format does not hold; the hub refuses, or cannot be reached.
    """
    check_repo(repo)
    if any(example.answer is not None for example in data.examples):
        raise UsageError(
            f"dataset: {data.id} has prompts, which are generated from its name. Push a data set of texts."
        )
    with tempfile.TemporaryDirectory() as work:
        split = parse_split(f"{data.split}.parquet")
        file = Path(work) / SHARD.format(split=split)
        file.parent.mkdir()
        pyarrow.parquet.write_table(dataset_table(data), file)
        note = f"\nPushed by Exegesis from `{data.id}`, split {data.split}, revision {data.revision}.\n"
        return _upload(Path(work), repo, private, f"{_front_matter(data.title)}{data.card.markdown()}{note}")


def push_table(file: Path, repo: str, private: bool = True) -> str:
    """Push a Parquet file of results as it is, and return the address of its page on the hub. Errors: as above."""
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
    """Raise `UsageError` unless it is the name of a repository."""
    if not _REPO.fullmatch(repo):
        raise not_allowed("repository", "owner/name on the hub", repo)


def dataset_table(data: Dataset) -> pyarrow.Table:
    """The examples as columns: text, text_pair, label, rationale, rationale_pair, those that any example has.

    Class names are in the metadata, as the library `datasets` writes them.
    """
    spans, is_class = pyarrow.list_(pyarrow.list_(pyarrow.int64())), data.task == "classification"
    kinds = {
        "text": pyarrow.string(),
        "text_pair": pyarrow.string(),
        "label": pyarrow.int64() if is_class else pyarrow.float64(),
        "rationale": spans,
        "rationale_pair": spans,
    }
    columns: dict[str, list[Any]] = {
        "text": [example.text for example in data.examples],
        "text_pair": [example.text_pair for example in data.examples],
        "label": [example.label for example in data.examples],
        "rationale": [[list(span) for span in example.rationale] for example in data.examples],
        "rationale_pair": [[list(span) for span in example.rationale_pair] for example in data.examples],
    }
    used = [name for name, values in columns.items() if any(value not in (None, []) for value in values)]
    table = pyarrow.table({name: pyarrow.array(columns[name], kinds[name]) for name in used})
    if not is_class or "label" not in used:
        return table
    features = {"label": {"names": list(data.label_names), "_type": "ClassLabel"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def _front_matter(title: str) -> str:
    """The head of a card, which the hub reads. JSON strings are YAML strings."""
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

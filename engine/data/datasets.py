"""Registry of text data sets, and `load`, for registered names, local files and folders, and `hub:owner/name`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from engine import access
from engine.data.examples import Dataset
from engine.data.grammar import load_generated_reviews, load_marked_reviews
from engine.data.hub import (
    HUB_PREFIX,
    ParquetShards,
    find_file_shards,
    find_folder_shards,
    find_hub_shards,
    read_class_names,
    read_shards,
)
from engine.data.inference import load_generated_pairs
from engine.data.labels import NLI_LABELS, SENTIMENT_LABELS
from engine.data.mlqe_pe import MlqeParams, find_mlqe
from engine.data.prompts import PROMPT_GRAMMARS, load_prompts
from engine.data.quality import load_quality
from engine.data.registry import (
    SPLIT_ALIASES,
    DatasetCard,
    DatasetRegistry,
    LoadRequest,
    choose_split,
    data_root,
    external_card,
    parse_options,
    read_card,
    reject_options,
    reject_split,
)
from engine.data.released import (
    MULTINLI_ALIASES,
    EraserParams,
    ReleasedDataset,
    find_eraser,
    find_esnli,
    find_imdb,
    find_multinli,
    find_sentences,
    find_snli_sick,
)
from engine.data.slices import load_slice, split_slice
from engine.data.tables import TABLE_SUFFIXES, MappedRows, RowErrors, TableRow, content_revision, map_rows, read_table
from engine.errors import ExegesisError, UsageError, excerpt, unknown
from engine.params import from_mapping

EMBEDDED = {"reviews": SENTIMENT_LABELS, "reviews-written": SENTIMENT_LABELS, "nli": NLI_LABELS}
"""Classes of the data sets that are a single file of the project, without splits."""
SST2_HUB_ID = "stanfordnlp/sst2"
SST2_COLUMNS = {"text": "sentence", "label": "label"}
SST2_FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}

Loader = Callable[[LoadRequest], Dataset]
_LOADERS: DatasetRegistry[Loader] = DatasetRegistry()
register = _LOADERS.register
dataset_names = _LOADERS.names
dataset_card = _LOADERS.card
registered_name = _LOADERS.registered_name


@dataclass(frozen=True)
class HubCopy:
    """A copy of a release on the hub: its columns, its classes in order, and aliases of its splits."""

    id: str
    columns: Mapping[str, str]
    labels: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    """A published data set in `EXEGESIS_DATA`: names of its folder, its files, and functions that recognize it.

    `hub`: the copy to use if there is no such folder, if any.
    """

    folders: tuple[str, ...]
    content: str
    finders: tuple[Callable[[Path], ReleasedDataset | None], ...]
    hub: HubCopy | None = None


RELEASES: Mapping[str, Release] = {
    "imdb": Release(
        ("aclImdb", "imdb"),
        "train and test with a folder pos and a folder neg of text files",
        (find_imdb,),
        HubCopy("stanfordnlp/imdb", {"text": "text", "label": "label"}, SENTIMENT_LABELS),
    ),
    "movies": Release(("movies",), "train.jsonl, val.jsonl and docs, as in ERASER", (find_eraser,)),
    "esnli": Release(
        ("esnli", "e-SNLI"),
        "esnli_train_1.csv, esnli_dev.csv and so on, or the set of ERASER",
        (find_esnli, find_eraser),
    ),
    "multinli": Release(
        ("multinli", "multinli_1.0", "MNLI"),
        "multinli_1.0_train.jsonl and so on, or its .txt",
        (find_multinli,),
        HubCopy(
            "nyu-mll/multi_nli",
            {"text": "premise", "text_pair": "hypothesis", "label": "label"},
            NLI_LABELS,
            MULTINLI_ALIASES,
        ),
    ),
    "snli-sick": Release(("nli",), "snli_test.tsv, sick_train.tsv and snli_dev.tsv", (find_snli_sick,)),
    "sentences": Release(
        ("sentences", "sentiment labelled sentences"), "amazon_cells.tsv, imdb.tsv and yelp.tsv", (find_sentences,)
    ),
    "mlqe-pe": Release(
        ("mlqe_pe", "mlqe-pe"),
        "the unpacked folders post-editing and direct-assessments, or en-de.dev.jsonl",
        (find_mlqe,),
    ),
}


def load(
    name_or_path: str | Path,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    label_names: Sequence[str] | None = None,
    tolerant: bool = False,
) -> Dataset:
    """Load a data set of texts by name, file, folder of splits, or hub id (`hub:owner/name[/config][@revision]`).

    A registered name may have options (`reviews-generated:seed=7`). A slice of any data set can be loaded
    (`reviews:slice=hard,rows=3+7-9`). Files are CSV, TSV, JSONL or parquet.

    `columns` maps text, text_pair, label, rationale, rationale_pair, answer and foil to columns. `limit` is the maximum
    number of examples. The default split is validation, else test, else train.
    `tolerant`: skip invalid rows and report why; otherwise an invalid row is an error.
    """
    request = LoadRequest(split, columns, limit, label_names, tolerant=tolerant)
    name = str(name_or_path)
    access.check_dataset(name)
    whole, part = split_slice(name)
    if part:
        read = partial(load, whole, split, columns, None, label_names, tolerant)
        return load_slice(name, part, read, limit)
    if registered := registered_name(name):
        if columns or label_names:
            raise UsageError(
                f"columns: {registered} has its own columns and label names. Leave columns and label_names out."
            )
        return replace(_LOADERS[registered](replace(request, options=parse_options(name))), id=name)
    if not name:
        raise unknown("dataset", name, _LOADERS)
    if name.startswith(HUB_PREFIX):
        return _from_shards(find_hub_shards(name.removeprefix(HUB_PREFIX), split), request)
    try:
        return _from_path(Path(name_or_path), request)
    except OSError as error:
        raise ExegesisError(f"dataset: {excerpt(name)} cannot be read ({error.strerror}). Check the path.") from None


def embedded_file(name: str) -> Path:
    """Return the path of an embedded data set's file."""
    return Path(__file__).resolve().parent / f"{name.replace('-', '_')}.jsonl"


def _load_embedded(name: str, request: LoadRequest) -> Dataset:
    """Load a data set that is a single file of the project."""
    reject_options(name, request.options)
    reject_split(name, request.split)
    path, card = embedded_file(name), read_card(name)
    data = _from_file(path, LoadRequest(limit=request.limit, label_names=EMBEDDED[name]))
    return replace(data, title=card.title, card=card, revision=content_revision([path], {}))


def _load_sst2(request: LoadRequest) -> Dataset:
    """Load SST-2 from local TSV files (`sentence<TAB>label`), else from the hub, where the test split is unlabeled."""
    reject_options("sst2", request.options)
    split = choose_split(request.split, SST2_FILES, names=("train", "dev", "test"))
    card, folder = read_card("sst2"), data_root() / "sst2"
    request = replace(request, split=split, columns=SST2_COLUMNS, label_names=SENTIMENT_LABELS)
    path = folder / SST2_FILES[split]
    if path.is_file():
        data = _from_file(path, request)
    else:
        try:
            shards = find_hub_shards(SST2_HUB_ID, split)
        except ExegesisError as error:
            raise ExegesisError(
                f"sst2: found neither in {folder} nor on the hub ({error}) "
                f"Put train.tsv and dev.tsv there, or set EXEGESIS_DATA to the folder that holds sst2/."
            ) from None
        data = _from_shards(shards, request)
    return replace(data, title=card.title, card=card, split="dev" if split == "validation" else split)


def _load_release(name: str, request: LoadRequest) -> Dataset:
    """Load a published data set from `EXEGESIS_DATA`, else its copy on the hub."""
    release, finders = RELEASES[name], RELEASES[name].finders
    card = read_card(name)
    if finders == (find_mlqe,):
        params = from_mapping(MlqeParams, request.options, name)
        finders = (lambda path: find_mlqe(path, params.pair, params.score),)
    elif finders == (find_eraser,):
        words = from_mapping(EraserParams, request.options, name).words
        finders = (lambda path: find_eraser(path, words),)
    else:
        reject_options(name, request.options)
    matches = (finder(data_root() / folder) for folder in release.folders for finder in finders)
    released = next((match for match in matches if match is not None), None)
    if released is not None:
        data = _from_released(name, released, request)
    else:
        data = _from_hub_copy(name, release, request)
    return replace(data, title=card.title, card=card)


def _from_hub_copy(name: str, release: Release, request: LoadRequest) -> Dataset:
    if release.hub is None:
        raise _missing(name, release, f"is not in {data_root()}.")
    split = release.hub.aliases.get(request.split or "", request.split)
    try:
        shards = find_hub_shards(release.hub.id, split)
    except UsageError:
        raise
    except ExegesisError as error:
        raise _missing(name, release, f"found neither in {data_root()} nor on the hub ({error})") from None
    return _from_shards(shards, replace(request, columns=release.hub.columns, label_names=release.hub.labels))


def _missing(name: str, release: Release, where: str) -> ExegesisError:
    step = f"Put a folder {release.folders[0]} there ({release.content}), or set EXEGESIS_DATA to the folder"
    return ExegesisError(f"{name}: {where} {step} that holds it.")


register("reviews")(partial(_load_embedded, "reviews"))
register("reviews-generated")(load_generated_reviews)
register("reviews-marked")(load_marked_reviews)
register("reviews-written")(partial(_load_embedded, "reviews-written"))
register("nli")(partial(_load_embedded, "nli"))
register("nli-generated")(load_generated_pairs)
register("quality")(load_quality)
for _name in PROMPT_GRAMMARS:
    register(_name)(partial(load_prompts, _name))
register("sst2")(_load_sst2)
for _name in RELEASES:
    register(_name)(partial(_load_release, _name))


def find_release(path: Path) -> ReleasedDataset | None:
    """Recognize a folder or file in a released format; None if it is in no such format."""
    finders = dict.fromkeys(finder for release in RELEASES.values() for finder in release.finders)
    return next((released for finder in finders if (released := finder(path)) is not None), None)


def _from_path(path: Path, request: LoadRequest) -> Dataset:
    if not request.columns and (released := find_release(path)):
        return _from_released(str(path), released, request)
    if path.is_dir():
        return _from_folder(path, request)
    if not path.exists() and path.suffix.lower() not in (*TABLE_SUFFIXES, ".parquet"):
        hint = f" For the hub write hub:{path}." if len(path.parts) == 2 else ""
        raise UsageError(f"{unknown('dataset', str(path), _LOADERS)}{hint} Or name a CSV, TSV or JSONL file.")
    if path.suffix.lower() == ".parquet" and path.is_file():
        return _from_shards(find_file_shards(path, request.split), request)
    reject_split(path.name, request.split)
    return _from_file(path, request)


def _from_released(name: str, released: ReleasedDataset, request: LoadRequest) -> Dataset:
    split = choose_split(request.split, released.splits, aliases=SPLIT_ALIASES | dict(released.aliases))
    content = released.splits[split](request.limit)
    label_names = request.label_names or content.labels
    mapped = map_rows(name, content.rows, None, label_names, skip_empty=True, tolerant=request.tolerant)
    card = external_card(Path(name).name, f"the local files of {Path(name).name}", f"{len(mapped.examples):,} examples")
    revision = content_revision(content.files, {**request.revision_parts(), **request.options})
    return _make_dataset(name, mapped, card, revision, request, split)


def _from_folder(folder: Path, request: LoadRequest) -> Dataset:
    """Load a folder of `train.csv`, `dev.tsv`, `test.jsonl` and so on, or of parquet files as on the hub."""
    tables = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in TABLE_SUFFIXES}
    if not tables:
        return _from_shards(find_folder_shards(folder, request.split), request)
    by_split = {SPLIT_ALIASES.get(stem, stem): path for stem, path in tables.items()}
    split = choose_split(request.split, by_split, names=tables)
    return replace(_from_file(by_split[split], request), id=str(folder), title=folder.name, split=split)


def _from_file(path: Path, request: LoadRequest) -> Dataset:
    errors: RowErrors | None = {} if request.tolerant else None
    rows = read_table(path, errors)
    mapped = map_rows(path.name, rows, request.columns, request.label_names, tolerant=request.tolerant, errors=errors)
    card = external_card(path.name, f"the local file {path.name}", f"{len(mapped.examples):,} examples")
    revision = content_revision([path], request.revision_parts())
    return _make_dataset(str(path), mapped, card, revision, request, "all")


def _from_shards(shards: ParquetShards, request: LoadRequest) -> Dataset:
    label = (request.columns or {}).get("label", "label")
    names = request.label_names or read_class_names(shards).get(label)
    # Without names, the classes are those that occur in the split, so all of it must be read.
    rows = read_shards(shards, request.limit if names else None)
    rows = _drop_unknown_labels(rows, label) if names else rows
    mapped = map_rows(shards.source, rows, request.columns, names, skip_empty=True, tolerant=request.tolerant)
    card = external_card(shards.source, shards.source, f"{len(mapped.examples):,} examples read of {shards.split}")
    parts = {"revision": shards.revision, "files": list(shards.files), **request.revision_parts()}
    return _make_dataset(shards.source, mapped, card, content_revision([], parts), request, shards.split)


def _drop_unknown_labels(rows: list[TableRow], label: str) -> list[TableRow]:
    """Replace -1, the hub's label of unlabeled rows (test splits of GLUE), by None."""
    return [(where, {**row, label: None} if row.get(label) == -1 else row) for where, row in rows]


def _make_dataset(
    name: str, mapped: MappedRows, card: DatasetCard, revision: str, request: LoadRequest, split: str
) -> Dataset:
    if not mapped.examples:
        raise ExegesisError(f"{name}: has no examples.")
    notes = (f"{mapped.skipped:,} rows without text were left out",) if mapped.skipped else ()
    return Dataset(
        id=name,
        title=card.title,
        task=mapped.labels.task,
        label_names=mapped.labels.names,
        examples=mapped.examples[: request.limit],
        card=card,
        revision=revision,
        split=split,
        notes=notes,
        faults=mapped.faults,
    )

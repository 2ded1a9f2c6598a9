"""Small data sets in the formats in which the large ones were released, written by hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def write_jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def imdb(root: Path) -> Path:
    """aclImdb with three reviews for training and two for test."""
    for place, text in {
        "train/pos/0_9.txt": "Bromwell High is a fine comedy.<br /><br />Really.",
        "train/pos/10_7.txt": "Not bad at all.",
        "train/neg/2_1.txt": "Dreadful.",
        "train/unsup/0_0.txt": "Nobody rated this.",
        "test/pos/0_10.txt": "I went and saw it twice.",
        "test/neg/0_2.txt": "Once again I slept.",
    }.items():
        write(root / "aclImdb" / place, text)
    return root / "aclImdb"


def mark(document: str, start: int, end: int) -> dict[str, object]:
    return {"docid": document, "start_token": start, "end_token": end, "start_sentence": 0, "end_sentence": 1}


def movies(root: Path) -> Path:
    """Two annotated reviews; the first has overlapping evidence in two groups."""
    folder = root / "movies"
    write(folder / "docs" / "posR_1.txt", "a bold , moving film .\nthe end is\tfine .\n")
    write(folder / "docs" / "negR_1.txt", "dull and flat .\n")
    query = {"query": "What is the sentiment of this review?", "query_type": None}
    first = [[mark("posR_1.txt", 1, 5)], [mark("posR_1.txt", 3, 4), mark("posR_1.txt", 9, 10)]]
    rows = [
        {"annotation_id": "posR_1.txt", "classification": "POS", "evidences": first, **query},
        {"annotation_id": "negR_1.txt", "classification": "NEG", "evidences": [[mark("negR_1.txt", 0, 1)]], **query},
    ]
    write_jsonl(folder / "train.jsonl", rows)
    write_jsonl(folder / "val.jsonl", rows[1:])
    return folder


def eraser_esnli(root: Path) -> Path:
    """One pair of each class in the layout of ERASER: all documents in one file."""
    folder = root / "esnli"
    pairs = [("a", "neutral"), ("b", "contradiction"), ("c", "entailment")]
    documents = [
        {"docid": f"{id}{side}", "document": text}
        for id, _ in pairs
        for side, text in (("_premise", "a boy runs home ."), ("_hypothesis", "the boy is fast ."))
    ]
    write_jsonl(folder / "docs.jsonl", documents)
    rows = [
        {
            "annotation_id": id, "classification": label, "docids": [f"{id}_hypothesis", f"{id}_premise"], "query": "",
            "evidences": [[mark(f"{id}_hypothesis", 3, 4)], [mark(f"{id}_premise", 2, 4)]],
        }
        for id, label in pairs
    ]  # fmt: skip
    write_jsonl(folder / "val.jsonl", rows)
    return folder


ESNLI = {
    "pairID": "1#0n",
    "gold_label": "neutral",
    "Sentence1": "Two women, one tall, sing.",
    "Sentence2": "The women are sisters.",
    "Explanation_1": "They need not be sisters.",
    "WorkerId_1": "W",
    "Sentence1_marked_1": "Two *women,* *one* tall, sing.",
    "Sentence2_marked_1": "The women are *sisters.*",
    "Sentence1_Highlighted_1": "1,2",
    "Sentence2_Highlighted_1": "3",
}


def esnli_csv(root: Path) -> Path:
    """The release: two files for training, one each for dev and test."""
    folder = root / "esnli"
    other = ESNLI | {"gold_label": "contradiction", "pairID": "2", "Sentence2": "Nobody sings.",
                     "Sentence2_marked_1": "*Nobody* sings."}  # fmt: skip
    files = {"esnli_train_1": [ESNLI], "esnli_train_2": [other], "esnli_dev": [other], "esnli_test": [ESNLI, other]}
    folder.mkdir(parents=True)
    for name, rows in files.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(ESNLI))
            writer.writeheader()
            writer.writerows(rows)
    return folder


NLI = {
    "annotator_labels": ["neutral"], "genre": "fiction", "gold_label": "neutral", "pairID": "1n", "promptID": "1",
    "sentence1": "He \"left\".", "sentence1_binary_parse": "( He left )", "sentence1_parse": "(ROOT He)",
    "sentence2": "He was sad.", "sentence2_binary_parse": "( He )", "sentence2_parse": "(ROOT He)",
}  # fmt: skip


def multinli(root: Path) -> Path:
    """The release as JSONL and, for one split, as tab-separated text too."""
    folder = root / "multinli_1.0"
    without = NLI | {"gold_label": "-"}
    for split, rows in (("train", [NLI, NLI]), ("dev_matched", [NLI, without]), ("dev_mismatched", [without])):
        write_jsonl(folder / f"multinli_1.0_{split}.jsonl", rows)
    columns = ["gold_label", "sentence1_parse", "sentence1", "sentence2", "genre"]
    lines = ["\t".join(columns), "\t".join(str(NLI[name]) for name in columns)]
    write(folder / "multinli_1.0_dev_matched.txt", "\n".join(lines) + "\n")
    write(folder / "README.txt", "read me")
    return folder


def mlqe_jsonl(root: Path) -> Path:
    """Two pairs of languages; the raw target has its punctuation clinging to the word before."""
    folder = root / "mlqe_pe"
    row = {
        "source": "He sings, badly.", "mt": "Er singt, gut.", "z_mean": -0.5, "mean": 40, "hter": 0.2, "scores": [40],
        "src_tok": "He sings , badly .", "mt_tok": "Er singt , gut .", "mt_tags": "00010", "mt_gap_tags": "000000",
        "src_tags": "00011",
    }  # fmt: skip
    write_jsonl(folder / "en-de.train.jsonl", [row, row | {"mt_tags": "00000", "src_tags": "00000", "hter": 0.0}])
    write_jsonl(folder / "en-de.dev.jsonl", [row])
    write_jsonl(folder / "ro-en.dev.jsonl", [row | {"mt": "Er singt , &quot; gut &quot; ."}])
    return folder


def mlqe_release(root: Path) -> Path:
    """The folders of the release, unpacked."""
    data = root / "mlqe-pe" / "data"
    edited = data / "post-editing" / "train" / "en-de-train"
    write(edited / "train.src", "He sings , badly .\nYes .\n")
    write(edited / "train.mt", "Er singt , gut .\nJa .\n")
    write(edited / "train.source_tags", "OK OK OK BAD OK\nOK OK\n")
    # A tag for each gap and each word in turn.
    write(edited / "train.tags", "OK OK OK OK OK OK OK BAD OK OK BAD\nOK OK OK OK OK\n")
    write(edited / "train.hter", "0.2\n0.0\n")
    header = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores"
    rows = [
        "0\tHe sings, badly.\tEr singt, gut.\t[40]\t40.0\t[-0.5]\t-0.5\t-0.1",
        "1\tYes.\tJa.\t[90]\t90\t[1]\t1.0\t0",
    ]
    write(data / "direct-assessments" / "train" / "en-de-train" / "train.ende.df.short.tsv", "\n".join([header, *rows]))
    return root / "mlqe-pe"

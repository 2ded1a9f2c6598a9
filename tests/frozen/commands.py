"""The command line: the help of every command, and of each command on small inputs its JSON, its tables as CSV, JSON
and Parquet, what people read (numbers left out), how it ends, and what it leaves in the cache.

Seconds, dates, folders, versions and amounts of memory are left out.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet

from tests.frozen import doors
from tests.frozen.golden import summary
from tests.project import ROOT

TEXT = "A quiet film, never dull."
LEFT_OUT = re.compile(
    r"second|created|queued|heartbeat|started|finished|submitted|opened$|closed$|^at$|version|bytes|^free|^pid$|host"
)
NUMBER = re.compile(r"[-+\u2212]?\d[\d,.]*(e[-+\u2212]?\d+)?%?")
FEW = "lime.n_samples=32 kernel_shap.n_samples=32 smoothgrad.n_samples=2"
STEADY = "integrated_gradients.steps=fixed integrated_gradients.n_steps=4"
JSON: dict[str, str] = {
    "explain a text": f"explain --text '{TEXT}' --method all {{params}} --dtype float64",
    "explain a pair": "explain --model nli-minilm --text 'A man plays.' --text-pair 'He is silent.' --seed 3 "
    "--target 1 --method gradient,occlusion,attention_head --param attention_head.layer=2 --head 1.2=0 --head 0.1=0.5",
    "explain a picture": "explain --model digits-vit --dataset digits --index 3 --method gradient,grad_cam,lime,smat "
    "--param lime.n_samples=32 --dtype float64",
    "explain an example": "explain --dataset reviews --index 2 --method random,attention_rollout "
    "--param attention_rollout.residual=0.5",
    "heads of a text": f"heads --text '{TEXT}' --top 3 --against gradient_x_input",
    "heads of a picture": "heads --model digits-vit --dataset digits --index 3 --score entropy,distance,agreement "
    "--against attention_mean --query 1 --top 2",
    "generated text": "generate --model tiny-llama --prompt 'When Anna and Paul went to the park, Paul gave a ring to' "
    "--tokens 2 --top 4",
    "similarity of two texts": "similarity --text 'A man plays a guitar.' --text-pair 'He makes music.' --top 3",
    "significance of words": f"significance --text '{TEXT}' --draws 19 --rate 0.2 --alternative two-sided --control by",
    "significance beside words of a data set": f"significance --text '{TEXT}' --draws 9 --words-from reviews --seed 2",
    "counterfactuals of a text": "counterfactuals --model gpt2-context --text 'The food was cold and slow.' "
    "--results 2 --candidates 3",
    "counterfactuals of a picture": "counterfactuals --model scenes-marked-vit --dataset scenes-marked --index 0",
    "compare on a text": f"compare --column lime,n_samples=32@reviews-minilm --column gradient@bert-reviews "
    f"--text '{TEXT}' --measure top_k --percent 25 --order size --unit token",
    "compare on a picture": "compare --column gradient@digits-vit --column occlusion@digits-vit "
    "--dataset digits --index 3",
    "compare on a data set": "compare --column gradient@reviews-minilm --column attention_mean@bert-reviews "
    "--dataset reviews --examples 2",
    "models": "models",
    "a model": "models digits-vit",
    "data sets": "datasets",
    "a data set": "datasets reviews-marked",
    "a picture set": "datasets digits --split test",
    "doctor": "doctor",
    "no jobs": "jobs list",
    "run a job": "jobs run {job}",
    "run another job": "jobs run {evaluation} --kind evaluate",
    "jobs": "jobs list",
    "a job": "jobs show 1",
    "resume a job": "jobs resume 2",
    "cancel a job": "jobs cancel 1",
    "cache": "cache stats",
    "check the cache": "cache check",
    "prune the cache": "cache prune --max-bytes 1GB",
    "simulate": "study simulate --methods A,B,C --strength 2,1,0 --annotators 4 --items 3 --seed 1 --placebo C",
    "simulate guesses": "study simulate --mode predict --methods A,B --strength 0.9,0.6 --annotators 4 --items 4",
    "rate": "study rate {ranks} --methods A,B,C --seed 2",
    "clear the cache": "cache clear --yes",
}
TABLES: dict[str, str] = {
    "evaluate texts": "evaluate --models reviews-minilm --dataset reviews --methods gradient,lime --examples 2 "
    "--seed 4 --metrics comprehensiveness,sufficiency,plausibility_auc,sensitivity,complexity "
    "--shares 20 --samples 2 --param lime.n_samples=32",
    "evaluate pictures": "evaluate --models digits-vit --dataset digits --methods grad_cam --examples 2 --split test "
    "--metrics comprehensiveness,complexity --shares 50 --removal zero",
    "evaluate marked texts": "evaluate --models bert-marked --dataset reviews-marked --methods occlusion --examples 2 "
    "--metrics gt_overlap,mean_rank,recall_at_k --k 3 --unit token --dtype float64",
    "behavior": "behavior --models bert-reviews --dataset reviews --methods gradient_x_input --examples 1 "
    "--edit delete --margin 0 --seed 4",
    "behavior of a feature": "behavior --models bert-marked --dataset reviews-marked --methods gradient_l2 "
    "--task feature --examples 2",
    "randomize": "randomize --models digits-vit --dataset digits --methods gradient,attention_rollout --examples 2 "
    "--seeds 1 --head --split test --mode cascading",
    "corpus": "corpus --models reviews-minilm --dataset reviews --methods gradient_l2 --examples 4 --least 2",
    "rules": "rules --models reviews-minilm --dataset reviews --rule 'negation -> negative,\"not\" -> negative' "
    "--methods gradient_x_input --examples 8",
    "rules of pictures": "rules --models scenes-vit --dataset scenes --rule 'object -> any' --methods gradient_x_input "
    "--examples 4",
    "attack": "attack --models reviews-minilm --dataset reviews --methods gradient_x_input --examples 2 --steps 2 "
    "--starts 1 --transfer attention_mean --objective constrained --dtype float64",
    "attack pixels": "attack --models digits-vit --dataset digits --methods gradient --index 3 --steps 2 --starts 1 "
    "--place pixels --epsilon 8/255 --objective unconstrained",
    "scaffold": "scaffold --teacher digits-vit --dataset digits --base bases/vit-narrow --settings none,smat "
    "--train-sizes 8 --seeds 0 --epochs 1 --batch-size 4 --held-out 4 --validation 4 --test 6",
}
REFUSED = """
explain --method nothing --text x
explain
explain --text x --dataset reviews
explain --text x --model no-such-model
explain --text x --target no-such-class --method lime
explain --text x --param lime.n_samples=0 --method lime
explain --text x --param n_samples --method lime
explain --text x --head 1=0 --method lime
explain --text x --head 99.1=0 --method lime
explain --text x --seed -1 --method lime
explain --text x --dtype int8 --method lime
explain --dataset reviews --index 10000 --method lime
explain --dataset no-such-set --index 0
explain --image /no/such/picture.png --model digits-vit
explain --text x --model digits-vit
heads --text x --score nothing
heads --text x --against nothing
heads --text x --top 0
generate
generate --prompt x --tokens 0
generate --prompt x --tokens 65
generate --prompt x --seed 1 --temperature 0
generate --prompt x --method nothing
generate --prompt x --model reviews-minilm
similarity --text x
similarity --text x --text-pair y --top 0
significance
significance --text x --rate 2
significance --text x --draws 0
significance --text x --control nothing
significance --text x --simulate
corpus --dataset reviews --least 1
corpus --dataset no-such-set
counterfactuals --text x --sources guess
counterfactuals --text x --beam 0
counterfactuals --text x --threshold y
counterfactuals --text x --threshold 1
counterfactuals --text x --target nothing
counterfactuals --text ?
compare --text x --column lime@reviews-minilm
compare --text x --column lime --column random
compare --text x --column lime@a --column random@b --measure nothing
evaluate --dataset no-such-set --methods lime
evaluate --dataset reviews
evaluate --methods lime
evaluate --dataset reviews --methods lime --examples 0
evaluate --dataset reviews --methods lime --out rows.txt
evaluate --dataset reviews --methods lime --metrics nothing
evaluate --dataset reviews --methods lime --executor abacus
behavior --dataset reviews --task nothing
behavior --dataset reviews --size 9
behavior --models scenes-vit --dataset reviews
randomize --dataset reviews --mode sideways
randomize --dataset reviews --methods random
rules --dataset reviews
rules --dataset reviews --rule good
rules --dataset reviews --rule '"good" -> fine'
rules --dataset reviews --rule 'object -> any'
slide --dataset scenes --index 0 --window 9
slide --dataset reviews --index 0
attack --dataset reviews --methods lime
attack --dataset reviews --methods gradient --epsilon x
scaffold --dataset reviews --settings nothing
scaffold --preset nothing
reproduce nothing
reproduce thesis --claims nothing
reproduce smat --scale huge
pretrain --base nothing --dataset reviews --out x
train --base nothing --dataset reviews --out x
models no-such-model
datasets no-such-set
jobs show 99
jobs show x
jobs run /no/such/file.json
jobs resume 99
cache prune --max-bytes lots
study show 99
study create --set items.count=x
study create --preset nothing
study simulate --methods A
study rate /no/such/file.csv
no-such-command
explain --no-such-option
""".strip().splitlines()


def parts() -> dict[str, Callable[[], Any]]:
    """Each golden file of this subject."""
    return {
        "help": lambda: {" ".join(path) or "exegesis": _help(path) for path in doors.commands()},
        "printed": _printed,
        "tables": lambda: {name: _table(name) for name in TABLES},
        "refused_commands": lambda: {line: _refusal(line) for line in REFUSED},
    }


def _help(path: list[str]) -> list[str]:
    return doors.run([*path, "--help"]).out.splitlines()


def _printed() -> dict[str, Any]:
    """All in one home and in one order: jobs are numbered, the cache fills."""
    with _folder() as folder:
        return {name: _json_of(line, folder) for name, line in JSON.items()}


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="exegesis-frozen-") as name:
        folder = Path(name)
        spec = {"model": "reviews-minilm", "methods": ["gradient"], "examples": [{"text": TEXT}, {"text": "Dull."}]}
        (folder / "job.json").write_text(json.dumps(spec))
        evaluation = {"models": ["digits-vit"], "dataset": "digits", "methods": ["gradient"], "examples": 1}
        (folder / "evaluation.json").write_text(json.dumps({**evaluation, "metrics": ["complexity"], "split": "test"}))
        (folder / "ranks.csv").write_text('ranks\n"1,2,3"\n"1,1,3"\n"2,1,3"\n')
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _json_of(line: str, folder: Path) -> dict[str, Any]:
    arguments = _arguments(line, folder)
    with doors.key_parts() as formed:
        machine = doors.run([*arguments, "--json"])
    people = doors.run(arguments)
    assert machine.code == 0, (line, machine.err)
    found = {"command": line, "json": scrubbed(machine.json, folder)}
    if line == "doctor":
        return {**found, "json": shape(machine.json)}
    return {**found, "text": _words(people.out, folder), "kept": _kept(formed)}


def _table(name: str) -> dict[str, Any]:
    """The same rows in three kinds of files, and what is printed."""
    with _folder() as folder:
        arguments = _arguments(TABLES[name], folder)
        with doors.key_parts() as formed:
            machine = doors.run([*arguments, "--out", "rows.parquet", "--json"])
        people = [doors.run([*arguments, "--out", f"rows.{ending}"]) for ending in ("csv", "json")]
        assert [one.code for one in (machine, *people)] == [0, 0, 0], (machine.err, [one.err for one in people])
        table = pyarrow.parquet.read_table(folder / "rows.parquet")
        rows = scrubbed(table.to_pylist(), folder)
        with open("rows.csv", encoding="utf-8", newline="") as file:
            sheet = list(csv.reader(file))
        plain = scrubbed(json.loads((folder / "rows.json").read_text(encoding="utf-8")), folder)
        return {
            "command": TABLES[name],
            "schema": {field.name: str(field.type) for field in table.schema},
            "rows": [[_rounded(one) for one in row.values()] for row in rows],
            "csv": {"columns": sheet[0], "rows": len(sheet) - 1, "first": _row(sheet)},
            "json_file": "the same rows" if plain == rows else plain,
            "json": scrubbed(machine.json, folder),
            "text": _words(people[0].out, folder),
            "kept": _kept(formed),
        }


def _row(sheet: list[list[str]]) -> list[Any]:
    """The first row of a sheet, numbers as numbers; those that are left out are not there."""
    named = zip(sheet[0], sheet[1], strict=True)
    return [_number(cell) for name, cell in named if not LEFT_OUT.search(name)]


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _arguments(line: str, folder: Path) -> list[str]:
    params = " ".join(f"--param {one}" for one in f"{FEW} {STEADY}".split())
    places = {name: str(folder / f"{name}.json") for name in ("job", "evaluation")}
    return shlex.split(line.format(params=params, ranks=folder / "ranks.csv", **places))


def scrubbed(value: Any, folder: Path) -> Any:
    """Without seconds, dates and the like, and without the folder's name."""
    if isinstance(value, dict):
        return {name: None if _left_out(name, one) else scrubbed(one, folder) for name, one in value.items()}
    if isinstance(value, list):
        return summary([scrubbed(one, folder) for one in value], 400)
    return _without(value, folder) if isinstance(value, str) else value


def _left_out(name: str, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return name == "host" or (number and bool(LEFT_OUT.search(name)))


def _without(text: str, folder: Path) -> str:
    for place in (str(folder), os.path.realpath(folder), os.environ["EXEGESIS_HOME"], str(ROOT)):
        text = text.replace(place, "(folder)")
    return text


def _words(text: str, folder: Path) -> list[str]:
    """What people read, without the numbers and without what pads columns."""
    lines = [re.sub(r"[\s\u2500\u2501]+", " ", NUMBER.sub("#", _without(line, folder))) for line in text.splitlines()]
    return summary([line.strip() for line in lines if line.strip()], 60)


def _kept(formed: dict[str, Any]) -> dict[str, Any]:
    """By kind, the keys that are now in the cache, and how a record of that kind is built."""
    kinds: dict[str, list[str]] = {}
    for key, parts in formed.items():
        kinds.setdefault(str(parts.get("kind", "other")), []).append(key)
    found = {}
    for kind, keys in sorted(kinds.items()):
        kept = sorted(key for key in keys if doors.is_kept(key))
        if kept:
            found[kind] = {"keys": summary(kept, 3), "record": _record(kept[0])}
    return found


def _record(key: str) -> Any:
    meta, arrays = doors.kept(key)
    return {"meta": shape(meta), "arrays": {name: f"{one.dtype} {list(one.shape)}" for name, one in arrays.items()}}


def shape(value: Any) -> Any:
    """A plain value's build: names and types."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [shape(value[0])] if value else []
    return type(value).__name__


def _refusal(line: str) -> list[Any]:
    with _folder() as folder:
        done = doors.run(shlex.split(line))
        said = done.err.strip().splitlines()
        return [done.code, doors.scrubbed(_without(said[-1] if said else "", folder)), _words(done.out, folder)]

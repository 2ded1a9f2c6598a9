"""What is declared of SMaT: whole, told in words, bound to a digest; and the report that is written of it.

On real data too, from the fine-tuning of a teacher to the verdict.
"""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from engine import jobs
from engine.errors import UsageError
from engine.models import catalog
from engine.reproduction import smat
from engine.reproduction.claims import FOLDER, Claim, declaration, load_declaration
from engine.reproduction.documents import (
    Examination,
    FailureReason,
    claims_csv,
    examination_text,
    markdown,
    read_examination,
    tables_csv,
)
from engine.reproduction.papers import EMBEDDED, TASKS, TOPICS
from engine.reproduction.report import ClaimOutcome, ModelSummary, report_from_plain
from engine.reproduction.run import cached_report, reproduce, smat_tasks
from engine.reproduction.smat import SmatQuery, named_sizes
from engine.reproduction.wording import statistic_text, sum_text
from engine.scaffold import presets
from engine.scaffold.plan import NONE, NORMALIZATIONS, SETTINGS, SMAT, Recipe
from engine.scaffold.presets import DATA_PLANS
from tests.tiny import save_checkpoint
from tests.unit.reproduction.stand_ins import PHRASES
from tests.unit.reproduction.student_reports import report_of

pytestmark = pytest.mark.usefixtures("home")

REAL_DIGEST = "91a92a524c749a711cd6811d4fd1df6b1afd4938c90d62b73664793a30233461"
"""Of the claims on real data."""
WITH_15_SEEDS = "2eff63119e192dc7d2975d163f9fbd0442bc916cd9b1f3c223eae7bfe39d8676"
WITH_FIVE_SEEDS = "25882a87284f777a2ac265cc49421539b0d0e48c1547e8b1c63c835c8f5431a9"
"""Of the same, while each setting had so many seeds; with 15, any difference counted, however small."""
EVERY = {task: {"small": 1, "middle": 2, "large": 3} for task in TASKS}


def test_every_claim_can_be_tried() -> None:
    claims = declaration("smat").select((), EVERY)
    assert len({one.id for one in claims}) == len(claims) == 48
    known = {*SETTINGS, "best_layer", "best_head", "active_heads", "inactive_heads"}
    for one in claims:
        assert bool(one.entries) != bool(one.people), one.id
        assert statistic_text(one)
        for contrast in one.contrasts:
            assert sum_text(contrast, EMBEDDED, EVERY)
            assert {term.setting for term in contrast.terms} <= known
            assert {term.normalization for term in contrast.terms} <= set(NORMALIZATIONS)
    assert {one.section.partition(",")[0] for one in claims} == {"5.1", "5.2", "5.3", "6"}


def test_numbers_are_named_by_what_a_claim_goes_through() -> None:
    [one] = declaration("smat").select(("text-smat-static",), EVERY)
    assert len(one.entries) == 15
    assert one.contrasts[0].name == "1 examples, gradient L2 norm"
    first = "simulability(SMaT; texts, 1 examples) − simulability(gradient L2 norm; texts, 1 examples)"
    assert sum_text(one.contrasts[0], EMBEDDED, EVERY) == first
    [either] = declaration("smat").select(("heads-layers",), EVERY)
    assert [len(entry) for entry in either.entries] == [2], "in either direction, and never with itself"


def test_sizes_have_names_by_their_order() -> None:
    assert named_sizes((40, 10, 20)) == {"small": 10, "middle": 20, "large": 40}
    assert named_sizes((9,)) == {"middle": 9}
    assert named_sizes((1, 2, 3, 4)) == {"small": 1, "middle": 3, "large": 4}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (SmatQuery(scale="huge"), "scale: unknown name 'huge'"),
        (SmatQuery(claims=("nothing",)), "claims: unknown name 'nothing'"),
        (SmatQuery(examples=1), "examples: must be a whole number of at least 2"),
        (SmatQuery(seed=-1), "seed: must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(query: SmatQuery, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        query.check()


def test_the_full_scale_says_how_its_teachers_are_made() -> None:
    query = SmatQuery("full")
    assert all(isinstance(why, str) and "Train it with: exegesis train" in why for why in query.tasks.values())
    assert len(query.selected_claims) == 48


def test_a_report_is_written_and_read_again() -> None:
    query = SmatQuery()
    report = report_of(query)
    assert report_from_plain(json.loads(json.dumps(report.as_plain()))) == report
    by_id = {one.id: one.verdict for one in report.outcomes}
    assert by_id["text-smat-baseline"] == "holds"
    assert by_id["text-gradients-more"] == "does not hold", "each setting is above the one before it"
    assert by_id["text-auc-smat"] == "not run"
    asked = Examination({"text-gradients-more": FailureReason("The scale.", "Because.")})
    text = markdown(report, query, examination=asked)
    assert text.splitlines()[0].endswith(f"claims {query.declaration.digest}")
    assert "Why it fails here: The scale. Because." in text
    assert "Why it fails here: not examined." in text
    assert "## Simulability (tables 1, 3, 5 and 7)" in text
    assert "above no explanations" in text
    rows = list(csv.DictReader(io.StringIO(tables_csv(report))))
    assert {row["table"] for row in rows} == {"simulability", "active_share", "depth"}
    claims = list(csv.DictReader(io.StringIO(claims_csv(report, query.selected_claims))))
    assert {row["claim"] for row in claims} == set(by_id)


def test_what_was_examined_is_bound_to_what_was_declared(tmp_path: Path) -> None:
    file, declared = tmp_path / "examined.json", declaration("smat")
    assert read_examination(file, declared, "d") == Examination()
    plain = {"digest": "d", "claims": {"heads-few": {"reason": "Scale.", "how": "So."}}}
    others = {
        "which": "seeds 1 and 2",
        "how": "By a command.",
        "verdicts": {"heads-few": ["holds", "undecided"]},
        "overall": {"heads-few": "undecided"},
    }
    file.write_text(json.dumps({**plain, "trainings": others}), encoding="utf-8")
    reasons = {"heads-few": FailureReason("Scale.", "So.")}
    verdicts, overall = {"heads-few": ("holds", "undecided")}, {"heads-few": "undecided"}
    examination = Examination(reasons, verdicts, "seeds 1 and 2", "By a command.", overall)  # type: ignore[arg-type]
    assert read_examination(file, declared, "d") == examination
    assert read_examination(file, declared, "other") == Examination()
    trained = (
        "With other trainings of its models (seeds 1 and 2): holds, undecided. "
        "Over all 3 trainings and the examples: undecided."
    )
    for verdict, lead in (("holds", "Examined further"), ("does not hold", "Why it fails here")):
        outcome = ClaimOutcome("heads-few", verdict)  # type: ignore[arg-type]
        assert examination_text(outcome, examination) == f"{lead}: Scale. So. {trained}"
    assert examination_text(ClaimOutcome("heads-few", "undecided"), examination) == trained
    for strange in (
        {"claims": {"none": {"reason": "", "how": ""}}},
        {"trainings": {**others, "verdicts": {"none": []}}},
    ):
        file.write_text(json.dumps({**plain, **strange}), encoding="utf-8")
        with pytest.raises(UsageError, match="none is not a claim of"):
            read_examination(file, declared, "d")
    for broken in ([], {**plain, "trainings": {}}):
        file.write_text(json.dumps(broken), encoding="utf-8")
        with pytest.raises(UsageError, match="must be an object of digest and claims"):
            read_examination(file, declared, "d")


REAL = {claim.id: claim for claim in declaration("smat-data").select((), EVERY)}
TAUGHT_HERE = {"simulability", "active_share"}


def test_claims_on_real_data_were_not_moved_since_they_were_declared(tmp_path: Path) -> None:
    assert declaration("smat-data").digest == REAL_DIGEST
    plain = json.loads((FOLDER / TOPICS["smat-data"].declaration).read_text(encoding="utf-8"))
    plain["revised"], revision = plain["revised"].split(" Revised a third time")
    assert revision.endswith(f"Without this revision the digest is {WITH_15_SEEDS}.")
    assert plain["seeds"].pop("paper") == 5
    (tmp_path / "with_15_seeds.json").write_text(json.dumps(plain), encoding="utf-8")
    assert load_declaration(tmp_path / "with_15_seeds.json", "smat-data").digest == WITH_15_SEEDS
    plain["revised"], revision = plain["revised"].split(" Revised a second time")
    assert revision.endswith(f"Without this revision the digest is {WITH_FIVE_SEEDS}.")
    (tmp_path / "with_five_seeds.json").write_text(json.dumps(plain), encoding="utf-8")
    assert load_declaration(tmp_path / "with_five_seeds.json", "smat-data").digest == WITH_FIVE_SEEDS


@pytest.mark.parametrize("claim", REAL.values(), ids=REAL)
def test_a_claim_on_real_data_is_one_of_the_paper(claim: Claim) -> None:
    name = claim.id.removeprefix("real-")
    pair = next((one for one in smat.TEACHERS if name.startswith(one)), "")
    task = "regression" if pair else "image"
    [known] = declaration("smat").select((name.replace(pair, task) if pair else name,), EVERY)
    assert (claim.rule, claim.bounds, claim.section) == (known.rule, known.bounds, known.section)

    def compared(one: Claim) -> set[object]:
        return {
            tuple((t.times, task if t.task == pair else t.task, t.metric, t.setting, t.side) for t in contrast.terms)
            for contrast in one.contrasts
        }

    if name != "heads-few":
        assert compared(claim) <= compared(known)
    taught = {term.setting for term in claim.terms if term.metric in TAUGHT_HERE}
    assert taught <= set(DATA_PLANS["image"].settings)


def test_real_data_have_a_teacher_for_each_language_pair(tmp_path: Path) -> None:
    query = SmatQuery("data", folder=str(tmp_path))
    query.check()
    assert query.command() == "exegesis reproduce smat --scale data --examples 150 --seed 0"
    assert [task for task, _ in query.keys] == list(DATA_PLANS)
    first = query.pending_fine_tunings()[0].config.command()
    assert first.startswith(f"exegesis train --base bases/bert --dataset mlqe-pe:pair=en-de --out {tmp_path}/models/")
    assert len(query.pending_fine_tunings()) == 6, "also of pairs that have no students"
    assert smat_tasks(query.as_plain()) == []
    some = SmatQuery("data", claims=("real-ru-en-l2",), places={"bert-ru-en": "mine"})
    assert (some.pairs, some.fine_tunings()) == (("ru-en",), ())
    plan = some.plan(("ru-en", "sparsemax"))
    assert not isinstance(plan, str)
    assert (plan.teacher, plan.dataset, plan.base) == ("mine", "mlqe-pe:pair=ru-en", "bases/bert")
    with pytest.raises(UsageError, match="scale: unknown name 'huge'"):
        SmatQuery("huge").check()


def test_real_data_run_end_to_end_on_stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A teacher is fine-tuned, judged on rows that it did not learn from, and taught to students; then the verdict."""
    draw, words = random.Random(0), " ".join(PHRASES).split()
    (tmp_path / "pairs").mkdir()
    for split, count in (("train", 60), ("dev", 9)):
        texts = [[" ".join(draw.choices(words, k=5)) for _ in range(2)] for _ in range(count)]
        rows = [{"text": one, "text_pair": other, "label": draw.random()} for one, other in texts]
        (tmp_path / "pairs" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    recipe = Recipe(epochs=1, held_out=8, validation=8, test=8)
    small = replace(DATA_PLANS["ru-en"], settings=(NONE, SMAT), train_sizes=(16,), seeds=(0, 1, 2), recipe=recipe)
    monkeypatch.setattr(presets, "DATA_PLANS", {"ru-en": small})
    monkeypatch.setattr(smat, "TEACHER_TRAINING", (("epochs", 1), ("held_out", 8)))
    monkeypatch.setattr(ModelSummary, "unlearned", False)
    places = {
        "bases/bert": str(save_checkpoint("bert", tmp_path / "base")),
        smat.pair_data("ru-en"): str(tmp_path / "pairs"),
    }
    query = SmatQuery("data", 2, claims=("real-ru-en-smat-baseline",), places=places, folder=str(tmp_path / "made"))
    job = jobs.run_now(jobs.create("reproduce_smat", query.as_plain()))
    assert (job.state, job.error, job.total) == ("done", "", 3), "the teacher, its students, the verdict"
    assert query.pending_fine_tunings() == ()
    report = cached_report(query)
    assert report is not None
    [teacher], [outcome] = report.models, report.outcomes
    assert (teacher.name, teacher.n) == ("bert-ru-en", 9)
    assert teacher.revision == catalog.revision(str(tmp_path / "made" / "models" / "bert-ru-en"))
    assert (outcome.verdict != "not run", outcome.numbers[0].n) == (True, 3)
    again = jobs.run_now(jobs.create("reproduce_smat", query.as_plain()))
    assert (again.state, again.total) == ("done", 2 * 3 + 1), "now a unit for each student"


def test_a_teacher_that_cannot_be_trained_leaves_its_claims_out(tmp_path: Path) -> None:
    query = SmatQuery("data", claims=("real-ru-en-l2",), places={"bases/bert": "none"}, folder=str(tmp_path))
    report = reproduce(query)
    [outcome] = report.outcomes
    assert outcome.verdict == "not run"
    assert "not fine-tuned" in outcome.why

"""What a person waits for: the first map of a fresh server, the next page, the same page again, a study's ratings.

With `--before FOLDER`, a checkout of an earlier revision (`git worktree add FOLDER REVISION`), both take turns in one
run and each table has their ratio.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest import mock

import sqlalchemy as sa
from playwright.sync_api import Browser, Page

from benchmarks.harness import Limit, Measurement, Table, benchmark, scratch_folder
from benchmarks.served_pages import (
    EXAMPLES,
    FINISHED,
    TIMEOUT_MS,
    address,
    change_example,
    change_unit,
    chromium,
    example,
    fill_cache,
    open_options,
    processor_seconds,
    use_home,
    wait_for_maps,
    wait_until_idle,
)
from benchmarks.watched_server import runs, watched
from components.navigation import RESULTS, SECTIONS, PageEntry
from engine.study.database import Annotator, Item, Vote, study_database
from engine.study.simulation import RankingSimulation, simulate_rankings
from tests.browser.server import Server, running
from tests.project import ROOT
from tests.unit.study.polls import METHODS, open_study

NOW, BEFORE, RATIO = "now", "before", "now / before"
BEFORE_OPTION = {"type": Path, "metavar": "FOLDER", "help": "a checkout of an earlier revision, measured in turn"}

Steps = dict[str, float]
"""Seconds by what was waited for."""
Visits = dict[str, dict[str, list[Steps]]]
"""All measured visits by their name, then by revision."""


def checkouts(before: Path | None) -> dict[str, Path]:
    """The folder of each revision."""
    return {NOW: ROOT} if before is None else {BEFORE: before.resolve(), NOW: ROOT}


def record(visits: Visits, name: str, revision: str, steps: Steps) -> None:
    visits.setdefault(name, {}).setdefault(revision, []).append(steps)


def visit_rows(visits: Visits) -> Table:
    """The medians of each visit, a row for each revision, then their ratio."""
    rows: Table = []
    for name, by_revision in visits.items():
        medians = {
            revision: {step: statistics.median(one[step] for one in own) for step in own[0]}
            for revision, own in by_revision.items()
        }
        if BEFORE in medians:
            medians[RATIO] = {step: medians[NOW][step] / seconds for step, seconds in medians[BEFORE].items()}
        rows += [{"": name, "revision": revision, **steps} for revision, steps in medians.items()]
    return rows


OWN = "Text, your own sentence"
START_PATHS = {
    "Home": "/",
    "Text, its first example": "/text",
    OWN: "/text?text=The+cellist+was+tuning+her+strings+while+everybody+coughed,+and+I+loved+it.",
    "Images, its first picture": "/images",
}
MOST_START_SECONDS = 4.0


@benchmark(
    rounds=3,
    page={"choices": list(START_PATHS), "action": "append", "help": "this one only (may be repeated)"},
    before=BEFORE_OPTION,
)
def first_heatmap(rounds: int, page: list[str] | None, before: Path | None) -> Measurement:
    """From the start of the server to the first heatmap.

    Each round starts a fresh server with an empty home, as `exegesis app` does, and opens one page in a Chromium that
    is running already. Seconds since the server was started, until the server answers, until the page's heading, its
    first map and all its maps are seen. `cpu`: what the server used until the first map.
    """
    visits: Visits = {}
    with chromium() as browser:
        for _ in range(rounds):
            for name in page or START_PATHS:
                for revision, root in checkouts(before).items():
                    record(visits, name, revision, _time_start(browser, root, START_PATHS[name]))
    own = visits.get(OWN, {}).get(NOW, [])
    first = statistics.median(one["first map"] for one in own) if own else 0.0
    return Measurement(
        {"From the start of the server, s, medians": visit_rows(visits)},
        [Limit("first map of your own sentence", first, MOST_START_SECONDS, "s")] if own else [],
    )


def _time_start(browser: Browser, root: Path, path: str) -> Steps:
    """One fresh server, one page."""
    with scratch_folder() as folder:
        begun = time.perf_counter()
        with running(folder, root=root) as server:
            steps = {"server": time.perf_counter() - begun}
            page = browser.new_page()
            page.goto(server.url + path, wait_until="commit")
            page.get_by_role("heading", level=1).first.wait_for(timeout=TIMEOUT_MS)
            steps["heading"] = time.perf_counter() - begun
            page.locator(".xg-map, .xg-patches[data-v]").first.wait_for(timeout=TIMEOUT_MS)
            steps["first map"] = time.perf_counter() - begun
            used = processor_seconds(server.process)
            page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)
            steps["all maps"] = time.perf_counter() - begun
            page.close()
    return {**steps, "cpu": used}


MOST_SWITCH_SECONDS = 1.0


@benchmark(rounds=3, before=BEFORE_OPTION)
def page_switches(rounds: int, before: Path | None) -> Measurement:
    """From a click in the navigation to the page, with everything cached.

    A real server with an empty home, a real Chromium; all pages in turn, from page to page. Seconds until the heading
    is there and the script has ended; `cpu`: what the server used for it. The first visit of each page imports what it
    needs and is a table of its own.
    """
    first, later = Visits(), Visits()
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        opened = {}
        for revision, root in checkouts(before).items():
            server = stack.enter_context(running(stack.enter_context(scratch_folder()), root=root))
            page = browser.new_page()
            page.goto(server.url)
            page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)
            wait_until_idle(server.process)
            opened[revision] = server, page
        for visits in (first, *[later] * rounds):
            for menu, entry in [(menu, entry) for menu, entries in SECTIONS.items() for entry in entries]:
                for revision, (server, page) in opened.items() if not entry.alone else ():
                    record(visits, entry.title, revision, _switch(server, page, menu, entry))
    medians = {title: statistics.median(one["s"] for one in own[NOW]) for title, own in later.items()}
    slowest = max(medians, key=medians.__getitem__)
    return Measurement(
        {"First visit, s": visit_rows(first), "From a click in the navigation, s, medians": visit_rows(later)},
        [Limit(f"median of the slowest page, {slowest}", medians[slowest], MOST_SWITCH_SECONDS, "s")],
    )


def _switch(server: Server, page: Page, menu: str, entry: PageEntry) -> Steps:
    """A switch to the page of that menu."""
    navigation = page.get_by_role("banner").get_by_role("navigation")
    if menu:
        navigation.get_by_role("button", name=menu).click()
    place = page.get_by_role("menu") if menu else navigation
    link = place.get_by_role("menuitem" if menu else "link", name=entry.title, exact=True)
    link.wait_for()
    used, begun = processor_seconds(server.process), time.perf_counter()
    link.click()
    page.get_by_role("heading", level=1, name=entry.heading, exact=True).wait_for(timeout=TIMEOUT_MS)
    page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)
    seconds = time.perf_counter() - begun
    return {"s": seconds, "cpu": processor_seconds(server.process) - used}


MOST_SCRIPT_MS, MOST_OF_BEFORE = 150, 0.5


@benchmark(rounds=20, before=BEFORE_OPTION)
def page_script(rounds: int, before: Path | None) -> Measurement:
    """Server time of the Text page with nine cached methods.

    A real server, a real Chromium. In turn the unit is changed and the example, among cached ones. Times are the
    server's, in ms: from the browser's request to the message that the script has finished. `cpu`: processor time of
    the script's thread, which a busy machine stretches little.
    """
    visits: Visits = {}
    with ExitStack() as stack:
        folder, browser = stack.enter_context(scratch_folder()), stack.enter_context(chromium())
        use_home(folder / "home")
        fill_cache(EXAMPLES)
        opened = {}
        for revision, root in checkouts(before).items():
            shutil.copytree(folder / "home", folder / revision / "home")
            server, page = stack.enter_context(watched(folder / revision, root)), browser.new_page()
            _record_runs(visits, "first visit", revision, server, partial(_open_example, server, page))
            opened[revision] = server, page
        for turn in range(rounds):
            unit, index = ("word", "token")[turn % 2], EXAMPLES[(turn + 1) % len(EXAMPLES)]
            for revision, (server, page) in opened.items():
                open_options(page)
                _record_runs(visits, "unit", revision, server, partial(change_unit, page, unit))
                _record_runs(visits, "example", revision, server, partial(change_example, page, index))
    reruns = {
        revision: {step: statistics.median(one[step] for name in ("unit", "example") for one in visits[name][revision])
                   for step in ("ms", "cpu")}
        for revision in opened
    }  # fmt: skip
    limits = [Limit("median of the reruns", reruns[NOW]["ms"], MOST_SCRIPT_MS, "ms")]
    if before is not None:
        of_before = {step: ms / reruns[BEFORE][step] for step, ms in reruns[NOW].items()}
        limits += [Limit(f"reruns to before, {step}", ratio, MOST_OF_BEFORE) for step, ratio in of_before.items()]
    return Measurement({"Server time of the script, nine cached methods, medians": visit_rows(visits)}, limits)


def _open_example(server: Server, page: Page) -> None:
    page.goto(address(server, example(EXAMPLES[0])))
    wait_for_maps(page)


def _record_runs(visits: Visits, name: str, revision: str, server: Server, act: Callable[[], None]) -> None:
    """Record the runs of the script that an act leads to."""
    known = len(runs(server.log))
    act()
    for run in runs(server.log)[known:]:
        record(visits, name, revision, {"ms": 1e3 * run.seconds, "cpu": 1e3 * run.cpu})


MOST_RATING_SECONDS = 2.0
ITEMS = 20


@benchmark(votes=5000, rounds=1, before=BEFORE_OPTION)
def study_ratings(votes: int, rounds: int, before: Path | None) -> Measurement:
    """From the address of Study results to the ratings of many votes that were never rated.

    Each round starts a fresh server, which holds no ratings, and waits until it is idle. Seconds since Chromium was
    given the address: until the number of votes is seen, until the first chart of ratings, which may be of a sample of
    the votes, and until the ratings of all votes. `cpu`: what the server used until then.
    """
    visits: Visits = {}
    with scratch_folder() as folder, chromium() as browser:
        with mock.patch.dict(os.environ, EXEGESIS_HOME=str(folder / "home")):
            study = voted_study(votes)
            study_database().close()
        for turn in range(rounds):
            for revision, root in checkouts(before).items():
                own = folder / f"{revision} {turn}"
                shutil.copytree(folder / "home", own / "home")
                with running(own, root=root) as server:
                    wait_until_idle(server.process)
                    record(visits, f"{votes:,} votes", revision, _time_ratings(server, browser, study))
    first = statistics.median(one["first ratings"] for one in visits[f"{votes:,} votes"][NOW])
    return Measurement(
        {"From the address of Study results, s, medians": visit_rows(visits)},
        [Limit("first ratings", first, MOST_RATING_SECONDS, "s")],
    )


def voted_study(votes: int) -> int:
    """A study with simulated votes, written to the database at once."""
    people = votes // ITEMS
    study = open_study(items=ITEMS, practice=0, items_per_annotator=ITEMS, repeats=0)
    strength = dict(zip(METHODS, (0.5, 0.25, 0.0), strict=True))
    rankings = simulate_rankings(RankingSimulation(strength, annotators=people, items=ITEMS))
    with study_database().writing() as session:
        annotators = [
            Annotator(study=study.id, pseudonym=f"annotator {place}", code=str(place), joined=1.0, consented=1.0)
            for place in range(1, people + 1)
        ]
        session.add_all(annotators)
        session.flush()
        ids = {one.pseudonym: one.id for one in annotators}
        items = session.scalars(sa.select(Item.id).where(Item.study == study.id).order_by(Item.place)).all()
        session.add_all(
            Vote(
                study=study.id,
                annotator=ids[ranking.annotator],
                item=items[int(ranking.item.split()[1]) - 1],
                repeat=0,
                order=list(range(len(METHODS))),
                at=ranking.at,
                ranks=[ranking.ranks[method] for method in METHODS],
                seconds=10.0,
                token=str(place),
            )
            for place, ranking in enumerate(rankings)
        )
    return study.id


def _time_ratings(server: Server, browser: Browser, study: int) -> Steps:
    page, used, begun = browser.new_page(), processor_seconds(server.process), time.perf_counter()
    page.goto(f"{server.page(RESULTS.url_path).url}?study={study}", wait_until="commit")
    steps = {}
    for step, element in {
        "votes": page.get_by_text(" rankings by ").first,
        "first ratings": page.locator(".stVegaLiteChart").first,
    }.items():
        element.wait_for(timeout=TIMEOUT_MS)
        steps[step] = time.perf_counter() - begun
    page.get_by_text("Rating all ").wait_for(state="detached", timeout=TIMEOUT_MS)
    page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)
    steps["all ratings"] = time.perf_counter() - begun
    page.close()
    return {**steps, "cpu": processor_seconds(server.process) - used}

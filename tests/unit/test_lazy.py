"""Imports pause the search for garbage, and what they create is not looked through again."""

from __future__ import annotations

import gc

from engine.lazy import LazyModule, paused_collection


def test_nothing_is_collected_in_the_block_and_what_lives_is_not_looked_through_again() -> None:
    before = gc.get_freeze_count()
    with paused_collection():
        assert not gc.isenabled()
        with paused_collection():
            alive = [[number] for number in range(2000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > before + len(alive) // 2


def test_a_failed_import_leaves_collection_on() -> None:
    try:
        LazyModule("no_such_module_anywhere").attribute  # noqa: B018
    except ModuleNotFoundError:
        assert gc.isenabled()

"""Compute the shipped verdicts on texts and pictures: `python -m engine.suppressor.ship`. Takes a few minutes."""

from __future__ import annotations

from engine import shipped
from engine.shipped.make import pack_lines
from engine.store import result_store
from engine.suppressor.scene import scene_key, scene_result
from engine.suppressor.text import text_key, text_result


def main() -> None:
    entries = []
    with shipped.ignore_entries():
        for key, compute in ((text_key(), text_result), (scene_key(), scene_result)):
            compute()
            if (entry := result_store().get(key)) is not None:
                entries.append((key, *entry))
    shipped.SUPPRESSORS.write_text("".join(f"{line}\n" for line in pack_lines(entries)), encoding="utf-8")
    print(f"{len(entries)} results in {shipped.SUPPRESSORS}")


if __name__ == "__main__":
    main()

"""A study's design from the command line: a file, a preset, options, in this order, the last one wins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli import values
from engine.errors import UsageError, not_allowed

if TYPE_CHECKING:
    from engine.study.design import Design

PARTS = ("items", "exclusion")
"""Parts of a design that have fields of their own."""


def given(
    file: str | None, preset: str, options: Mapping[str, str | None], methods: str, settings: list[str]
) -> Design:
    """The design asked for, which `create` checks as a whole. Errors name the option or the part of the design."""
    from engine.study.design import Design

    plain = _begun(file, preset, options)
    plain |= {name: value for name, value in options.items() if value is not None}
    if methods:
        plain["methods"] = [{"id": name} for name in values.names("--method", methods)]
    for name, value in values.pairs("--set", settings, "items.count=10").items():
        _put(plain, name, value)
    return Design.from_plain(plain)


def _begun(file: str | None, preset_name: str, options: Mapping[str, str | None]) -> dict[str, Any]:
    from engine.study.presets import preset

    if file is not None and preset_name:
        raise UsageError("--preset: got FILE too. Leave one of them out.")
    if file is not None:
        return _read(file)
    if not preset_name:
        return {}
    known = [options[name] or missing for name, missing in (("model", ""), ("dataset", ""), ("kind", "text"))]
    return preset(preset_name).design(*known).as_plain()


def _read(file: str) -> dict[str, Any]:
    """The design in a JSON file, or that in what `exegesis study show --json` printed."""
    try:
        content = values.text("FILE", "-") if file == "-" else Path(file).read_text(encoding="utf-8-sig")
        found = json.loads(content)
    except OSError as error:
        raise UsageError(f"FILE: must be a file with JSON, got {file!r} ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"FILE: {file} is not valid JSON ({error}).") from None
    design = found.get("design", found) if isinstance(found, dict) else found
    if not isinstance(design, dict):
        raise not_allowed("FILE", "a JSON object with a design", design)
    return design


def _put(plain: dict[str, Any], name: str, value: str) -> None:
    """`items.count`, `exclusion.least_seconds` or a field of the design itself."""
    part, dot, field = name.rpartition(".")
    if dot and part not in PARTS:
        raise not_allowed("--set", f"a field of the design, or one of {', '.join(PARTS)} after a dot", name)
    holder = plain.setdefault(part, {}) if dot else plain
    if not isinstance(holder, dict):
        raise not_allowed(f"design.{part}", "names with values", holder)
    holder[field] = _indices(value) if name == "items.indices" else value


def _indices(value: str) -> list[int]:
    return [values.whole("--set items.indices", part) for part in value.split(",")]

"""Options that several commands share, parsers of option values, and options generated from a config.

Errors name the option.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.errors import UsageError, not_allowed

DEFAULT_MODEL = "reviews-minilm"
MAX_NUMBER, MAX_ID = 2**63 - 1, 2**31 - 1
"""Maximum of seeds and counts, and maximum ID of studies and jobs in a database."""

ModelOption = Annotated[str, typer.Option(metavar="M", help="Embedded model, folder or hub ID.")]
TextOption = Annotated[str | None, typer.Option(metavar="T", help="The text; '-' reads stdin.")]
TextPairOption = Annotated[str | None, typer.Option(metavar="T", help="The second text of a pair.")]
PromptOption = Annotated[
    str | None, typer.Option(metavar="T", help="A prompt, whose next token by a language model is explained.")
]
ContrastOption = Annotated[
    str | None, typer.Option(metavar="TOKEN", help="With --prompt: explain why --target and not this token.")
]
ChatOption = Annotated[bool, typer.Option("--chat", help="With --prompt: apply the model's chat template.")]
LabelsOption = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Labels of your own as classes (zero-shot), for CLIP, SigLIP or an NLI model."),
]
TemplateOption = Annotated[
    str | None,
    typer.Option(metavar="T", help="With --labels: the text around a label, such as 'a photo of a {}'."),
]
SideOption = Annotated[
    str, typer.Option(metavar="picture|prompt", help="Of CLIP and SigLIP: explain the picture or the label's prompt.")
]
ImageOption = Annotated[str | None, typer.Option(metavar="F", help="An image: PNG, JPEG, WebP or GIF.")]
DatasetOption = Annotated[str | None, typer.Option(metavar="D", help="Take the text or image from a data set.")]
IndexOption = Annotated[str | None, typer.Option(metavar="I", help="Index of the example, from 0.")]
SplitOption = Annotated[str | None, typer.Option(metavar="S", help="Split of the data set.")]
ColumnOption = Annotated[
    list[str] | None, typer.Option(metavar="ROLE=NAME", help="Columns of a file, such as text=review.")
]
TargetOption = Annotated[
    str | None, typer.Option(metavar="L", help="Class or token to explain. [default: the predicted one]")
]
HeadOption = Annotated[list[str] | None, typer.Option(metavar="LAYER.HEAD=S", help="Scale a head; 0 switches it off.")]
ParamOption = Annotated[list[str] | None, typer.Option(metavar="[METHOD.]K=V", help="Parameter of a method.")]
SeedOption = Annotated[str, typer.Option(metavar="N", help="Random seed.")]
DtypeOption = Annotated[str, typer.Option(metavar="D", help="Precision: float32, bfloat16, ...")]
JobOption = Annotated[bool, typer.Option("--job", help="Run as a job, listed on the Library page.")]
ExecutorOption = Annotated[str, typer.Option(metavar="local|ray", help="Run on this machine or on a Ray cluster.")]
AddressOption = Annotated[str | None, typer.Option(metavar="A", help="Address of the Ray cluster, host:port.")]
OutOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write one row per value to a .csv, .json or .parquet file.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def read_whole(option: str, value: str, low: int = 0, high: int = MAX_NUMBER) -> int:
    """Parse a whole number from `low` to `high`."""
    digits = value.strip().lstrip("+-")
    if not digits.isdecimal() or len(digits) > 19 or not low <= int(value) <= high:
        allowed = f"at least {low}" if len(digits) < len(str(high)) else f"from {low} to {high:,}"
        raise not_allowed(option, f"a whole number of {allowed}".replace("of from", "from"), value)
    return int(value)


def read_id(value: str) -> int:
    """Parse the ID of a study or a job."""
    return read_whole("ID", value, 1, MAX_ID)


def read_numbers(option: str, value: str) -> list[float]:
    """Parse comma-separated numbers."""
    try:
        return [read_number(option, part) for part in value.split(",")]
    except UsageError:
        raise not_allowed(option, "comma-separated numbers", value) from None


def read_number(option: str, value: str) -> float:
    """Parse a finite number."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise not_allowed(option, "a number", value)
    return number


def read_size(option: str, value: str) -> int:
    """Parse a number of bytes such as `500000000`, `500MB` or `2GB` (powers of 1,000)."""
    text = value.strip().upper().removesuffix("B")
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
    number = text if factor == 1 else text[:-1]
    if not number.strip().isdecimal():
        raise not_allowed(option, "a number of bytes such as 500MB", value)
    return int(number) * factor


def read_names(option: str, value: str) -> list[str]:
    """Parse comma-separated names, without duplicates, in the order typed."""
    names = list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not names:
        raise not_allowed(option, "one or more comma-separated names", value)
    return names


def read_pairs(option: str, typed: list[str], example: str) -> dict[str, str]:
    """Parse `name=value` pairs. Errors: a name occurs twice."""
    pairs: dict[str, str] = {}
    for pair in typed:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not sign or not name:
            raise not_allowed(option, "name=value", pair, f"Example: {option} {example}.")
        if name in pairs:
            raise UsageError(f"{option}: {name} is given twice. Give it once.")
        pairs[name] = value
    return pairs


def read_text(option: str, value: str) -> str:
    """Return a text as typed, or for `-` the text on stdin (UTF-8) without its last line break."""
    if value == "-":
        value = _read_stdin(option)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{option}: must be UTF-8 text, got bytes that are not. Convert it to UTF-8.") from None
    return value


def _read_stdin(option: str) -> str:
    content = sys.stdin.buffer.read()
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{content[error.start]:02x} at position {error.start}"
        raise UsageError(f"{option} -: stdin must be UTF-8 text, got {wrong}. Convert it to UTF-8.") from None
    return decoded.removesuffix("\n").removesuffix("\r")


def read_json_file(file: str) -> Any:
    """Return the content of the JSON file in the argument FILE; `-` reads stdin."""
    try:
        return json.loads(read_text("FILE", "-") if file == "-" else Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"FILE: must be a readable JSON file, got {file!r} ({error.strerror}). Check the path."
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"FILE: {file} is not valid JSON ({error}).") from None


Parameters = Mapping[str, tuple[Any, Any]]
"""Annotation and default of each parameter of a command, by name."""


def set_parameters(command: Callable[..., None], parameters: Parameters) -> None:
    """Replace the signature of a command, so that Typer reads these parameters."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=d, annotation=a) for name, (a, d) in parameters.items()]
    )
    command.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}


@dataclasses.dataclass(frozen=True)
class ConfigOptions:
    """Options of a training command, generated from the fields of its config.

    `fields`: config fields by name. `help`, `default`: functions that return the help and the default of a field as
    strings. `as_json`: help of `--json`.
    """

    fields: Mapping[str, dataclasses.Field[Any]]
    help: Callable[[str], str]
    default: Callable[[str], str]
    as_json: str

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of the boolean fields."""
        return tuple(name for name, field in self.fields.items() if isinstance(field.default, bool))

    def chosen(self, typed: Mapping[str, Any]) -> dict[str, object]:
        """Return the fields set on the command line; `--no-x` sets x to False. Errors: both `--x` and `--no-x`."""
        chosen: dict[str, object] = {}
        for name, value in typed.items():
            if value is None or value is False:
                continue
            switch = name.removeprefix("no_")
            if name.startswith("no_") and switch in self.switches:
                if typed.get(switch) is not None:
                    raise UsageError(f"--{_flag(name)}: got --{_flag(switch)} too. Remove one of them.")
                chosen[switch] = False
            else:
                chosen[name] = value
        return chosen

    @property
    def parameters(self) -> Parameters:
        """The parameters for Typer."""
        parameters: dict[str, tuple[Any, Any]] = {}
        for name, field in self.fields.items():
            text = f"{self.help(name)} [default: {self.default(name)}]"
            shape = "|".join(field.metadata["choices"]) or type(field.default).__name__.upper()
            option = typer.Option(f"--{_flag(name)}", help=text, metavar=shape)
            parameters[name] = Annotated[str | None, option], None
        for name in self.switches:
            option = typer.Option(f"--no-{_flag(name)}", help=f"Same as --{_flag(name)} false.")
            parameters[f"no_{name}"] = Annotated[bool, option], False
        parameters["as_json"] = Annotated[bool, typer.Option("--json", help=self.as_json)], False
        return parameters


def _flag(name: str) -> str:
    return name.replace("_", "-")

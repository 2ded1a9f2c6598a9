"""The options of a command that runs a training: one a field of its config, which is the only place that lists them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from engine.errors import UsageError


@dataclasses.dataclass(frozen=True)
class ConfigOptions:
    """Fields by name; what `--help` says of each and of its default; what `--json` prints."""

    fields: Mapping[str, dataclasses.Field[Any]]
    told: Callable[[str], str]
    default: Callable[[str], str]
    as_json: str

    @property
    def switches(self) -> tuple[str, ...]:
        """The fields that are yes or no."""
        return tuple(name for name, field in self.fields.items() if isinstance(field.default, bool))

    def chosen(self, given: Mapping[str, Any]) -> dict[str, object]:
        """What the command line sets, `--no-x` as x being false."""
        chosen: dict[str, object] = {}
        for name, value in given.items():
            if value is None or value is False:
                continue
            switch = name.removeprefix("no_")
            if name.startswith("no_") and switch in self.switches:
                if given.get(switch) is not None:
                    raise UsageError(f"--{_flag(name)}: got --{_flag(switch)} too. Leave one of them out.")
                chosen[switch] = False
            else:
                chosen[name] = value
        return chosen

    def signature(self) -> inspect.Signature:
        """The parameters that typer reads."""
        keyword = inspect.Parameter.KEYWORD_ONLY
        options = []
        for name, field in self.fields.items():
            told = f"{self.told(name)} [default: {self.default(name)}]"
            shape = "|".join(field.metadata["choices"]) or type(field.default).__name__.upper()
            option = typer.Option(f"--{_flag(name)}", help=told, metavar=shape)
            options.append(inspect.Parameter(name, keyword, default=None, annotation=Annotated[str | None, option]))
        for name in self.switches:
            option = typer.Option(f"--no-{_flag(name)}", help=f"The same as --{_flag(name)} false.")
            options.append(inspect.Parameter(f"no_{name}", keyword, default=False, annotation=Annotated[bool, option]))
        as_json = typer.Option("--json", help=self.as_json)
        options.append(inspect.Parameter("as_json", keyword, default=False, annotation=Annotated[bool, as_json]))
        return inspect.Signature(options)

    def annotations(self) -> dict[str, Any]:
        return {name: parameter.annotation for name, parameter in self.signature().parameters.items()}


def _flag(name: str) -> str:
    return name.replace("_", "-")

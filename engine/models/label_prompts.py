"""Zero-shot classes: labels that a person types, and the prompts that a model of pictures and texts reads for them.

Labels belong to a model's name, `FOLDER?labels=cat|dog&template=a photo of a {}`, so that every command, page, link,
job and cache key that names a model has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from engine.errors import UsageError, excerpt, not_allowed

MARK = "?labels="
"""Where the labels begin in a model's name."""
TEMPLATE_FIELD, BETWEEN = "template", "|"
PLACE = "{}"
"""Where the label stands in a template."""
PLAIN_TEMPLATE = PLACE
LEAST_LABELS, MOST_LABELS, MOST_CHARACTERS = 2, 1_000, 300
READABLE = " '()/:{}.!?"
"""Characters that a name holds as they are. A comma is not among them, as commas separate names of models."""


@dataclass(frozen=True)
class LabelPrompts:
    """The classes of a zero-shot model. `template`: what the model reads, with the label in place of `{}`.

    Errors: fewer than two labels, two that are equal, an empty or a long one; a template without a place.
    """

    labels: tuple[str, ...]
    template: str = PLAIN_TEMPLATE

    def __post_init__(self) -> None:
        if not LEAST_LABELS <= len(self.labels) <= MOST_LABELS:
            allowed = f"{LEAST_LABELS} to {MOST_LABELS:,} labels, such as 'a cat, a dog'"
            raise not_allowed("labels", allowed, ", ".join(self.labels) or "none")
        repeated = [label for at, label in enumerate(self.labels) if label in self.labels[:at]]
        if repeated:
            raise UsageError(f"labels: {excerpt(repeated[0])} is there twice. Give each class one label.")
        if any(not label.strip() for label in self.labels):
            raise UsageError("labels: one of them is empty. Leave it out, or write its name.")
        if len(self.template) > MOST_CHARACTERS or any(len(label) > MOST_CHARACTERS for label in self.labels):
            raise UsageError(f"labels: must have at most {MOST_CHARACTERS} characters each, and so must the template.")
        if self.template.count(PLACE) != 1:
            allowed = f"a text with {PLACE} once, where the label stands, such as 'a photo of a {PLACE}'"
            raise not_allowed(TEMPLATE_FIELD, allowed, self.template)

    @property
    def texts(self) -> tuple[str, ...]:
        """What the model reads, a text a label."""
        return tuple(self.template.replace(PLACE, label) for label in self.labels)


def parse_labels(text: str) -> tuple[str, ...]:
    """Labels as people type them: between commas, or between | where one holds a comma itself."""
    parts = (part.strip() for part in text.split(BETWEEN if BETWEEN in text else ","))
    return tuple(part for part in parts if part)


def format_labels(labels: tuple[str, ...]) -> str:
    """Labels as `parse_labels` reads them."""
    between = f" {BETWEEN} " if any("," in label for label in labels) else ", "
    return between.join(labels)


def base_name(model: str) -> str:
    """The name of a model without its labels."""
    return model.partition(MARK)[0]


def split_prompts(model: str) -> tuple[str, LabelPrompts | None]:
    """The name of a model and its classes, None where the name holds none. Errors: those of `LabelPrompts`."""
    base, mark, rest = model.partition(MARK)
    if not mark:
        return model, None
    labels, *fields = rest.split("&")
    template = next((unquote(field.partition("=")[2]) for field in fields), PLAIN_TEMPLATE)
    if [field.partition("=")[0] for field in fields] not in ([], [TEMPLATE_FIELD]):
        raise UsageError(f"model: after its labels only {TEMPLATE_FIELD}=... may follow, got {excerpt(rest)}.")
    return base, LabelPrompts(tuple(unquote(label) for label in labels.split(BETWEEN)), template)


def with_prompts(model: str, labels: str, template: str = PLAIN_TEMPLATE) -> str:
    """The name of a model with these labels, as people type them. Errors: those of `LabelPrompts`."""
    prompts = LabelPrompts(parse_labels(labels), template.strip() or PLAIN_TEMPLATE)
    own = BETWEEN.join(quote(label, safe=READABLE) for label in prompts.labels)
    rest = "" if prompts.template == PLAIN_TEMPLATE else f"&{TEMPLATE_FIELD}={quote(prompts.template, safe=READABLE)}"
    return f"{base_name(model)}{MARK}{own}{rest}"


def label_prompt(model: str, label: int) -> str:
    """What a zero-shot model reads for its label of that number. Errors: its name gives no labels."""
    prompts = split_prompts(model)[1]
    if prompts is None:
        raise UsageError(f"labels: {excerpt(model)} has no labels in its name, so no prompts. Give it labels.")
    return prompts.texts[label]

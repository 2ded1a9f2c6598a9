"""`exegesis generate`: continue a prompt with a language model, and show what each token depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options, output
from engine.cli.inputs import check_model
from engine.cli.root import note
from engine.errors import UsageError
from engine.format import count_text, visible_token
from engine.lazy import LazyModule
from engine.next_token import NextTokens, next_tokens
from engine.progress import cancellable, reporting
from engine.request import Example, Prompt
from engine.store import result_store

if TYPE_CHECKING:
    from engine import generation
else:  # it loads torch, which the help does not need
    generation = LazyModule("engine.generation")

EXAMPLE = "Example: --prompt 'Mary lives in Paris. Mary lives in'."
TOKENS = "8"
MOST_LIKELY = 5
"""Number of next tokens that are printed with their probabilities."""


def generate(
    model: Annotated[str, typer.Option(metavar="M", help="A language model.")] = "tiny-llama",
    prompt: Annotated[str | None, typer.Option(metavar="T", help="The text to continue; '-' reads stdin.")] = None,
    continuation: Annotated[
        str | None, typer.Option(metavar="T", help="Explain this text after the prompt, and generate nothing.")
    ] = None,
    tokens: Annotated[str, typer.Option(metavar="N", help="Generate at most N tokens.")] = TOKENS,
    method: Annotated[str, typer.Option(metavar="A", help="The method that explains each token.")] = "attn_lrp",
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="Sample with this seed. [default: the most probable token]")
    ] = None,
    temperature: Annotated[str, typer.Option(metavar="T", help="With --seed: the temperature of sampling.")] = "1",
    chat: options.ChatOption = False,
    top: Annotated[str, typer.Option(metavar="N", help="Show only the N strongest links.")] = "10",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all scores of every step.")] = False,
) -> None:
    """Continue a prompt with a language model, and show what each generated token depends on."""
    if prompt is None:
        raise UsageError(f"--prompt: is missing. {EXAMPLE}")
    count, links = options.read_whole("--tokens", tokens, 1), options.read_whole("--top", top, 1)
    number = None if seed is None else options.read_whole("--seed", seed)
    warmth = options.read_number("--temperature", temperature)
    if number is None and warmth != 1:
        raise UsageError("--temperature: has no effect without --seed: the most probable token is taken. Add --seed 1.")
    if continuation is not None and (seed is not None or tokens != TOKENS):
        raise UsageError("--continuation: is explained as it is. Leave out --tokens, --seed and --temperature.")
    with output.stdout_reserved(), output.stoppable() as cancel, output.progress_bar("generating") as report:
        check_model(model, Example.kind)
        text = options.read_text("--prompt", prompt)
        query = generation.GenerationQuery(model, text, count, number, warmth, method, chat, continuation)
        with cancellable(cancel), reporting(report):
            generated = generation.generate_text(query)
            likely = next_tokens(model, Prompt(text, chat=chat))
    if status := result_store().status:
        note(status)
    if as_json:
        output.print_json(generated.as_json() | _next_to_json(likely))
        return
    print_generated(generated, likely, "greedy" if number is None else f"sampled with seed {number}", links)


def print_generated(generated: generation.GeneratedText, likely: NextTokens, decoding: str, links: int) -> None:
    """Print the most likely next tokens, the text, its strongest links, the effect of each sentence, and the checks."""
    out, names = output.console(), generated.names
    shares = zip(likely.labels[:MOST_LIKELY], likely.probabilities, strict=False)
    first = ", ".join(f"{label!r} {share:.4f}" for label, share in shares)
    out.print(f"Next token: {output.visible(first)}. Entropy: {likely.entropy:.2f} bits.", markup=False)
    kind = "Continuation" if generated.is_given else f"Generated ({decoding})"
    out.print(f"{kind}: {output.visible(generated.text)}", markup=False)
    print(f"Probability {generated.probability:.4g} (log-probability {generated.log_probability:.4f} nats)")
    explained = "given" if generated.is_given else "generated"
    strongest = output.table([explained, "depends on", "position", "score"], right=["position", "score"])
    for step, place, score in generated.links(links):
        source = output.visible(visible_token(names[place]))
        strongest.add_row(output.visible(visible_token(generated.labels[step])), source, str(place), f"{score:+.4f}")
    out.print(strongest)
    if generated.sentences:
        used = output.table(
            ["without the sentence", "probability", "log-probability"], right=["probability", "log-probability"]
        )
        for one in generated.sentences:
            used.add_row(output.visible(one.text), f"{one.probability:.4g}", f"{one.log_probability:.4f}")
        out.print(used)
    else:
        print(f"The prompt is one sentence, which the {explained} text continues: none can be deleted.")
    for line in _remarks(generated):
        print(line)


def _next_to_json(likely: NextTokens) -> dict[str, Any]:
    """Convert the distribution of the first token to JSON values. The last label stands for all other tokens."""
    pairs = zip(likely.labels, likely.probabilities, strict=True)
    tokens = [{"token": label, "probability": share} for label, share in pairs]
    return {"next_tokens": tokens, "next_entropy": likely.entropy}


def _remarks(generated: generation.GeneratedText) -> Iterator[str]:
    """Yield the reason why the text ended, the checks of all steps, and the number of evaluations."""
    if generated.ended:
        yield f"The model ended the text after {count_text(len(generated.labels), 'token')}: its end token came next."
    checks = [one.check for one in generated.explanations if one.check is not None]
    if checks:
        good = sum(check.ok for check in checks)
        yield f"Check ({checks[0].name}): good at {good} of {len(checks)} steps."
    yield f"Model evaluations for the explanations: {sum(one.evaluations for one in generated.explanations)}."

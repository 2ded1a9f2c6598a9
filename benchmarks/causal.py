"""Causal language models: our explainers beside the bare model work, Captum's for language models, and inseq."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from captum.attr import (
    FeatureAblation,
    KernelShap,
    LayerGradientXActivation,
    LLMAttribution,
    LLMGradientAttribution,
    TextTemplateInput,
    TextTokenInput,
)

from benchmarks.harness import (
    TEXT,
    Limit,
    Measurement,
    Table,
    benchmark,
    peak_memory,
    reset_peak_memory,
    time_rows,
)
from benchmarks.peers import NotThereError, PeerProcess, inseq_peer
from benchmarks.workloads import run_method
from engine import runtime
from engine.explain import predict_encoded
from engine.generation import GenerationQuery, continue_tokens, log_probabilities
from engine.models import catalog
from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.request import DTYPES, Prompt
from engine.task import Task, TaskItem

REMOVAL = "pad"
STEPS, SAMPLES = 6, 128
MOST = 1.1
MOST_OF_PEER = 1.0
MOST_MEMORY = 1.1
CONTEXT, SENTENCES = 2_048, 8
SENTENCE_TOKENS = 32
"""Of a context's last sentence, which is not removed."""

Seconds = Callable[[], float]
"""Runs a side and returns its seconds."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A prompt, and the tokens that the model continues it with."""

    model: CausalModel
    prompt: str
    generated: list[int]

    @cached_property
    def task(self) -> Task:
        """The explanation of the first of these tokens."""
        return self.task_of(1)

    def task_of(self, steps: int) -> Task:
        """An explanation of each of the first tokens, given those before it."""
        items = []
        for step in range(steps):
            text = self.prompt + self.text(step)
            encoded = self.model.encode(Prompt(text, target=self.model.token_text(self.generated[step])))
            prediction = predict_encoded(self.model, [encoded])[0]
            items.append(TaskItem(encoded, prediction, self.model.target_index(None, prediction, encoded), 0))
        return Task(self.model, items)

    def text(self, steps: int) -> str:
        """The first tokens as text."""
        return "".join(self.model.token_text(token) for token in self.generated[:steps])

    def target(self, steps: int = 1) -> torch.Tensor:
        return torch.tensor(self.generated[:steps])

    @property
    def blank(self) -> int:
        """The token in place of a removed one."""
        return self.model.pad_id

    @property
    def specials(self) -> list[int]:
        encoded = self.task.examples[0]
        return sorted({int(token) for token in encoded.ids[encoded.special]})


def read_subject(model: CausalModel, prompt: str, steps: int) -> Subject:
    query = GenerationQuery(model.id, prompt, steps)
    return Subject(model, prompt, continue_tokens(model, model.encode(Prompt(prompt)).ids, query)[0])


def timed(run: Callable[[], object], model: CausalModel) -> Seconds:
    """The processor's time; on a GPU the time by the clock, once it is done."""
    if model.device.type != "cuda":
        return lambda: _spent(run, time.process_time)

    def finish() -> None:
        run()
        torch.cuda.synchronize()

    return lambda: _spent(finish, time.perf_counter)


def _spent(run: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    run()
    return clock() - started


def seconds_in_turn(work: Mapping[str, Seconds], rounds: int, warm: bool = True) -> dict[str, np.ndarray]:
    """Seconds of each round, A B C A B C ... `warm`: one round before is not counted."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(-1 if warm else 0, rounds):
        for name, run in work.items():
            seconds = run()
            if turn >= 0:
                times[name].append(seconds)
    return {name: np.array(values) for name, values in times.items()}


def bare_forward(subject: Subject, keep: np.ndarray) -> Callable[[], None]:
    """Plain batched passes over all tokens of the rows, whose last position alone goes through the head."""
    encoded, model = subject.task.examples[0], subject.model
    ids = torch.from_numpy(encoded.ids).repeat(len(keep), 1)
    ids[:, encoded.features] = torch.where(torch.from_numpy(keep), ids[:, encoded.features], subject.blank)
    size = runtime.rows_at_once(model, len(encoded))
    parts = ids.to(model.device).split(size)

    def run() -> None:
        with torch.inference_mode():
            for part in parts:
                model.module(input_ids=part, logits_to_keep=1, use_cache=False).logits[:, -1].softmax(-1)

    return run


def bare_gradients(subject: Subject, steps: int) -> Callable[[], None]:
    """A plain pass forward and back for each token."""
    model, ids = subject.model, subject.task.examples[0].ids.tolist()

    def run() -> None:
        for step in range(steps):
            row = torch.tensor([[*ids, *subject.generated[:step]]], device=model.device)
            point = model.embedding(row).detach().requires_grad_()
            logits = model.module(inputs_embeds=point, logits_to_keep=1, use_cache=False).logits
            torch.autograd.grad(logits[0, -1, subject.generated[step]], point)

    return run


def captum_input(subject: Subject) -> TextTokenInput:
    return TextTokenInput(
        subject.prompt, subject.model.tokenizer, baselines=subject.blank, skip_tokens=subject.specials or None
    )


def captum_removal(subject: Subject, method: type, **options: Any) -> Callable[[], np.ndarray]:
    """Captum's probability of the first token where tokens of the prompt are replaced, a row a pass, its only way."""
    explainer = LLMAttribution(method(subject.model.module), subject.model.tokenizer, attr_target="prob")
    given: dict[str, Any] = {"target": subject.target(), "forward_in_tokens": False, **options}

    def run() -> np.ndarray:
        with torch.inference_mode():
            return np.asarray(explainer.attribute(captum_input(subject), **given).seq_attr.cpu().numpy())

    return run


def captum_gradients(subject: Subject, steps: int) -> Callable[[], object]:
    """Captum's gradient x input for each token."""
    module = subject.model.module
    explainer = LLMGradientAttribution(
        LayerGradientXActivation(module, subject.model.embedding), subject.model.tokenizer
    )
    return lambda: explainer.attribute(captum_input(subject), target=subject.target(steps))


def occlusion_rows(subject: Subject) -> np.ndarray:
    n = len(subject.task.examples[0].features)
    return np.vstack([np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)])


def sampled_rows(subject: Subject, samples: int) -> np.ndarray:
    return np.random.default_rng(0).random((samples, len(subject.task.examples[0].features))) < 0.5


def check_same(subject: Subject) -> None:
    """Captum's ablation and our occlusion are the same numbers. Errors: they are not."""
    [ours] = run_method(subject.task, "occlusion", removal=REMOVAL)()
    own = ours.scores[subject.task.examples[0].features]
    theirs = captum_removal(subject, FeatureAblation)()
    if not np.allclose(own, theirs, atol=1e-5):
        raise AssertionError(f"Captum's ablation differs from our occlusion by {np.abs(own - theirs).max():.2g}")


def workloads(subject: Subject, inseq: PeerProcess | None) -> Iterator[tuple[str, dict[str, Seconds]]]:
    """Each workload with its sides."""
    model = subject.model

    def sides(bare: Callable[[], object], ours: Callable[[], object], captum: Callable[[], object] | None = None,
              name: str | None = None, steps: int = 1) -> dict[str, Seconds]:  # fmt: skip
        named = {"bare": bare, "exegesis": ours, "captum": captum}
        work = {by: timed(run, model) for by, run in named.items() if run is not None}
        if inseq is not None and name is not None:
            job = {"method": name, "prompt": subject.prompt, "follows": subject.text(steps), "options": {}}
            work["inseq"] = lambda: float(inseq.ask("explain", **job)["seconds"])
        return work

    yield (
        "occlusion by token",
        sides(
            bare_forward(subject, occlusion_rows(subject)),
            run_method(subject.task, "occlusion", removal=REMOVAL),
            captum_removal(subject, FeatureAblation),
            "occlusion",
        ),
    )
    for steps in (1, len(subject.generated)):
        yield (
            f"gradient x input, {steps} target{'s' if steps > 1 else ''}",
            sides(
                bare_gradients(subject, steps),
                run_method(subject.task_of(steps), "gradient_x_input"),
                captum_gradients(subject, steps),
                "input_x_gradient",
                steps,
            ),
        )
    yield (
        f"Kernel SHAP, {SAMPLES} samples",
        sides(
            bare_forward(subject, sampled_rows(subject, SAMPLES)),
            run_method(subject.task, "kernel_shap", removal=REMOVAL, n_samples=SAMPLES),
            captum_removal(subject, KernelShap, n_samples=SAMPLES),
        ),
    )
    if model.adapter.lrp is not None:
        steps = len(subject.generated)
        ours = run_method(subject.task_of(steps), "attn_lrp")
        yield f"AttnLRP, {steps} targets", sides(bare_gradients(subject, steps), ours)


def load_causal(name: str) -> CausalModel:
    model = load_model(name, DTYPES[0], runtime.device())
    assert isinstance(model, CausalModel)
    return model


@contextlib.contextmanager
def optional_inseq(name: str) -> Iterator[PeerProcess | None]:
    """inseq, or None with its reason on standard error."""
    with contextlib.ExitStack() as stack:
        try:
            peer = stack.enter_context(inseq_peer(Path(catalog.locate(name).folder)))
        except NotThereError as error:
            print(f"inseq is left out: {error}.", file=sys.stderr)
            peer = None
        yield peer


@benchmark(model="tiny-llama", rounds=5, repeats=1, inseq={"choices": ("yes", "no"), "default": "yes"})
def causal_work(model: str, rounds: int, repeats: int, inseq: str) -> Measurement:
    """Explainers of language models against the bare work, Captum's LLM attribution and inseq, in one run.

    A prompt of `repeats` sentences and what the model continues it with. Bare: plain transformers passes over as many
    rows (for removals in batches as large as ours, for gradients one a token), whose head reads the last position
    alone. Captum 0.9: `LLMAttribution` of `FeatureAblation` and `KernelShap`, whole rows in one pass each, its only
    way; `LLMGradientAttribution`. inseq: its occlusion and gradient x input, in a process of its own. Equal settings:
    the pad token in place of a removed one, as many samples, the same target tokens; inseq's occlusion has its own
    baseline. Captum's gradients are of the log-probability, ours and the bare ones of the logit. Neither has AttnLRP,
    whose bare work is that of gradients. The processor's time of one thread, so set OMP_NUM_THREADS=1; on a GPU the
    time by the clock, without inseq.
    """
    loaded = load_causal(model)
    subject = read_subject(loaded, " ".join([TEXT] * repeats), STEPS)
    table: Table = []
    with runtime.turn(), contextlib.ExitStack() as stack:
        check_same(subject)
        wanted = inseq == "yes" and loaded.device.type == "cpu"
        peer = stack.enter_context(optional_inseq(model)) if wanted else None
        for what, work in workloads(subject, peer):
            times = seconds_in_turn(work, rounds)
            table += time_rows(times, what=what, tokens=len(subject.task.examples[0]))
    return Measurement({f"Explainers of {model}": table}, limits_of(table))


def limits_of(table: Table) -> list[Limit]:
    """Ours to the bare work, and to each peer in the same workload."""
    ms = {(row["what"], row["by"]): row["ms"] for row in table}
    limits = []
    for row in table:
        if row["by"] == "exegesis":
            limits.append(Limit(f"{row['what']}, to bare", row["ratio"], MOST))
        elif row["by"] != "bare":
            ratio = ms[row["what"], "exegesis"] / row["ms"]
            limits.append(Limit(f"{row['what']}, to {row['by']}", ratio, MOST_OF_PEER))
    return limits


@dataclass(frozen=True, eq=False)
class Context:
    """Sentences of equal length that fill a context, and the tokens whose probability is measured.

    The last sentence stays.
    """

    sentences: list[str]
    ids: np.ndarray
    parts: list[np.ndarray]
    generated: list[int]


def fill_context(model: CausalModel, tokens: int, sentences: int) -> Context:
    """A context of so many tokens. Errors: the model reads fewer."""
    if tokens > model.max_length:
        raise SystemExit(f"{model.id} reads at most {model.max_length} tokens. Name another model, or --tokens.")
    words = TEXT.replace(" ,", ",").split()
    lengths = [(tokens - SENTENCE_TOKENS) // sentences] * sentences + [SENTENCE_TOKENS]
    draw, texts = np.random.default_rng(0), []
    for length in lengths:
        text = ""
        while len(model.tokenizer(text + " the.", add_special_tokens=False)["input_ids"]) < length:
            text += f" {draw.choice(words)}"
        texts.append(f"{text}.")
    rows = [model.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    ids = np.array(model.tokenizer("".join(texts))["input_ids"], dtype=np.int64)
    ends = np.cumsum([len(ids) - sum(map(len, rows)), *map(len, rows)])  # special tokens come first
    if ids[ends[0] :].tolist() != [token for row in rows for token in row]:
        raise SystemExit(f"{model.id} reads sentences with other tokens than their text. Name another model.")
    parts = [np.arange(start, end) for start, end in itertools.pairwise(ends[:-1])]
    generated = continue_tokens(model, ids, GenerationQuery(model.id, TEXT, 4))[0]
    return Context(texts, ids, parts, generated)


def bare_context(model: CausalModel, context: Context) -> Callable[[], None]:
    """A plain pass over the whole context, and over it without each sentence."""
    rows = [context.ids, *(np.delete(context.ids, part) for part in context.parts)]
    passes = [torch.tensor([[*row, *context.generated]], device=model.device) for row in rows]
    count = len(context.generated)

    def run() -> None:
        with torch.inference_mode():
            for ids in passes:
                logits = model.module(input_ids=ids, logits_to_keep=count + 1, use_cache=False).logits[0, :-1]
                logits.float().log_softmax(-1)[range(count), context.generated].sum()

    return run


def captum_context(model: CausalModel, context: Context) -> Callable[[], np.ndarray]:
    """Captum's ablation of sentences, each in turn replaced by nothing."""
    template = "{}" * len(context.parts) + context.sentences[-1]
    explainer = LLMAttribution(FeatureAblation(model.module), model.tokenizer)

    def run() -> np.ndarray:
        given = TextTemplateInput(template, context.sentences[:-1])
        with torch.inference_mode():
            made = explainer.attribute(given, target=torch.tensor(context.generated), forward_in_tokens=False)
        return np.asarray(made.seq_attr.cpu().numpy())

    return run


@benchmark(model="smollm2-135m", rounds=1, tokens=CONTEXT, sentences=SENTENCES)
def causal_context(model: str, rounds: int, tokens: int, sentences: int) -> Measurement:
    """How probable a continuation is without each sentence of a long context, and the memory it takes.

    Bare: plain transformers passes, a row each, whose head reads the continuation's positions alone. Captum:
    `LLMAttribution` of `FeatureAblation` over the sentences of a template. The processor's time of one thread. The
    growth of the peak of memory while ours runs, to the budget of a pass. inseq removes tokens, not sentences, and so
    has no part. All three give the same numbers, which is checked.
    """
    loaded = load_causal(model)
    with runtime.turn():
        context = fill_context(loaded, tokens, sentences)
        rows = [context.ids, *(np.delete(context.ids, part) for part in context.parts)]
        log_probabilities(loaded, [row[:64] for row in rows[:2]], context.generated)  # warms up
        differences: dict[str, np.ndarray] = {}
        growth: list[float] = []

        def ours() -> None:
            before = reset_peak_memory(loaded)
            whole, *without = log_probabilities(loaded, rows, context.generated).sum(1)
            growth.append((peak_memory(loaded) - before) / 1e6)
            differences["exegesis"] = whole - np.array(without)

        captum = captum_context(loaded, context)
        work = {
            "bare": timed(bare_context(loaded, context), loaded),
            "exegesis": timed(ours, loaded),
            "captum": timed(lambda: differences.update(captum=captum()), loaded),
        }
        times = seconds_in_turn(work, rounds, warm=False)
    if not np.allclose(differences["exegesis"], differences["captum"], atol=1e-2):
        raise AssertionError(f"Captum's ablation differs: {differences}")
    what = f"context use, {len(context.parts)} sentences"
    budget = runtime.memory_budget() / 1e6
    table = time_rows(times, what=what, tokens=len(context.ids))
    memory = [{"what": what, "MB": max(growth), "budget MB": budget}]
    limits = [*limits_of(table), Limit("growth of the peak", max(growth), budget * MOST_MEMORY, "MB")]
    return Measurement({f"A long context on {model}": table, "Peak memory": memory}, limits)


SHAPES: dict[str, dict[str, int]] = {
    "135M": {"hidden_size": 576, "intermediate_size": 1_536, "num_hidden_layers": 30, "num_attention_heads": 9,
             "num_key_value_heads": 3, "vocab_size": 49_152, "tie_word_embeddings": True},
    "1.5B": {"hidden_size": 1_536, "intermediate_size": 8_960, "num_hidden_layers": 28, "num_attention_heads": 12,
             "num_key_value_heads": 2, "vocab_size": 151_936, "tie_word_embeddings": True},
    "7B": {"hidden_size": 4_096, "intermediate_size": 11_008, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 32, "vocab_size": 32_000},
    "rehearsal": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "vocab_size": 2_048},
}  # fmt: skip
"""Llama's shape at the sizes of SmolLM2-135M, Qwen2-1.5B and Llama-2-7B, and one that any machine runs."""


def random_causal(shape: str, dtype: torch.dtype = torch.bfloat16) -> CausalModel:
    """A model of that shape with random weights, which reads with the tokenizer of tiny-llama."""
    small, device = load_causal("tiny-llama"), runtime.device()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SHAPES[shape], max_position_embeddings=CONTEXT)  # type: ignore[arg-type]
    with device:
        module = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    module = module.to(device).eval().requires_grad_(False)
    return dataclasses.replace(small, id=shape, module=module, reference=module, dtype=dtype, device=device, memo={})


@benchmark(rounds=5, shapes="135M,1.5B,7B", repeats=4)
def causal_shapes(rounds: int, shapes: str, repeats: int) -> Measurement:
    """Milliseconds a prompt on models of 135 M, 1.5 B and 7 B parameters in bfloat16, beside the bare work.

    Random weights: the time is that of trained ones. For a machine with a GPU; `--shapes rehearsal` runs anywhere.
    """
    names = shapes.split(",")
    if unknown := [name for name in names if name not in SHAPES]:
        raise SystemExit(f"shapes: unknown name {unknown[0]!r}. Known: {', '.join(SHAPES)}.")
    if runtime.device().type == "cpu" and names != ["rehearsal"]:
        raise SystemExit("causal_shapes needs a GPU. Without one, --shapes rehearsal shows that it runs.")
    table: Table = []
    for name in names:
        with runtime.turn():
            subject = Subject(random_causal(name), " ".join([TEXT] * repeats), [0])
            encoded = subject.model.encode(Prompt(subject.prompt))
            prediction = predict_encoded(subject.model, [encoded])[0]
            # `task` would name its target by text, which random weights seldom allow.
            vars(subject)["task"] = Task(subject.model, [TaskItem(encoded, prediction, prediction.index, 0)])
            methods: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
                "occlusion": (
                    bare_forward(subject, occlusion_rows(subject)),
                    run_method(subject.task, "occlusion", removal=REMOVAL),
                ),
                "gradient_x_input": (bare_gradients(subject, 1), run_method(subject.task, "gradient_x_input")),
                "kernel_shap": (
                    bare_forward(subject, sampled_rows(subject, SAMPLES)),
                    run_method(subject.task, "kernel_shap", removal=REMOVAL, n_samples=SAMPLES),
                ),
            }
            for method, (bare, ours) in methods.items():
                work = {"bare": timed(bare, subject.model), "exegesis": timed(ours, subject.model)}
                what = f"{method}, {name}"
                table += time_rows(seconds_in_turn(work, rounds), what=what, tokens=len(encoded))
    limits = [] if names == ["rehearsal"] else limits_of(table)
    return Measurement({"Random models in bfloat16, ms a prompt": table}, limits)

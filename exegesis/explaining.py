"""Explanations of one input."""

from __future__ import annotations

import warnings
from typing import Any

from engine.explain import explain_many
from engine.input_kinds import kind_of_model
from engine.next_token import spacing_notes
from engine.request import HeadScales, Prompt, Request
from exegesis.display import working
from exegesis.inputs import Methods, read_input, read_methods
from exegesis.models import default_dtype, model_name
from exegesis.results import Explanations


def explain(
    model: Any,
    text: Any,
    methods: Methods | None = None,
    *,
    target: int | str | None = None,
    contrast: str | None = None,
    chat: bool = False,
    seed: int = 0,
    dtype: str | None = None,
    heads: dict[tuple[int, int], float] | None = None,
    tokenizer: Any = None,
    processor: Any = None,
    progress: bool = True,
) -> Explanations:
    """Explain a prediction: one score per token or patch, by one or more methods.

    Scores and cache keys are those of the page and of `exegesis explain`: each of them reads what another has computed.

    Parameters
    ----------
    model : str, path or transformers.PreTrainedModel
        A name of `exegesis models`, the folder of a checkpoint, a hub id, or a loaded model with its `tokenizer` or
        `processor` (a pipeline has its own). A loaded model is not changed; see `exegesis.wrap`.
    text : str, tuple, picture or Input
        A text, a pair of texts, the prompt of a causal language model, or for an image model a file, a PIL image or an
        array of uint8. Or `exegesis.example(dataset, index)`.
    methods : str, list or dict, optional
        Ids of methods, or ids with parameters: `{"kernel_shap": {"n_samples": 512}, "attn_lrp": {}}`. Default: those of
        the page, which include `random`.
    target : int or str, optional
        The class to explain, by index or label; for a language model the token. Default: the predicted one.
    contrast : str, optional
        For a language model, a token to contrast with the target: why the target rather than this one?
    chat : bool
        Whether the model's chat template is applied to the prompt.
    seed : int
        Seed of methods that sample.
    dtype : str, optional
        float32, bfloat16, float16 or float64. Default: that of a loaded model, else float32.
    heads : dict, optional
        Factors of attention heads by (layer, head) from 0: `{(3, 7): 0}` switches one off.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    Explanations
        A sequence of maps, which can also be indexed by method id.

    >>> import exegesis
    >>> result = exegesis.explain("reviews-minilm", "A dull, lifeless film.", ["attn_lrp"], progress=False)
    >>> result.prediction.label
    'negative'
    >>> result.to_pandas()["token"].tolist()[1:4]
    ['A', 'dull', ',']

    Errors: an unknown model, method, parameter or class, with the known ones. A warning is issued for a token that is
    named without its leading space if the token with the space is more probable.
    """
    name = model_name(model, tokenizer, processor)
    params = read_methods(methods, kind_of_model(name))
    content, named = read_input(name, text, target, contrast, chat)
    scales = HeadScales.from_mapping(heads or {})
    precision = default_dtype(model) if dtype is None else dtype
    requests = [Request(name, id, content, own, named, seed, precision, scales) for id, own in params.items()]
    with working("explaining", progress) as (report, cancel):
        made = tuple(explain_many(requests, report, cancel))
    for note in spacing_notes(name, content, made[0].prediction, scales) if isinstance(content, Prompt) else ():
        warnings.warn(note, stacklevel=2)
    return Explanations(content, made, named)

"""Python interface of Exegesis: compute, evaluate and display explanations of transformer models in a notebook.

>>> import exegesis
>>> result = exegesis.explain("reviews-minilm", "A dull, lifeless film.", ["attn_lrp", "random"], progress=False)
>>> result.methods
('attn_lrp', 'random')
>>> result["attn_lrp"].check.ok
True

Everything is a thin layer over `engine`: results, cache and options are those of the dashboard and of the `exegesis`
command. Results are displayed in notebooks and have `to_pandas()`, `to_dict()` and `save(path)`.
"""

from engine.errors import Cancelled, ExegesisError, UsageError
from engine.registry import all_explainers as _all_explainers
from exegesis.dashboard import open_in_dashboard
from exegesis.experiments import attack, compare, evaluate, randomize
from exegesis.explaining import explain
from exegesis.inputs import dataset, example
from exegesis.models import wrap
from exegesis.questions import QuestionAnswer, ask
from exegesis.results import ExperimentRun, Explanations, MapComparison, load

__all__ = [
    "Cancelled",
    "ExegesisError",
    "ExperimentRun",
    "Explanations",
    "MapComparison",
    "QuestionAnswer",
    "UsageError",
    "ask",
    "attack",
    "compare",
    "dataset",
    "evaluate",
    "example",
    "explain",
    "load",
    "methods",
    "open_in_dashboard",
    "randomize",
    "wrap",
]


def methods(kind: str = "text") -> dict[str, str]:
    """Return the titles of all methods for a kind of input, "text" or "image", by their ids.

    >>> import exegesis
    >>> exegesis.methods()["attn_lrp"]
    'AttnLRP'
    """
    return {id: method.title for id, method in _all_explainers(kind).items()}

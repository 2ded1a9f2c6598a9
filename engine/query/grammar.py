"""The grammar as data: the operations with their slots, the forms of a question, and the words of each form.

A sentence fits a form when it has a word of each required class, when each of its other words is a filler or belongs
to a class that the form allows, and when each name in it fills a slot of the operation. A word that nothing explains
makes the sentence not understood, because it may change the meaning: "least", "not", "without".

After Slack et al., 2023, Explaining machine learning models with interactive natural language conversations using
TalkToModel, with a table in place of their language model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

THIS = "this"
"""The example that the page shows."""
DISABLED: frozenset[str] = frozenset({"flip"})  # empty the set once the command `counterfactuals` exists
"""Operations that no page and no command of this installation answers."""
MANY = 8
"""The largest number of methods or models in a question."""


@dataclass(frozen=True)
class ParsedQuery:
    """What a sentence asks: an operation and its slots; a slot that the sentence leaves out is empty.

    `example`: the index in the data set, from 0, or `THIS`. `text`, `text_pair`: quoted texts in place of an example.
    `word`, `replacement`: the word to remove or replace. `target`: the label of a class. `layer`, `head`: from 0.
    """

    operation: str
    methods: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    dataset: str | None = None
    example: int | str | None = None
    text: str | None = None
    text_pair: str | None = None
    target: str | None = None
    count: int | None = None
    word: str | None = None
    replacement: str | None = None
    layer: int | None = None
    head: int | None = None

    def slots(self) -> dict[str, object]:
        """The slots that the sentence fills, by name."""
        values = {name: value for name, value in vars(self).items() if name != "operation"}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v is not None and v != ()}


@dataclass(frozen=True)
class QueryOperation:
    """`title`: a noun phrase. `slots`: what may be in a question. `most`: the largest numbers of names, 1 if left out.

    `least`: alternatives, each the numbers of names that must be there. `allows`: classes of words that every form may
    have besides its own.
    """

    title: str
    slots: frozenset[str]
    allows: tuple[str, ...] = ()
    most: Mapping[str, int] = field(default_factory=dict)
    least: tuple[Mapping[str, int], ...] = ({},)


@dataclass(frozen=True)
class QueryForm:
    """`words`: classes, of each of which a word must be there. `template`: the sentence that is written for a query.

    A part of the template in brackets stays only if its slot is filled. `without`: classes, of which no word may be
    there.
    `least`: the numbers of names that this form needs besides those of its operation.
    """

    operation: str
    words: tuple[str, ...]
    template: str
    least: Mapping[str, int] = field(default_factory=dict)
    without: tuple[str, ...] = ()


def _slots(names: str) -> frozenset[str]:
    return frozenset(names.split())


ONE_EXAMPLE = "models dataset example text text_pair"
OPERATIONS: Mapping[str, QueryOperation] = {
    "explain": QueryOperation(
        "Explanation", _slots(f"methods target {ONE_EXAMPLE}"),
        ("two", "where", "out", "explain", "map", "apply", "method", "model", "predict", "class", "example", "data", "word", "score", "for"),
        {"methods": MANY},
    ),
    "top": QueryOperation(
        "Most important features", _slots(f"methods target count {ONE_EXAMPLE}"),
        ("rank", "apply", "map", "method", "model", "predict", "class", "example", "data", "score", "most", "important", "word", "drive",
         "for", "why"),
        {"methods": MANY},
    ),
    "predict": QueryOperation(
        "Prediction", _slots(f"target {ONE_EXAMPLE}"),
        ("apply", "out", "predict", "model", "class", "example", "data", "score", "certain"),
    ),
    "delete": QueryOperation(
        "Prediction without a word", _slots(f"word target {ONE_EXAMPLE}"),
        ("out", "apply", "testing", "until", "keep", "differ", "remove", "word", "predict", "model", "class", "example", "data", "score", "effect", "if", "change"),
        least=({"word": 1},),
    ),
    "replace": QueryOperation(
        "Prediction with another word", _slots(f"word replacement target {ONE_EXAMPLE}"),
        ("out", "drive", "apply", "testing", "until", "keep", "differ", "substitute", "word", "predict", "model", "class", "example", "data", "score", "effect", "if", "change"),
        least=({"word": 1, "replacement": 1},),
    ),
    "disagree": QueryOperation(
        "Largest disagreement of two methods", _slots("methods models dataset example"),
        ("worst", "all", "many", "versus", "two", "together", "compare", "otherwise", "rank", "disagree", "where", "most", "word", "examples", "example", "map", "method", "data", "model", "strongly",
         "for", "score"),
        {"methods": 2}, ({"methods": 2},),
    ),
    "compare": QueryOperation(
        "Comparison", _slots(f"methods target {ONE_EXAMPLE}"),
        ("two", "effect", "versus", "agree", "score", "compare", "differ", "map", "method", "model", "predict", "example", "data", "explain", "for", "together"),
        {"methods": MANY, "models": MANY}, ({"methods": 2}, {"models": 2}),
    ),
    "flip": QueryOperation(
        "Smallest change that flips the prediction", _slots(f"target {ONE_EXAMPLE}"),
        ("single", "hypothetical", "easy", "drive", "remove", "substitute", "until", "otherwise", "many", "out", "effect", "flip", "smallest", "change", "predict", "model", "class", "example", "data", "word", "if", "enough", "score", "explain"),
    ),
    "mistakes": QueryOperation(
        "Examples that the model gets wrong", _slots("models dataset target count"),
        ("list", "differ", "disagree", "wrong", "examples", "example", "predict", "model", "class", "data", "where", "all", "label", "made"),
    ),
    "evaluate": QueryOperation(
        "Evaluation of methods", _slots("methods models dataset"),
        ("worst", "smallest", "reflect", "hypothetical", "apply", "faithfulness", "testing", "than", "strongly", "compare", "versus", "faithful", "evaluate", "best", "most", "method", "map", "model", "data", "explain", "all", "score", "predict",
         "examples"),
        {"methods": MANY, "models": MANY},
    ),
    "randomize": QueryOperation(
        "Randomization of the model", _slots("methods models dataset example"),
        ("substitute", "robust", "compare", "until", "apply", "heads", "keep", "many", "randomized", "weights", "depend", "sanity", "map", "method", "model", "data", "explain", "change", "if",
         "effect", "all", "examples", "testing", "word", "keep"),
        {"methods": MANY, "models": MANY},
    ),
    "attack": QueryOperation(
        "Attack on an explanation", _slots("methods models dataset example"),
        ("small", "change", "drive", "apply", "testing", "attack", "robust", "map", "method", "model", "explain", "example", "data", "against", "easy", "predict",
         "keep", "examples"),
        {"methods": 1},
    ),
    "attention": QueryOperation(
        "Attention of the heads", _slots(f"layer head {ONE_EXAMPLE}"),
        ("all", "who", "score", "attention", "heads", "model", "word", "example", "data", "where", "pattern"),
    ),
    "similarity": QueryOperation(
        "Similarity of two texts", _slots("dataset example text text_pair"),
        ("explain", "map", "compare", "together", "mean", "score", "similar", "word", "examples", "example", "data", "why", "two", "drive", "important", "most"),
        least=({"text": 1, "text_pair": 1}, {}),
    ),
}  # fmt: skip
"""By id, in the order in which they are listed to people."""

PLACE = "[ in {example}][ in {text}][ and {text_pair}][ of the data set {dataset}][ with the model {models}]"
SETTING = "[ with the models {models}][ on the data set {dataset}]"
FORMS: tuple[QueryForm, ...] = (
    QueryForm("explain", ("explain",), f"explain the prediction[ for class {{target}}]{PLACE}[ by {{methods}}]"),
    QueryForm("explain", ("why", "predict"), f"why is the prediction[ {{target}}]{PLACE}[ by {{methods}}]"),
    QueryForm("explain", ("why",), f"why is it {{target}}{PLACE}[ by {{methods}}]", least={"target": 1}),
    QueryForm("explain", ("why",), f"why{PLACE}", least={"input": 1}),
    QueryForm("explain", ("drive", "predict"), f"what drives the prediction[ towards {{target}}]{PLACE}[ by {{methods}}]",
              without=("word", "hypothetical")),
    QueryForm("explain", ("drive", "word"),
              f"which words drive the prediction[ towards {{target}}]{PLACE}[ by {{methods}}]", without=("hypothetical",)),
    QueryForm("explain", ("map",), f"map of {{methods}}[ for class {{target}}]{PLACE}", least={"methods": 1}),
    QueryForm("explain", ("important",), f"importance by {{methods}}[ for class {{target}}]{PLACE}", {"methods": 1}, ("word",)),
    QueryForm("explain", ("apply",), f"run {{methods}}[ for class {{target}}]{PLACE}", least={"methods": 1}),
    QueryForm("explain", (), f"{{methods}}{PLACE}", least={"methods": 1, "input": 1}),
    QueryForm("top", ("most", "important", "word"),
              f"the[ {{count}}] most important words[ for {{target}}]{PLACE}[ by {{methods}}]"),
    QueryForm("top", ("important", "word"), f"[{{count}} ]important words[ for {{target}}]{PLACE}[ by {{methods}}]"),
    QueryForm("top", ("most", "word"), f"the top[ {{count}}] words[ for {{target}}]{PLACE}[ by {{methods}}]"),
    QueryForm("top", ("rank", "word"), f"rank the words[ for {{target}}]{PLACE}[ by {{methods}}]"),
    QueryForm("top", ("drive", "word"),
              f"which {{count}} words drive the prediction[ towards {{target}}]{PLACE}[ by {{methods}}]", {"count": 1}),
    QueryForm("predict", ("predict",), f"the prediction[ of class {{target}}]{PLACE}"),
    QueryForm("predict", ("certain",), f"how certain is the model[ of class {{target}}]{PLACE}"),
    QueryForm("predict", ("class",), f"the class{PLACE}", least={"input": 1}),
    QueryForm("predict", ("score",), f"the score{PLACE}", least={"input": 1}),
    QueryForm("predict", (), f"what does {{models}} say[ about {{example}}][ about {{text}}][ and {{text_pair}}][ of the data set {{dataset}}][ for class {{target}}]", least={"models": 1, "input": 1}),
    QueryForm("predict", ("apply",), f"run {{models}} on {{example}}[ of the data set {{dataset}}]", least={"models": 1, "input": 1}),
    QueryForm("predict", ("apply", "model"), f"run the model{PLACE}", least={"input": 1}),
    QueryForm("delete", ("remove",), f"what if {{word}} is removed{PLACE}[ for class {{target}}]"),
    QueryForm("replace", ("substitute",), f"what if {{word}} is replaced by {{replacement}}{PLACE}[ for class {{target}}]"),
    QueryForm("disagree", ("disagree",), f"where do {{methods}} disagree most{PLACE}"),
    QueryForm("disagree", ("differ", "most"), f"where do {{methods}} differ most{PLACE}"),
    QueryForm("disagree", ("differ", "where"), f"where do {{methods}} differ{PLACE}"),
    QueryForm("disagree", ("differ", "word"), f"which words do {{methods}} score differently{PLACE}"),
    QueryForm("disagree", ("differ", "examples"), f"which examples do {{methods}} score differently{PLACE}"),
    QueryForm("disagree", ("agree", "worst"), f"worst agreement of {{methods}}{PLACE}"),
    QueryForm("disagree", ("agree", "smallest"), f"where do {{methods}} agree least{PLACE}"),
    QueryForm("disagree", ("similar", "smallest"), f"where are {{methods}} least similar{PLACE}"),
    QueryForm("compare", ("compare",), f"compare {{methods}}{PLACE}"),
    QueryForm("compare", ("differ",), f"difference between {{methods}}{PLACE}"),
    QueryForm("compare", ("together",), f"{{methods}} side by side{PLACE}"),
    QueryForm("compare", ("versus",), f"{{methods}} versus{PLACE}"),
    QueryForm("compare", ("predict",), f"the predictions[ in {{example}}] by {{models}}", least={"models": 2}),
    QueryForm("compare", ("agree",), f"do {{models}} agree[ in {{example}}]", least={"models": 2}),
    QueryForm("flip", ("smallest", "change"), f"the smallest change that flips the prediction[ to {{target}}]{PLACE}"),
    QueryForm("flip", ("counterfactual",), f"counterfactual[ for class {{target}}]{PLACE}"),
    QueryForm("flip", ("drive", "hypothetical"), f"what would make it {{target}}{PLACE}", {"target": 1}, ("word",)),
    QueryForm("flip", ("flip", "predict"), f"what flips the prediction[ to {{target}}]{PLACE}"),
    QueryForm("flip", ("smallest", "substitute"), f"the fewest words to swap to get {{target}}{PLACE}", {"target": 0}),
    QueryForm("flip", ("smallest", "remove"), f"the fewest words to delete to get {{target}}{PLACE}", {"target": 0}),
    QueryForm("flip", ("hypothetical", "change"), f"what should change to get {{target}}{PLACE}", {"target": 1}),
    QueryForm("flip", ("enough", "change"), f"what change is enough to get {{target}}{PLACE}", {"target": 1}),
    QueryForm("flip", ("hypothetical", "flip"), f"how could it switch to {{target}}{PLACE}", {"target": 1}),
    QueryForm("flip", ("flip", "otherwise"), f"what switches it to something else{PLACE}"),
    QueryForm("flip", ("change", "otherwise"), f"what change makes it otherwise[ {{target}}]{PLACE}"),
    QueryForm("mistakes", ("differ", "label"), f"[{{target}} ]examples where the prediction differs from the label{SETTING}"),
    QueryForm("mistakes", ("wrong",), f"[{{target}} ]examples that the model gets wrong{SETTING}"),
    QueryForm("evaluate", ("faithful",), f"how faithful is {{methods}}{SETTING}", least={"methods": 1}),
    QueryForm("evaluate", ("faithful", "method"), f"which method is the most faithful{SETTING}"),
    QueryForm("evaluate", ("best", "method"), f"which method is the best{SETTING}"),
    QueryForm("evaluate", ("best",), f"how good is {{methods}}{SETTING}", least={"methods": 1}),
    QueryForm("evaluate", ("worst", "method"), f"which method is the worst{SETTING}"),
    QueryForm("evaluate", ("reflect", "model"), f"does {{methods}} reflect the model{SETTING}", least={"methods": 1}),
    QueryForm("evaluate", ("reflect",), f"does {{methods}} reflect it{SETTING}", least={"methods": 1, "models": 1}),
    QueryForm("evaluate", ("faithfulness",), f"faithfulness leaderboard{SETTING}"),
    QueryForm("evaluate", ("apply", "method", "hypothetical"), f"which method should I use{SETTING}"),
    QueryForm("evaluate", ("evaluate",), f"evaluate {{methods}}{SETTING}", least={"methods": 1}),
    QueryForm("evaluate", ("evaluate", "method"), f"evaluate all methods{SETTING}"),
    QueryForm("randomize", ("depend", "weights"), f"does {{methods}} depend on the weights{SETTING}"),
    QueryForm("randomize", ("randomized",), f"{{methods}} with randomized weights{SETTING}"),
    QueryForm("randomize", ("sanity",), f"sanity check of {{methods}}{SETTING}"),
    QueryForm("attack", ("adversarial",), f"attack {{methods}}{PLACE}"),
    QueryForm("attack", ("attack", "map"), f"can the map of {{methods}} be manipulated{PLACE}"),
    QueryForm("attack", ("attack",), f"can the map of {{methods}} be fooled{PLACE}", least={"methods": 1}),
    QueryForm("attack", ("change", "map", "keep"), f"change the map but keep the prediction{PLACE}"),
    QueryForm("attack", ("robust",), f"how robust is {{methods}}{PLACE}", least={"methods": 1}),
    QueryForm("attack", ("robust", "map"), f"how robust is the map{PLACE}"),
    QueryForm("attention", ("attention",), f"the attention[ of head {{head}}][ in layer {{layer}}]{PLACE}"),
    QueryForm("attention", ("heads",), f"the attention heads[ of layer {{layer}}]{PLACE}"),
    QueryForm("attention", ("attention", "map"), f"attention map of head {{head}}[ in layer {{layer}}]{PLACE}", least={"head": 1}),
    QueryForm("attention", ("attention", "map"), f"attention map of layer {{layer}}{PLACE}", least={"layer": 1}),
    QueryForm("attention", (), f"head {{head}} in layer {{layer}}{PLACE}", least={"head": 1}),
    QueryForm("attention", (), f"layer {{layer}}{PLACE}", least={"layer": 1}),
    QueryForm("similarity", ("similar",), f"which words make the two texts similar{PLACE}"),
    QueryForm("similarity", ("mean", "two"), f"do both texts mean the same{PLACE}"),
    QueryForm("similarity", ("mean",), f"do {{text}} and {{text_pair}} mean the same", least={"text_pair": 1}),
    QueryForm("similarity", ("compare",), f"compare {{text}} and {{text_pair}}", least={"text_pair": 1}),
)  # fmt: skip
"""The forms of all questions; the first of an operation is the one that is written for it."""

FILLERS = frozenset(
    """
    a an the of in on at by for from with to into onto and or as is are was were be been being am do does did doing has
    have had can could would will should may might i you we me us it its itself they them their that those these there
    here please show tell give display see find get gets got getting want like let lets need know using via through
    according per between among within across over under regarding about what whats which how who's then so now also
    this look looks looking view open plot draw visualize visualise present list print say says said s d m re ve ll
    when come comes go goes going went i'd based respect terms another each own much id im ive ill hows wheres wich wat pls plz wonder wondering curious interested really actually truly exactly again quickly quick simply basically maybe perhaps thanks thank ok okay kindly only just way ways put currently seem seems seemed one hi hey needs needed asked ask asking quite too there currently particular given
    """.split()
)
"""Words that change nothing."""
CLASSES: Mapping[str, str] = {
    "explain": "understand understanding interpreting interpreted rationales sense walk break breakdown explain explains explained explaining explanation explanations interpret interpretation attribution "
    "attributions attribute attributed justify justification rationale clarify account",
    "map": "colours colour coloured colouring visualisation mark marks marked marking light lights lit glow heatmapped color colors colour colored coloured overlay saliencies relevances map maps heatmap heatmaps saliency highlight highlights highlighted explanation explanations attribution "
    "attributions scores relevance result results output outputs heat picture visualization",
    "apply": "computed calculated computes craft construct build rerun recompute feed redo ran running run apply use compute calculate make create generate produce try used applied",
    "method": "method methods technique techniques explainer explainers approach approaches algorithm algorithms "
    "attribution explanation explanations baseline",
    "model": "model models classifier classifiers network net transformer",
    "predict": "answers opinions responses reaction chooses categorizes conclude concludes concluded conclusion judge judges judged judgement judgment tag tags tagged grade grades graded opinion take pick picks picked reach reaches reached arrive arrives arrived outputs sentiments mind response predict predicts predicted predicting prediction predictions classify classifies classified "
    "classification categorize categorizes categorized categorise decision decisions decide decides decided verdict output outputs answer outcome outcomes sentiment "
    "result results think thinks choose chose chosen call calls called guess rate rates rated label labels labeled "
    "labelled labeling assign assigns assigned",
    "class": "class classes label labels category side direction",
    "label": "truth annotation annotations annotated correct label labels labeled labelled true gold",
    "score": "grade percentage likelihood odds chance score scores probability probabilities logit logits confidence value values level",
    "example": "ex document doc statement img pic datapoint example review text sentence item instance sample case input image picture photo scene pair pairs "
    "statement passage",
    "examples": "documents docs datapoints items examples reviews texts sentences items instances samples cases inputs images pictures photos scenes "
    "digits pairs ones entries predictions statements premise hypothesis",
    "data": "data dataset datasets set sets corpus collection",
    "word": "clue clues cue cues signal signals hint hints word words token tokens term terms patch patches region regions area areas part parts pixel pixels feature "
    "features piece pieces phrase phrases",
    "most": "max furthest farthest first leading dominant heaviest max most strongest hardest mostly heavily leading prominent most top highest strongest biggest largest greatest main key primary max maximum maximal best",
    "important": "relevances conveys contributor contributors trigger triggers scoring scored stand stands stick sticks weighted weights attribution attributions relevances important importance importances relevant relevance influential influence influences influenced influencing "
    "decisive significant crucial salient matter matters mattered mattering count counts counted weigh weighs weighed "
    "essential key main informative predictive contribute contributes contributed contributing contribution "
    "contributions critical vital impactful weight evidence",
    "drive": "trigger triggers triggered carry carries carried bring brings brought create creates drive drives drove driving driven make makes made making push pushes pushed pushing cause causes caused "
    "causing lead leads led leading rely relies relied relying depend depends depended support supports supported "
    "supporting speak speaks favor favors argue argues responsible determine determines determined evidence tip tips "
    "affect affects affected use uses used behind decide decides decided towards toward pull pulls convince convinced "
    "swing swings steer steers sway sways base based point points",
    "for": "towards toward favor support supporting behind",
    "why": "why reason reasons because",
    "certain": "certain sure confident certainty confidence probability probabilities likely",
    "remove": "minus hide hides hidden hiding ignore ignores ignored ignoring skip skips skipped skipping blank blanked wipe wiped redact redacted suppress suppressed scratch removal remove removes removed removing removal delete deletes deleted deleting deletion drop drops dropped "
    "dropping omit omits omitted omitting omission erase erases erased erasing cut cuts cutting strike struck exclude "
    "excludes excluded excluding mask masked masking missing gone absent without leave leaves leaving left take takes "
    "taking taken taking out away disappear disappears disappeared vanish vanishes vanished scrap kill lose loses",
    "substitute": "write writes insert inserts inserted use uses replace replaces replaced replacing replacement substitute substitutes substituted substituting "
    "substitution swap swaps swapped swapping change changes changed changing exchange exchanges exchanged exchanging "
    "turn turns turned turning switch switches switched switching instead became becomes become becoming rewrite "
    "rewrites rewritten out place",
    "effect": "new right again impactful matters version result remain remains remained happen happens happened happening effect effects impact impacts influence influences affect affects "
    "affected difference consequence matter matters response react reacts reaction behave behaves still same become "
    "becomes after",
    "if": "if when suppose once upon whether case after assuming by were",
    "change": "write writes writing rephrase rephrased rephrasing reword rewrite adjust adjusts adjusting adjustment edits rewording reword fall falls fell rise rises rose increase increases increased decrease decreases decreased up down lower higher grow grows shrink shrinks altering edits moving change changes changed changing move moves moved shift shifts shifted differ differs alter "
    "alters altered edit edits edited editing modification modifications modify modified tweak tweaks different "
    "differently perturbation perturbations stay stays",
    "disagree": "stories split splits splitting divide divides divided separate separates deviate deviates deviation deviations mismatch odds gap gaps contradictory opposite opposing argue far furthest farthest disagree disagrees disagreed disagreeing disagreement disagreements conflict conflicts conflicting "
    "contradict contradicts contradicting diverge diverges diverging divergence clash clashes discrepancy "
    "discrepancies inconsistent apart",
    "differ": "variations varied vary varies varying variation distance distant gap gaps differently differ differs differed differing difference differences different",
    "where": "where",
    "strongly": "strongly much far more",
    "compare": "contrast compare compare compares compared comparing comparison comparisons versus vs contrast contrasts contrasting "
    "juxtapose against",
    "together": "screens parallels screen page once same parallel line up side_by_side next together both beside",
    "flip": "flip flips flipped flipping reverse reverses reversed reversing invert inverts switch switches "
    "switched switching overturn overturns toggle change changes changed changing alter alters altering turn turns",
    "smallest": "closest nearest cheapest easiest shortest fewer barely smallest minimal minimum least fewest tiniest small smaller shortest slightest little few tiny lowest weakest "
    "simplest",
    "counterfactual": "boundary counterfactual counterfactuals contrastive",
    "enough": "possible just must have mind possible enough needed necessary required need needs sufficient must",
    "wrong": "mess messes messed confuse confuses confused trouble troubles mistakenly misread misreads misreading bad badly misjudging slip slips slipped trip trips tripped failings faulty flawed misfire misfires mispredicting wrong wrongly mistake mistakes mistaken error errors misclassified misclassify misclassifies "
    "misclassification misclassifications incorrect incorrectly fail fails failed failing failure failures "
    "mispredicted mispredicts mispredict misjudge misjudges misjudged mislabel mislabels mislabeled mislabelled "
    "erroneous erroneously mispredictions err errs struggle struggles blunder blunders",
    "all": "all every any",
    "faithful": "believes believer truth rely relies honest honestly truthful truthfully true valid validity credible believe believable believed accurate accurately accuracy rely reliably faithful faithfully faithfulness reliable reliability trustworthy trust trusted trustworthiness "
    "faithfullness comprehensiveness sufficiency",
    "evaluate": "rankings assessed measured win wins winner compete competes score scores compare leaderboards benchmarking metrics metric evaluate evaluates evaluated evaluating evaluation evaluations benchmark benchmarks assess assesses "
    "assessing assessment rank ranks ranking leaderboard rate test tests testing quality measure measures",
    "best": "recommends recommend recommended recommendation worse worst perform performing winner wins win correct best good better well performs perform",
    "randomized": "destroy destroys destroyed garbage cascading cascade noisy randomly reset resets resetting noise fresh initialized reinitializing shuffling scrambling untrained randomized randomised randomize randomise randomization randomisation randomizing random_weights "
    "reinitialized reinitialised reinitialize shuffled shuffle untrained scrambled scramble",
    "weights": "learned learns learnt params neurons weights parameters weight parameter random_weights trained learned training",
    "depend": "survived use uses notice notices noticed using know knows care cares ignore ignores independent independently blind survive survives respond react reacts reacting matter matters depend depends depended dependent dependence sensitive sensitivity insensitive rely relies reliant "
    "respond responds reflect reflects",
    "sanity": "sanity_check sanity_checks sanity",
    "testing": "fail fails failed failing check checks pass passes passed passing test tests tested apply run",
    "attack": "perturb perturbs perturbed perturbing rig rigged bend twist twisted ruin ruins ruined ruining wreck wrecks stress lie lies lying break breaks broken cheat cheated sabotage sabotaged exploit exploited spoof spoofed fake faked falsify falsified trickery attackers adversaries attack attacks attacked attacking manipulate manipulates manipulated manipulating manipulation "
    "adversarial adversarially adversary fool fooled fooling fools trick tricked tricking deceive deceived tamper "
    "tampered game gamed hack hacked corrupt corrupted distort distorted forge forged manipulable attackable mislead "
    "misled",
    "robust": "robustly resist resists resistant resistance withstand withstands secure safe brittle sturdy stably robust robustness fragile stable stability vulnerable",
    "against": "against under to attack attacks attacked adversarial manipulation perturbation perturbations input "
    "inputs change changes changed changing perturb perturbed",
    "easy": "easy easily possible possibly possibility try",
    "keep": "but but_not while without keep keeping keeps same unchanged still constant stays stay staying",
    "attention": "attention attend attends attended attending attentions pay pays paid paying focus focuses",
    "heads": "head heads layer layers",
    "pattern": "pattern patterns weights weight matrix matrices",
    "similar": "connections matched linking linked align aligns aligned alignment paraphrase paraphrases bilrp coincide coincides resembling near common share shares shared sharing overlap overlaps overlapping correspond corresponds corresponding correspondence connect connects connected connection link links linked tie ties together equivalent likeness alikeness bring brings similar similarity similarities alike resemble resembles resemblance related relate close closeness "
    "match matches matching similarly",
    "small": "small smaller tiny slight slightly minor little subtle",
    "versus": "versus vs against",
    "rank": "rank ranks ranked ranking order ordered sort sorted",
    "until": "until till til before",
    "otherwise": "otherwise else something opposite other another",
    "many": "number numbers many much",
    "who": "who whom",
    "list": "list filter narrow down only out set analysis overview some few",
    "mean": "talk talks talking thing things same meaning mean means",
    "than": "than rather over",
    "out": "out up",
    "single": "single",
    "worst": "worst worse",
    "faithfulness": "faithfulness comprehensiveness sufficiency leaderboard",
    "reflect": "reflect reflects reflecting mirror mirrors capture captures describe describes fit fits",
    "two": "two both other",
    "adversarial": "attack attacks attacked attacking adversarial adversarially manipulate manipulates manipulated "
    "manipulating manipulation",
    "agree": "correlation correlate correlates consistency consistent overlap agree agrees agreed agreement",
    "made": "make makes made",
    "hypothetical": "must would could should might can",
}
"""The words of each class; a word may be in several. An underscore joins the words of a phrase (see `PHRASES`)."""
CLASSES_OF: Mapping[str, frozenset[str]] = {
    word: frozenset(name for name, words in CLASSES.items() if word in words.split())
    for word in {word for words in CLASSES.values() for word in words.split()}
}
"""The classes of a word."""
PHRASES: tuple[tuple[str, str], ...] = (
    (
        r"side by side|next to(?: each other)?|at the same time|at once|in parallel|head to head|alongside",
        "side_by_side",
    ),
    (r"stacks? up", "compare"),
    (
        r"random (?:weights?|parameters?|params|models?|networks?|initiali[sz]ation|init|version|copy|values)",
        "random_weights",
    ),
    (
        r"(?P<weights>(?:weights?|parameters?|params)(?: \S+){0,4}?) (?:were|was|are|is|be|become|becomes|being|to|made) random",
        r"\g<weights> random_weights",
    ),
    (r"re initiali[sz](?P<end>ed|e|es|ing)", r"reinitializ\g<end>"),
    (r"sanity checks?", "sanity_check"),
    (r"mis (?P<verb>classif|predict|label|judg)", r"mis\g<verb>"),
    (r"heat maps?", "heatmap"),
    (r"each other|one another", "each"),
    (r"data sets?", "dataset"),
    (r"counter factuals?", "counterfactual"),
    (r"(?:would|does) it take", "needed"),
    (r"attn", "attention"),
    (r"(?:could|would|can) (?:you|i|we)(?: please)?", "please"),
    (r"would like", "please"),
    (
        r"(?:not|never|\w+n't|didnt|doesnt|cannot|cant|wasnt) (?:\w+ ){0,2}?(?:correctly|correct|right|rightly|properly)",
        "wrongly",
    ),
    (r"(?:not|dont|doesnt|don't|doesn't|aren't|arent) (?:\w+ )?(?:agree|in agreement|match|consistent)", "disagree"),
    (r"(?:but|and) not", "but_not"),
    (r"if possible", "please"),
    (r"(?P<noun>text|sentence) (?:a|one|1) and (?:(?P=noun) )?(?:b|two|2)", "both texts"),
)
"""Several words that count as one, before classes are looked up: patterns, and what takes their place."""

WORD = r"(?:the )?(?:word |words |token |term |phrase )?"
_X = r"(?P<word>«\d+»|[^\W_]+(?:['’-][^\W_]+)*)"
_Y = r"(?P<replacement>«\d+»|[^\W_]+(?:['’-][^\W_]+)*)"
_BE = r"(?:is|are|was|were|be|gets|got|get|being|has been|had been|have been)"
_GONE = (
    r"(?:removed|deleted|dropped|omitted|erased|cut|struck|excluded|masked|missing|gone|absent|left out|taken out|hidden|ignored|skipped|blanked out|wiped out|"
    r"taken away|cut out|struck out|no longer there|not there|disappear(?:s|ed)?|vanish(?:es|ed)?)"
)
_REMOVE = (
    r"(?:remov(?:e|es|ing|ed)|the removal of|delet(?:e|es|ing|ed)|the deletion of|drop(?:s|ping|ped)?|"
    r"omit(?:s|ting|ted)?|eras(?:e|es|ing|ed)|cut(?:s|ting)?(?: out)?|strik(?:e|es|ing)(?: out)?|"
    r"exclud(?:e|es|ing|ed)|mask(?:s|ing|ed)?(?: out)?|leav(?:e|es|ing) out|left out|tak(?:e|es|ing) (?:out|away)|took out|"
    r"get(?:s|ting)? rid of|los(?:e|es|ing)|without|minus|removal of|deletion of|hid(?:e|es|ing)|ignor(?:e|es|ing|ed)|"
    r"skip(?:s|ping|ped)?|blank(?:s|ing|ed)? out|wip(?:e|es|ing|ed) out)"
)
_BY = r"(?:by|with|to|into|for|through|w/)"
_SWAP = r"(?:replac(?:e|es|ing|ed)|swap(?:s|ping|ped)?(?: out)?|exchang(?:e|es|ing|ed)|substitut(?:e|es|ing|ed))"
_TURN = r"(?:chang(?:e|es|ing|ed)|turn(?:s|ing|ed)?|switch(?:es|ing|ed)?|rewrit(?:e|es|ing)|edit(?:s|ing|ed)?)"
_SWAPPED = r"(?:replaced|swapped(?: out)?|exchanged|substituted|changed|turned|switched|rewritten|edited|swapped out)"
EDITS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (operation, re.compile(rf"(?<![\w«]){pattern}(?![\w»])", re.IGNORECASE))
    for operation, pattern in (
        ("replace", rf"substitut(?:e|es|ing|ed) {WORD}{_Y} for {WORD}{_X}"),
        ("replace", rf"{_Y} (?:is |was |were )?substituted for {WORD}{_X}"),
        ("replace", rf"if {WORD}(?P<word>«\d+») (?:was|were|is|had been) {WORD}(?P<replacement>«\d+»)"),
        ("replace", rf"{WORD}{_Y} (?:instead|in place) of {WORD}{_X}"),
        (
            "replace",
            rf"instead of {WORD}{_X},? (?:it |the text |the review )?(?:said |says |had |has |we had )?{WORD}{_Y}",
        ),
        ("replace", rf"{WORD}{_Y} rather than {WORD}{_X}"),
        ("replace", r"(?P<replacement>«\d+»),? (?:and |but )?not (?P<word>«\d+»)"),
        ("replace", rf"{_Y} as (?:a |the )?(?:replacement|substitute) for {WORD}{_X}"),
        ("replace", rf"(?:put|use|write|insert)s? {WORD}{_Y} (?:where it says|where it said|in for|for) {WORD}{_X}"),
        ("replace", rf"(?:from )?{WORD}{_X} ?(?:->|→|=>|-->) ?{WORD}{_Y}"),
        ("replace", rf"from {WORD}{_X} to {WORD}{_Y}"),
        ("replace", rf"{_SWAP} {WORD}{_X} (?:by|with|w/|for|to|into) {WORD}{_Y}"),
        ("replace", rf"{_TURN} {WORD}{_X} (?:to|into|for|with) {WORD}{_Y}"),
        ("replace", rf"{WORD}{_X} {_BE} (?:instead )?{_SWAPPED} {_BY} {WORD}{_Y}"),
        ("replace", rf"{_SWAPPED} {WORD}{_X} {_BY} {WORD}{_Y}"),
        ("replace", rf"{WORD}{_X} (?:becomes?|became|turns into|turned into|changes to|changed to) {WORD}{_Y}"),
        ("delete", rf"(?:leav(?:e|es|ing)|tak(?:e|es|ing)|cut(?:s|ting)?|left) {WORD}{_X} (?:out|away)"),
        (
            "delete",
            rf"{WORD}{_X} (?:was|were|is|had) ?(?:not|n't|n’t|nt) (?:been )?(?:there|present|included|in it|in)",
        ),
        ("delete", rf"(?:did|does|do|had|has)(?: not|n't|n’t|nt) (?:have|contain|include|say|mention|use) {WORD}{_X}"),
        ("delete", rf"(?:there (?:was|were|is) no|had no|has no) {WORD}{_X}"),
        ("delete", rf"{WORD}{_X} {_BE} {_GONE}"),
        ("delete", rf"{WORD}{_X} (?:disappear(?:s|ed)?|vanish(?:es|ed)?)"),
        ("delete", rf"{_REMOVE} {WORD}{_X}"),
    )
)
"""Phrases that remove or replace a word, quoted or not, the most specific first."""
NO_WORD = FILLERS | frozenset(
    "the a an it this that these those all any every each some my your our their them one which what from in of by with "
    "is are was were be and or to same changing altering affecting knowing using then when if without would will til".split()
) | {word for name in ("word", "example", "examples", "data", "model", "method", "map", "predict", "class", "score",
                       "weights", "heads") for word in CLASSES[name].split()}  # fmt: skip
"""Words that an edit never means unless they are quoted or follow "the word"."""

"""The plan of a test of concepts: the declaration of the experiment `concepts`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.data.registry import parse_names
from engine.errors import not_allowed
from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.params import Plain, option

MOST_CONCEPTS = 8
LEAST_EXAMPLES = 10
"""Examples that a concept has at least."""
MOST_EXAMPLES = 400
"""Examples of a concept that are read; more are drawn from."""
_NEGATION = (
    "reviews:slice=negation,rows=10+12-13+16+19+24+28+31+51-52+56+58+60+67+71+73+75-76+79+86+92+95+104+115-119+122+124+"
    "130+133+135+157+159+163+168+170-172+174-175+177-178+180+183+186+195+199+209+213+215-216+218+222-223+226+228+230+"
    "234"
)
_BOATS = (
    "scenes:slice=boats,rows=3+12+24+31+41+57+68+71+82+95+104+119+121+135+141+155+165+172+180+198+209+213+221+234+240+"
    "256+263+274+283+297+300+311+327+337+346+350+368+378+388+398"
)
_PRAISE = (
    "reviews-written:slice=praise,rows=0+2+4+6+8+10+12+14+16+18+20+22+24+26+28+30+32+34+36+38+40+42+44+46+48+50+52+"
    "54+56+58+60+62+64+68-69+71+73+75+77+79+81+83+85+87-88+90+92+94+96+98+100+102+104+106+108+110+112+115-116+118+"
    "120+122+124+126+128+131-132+134+137-138+140+142+144+146+148+150+152+154+156+158+160+162+164+166+168+170+172+"
    "175-176+178+180+182+184+186+188+190+193+195+197+199+201+203-204+207+209-210+213-214+216+218+220+222+224+226+"
    "229+231-232+234+237+239+241+243+245+247+249+251+254+256+258+261+263-264+267-268+271-272+274+277-278+280+282+"
    "285-286+289-290+292+295-296+299+301+303+305+307+310-311+313+315+318+320+322+325-326+328+333-334+337+339+342+"
    "344+347+349+351+353+355+357-358+360+362+364+366+369-370+372+375+377+379+381+383-384+386+389+391+393+395+397+"
    "399-400+403-404+407-408+411-412+414+417-418+421-422+425-426+428+431-432+435+437-438+440+442+444+446+448+450+"
    "452-453+456-457+459-460+463-464+466+468+470+472-473+475+477+479+481+484-485+487+489+491+493-494+497+499+"
    "501-502+504+506-507+509+511+513+515+517-518+520-521+524-525+527+529+531-532+535+537-538+541+543-544+547+549+"
    "552+554+556+559+561+563-564+566+569+571-572+574+577+579+581+583+586-587+589+591+593+596+598+600+603-604+607+"
    "609-610+612-613+615+617+619+622-623+626-627+630-631+634-635+638+640-641+644-645+648+650-651+654-655+657+659+"
    "662+664-665+668-669+672-673+676+678+680+682-683+685+687+689+692-693+695+697+699+701+704+706+708+710+712+"
    "714-715+718+720+722+724-725+727+730+732-733+735+737+740-741+744+746+748-749+752+754+756+758+760-761+763+766+"
    "768-769+771+773+775+777+780+782-783+785+788+790+792-793+795+797+800-801"
)
_RESTAURANTS = (
    "reviews-written:slice=restaurants,rows=521-522+524+527-528+532-535+539+541+543+545+547-548+550+554-557+"
    "561-563+568-570+572-573+576-577+581-584+587+591-594+599-601+606-607+611-612+615-618+623-624+627-628+631-632+"
    "635-636+639-640+643-646+651-654+659-662+665-666+671-674+677-678+681-685+689-690+693+696+699-700+705-708+"
    "712-714+719-722+725-726+731-732+735-736+739-744+747-748+751-754+759-760+763-766+769-770+772+775-776+779-780+"
    "785-786+789-792+795-796+799-800+805-806+809-810+813-814+817-818+821-822+826-828+831-832+835-837+840-843+"
    "848-849+852-853+856+859-861+864-867+874-875+878-881+886-887+890-893+898-899+902-906+911-914+917-918+921-923+"
    "926-929+934-937+940-941+946-948+950+953-954+957+960-961+966-967+970-971+974-977+984-987+989+992+996-998+"
    "1002-1003+1008-1011+1018-1021+1026-1029+1034-1035+1038+1051+1064-1065+1077+1088+1099+1103+1128+1156+1171-1172+"
    "1185+1189+1192+1213+1220+1236+1265+1280+1284+1289+1307+1309-1310+1312+1342+1350+1353+1380+1389+1395+1443-1444+"
    "1457+1483+1487+1497+1504+1516+1532+1540+2311+2313+2315+2317+2319+2321+2323+2325+2327+2329+2331+2333+2335+2337+"
    "2339+2341+2343+2345+2347+2349+2351+2353+2355+2357+2359+2361+2363+2365+2367+2369+2371+2373+2375+2377+2379+2381+"
    "2383+2385+2387+2389-2390+2392+2394+2396+2398+2400+2402+2404+2406+2408+2410+2412+2414+2416+2418+2420+2422+2424+"
    "2426+2428+2430+2432+2434+2436+2438+2440+2442+2444+2446+2448+2450+2452+2454+2456+2458+2460+2462-2463+2465+2467+"
    "2469+2471+2473+2475-2476+2479+2481+2483+2485+2487+2490-2491+2493+2495+2497+2499-2500+2503-2504+2507-2508"
)
INCLUDED: Mapping[str, str] = {
    "praise": _PRAISE, "restaurants": _RESTAURANTS, "negation": _NEGATION, "boats": _BOATS,
}  # fmt: skip
"""Concepts that need no data set: the first 400 written reviews that are positive, and the first 400 of restaurants;
reviews with not, never, no or n't; pictures of a boat."""


_INCLUDED_BY_KIND = "praise, restaurants or negation for texts, boats for pictures"
SETS = (
    f"An included concept ({_INCLUDED_BY_KIND}), or a data set, a slice, a file or a folder with at least "
    f"{LEAST_EXAMPLES} examples. Several between commas."
)
"""What the field for concepts takes."""


def parse_layers(text: str) -> tuple[int, ...]:
    """Layers between commas; none for all. Errors say what is allowed."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(re.fullmatch(r"[0-9]{1,3}", part) for part in parts) or len({*map(int, parts)}) < len(parts):
        raise not_allowed("layers", "different layers from 0 between commas", text, "Example: 0,3,5.")
    return tuple(map(int, parts))


def parse_classes(text: str) -> tuple[str, ...]:
    """Names of classes between commas; none for all."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_concepts(text: str) -> tuple[str, ...]:
    """Data sets between commas, whose options may contain commas."""
    return tuple(parse_names(text))


@dataclass(frozen=True)
class ConceptsPlan(ExperimentPlan):
    """The plan. `dataset`: of the scored examples and of the random examples.

    `concepts`: of `INCLUDED`, or data sets whose examples have the concept. `texts`: examples of further concepts, one
    a line; a line "# name" begins another. `layers`, `classes`: empty for all. `runs`: concept activation vectors a
    concept.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    concepts: tuple[str, ...] = option(
        (), f"Included concepts ({_INCLUDED_BY_KIND}), data sets, slices, files or folders, between commas.",
        metavar="D,D", link="concept", parse=parse_concepts, label="Concepts: names or data sets", place="lead",
        about=SETS,
    )  # fmt: skip
    texts: str = option(
        "", "Examples of a concept, one a line; a line '# name' begins another concept.", metavar="T", place="lead",
    )  # fmt: skip
    classes: tuple[str, ...] = option(
        (), "Classes whose logits are tested. [default: all]", metavar="A,B", link="class", parse=parse_classes,
        label="Classes", about="Names between commas. Empty: all classes of the model.",
    )  # fmt: skip
    layers: tuple[int, ...] = option(
        (), "Layers, counted from 0. [default: all]", metavar="A,B", parse=parse_layers, label="Layers",
        about="Numbers from 0 between commas. Empty: all layers.",
    )  # fmt: skip
    examples: int = options.examples(200)
    runs: int = option(
        10, "Vectors a concept, each of its own examples.", low=2, most=100, metavar="N", label="Vectors",
        about="Concept activation vectors a concept, each trained on its own part of the concept's examples against "
        "its own random examples.",
    )  # fmt: skip
    seed: int = options.seed("Draws the examples, the random examples and the parts of each concept.")
    split: str | None = options.split()
    dtype: str = options.dtype()
    methods: tuple[str, ...] = options.no_methods()
    params: Mapping[str, Mapping[str, Plain]] = options.params()

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        """None: concepts are tested without explainers."""
        return ()


CONCEPTS = register(
    Experiment(
        id="concepts",
        plan=ConceptsPlan,
        module="engine.concepts.experiment",
        title="Concepts in {models} on {dataset}",
        noun="concepts",
        participle="tested concepts",
        summary="Test whether a prediction depends on concepts given by examples (TCAV). Run it again to resume.",
        doing="reading activations",
        json_help="Print all scores with p-values as JSON.",
        opens_with={
            "text": ConceptsPlan(("reviews-minilm",), "reviews-written", ("praise", "restaurants")),
            "image": ConceptsPlan(("scenes-vit",), "scenes", ("boats",), classes=("boat", "fish")),
        },
    )
)

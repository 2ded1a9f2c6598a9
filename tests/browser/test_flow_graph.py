"""The graph of a flow in Chromium: its steps, what hovering says, paths by click and key, patches on the picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import PALETTES, STEPS, color
from components.widgets.flow_graph import FlowGraph, build_flow_graph, describe_path, describe_path_start, format_share
from engine.heads.flow import FlowPath, attention_flow
from tests.browser.conftest import TIMEOUT_MS, Scheme
from tests.browser.server import Server
from tests.browser.waiting import expect_fits
from tests.head_readings import strongest_path
from tests.unit.components.flow_readings import picture_reading, text_reading

Open = Callable[..., Page]
TEXT, PICTURE = text_reading(), picture_reading()
OUTLINED = "boxes => boxes.map(box => [Number(box.getAttribute('y')), Number(box.getAttribute('x'))])"
"""Until the graph of 512 tokens is drawn by the browser, on a busy machine."""


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    """A page of one graph alone."""
    return parts.page("flow")


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return opened(server, open_page)


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    page = open_page(f"{server.url}?{query}", **more)
    expect(graph_of(page)).to_be_visible(timeout=TIMEOUT_MS)
    return page


def graph_of(page: Page) -> Locator:
    return page.get_by_role("group", name="Flow from the input through")


def drawn(threshold: float | None = None) -> FlowGraph:
    return build_flow_graph(TEXT.explanation, attention_flow(TEXT), 0, threshold)


def node(page: Page, at: int, depth: int) -> Locator:
    """The button of a position at a depth of the text."""
    after = f"after layer {depth - 1}" if depth else "in the input"
    return page.get_by_role("button", name=f"“{at} {TEXT.explanation.tokens[at].text}” {after}:")


def step(page: Page, number: int) -> Locator:
    return page.locator(f"[data-step='{number}']")


def hover_step(page: Page, number: int) -> None:
    """In the middle of its curve, which stands nearer to its ends than its box does."""
    x, y = step(page, number).evaluate(
        "path => { const p = path.getPointAtLength(path.getTotalLength() / 2), b = path.ownerSVGElement"
        ".getBoundingClientRect(); return [b.x + p.x, b.y + p.y]; }"
    )
    page.mouse.move(x, y)


def tip(page: Page) -> Locator:
    return page.locator(".xg-flow-tip")


def said(page: Page) -> Locator:
    return page.get_by_role("status")


def expect_path(page: Page, graph: FlowGraph, path: FlowPath, through: str = "") -> None:
    """What stands below the graph of a path, as Python says it."""
    way, share = describe_path(graph, path).split(": ")
    expect(said(page)).to_have_text(f"Most important path{describe_path_start(graph, path)}{through}: {way}. {share}")


def test_every_step_and_node_is_there_wider_and_darker_for_more_and_the_best_path_is_chosen(page: Page) -> None:
    graph = drawn()
    expect(page.locator(".xg-flow-step")).to_have_count(len(graph.edges) + len(graph.reads))
    expect(graph_of(page).get_by_role("button")).to_have_count(len(graph.nodes))
    for spot in graph.nodes:
        expect(node(page, spot.id[1], spot.id[0])).to_have_accessible_name(
            f"“{spot.id[1]} {TEXT.explanation.tokens[spot.id[1]].text}” "
            + (f"after layer {spot.id[0] - 1}" if spot.id[0] else "in the input")
            + f": {format_share(spot.share)} of the prediction passes through it"
        )
    assert graph.best == strongest_path(attention_flow(TEXT), TEXT.explanation.features)
    expect_path(page, graph, graph.best)
    expect(page.locator(".xg-flow-on")).to_have_count(len(graph.best.positions))
    found = page.locator(".xg-flow-step").evaluate_all(
        "lines => lines.map(line => [line.getAttribute('d'), Number(line.getAttribute('stroke-width')),"
        " Number(line.getAttribute('stroke-opacity'))])"
    )
    looks = {line: (wide, opaque) for line, wide, opaque in found}
    of = [looks[step(page, number).get_attribute("d") or ""] for number in range(len(graph.edges))]
    flows = [edge.flow for edge in graph.edges]
    assert [flow for _, flow in sorted(zip(of, flows, strict=True))] == sorted(flows)
    assert of[0][0] > 2 * of[-1][0]


def test_hovering_a_step_says_its_weight_and_flow_and_lights_what_runs_along_it(page: Page) -> None:
    for number in (0, 3, 11):
        expect_told(page, number)


def expect_told(page: Page, number: int) -> None:
    """While the pointer is on that step, and nothing after."""
    edge = drawn().edges[number]
    name = {at: f"“{at} {token.text}”" for at, token in enumerate(TEXT.explanation.tokens)}
    to, share = name[edge.target], format_share(edge.weight)
    what = f"{to} stays in place" if edge.source == edge.target else f"{name[edge.source]} goes to {to}"
    hover_step(page, number)
    expect(tip(page)).to_have_text(
        f"Layer {edge.layer}: {what} · weight {share} of {to} after the layer · flow "
        f"{format_share(edge.flow)} of the prediction"
    )
    expect(page.locator(".xg-flow-lit")).to_have_count(len(together(edge.layer, edge.source, edge.target)))
    page.mouse.move(1, 1)
    expect(tip(page)).to_be_hidden()
    expect(page.locator(".xg-flow-lit")).to_have_count(0)


def together(layer: int, source: int, target: int) -> set[tuple[int, int, int]]:
    """The steps drawn that lead to this one or on from it, with itself."""
    steps = [(edge.layer, edge.source, edge.target) for edge in drawn().edges]
    found, before, after = {(layer, source, target)}, {(layer, source)}, {(layer + 1, target)}
    for one in sorted(steps, reverse=True):
        if (one[0] + 1, one[2]) in before:
            found.add(one)
            before.add((one[0], one[1]))
    for one in sorted(steps):
        if (one[0], one[1]) in after:
            found.add(one)
            after.add((one[0] + 1, one[2]))
    return found


def test_a_click_chooses_the_most_important_path_through_a_node_and_another_gives_it_back(page: Page) -> None:
    graph = drawn()
    other = next(spot for spot in graph.nodes if spot.id[0] == 1 and spot.path != graph.best)
    depth, at = other.id
    node(page, at, depth).click()
    through = f" through “{at} {TEXT.explanation.tokens[at].text}” after layer 0"
    expect_path(page, graph, other.path, through)
    expect(node(page, at, depth)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Show the strongest steps alone").click()
    fewer = drawn(0.1)
    expect(page.get_by_text(f"{len(fewer.edges)} steps are drawn")).to_be_visible()
    stays = other.id in {spot.id for spot in fewer.nodes}
    expect_path(page, graph, other.path if stays else graph.best, through if stays else "")
    page.reload()
    node(page, at, depth).click()
    node(page, at, depth).click()
    expect_path(page, graph, graph.best)


def test_keys_alone_walk_the_flow_and_choose(page: Page) -> None:
    graph = drawn()
    page.get_by_role("button", name="Show the strongest steps alone").focus()
    page.keyboard.press("Tab")
    top = len(TEXT.weighted)
    expect(node(page, 0, top)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    into = max((edge for edge in graph.edges if edge.layer == top - 1), key=lambda edge: edge.flow)
    expect(node(page, into.source, top - 1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    column = [spot.id[1] for spot in graph.nodes if spot.id[0] == top - 1]
    below = column[column.index(into.source) + 1]
    expect(node(page, below, top - 1)).to_be_focused()
    expect(page.locator(".xg-unseen[aria-live=polite]")).to_contain_text(
        f"“{below} {TEXT.explanation.tokens[below].text}”"
    )
    page.keyboard.press("Enter")
    path = next(spot.path for spot in graph.nodes if spot.id == (top - 1, below))
    expect_path(page, graph, path, f" through “{below} {TEXT.explanation.tokens[below].text}” after layer {top - 2}")
    page.keyboard.press("Escape")
    expect_path(page, graph, graph.best)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    expect(node(page, 0, top)).to_be_focused()


def test_the_patches_of_the_path_are_outlined_on_the_picture(server: Server, open_page: Open, scheme: Scheme) -> None:
    page = opened(server, open_page, "patches=1", scheme=scheme)
    graph = build_flow_graph(PICTURE.explanation, attention_flow(PICTURE), 0, None)
    expect(page.get_by_role("img", name="The picture, with the patches of the path outlined")).to_be_visible()
    patches = sorted({at - 1 for at in graph.best.positions if at})
    found = page.locator(".xg-flow-outlines .xg-flow-path").evaluate_all(OUTLINED)
    assert sorted(found) == [list(divmod(patch, 8)) for patch in patches]
    feature = next(spot for spot in graph.nodes if spot.id[0] == 1 and spot.id[1] not in graph.best.positions)
    page.get_by_role("button", name=f"“{PICTURE.explanation.tokens[feature.id[1]].text}” after layer 0:").hover()
    hovered = page.locator(".xg-flow-outlines .xg-flow-some").evaluate_all(OUTLINED)
    assert hovered == [list(divmod(feature.id[1] - 1, 8))]
    expect(page.locator(".xg-flow-path").first).to_have_css("stroke", rgb(PALETTES[scheme].text))
    expect(page.locator(".xg-flow-step").first).to_have_css("stroke", rgb(color(scheme, "amount", STEPS)))


def rgb(hexed: str) -> str:
    return f"rgb({', '.join(str(int(hexed[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_a_first_layer_is_where_the_drawing_begins(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "start=4")
    graph = build_flow_graph(TEXT.explanation, attention_flow(TEXT, start_layer=4), 4, None)
    expect(page.get_by_text("Before layer 4", exact=True)).to_be_visible()
    expect(page.locator(".xg-flow-step")).to_have_count(len(graph.edges) + len(graph.reads))
    expect_path(page, graph, graph.best)


@pytest.mark.parametrize("query", ["", "patches=1", "long=1&threshold=0.0005"])
def test_on_a_phone_the_page_keeps_its_width(server: Server, open_page: Open, query: str) -> None:
    page = opened(server, open_page, query, width=390, height=844, touch=True)
    expect_fits(page)
    box = page.locator(".xg-flow-box")
    assert box.evaluate("box => box.clientHeight < 0.9 * innerHeight")
    page.locator(".xg-flow-node").last.tap()
    expect(said(page)).to_contain_text(" through “")


def test_512_tokens_are_drawn_at_once_and_scroll_in_their_box(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "long=1&threshold=0.0005")
    steps = page.locator(".xg-flow-near[data-step]").count()
    assert steps == 400
    drawings = page.evaluate(
        "async () => { const box = document.querySelector('.xg-flow-box'); let drawings = 0;"
        " const drawn = new Promise(done => new MutationObserver(() => { drawings += 1; done(); })"
        ".observe(box, { childList: true, subtree: true })); box.style.width = '700px'; await drawn;"
        " for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame); return drawings; }"
    )
    assert drawings == 1
    assert page.locator(".xg-flow-box").evaluate("box => box.scrollHeight > 2 * box.clientHeight")
    labels = page.locator(".xg-flow-labels > div").all_inner_texts()
    numbers = [int(label.split()[0]) for label in labels]
    assert np.all(np.diff(numbers) > 0)

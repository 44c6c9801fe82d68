"""The page "Attention and its cache" in a real browser, on the real model."""

import json
import re
import urllib.error
import urllib.request

import pytest

from pages.attention import CAPITAL, CHINESE
from pages.attention_reading import MAX_TOKENS

pytestmark = pytest.mark.model

STAGE = "#attention .kv-attn-stage[data-shown]"
STEPS = "#attention-steps"
MODEL_MS = 120_000


@pytest.fixture
def opened(visit):
    """`opened("attention", ...)`: the page, once the model has read the sentence; gives the visit."""

    def open_page(path="attention", **how):
        seen = visit(path, **how)
        seen.page.wait_for_selector(STAGE, timeout=MODEL_MS)
        return seen

    return open_page


def say(page, text):
    """Type a sentence and have it read."""
    page.fill("#attention textarea", text)
    page.click("#attention button[type=submit]")


def shown(page, wanted):
    """Wait until "layer.head.token" is on screen."""
    page.wait_for_selector(f'#attention .kv-attn-stage[data-shown="{wanted}"]', timeout=MODEL_MS)


def status(page, words):
    """Wait until the line below the sentence holds `words`."""
    page.wait_for_function(
        "words => document.querySelector('#attention .kv-attn-status').textContent.includes(words)",
        arg=words,
        timeout=MODEL_MS,
    )


def rows(page):
    """The visible rows of the table: position, token, score, weight as text."""
    return page.eval_on_selector_all(
        "#attention tbody tr:not([hidden])",
        """all => all.map(row => [...row.cells].map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()))
              .map(c => [parseInt(c[0]), c[1], c[3], c[4]])""",
    )


def number(text):
    return float(text.replace("−", "-"))


def test_the_first_look(opened):
    page = opened().page
    assert page.locator("#attention textarea").input_value() == CAPITAL["text"]
    shown(page, "16.0.12")
    table = rows(page)
    best = max(table, key=lambda row: number(row[3]))
    assert "Italy" in best[1] and 0.85 < number(best[3]) < 0.95
    assert page.locator("#attention tr.is-key th").inner_text().strip().endswith("Italy")
    assert "Query head 0 reads the Keys and Values of KV head 0" in page.locator(".kv-attn-shares").inner_text()


def test_weights_sum_to_one_and_the_sum_is_the_models_output(opened):
    page = opened().page
    say(page, "My dog is brown, my cat is black, and my dog is")
    status(page, "14 tokens")
    for layer, head, token in ((16, 0, 12), (3, 7, 5), (29, 8, 0)):
        page.locator("#attention input[type=range][data-control=layer]").fill(str(layer))
        page.locator(f"#attention label.kv-attn-head:has(input[value='{head}'])").click()
        page.locator(f"#attention label.kv-attn-chip:has(input[value='{token}'])").click()
        shown(page, f"{layer}.{head}.{token}")
        table = rows(page)
        assert [row[0] for row in table] == list(range(token + 1))
        assert abs(sum(number(row[3]) for row in table) - 1) < 0.006
        assert abs(float(page.locator("#attention p[data-sum]").get_attribute("data-sum")) - 1) < 1e-5
        worst = {
            name: float(page.locator(f"#attention li[data-check={name}]").get_attribute("data-value"))
            for name in ("scores", "weights", "output")
        }
        assert worst["scores"] < 1e-4 and worst["weights"] < 1e-5
        largest = float(re.search(r"number: ([\d.]+)", page.locator("li[data-check=output]").inner_text())[1])
        assert 0 <= worst["output"] < 0.02 * largest
        assert f"KV head {head // 3}" in page.locator(".kv-attn-shares").inner_text()


def test_the_arithmetic_adds_up(opened):
    page = opened().page
    lines = page.locator("#attention .kv-attn-left > p.kv-num").all_inner_texts()
    product = next(line for line in lines if line.startswith("q·k"))
    terms, total = product.removeprefix("q·k = ").rsplit(" = ", 1)
    pairs = re.findall(r"\(?(−?[\d.]+)\)?×\(?(−?[\d.]+)\)?", terms)
    rest = number(re.search(r"more: (−?[\d.]+)", terms)[1])
    assert len(pairs) == 3
    assert abs(sum(number(a) * number(b) for a, b in pairs) + rest - number(total)) < 0.3
    score = next(line for line in lines if "÷ √64" in line)
    assert abs(number(total) / 8 - number(score.rsplit(" = ", 1)[1])) < 0.01
    ours = next(line for line in lines if line.startswith("Σ"))
    model = next(line for line in lines if "own output" in line)
    assert abs(number(ours.rsplit(" = ", 1)[1]) - number(model.rsplit(": ", 1)[1])) < 0.03


def test_picking_a_token_asks_nobody(opened):
    seen = opened()
    before = len(seen.asked)
    for token in (4, 0, 11):
        seen.page.locator(f"#attention label.kv-attn-chip:has(input[value='{token}'])").click()
        shown(seen.page, f"16.0.{token}")
    seen.page.locator("#attention tbody tr:not([hidden]) button").nth(3).click()
    assert "France" in seen.page.locator("#attention tr.is-key th").inner_text()
    seen.page.locator("#attention input[data-control=dim]").fill("7")
    assert "Dimension 7 " in seen.page.locator("#attention .kv-attn-left").inner_text()
    assert len(seen.asked) == before


def test_the_maps_open_what_is_clicked(opened):
    page = opened().page
    maps = page.locator("#attention canvas.kv-attn-map")
    box = maps.nth(1).bounding_box()
    cell = box["width"] / 30
    maps.nth(1).click(position={"x": 20.5 * cell, "y": 4.5 * cell})
    shown(page, "20.4.12")
    box = maps.nth(0).bounding_box()
    maps.nth(0).click(position={"x": 2, "y": 7.5 * box["height"] / 13})
    shown(page, "20.4.7")
    assert "layer=20" in page.url and "head=4" in page.url and "token=7" in page.url
    said = page.locator("#attention figure p.kv-num").nth(1).inner_text()
    lower, upper = (int(share) for share in re.findall(r"layers? [\d–]+: (\d+)", said))
    assert 40 < lower < upper < 90


def test_the_address_carries_everything_and_the_language_switch_keeps_it(opened):
    page = opened("attention?text=One+two+three+one+two&layer=18&head=6&token=3").page
    shown(page, "18.6.3")
    assert page.locator("#attention textarea").input_value() == "One two three one two"
    page.locator("a[hreflang=zh-CN][data-keep-query]").first.click()
    page.wait_for_url("**/zh-attention?*")
    shown(page, "18.6.3")
    assert page.locator("#attention textarea").input_value() == "One two three one two"


def test_an_address_that_makes_no_sense_is_ignored(opened):
    page = opened("attention?layer=999&head=-3&token=abc").page
    shown(page, "29.0.12")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("a", "single token"),
        ("word " * 150, f"at most {MAX_TOKENS} fit"),
    ],
)
def test_a_sentence_that_cannot_be_read_says_what_would_be_right(opened, text, says):
    page = opened().page
    say(page, text)
    status(page, says)
    line = page.locator("#attention .kv-attn-status").inner_text()
    assert "\n" not in line and page.locator("#attention textarea").get_attribute("aria-invalid") == "true"
    say(page, "It is fine again")
    status(page, "4 tokens")


def test_a_very_long_paste(opened):
    page = opened().page
    page.evaluate("document.querySelector('#attention textarea').value = 'x'.repeat(100000)")
    page.click("#attention button[type=submit]")
    status(page, "100,000 characters")


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("I love 🎉 parties", "🎉"),
        ("مرحبا بالعالم", "م"),
        ("a\u0007b\u202ec", "␇"),
        ("<img src=x onerror=window.hit=1> ${window.hit=1} {{x}}", "img"),
    ],
)
def test_any_text_is_data(opened, text, shows):
    page = opened().page
    say(page, text)
    status(page, "tokens read by")
    assert shows in page.locator("#attention .kv-attn-chips").inner_text()
    assert shows in page.locator(f"{STEPS} .kv-attn-text").inner_text()
    assert page.evaluate("window.hit") is None and page.locator("#attention .kv-attn-chips img").count() == 0


def test_prefill_and_decode(opened):
    page = opened().page
    steps = page.locator(STEPS)
    stage, counters = steps.locator(".kv-attn-steps"), steps.locator(".kv-attn-counters")
    on = steps.locator(".kv-play-button").nth(2)
    for index in range(24):
        kind, step = stage.get_attribute("data-frame").split(".")
        table = counters.locator("tr")
        cached = int(table.nth(0).locator("td").inner_text())
        done = 13 + int(step) - (kind == "input") if kind != "prompt" else 0
        assert cached == done
        said = table.nth(1).locator("td").inner_text()
        assert said.startswith(f"{cached * 23_040:,} B") and said.endswith("difference 0 B")
        now = [int(cell) for cell in table.nth(3).locator("td").all_inner_texts()]
        total = [int(cell) for cell in table.nth(4).locator("td").all_inner_texts()]
        if kind != "prompt":
            assert now == ([13, 13] if step == "0" else [1, 13 + int(step)])
            assert total == [13 + int(step), sum(13 + i for i in range(int(step) + 1))]
        # A Query lives in the input of this step only; a token that was just sampled has no Key yet.
        queries = steps.locator(".kv-attn-cell:visible .is-q.is-used").count()
        assert queries == {"prefill": 13, "input": 1, "read": 1}.get(kind, 0)
        if kind in ("first", "sample"):
            last = steps.locator(".kv-attn-text > li:visible").last
            assert "is-sampled" in last.get_attribute("class") and last.locator(".is-k.is-none").count() == 1
        if index < 23:
            on.click()
    assert on.is_disabled()
    assert "not in the cache" in steps.locator(".kv-play-text").inner_text()
    text = "".join(steps.locator(".kv-attn-text bdi").all_inner_texts()).replace("␣", " ")
    assert text.startswith(CAPITAL["text"] + " Rome")


def test_the_steps_follow_the_sentence(opened):
    page = opened().page
    say(page, "Once upon a time, there was a")
    page.wait_for_function(
        f"document.querySelector('{STEPS} .kv-attn-text')?.innerText.includes('Once')", timeout=MODEL_MS
    )
    assert page.locator(f"{STEPS} .kv-attn-text > li:visible").count() == 8


def test_by_keyboard_alone(opened):
    page = opened().page
    page.locator("#attention textarea").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Red, green, blue. Red, green,")
    page.keyboard.press("Enter")
    status(page, "10 tokens")
    page.locator("#attention .kv-attn-chips input:checked").focus()
    page.keyboard.press("ArrowLeft")
    shown(page, "16.0.8")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    shown(page, "17.0.8")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    shown(page, "17.1.8")
    page.locator(f"{STEPS} input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(f"{STEPS} .kv-attn-steps").get_attribute("data-frame") == "prefill.0"


@pytest.mark.parametrize("path", ["attention", "zh-attention"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe(opened, axe, path, theme):
    page = opened(path, theme=theme).page
    axe(page)
    page.locator(f"{STEPS} .kv-play-button").nth(2).click()
    say(page, "")
    page.wait_for_selector("#attention .kv-attn-status.kv-failed")
    axe(page)


def test_pictures_have_names_before_a_head_is_read(browser, app_url):
    context = browser.new_context()
    page = context.new_page()
    # The sentence is answered, its first head never.
    page.route(
        re.compile("component_server"),
        lambda route: None if "read_head" in (route.request.post_data or "") else route.continue_(),
    )
    page.goto(app_url + "attention")
    page.wait_for_selector("#attention canvas.kv-attn-map", state="attached", timeout=MODEL_MS)
    names = page.eval_on_selector_all("canvas[role=img]", "n => n.map((x) => x.getAttribute('aria-label'))")
    context.close()
    assert len(names) >= 2 and all(names), names


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_stands_can_be_read_while_the_model_reads_on(opened, axe, theme):
    page = opened(theme=theme).page
    # The answer never comes, so the page stays as it is while one waits.
    page.route(re.compile("component_server"), lambda route: None)
    say(page, "Something that is new")
    page.wait_for_selector("#attention .kv-attn-stage[aria-busy=true]")
    axe(page)


@pytest.mark.parametrize("path", ["attention", "zh-attention"])
def test_a_phone(opened, axe, path):
    page = opened(path, width=390, height=844).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    say(page, "🎉 " * 12)
    page.wait_for_function("document.querySelectorAll('#attention .kv-attn-chip').length > 20", timeout=MODEL_MS)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    axe(page)


def test_the_chinese_page_opens_with_a_chinese_sentence(opened):
    page = opened("zh-attention").page
    assert page.locator("#attention textarea").input_value() == CHINESE["text"]
    shown(page, "18.6.24")
    assert "法" in page.locator("#attention tr.is-key th").inner_text()


def test_a_hidden_endpoint_checks_what_it_gets(opened, app_url):
    page = opened().page
    component = page.evaluate("window.gradio_config.components.find(c => c.props.elem_id === 'attention').id")

    def post(name, data):
        body = json.dumps({"data": data, "component_id": component, "fn_name": name, "session_hash": "s"}).encode()
        request = urllib.request.Request(
            f"{app_url}gradio_api/component_server", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    text = CAPITAL["text"]
    wrong = [
        ("read_sentence", None),
        ("read_sentence", [text]),
        ("read_sentence", {"text": "x" * 100_000}),
        ("read_sentence", {"text": "\ud83c half"}),
        ("read_head", {"text": text}),
        ("read_head", {"text": text, "layer": "16", "head": 0}),
        ("read_head", {"text": text, "layer": 30, "head": 0}),
        ("read_head", {"text": text, "layer": 0, "head": -1}),
        ("read_head", {"text": text, "layer": 1e99, "head": 0}),
    ]
    for name, data in wrong:
        answer = post(name, data)
        assert answer["status"] == "error" and "\n" not in answer["message"], (name, data)
        assert not re.search(r"Traceback|/root|site-packages|\.py", answer["message"])
    assert post("read_head", {"text": text, "layer": 0, "head": 0})["status"] == "ready"
    with pytest.raises(urllib.error.HTTPError):
        post("__init__", {})


def test_a_server_that_does_not_answer_is_said_so(opened):
    page = opened().page
    page.route(re.compile("component_server"), lambda route: route.fulfill(status=200, body="no JSON"))
    say(page, "Something that is new")
    status(page, "did not answer")
    assert page.locator("#attention .kv-attn-stage").get_attribute("aria-busy") == "false"
    page.unroute(re.compile("component_server"))
    page.click("#attention button[type=submit]")
    status(page, "tokens read by")
    shown(page, "16.0.3")


def test_the_labs_are_on_the_page(opened):
    page = opened().page
    for name in ("cache-vs-recompute", "cache-bytes"):
        assert page.locator(f"#lab-{name}").get_by_role("button", name="Measure", exact=True).is_visible()

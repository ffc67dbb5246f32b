"""Every page in a headless browser, with the network cut off."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
DOCUMENTS = re.findall(r"(?:root|file): (\S+)", (TOP / "_toc.yml").read_text())
RAW_TEX = re.compile(r"\\\(|\\\[|\$\$|\\begin\{")


class Visit:
    """A page opened once, with everything it asked for and complained about."""

    def __init__(self, browser, address, document, *, width=1280, scheme="light"):
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.foreign, self.failed, self.errors = [], [], []
        self.address = address
        self.context.route("**/*", self._route)
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("response", self._response)
        self.page.goto(f"{address}/{document}.html", wait_until="load")
        self.page.wait_for_function(
            "!window.MathJax || !MathJax.startup || !MathJax.startup.promise"
            " || MathJax.startup.promise.then(() => true)"
        )

    def _route(self, route):
        if route.request.url.startswith((self.address, "data:", "blob:")):
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def _console(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _response(self, response):
        if response.status >= 400:
            self.failed.append(response.url)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_page_is_whole_without_a_network(browser, address, document):
    with Visit(browser, address, document) as visit:
        assert visit.foreign == []
        assert visit.failed == []
        assert visit.errors == []
        page = visit.page
        formulas = page.locator("article .math").count()
        assert page.locator("article mjx-container").count() >= formulas
        assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
        shown = page.evaluate(
            """() => { const a = document.querySelector('article').cloneNode(true);
                a.querySelectorAll('pre, code, mjx-container, script').forEach(e => e.remove());
                return a.textContent }"""
        )
        assert RAW_TEX.search(shown) is None
        alts = page.eval_on_selector_all("article img", "images => images.map(i => i.alt)")
        assert all(alt and "_images/" not in alt for alt in alts)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_page_fits_a_phone_in_the_dark(browser, address, document):
    with Visit(browser, address, document, width=390, scheme="dark") as visit:
        page = visit.page
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert visit.errors == []


def test_formulas_are_drawn_somewhere(browser, address):
    with Visit(browser, address, "book/notation") as visit:
        assert visit.page.locator("article mjx-container").count() > 10


def test_search_finds_a_word_of_the_book(browser, address):
    with Visit(browser, address, "search") as visit:
        visit.page.goto(f"{address}/search.html?q=verdict")
        visit.page.wait_for_selector("#search-results li a")
        assert visit.foreign == []

from html.parser import HTMLParser

from grms.learning.pages import document, facts_table, figures_table, image


class Collected(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Notes a text."""
        self.words.append(data)


def test_a_page_is_whole_and_names_cannot_be_markup() -> None:
    """Nothing from elsewhere; every heading cell says what it heads."""
    name = "<b>x & y</b>"
    page = document(
        name,
        [
            facts_table([(name, 1)]),
            figures_table(("a", "b"), [(name, 2)], name),
            image("<svg/>", name),
        ],
    )
    found = Collected(page)
    assert [tag for tag, _ in found.tags].count("b") == 0
    assert found.words.count(name) == 4
    heads = [attributes.get("scope") for tag, attributes in found.tags if tag == "th"]
    assert heads == ["row", "col", "col", "row"]
    assert [attributes.get("class") for tag, attributes in found.tags if tag == "td"] == [
        None,
        "number",
    ]
    assert "http" not in page.replace("http-equiv", "")

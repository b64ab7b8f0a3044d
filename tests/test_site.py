"""The site of docs/: pages, links and pictures. `mkdocs build --strict` checks the rest."""

import doctest
import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

import train_image_classifier

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
PICTURES = sorted((DOCS / "images").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
MIN_CONTRAST = 4.5  # of text, level AA of https://www.w3.org/TR/WCAG21/#contrast-minimum


def _pages_of(entry):
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in _pages_of(part)]


def test_navigation_has_every_page_once():
    """The navigation of the site lists all files of docs/ and no others."""
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(_pages_of(navigation)) == [path.name for path in sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    """What a page links to or shows is there; the words for a picture say what it shows."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for alternative, target in re.findall(r"(?:!\[([^\]]*)\]|\])\(([^)#\s]+)[^)]*\)", prose):
        assert re.match(r"https?:", target) or (page.parent / target).exists(), target
        assert len(alternative) > 40 or not target.endswith(".svg"), target


def _colors(css):
    """For each class the fill, or the stroke of what is not filled."""
    rules = {}
    for names, body in re.findall(r"([^{}]+)\{([^{}]*)\}", css):
        found = dict(re.findall(r"(fill|stroke): (#\w{6})", body))
        if found:
            rules[names.strip()] = found.get("fill", found.get("stroke"))
    return rules


def _luminance(color):
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first, second):
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_are_legible(path):
    """Text stands out from every area, arrows from the page, by day and by night."""
    light, dark = path.read_text().split("<style>")[1].split("</style>")[0].split("@media")
    by_day, by_night = _colors(light), _colors(dark.split("{", 1)[1])
    assert by_day.keys() == by_night.keys()
    for colors in (by_day, by_night):
        text, page = colors.pop("text"), colors[".page"]
        for name, color in colors.items():
            if name.removesuffix("-head") in {".value", ".gradient", ".call"}:
                assert _contrast(color, page) >= MIN_CONTRAST, name
            else:
                assert _contrast(text, color) >= MIN_CONTRAST, name


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_say_what_they_show(path):
    """Each picture is shown on a page, has a title and a description, and keeps to its frame."""
    assert any(f"images/{path.name}" in page.read_text() for page in PAGES)
    picture = ET.parse(path).getroot()
    assert picture.findtext(f"{SVG}title")
    assert picture.findtext(f"{SVG}desc")
    _, _, width, height = map(float, picture.get("viewBox").split())
    for item in picture.iter():
        if item.get("x") is not None:
            assert 0 <= float(item.get("x")) + float(item.get("width", 0)) <= width
            assert 0 <= float(item.get("y")) + float(item.get("height", 0)) <= height


def test_flags_of_tf_slim():
    """The page for users of TF-Slim names the flags that have new defaults."""
    page = (DOCS / "from_tf_slim.md").read_text()
    defaults = page.split("| flag | was | is |")[1].split("| not there | instead |")[0]
    options = vars(train_image_classifier.TrainOptions)["__dataclass_fields__"]
    shown = re.findall(r"^\| `--(\w+)` \| `\w+` \| `(\w+)` \|$", defaults, re.MULTILINE)
    assert shown == [(flag, options[flag].default) for flag, _ in shown]
    assert len(shown) == 2


def test_where_lines_may_break():
    """The hook of the site lets names break between words, and flags not at all."""
    specification = importlib.util.spec_from_file_location(
        "site_lines", ROOT / "scripts" / "site_lines.py"
    )
    hook = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hook)
    assert doctest.testmod(hook) == (0, 2)
    assert hook.on_post_page("<p>a_name</p>", page=None) == "<p>a_name</p>"

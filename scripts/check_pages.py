"""Opens each page of the site in Chromium, as wide as a screen and as a phone; says what overflows.

    mkdocs build --strict && python scripts/check_pages.py [--pictures=FOLDER]

Needs the programs `chromium` and `chromedriver` (on Debian the packages `chromium` and
`chromium-driver`), and what `pip install '.[docs]'` brings.  README.md is shown as a page of its
own, in a column like that of a repository's front page, where long lines of code do not wrap.
The exit status is 1 if something overflows, 2 if a program or the site is missing.
"""

import argparse
import base64
import contextlib
import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import markdown

ROOT = pathlib.Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
WIDTHS = (1300, 400)
PROGRAMS = ("chromium", "chromedriver")
CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
README_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>README</title><style>
article {{ max-width: 830px; margin: auto; padding: 16px; font: 16px/1.5 sans-serif;
           overflow-wrap: anywhere; }}
img {{ max-width: 100%; }} pre {{ overflow: auto; background: #f6f8fa; padding: 16px; }}
code {{ font: 13.6px monospace; }} td, th {{ border: 1px solid #d0d7de; padding: 6px 13px; }}
@media (max-width: 600px) {{ pre {{ white-space: pre-wrap; }} }}
</style><article>{content}</article></html>"""
# What is wider than the place that it has: it scrolls, or leaves the window. What is in such a
# thing is not counted again.
FIND_OVERFLOWS = """
const found = [], wide = new Set(), page = document.documentElement;
if (page.scrollWidth > page.clientWidth)
  found.push(`the page: ${page.scrollWidth} of ${page.clientWidth} pixels`);
for (const each of document.querySelectorAll("article, article *")) {
  const box = each.getBoundingClientRect();
  if (!box.width || !box.height || each.closest(".md-clipboard, .headerlink, mjx-container"))
    continue;
  if (wide.has(each.parentElement)) {
    wide.add(each);
    continue;
  }
  const holds = each.clientWidth; // 0 of what stands within a line
  const scrolls = each.scrollWidth > holds + 1 && getComputedStyle(each).overflowX != "visible";
  if (holds && (scrolls || box.right > page.clientWidth + 1)) {
    wide.add(each);
    found.push(`${each.tagName.toLowerCase()}, ${Math.round(Math.max(box.width, each.scrollWidth))}`
      + ` pixels: ${each.textContent.trim().replace(/\\s+/g, " ").slice(0, 60)}`);
  }
}
for (const each of document.querySelectorAll("article img"))
  if (!each.naturalWidth) found.push(`a picture that is not there: ${each.src}`);
return found;
"""


class Browser:
    """A session of chromedriver, by the protocol of https://www.w3.org/TR/webdriver2/."""

    def __init__(self, port: int, profile: str) -> None:
        self._url = f"http://127.0.0.1:{port}/session"
        flags = [*CHROMIUM_FLAGS, f"--user-data-dir={profile}"]
        options = {"binary": shutil.which("chromium"), "args": flags}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        self._url += f"/{self._call('POST', '', wanted)['sessionId']}"

    def _call(self, method: str, path: str, values: dict[str, Any] | None = None) -> Any:
        body = None if values is None else json.dumps(values).encode()
        request = urllib.request.Request(self._url + path, body, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url: str, width: int) -> None:
        """Shows a page in a window that is `width` pixels wide."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", metrics)
        self._call("POST", "/url", {"url": url})

    def command(self, name: str, values: dict[str, Any]) -> Any:
        """A command of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": name, "params": values})

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def picture(self) -> bytes:
        """A PNG of what the window shows."""
        return base64.b64decode(self._call("GET", "/screenshot"))

    def close(self) -> None:
        """Ends Chromium."""
        self._call("DELETE", "")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium with an empty profile."""
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        try:
            started = (re.search(r"successfully on port (\d+)", line) for line in driver.stdout)
            port = next(int(match[1]) for match in started if match)
            with contextlib.closing(Browser(port, profile)) as opened:
                yield opened
        finally:
            driver.terminate()
            driver.wait()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *args: Any) -> None:
        """Each request would be a line."""


@contextlib.contextmanager
def served(folder: pathlib.Path) -> Iterator[str]:
    """The address of a server of a folder, on this machine."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def write_readme(site: pathlib.Path) -> str:
    """Puts README.md, as HTML, into the site; gives its name there."""
    text = (ROOT / "README.md").read_text().replace("docs/images/", "images/")
    content = markdown.markdown(text, extensions=["fenced_code", "tables"])
    (site / "README.html").write_text(README_PAGE.format(content=content))
    return "README.html"


def check(shown: Browser, site: pathlib.Path, pictures: pathlib.Path | None) -> int:
    """Opens all pages, prints what overflows, and gives the number of such places."""
    places = 0
    names = [write_readme(site)]
    names += sorted(path.name for path in site.glob("*.html") if path.name != "README.html")
    with served(site) as address:
        for name in names:
            for width in WIDTHS:
                shown.open(f"{address}/{name}", width)
                found = shown.run(FIND_OVERFLOWS)
                for overflow in found:
                    print(f"{name} at {width}: {overflow}")
                places += len(found)
                if pictures is not None:
                    pictures.mkdir(parents=True, exist_ok=True)
                    path = pictures / f"{pathlib.Path(name).stem}_{width}.png"
                    path.write_bytes(shown.picture())
    print(f"{len(names)} pages at {' and '.join(map(str, WIDTHS))} pixels: {places} overflows")
    return places


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks what is there to check with, then the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", type=pathlib.Path, default=SITE, help="default: build/site")
    parser.add_argument("--pictures", type=pathlib.Path, help="folder for pictures of all pages")
    flags = parser.parse_args(arguments)
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        print(f"missing: {', '.join(missing)}; on Debian: apt-get install chromium chromium-driver")
        return 2
    if not (flags.site / "index.html").exists():
        print(f"no site in {flags.site}: run mkdocs build --strict first")
        return 2
    with browser() as shown:
        return 1 if check(shown, flags.site, flags.pictures) else 0


if __name__ == "__main__":
    sys.exit(main())

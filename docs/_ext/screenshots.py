"""Pictures in a real browser, of the built site and of pages that a tutorial wrote: ``screenshots.py SITE FOLDER``."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NAMES = ("index", "choosing", "guarantees", "benchmarks", "api/networks")
WRITTEN = Path("build/intervals")  # by tutorial 14: reports and an explorer
WIDTHS = {"": (1440, 1800), "-phone": (500, 1400)}


def shoot(browser: str, page: Path, picture: Path, size: tuple[int, int]) -> None:
    """One page as a PNG; an error where the browser makes none."""
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        options += [f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}"]
        options += ["--virtual-time-budget=10000"]  # for pages that compute
        subprocess.run([browser, *options, page.resolve().as_uri()], check=True, capture_output=True)
    if not picture.read_bytes().startswith(b"\x89PNG"):
        raise RuntimeError(f"{browser} wrote no picture of {page}")


def main() -> None:
    """Pictures of all pages, on a wide screen and on a narrow one."""
    site, folder = map(Path, sys.argv[1:])
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no screenshots: none of {', '.join(BROWSERS)} is installed")
        return
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    tutorials = sorted((site / "tutorials").glob("[0-9]*.html")) or [site / "tutorials" / "index.html"]
    pages = {name.replace("/", "-"): site / f"{name}.html" for name in NAMES} | {"tutorial": tutorials[0]}
    pages |= {f"written-{page.stem}": page for page in sorted(WRITTEN.glob("*.html"))}
    for name, page in pages.items():
        for suffix, size in WIDTHS.items():
            shoot(browser, page, folder / f"{name}{suffix}.png", size)
    print(f"{len(pages) * len(WIDTHS)} screenshots in {folder}")


if __name__ == "__main__":
    main()

"""Files of the repository as pages of the site, and links to them.

The pages are written for two readers: on a code host ``../CHANGELOG.md`` is a file, on the site it has to be a page. So
links stay relative to the file that they stand in, and are rewritten when the site is built. What they lead to,
directly or through other files, becomes a page under ``docs/repository/`` (Markdown as it is, code in a block, folders
as lists) or is copied (pictures, data). Nothing in ``docs/repository/`` and ``docs/tutorials/`` is written by hand.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
NOTEBOOKS = ROOT / "build" / "tutorials"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".cff": "yaml"}
SHOWN = {*LANGUAGES, "", ".txt"}


def local_links(text: str) -> list[str]:
    """Targets of the links of a page that lead into the repository, without those in blocks of code."""
    found = (match[2] for match in LINK.finditer(FENCE.sub("", text)))
    return [link for link in found if not re.match(r"[a-z]+:|#", link)]


def source_of(docname: str) -> Path:
    """The file of the repository, relative to its root, that a page of the site is made from."""
    if docname.startswith("repository/"):
        path = Path(docname.removeprefix("repository/"))
        return path.with_name(path.name + ".md")
    if docname.startswith("tutorials/"):
        return Path(docname + ".py")
    return Path("docs", docname + ".md")


def resolved(link: str, source: Path) -> tuple[Path, str]:
    """The file that a link in `source` means, relative to the root, and the anchor with its #."""
    target, mark, anchor = link.partition("#")
    return Path(os.path.normpath(source.parent / target)), mark + anchor


def address(target: Path) -> str:
    """Where a file of the repository is on the site, from its top."""
    if target.parts[0] == "docs":
        return "/" + str(target.relative_to("docs"))
    if is_tutorial(target):
        return f"/tutorials/{target.stem}.ipynb"
    if is_module(target):
        return f"/internals/{'.'.join(target.with_suffix('').parts).removesuffix('.__init__')}.rst"
    if (ROOT / target).is_dir():
        return f"/repository/{target}/index.md"
    if target.suffix in SHOWN:
        return f"/repository/{target}.md"
    return f"/repository/{target}"


def is_tutorial(target: Path) -> bool:
    """Tutorials are notebooks of their own, and so are their pages for readers of a code host."""
    where = (Path("tutorials"), ".py"), (Path("tutorials/pages"), ".md")
    return (target.parent, target.suffix) in where and target.name[0].isdigit()


def is_module(target: Path) -> bool:
    """Modules of the package have pages with their docstrings."""
    return target.parts[0] == "pgmpy_dp" and target.suffix == ".py"


def with_addresses(text: str, source: Path) -> str:
    """The text with its local links turned into addresses on the site."""

    def rewritten(match: re.Match) -> str:
        if re.match(r"[a-z]+:|#|/", match[2]):
            return match[0]
        target, anchor = resolved(match[2], source)
        return match[1] + address(target) + anchor + match[3]

    parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
    return "".join(part if FENCE.match(part) else LINK.sub(rewritten, part) for part in parts)


def page_of(target: Path) -> str | bytes:
    """What stands under the address of a file."""
    path = ROOT / target
    if path.is_dir():
        files = sorted(one.name for one in path.iterdir() if one.suffix == ".md" and one.name != "README.md")
        title = f"Files in {target}"
        return f"# {title}\n\n" + "".join(f"* [{name}]({name})\n" for name in files)
    if target.suffix in SHOWN:
        fence = "~~~~"
        return f"# {target}\n\n{fence}{LANGUAGES.get(target.suffix, 'none')}\n{path.read_text()}{fence}\n"
    return path.read_bytes()


def reachable() -> list[Path]:
    """Files outside of docs/ that its pages lead to, directly or through each other."""
    pages = [*sorted(DOCS.glob("*.md")), *sorted((ROOT / "tutorials").glob("[0-9]*.py"))]
    waiting = [page.relative_to(ROOT) for page in pages]
    seen = set(waiting)
    while waiting:
        source = waiting.pop()
        if source.suffix == ".md" or is_tutorial(source):
            text = (ROOT / source).read_text()
        elif (ROOT / source).is_dir():
            text, source = str(page_of(source)), source / "index.md"
        else:
            continue
        for target, _ in (resolved(link, source) for link in local_links(text)):
            if target not in seen and not is_tutorial(target) and (ROOT / target).exists():
                seen.add(target)
                waiting.append(target)
    return sorted(one for one in seen if one.parts[0] != "docs" and not is_tutorial(one) and not is_module(one))


def write(path: Path, content: str | bytes) -> Path:
    """Write where something changed, so that a second build reads no page again."""
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def contents(title: str, text: str, sections: dict[str, list[str]]) -> str:
    """A page with a table of contents for each of its sections."""
    tree = "## {}\n\n```{{toctree}}\n:maxdepth: 1\n\n{}\n```\n"
    trees = [tree.format(name, "\n".join(pages)) for name, pages in sections.items() if pages]
    return f"# {title}\n\n{text}\n\n" + "\n".join(trees)


def repository_pages() -> list[Path]:
    """All files that links lead to, and a list of them."""
    found = reachable()
    made = [write(DOCS / address(target)[1:], page_of(target)) for target in found]
    pages = [address(target)[len("/repository/") :].removesuffix(".md") for target in found]
    pages = [page for target, page in zip(found, pages, strict=True) if address(target).endswith(".md")]
    top = ("CHANGELOG", "CONTRIBUTING")
    sections = {
        "Results of benchmarks": [page for page in pages if page.startswith("benchmarks/")],
        "Proofs beside the code": [page for page in pages if page.startswith("pgmpy_dp/")],
    }
    listed = {page for pages_ in sections.values() for page in pages_} | set(top)
    sections["Other files"] = [page for page in pages if page not in listed]
    text = "What pages of this site lead to, as it is in the repository."
    return [*made, write(DOCS / "repository" / "index.md", contents("Files of the repository", text, sections))]


def tutorial_pages() -> list[Path]:
    """Tutorials with the output of `make tutorials`, and where that has not run without."""
    import jupytext  # here, so that the rest can be tested without the site's tools
    from run_tutorial import as_notebook

    made = []
    for script in sorted((ROOT / "tutorials").glob("[0-9]*.py")):
        executed = NOTEBOOKS / script.with_suffix(".ipynb").name
        page = DOCS / "tutorials" / executed.name
        if executed.exists():
            made.append(write(page, executed.read_bytes()))
        else:
            made.append(write(page, jupytext.writes(as_notebook(script), fmt="ipynb")))
    names = [page.stem for page in made]
    text = (DOCS / "_ext" / "tutorials.md").read_text()
    tree = "\n```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n" if names else ""
    return [*made, write(DOCS / "tutorials" / "index.md", text + tree)]


def make_pages(app: Sphinx) -> None:
    """Make what is made from files outside of docs/, and remove what no longer is."""
    made = {*repository_pages(), *tutorial_pages()}
    for folder in ("repository", "tutorials"):
        for path in (DOCS / folder).rglob("*"):
            if path.is_file() and path not in made:
                path.unlink()


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    """Addresses for links: on ``source-read``."""
    if not str(app.env.doc2path(docname)).endswith(".rst"):
        source[0] = with_addresses(source[0], source_of(docname))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", make_pages)
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

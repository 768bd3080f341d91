"""What the documentation site needs beyond mkdocs: its first page, the table of modules, and links that leave the folder."""

import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Makes the first page of the README, whose links are as the repository has them, and the table of modules."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\((?!docs/|https?:|#)", "](../", text).replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=text.replace('src="docs/', 'src="')))
    made = runpy.run_path(str(ROOT / "docs" / "site" / "modules.py"))
    files.append(File.generated(config, "modules.md", content=made["page"]()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Names what is not on the site, sources and folders, instead of linking to it."""
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def linked(match: re.Match[str]) -> str:
        text, target, _ = match.groups()
        if ":" in target:
            return match.group(0)
        path = (folder / target).resolve()
        if path == ROOT / "README.md":
            return f"[{text}](index.md{match.group(3) or ''})"
        if path.is_dir() or not path.is_relative_to(ROOT / "docs"):
            named = path.relative_to(ROOT) if path.is_relative_to(ROOT) else target
            return text if str(named) in text else f"{text} (`{named}` in the sources)"
        return match.group(0)

    return LINK.sub(linked, markdown)

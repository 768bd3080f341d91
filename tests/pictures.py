"""What a picture says."""

import xml.etree.ElementTree as ET


def svg_texts(svg: str) -> list[str]:
    """Returns the texts of a picture, which has to be well-formed."""
    root = ET.fromstring(svg)  # noqa: S314  # drawn here
    return ["".join(node.itertext()).strip() for node in root.iter() if node.tag.endswith("text")]

"""Export documents are verified by another language: JavaScript, run by Node."""

import json
import subprocess
from pathlib import Path

import pytest

from cleveragents import ContextManager, open_sessions
from support.everything import fill

VERIFIER = Path(__file__).with_name("verify.js")

NODE = """
const { createHash } = require("crypto");
const document = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
const { checksum, ...rest } = document;
const canonical = (v) => Array.isArray(v) ? `[${v.map(canonical)}]`
  : v && typeof v === "object" ? `{${Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + canonical(v[k]))}}`
  : JSON.stringify(v);
const digest = "sha256:" + createHash("sha256").update(canonical(rest)).digest("hex");
process.stdout.write(String(digest === checksum));
"""


def test_c59_another_language_verifies_the_checksum_of_a_context(tmp_path):
    context = ContextManager("numbers", tmp_path / "contexts")
    context.add_message("user", "\x7f \u2028 🎉 \0", {"deep": {"x": [1.5, None, 2**53 - 1]}})
    context.update_state(
        {"cost": 6.0, "small": 0.00001, "sum": 0.1 + 0.2, "far": [1e21, 1e-7, 123e18], "🎉": 1, "\ufb33": 2}
    )
    file = tmp_path / "export.json"
    context.export_to(file)
    node = subprocess.run(["node", "-e", NODE, str(file)], capture_output=True, check=True, text=True)
    assert node.stdout == "true"


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The export of a session that has a bit of everything."""
    with open_sessions(f"sqlite:///{tmp_path_factory.mktemp('documents')}/sessions.db") as sessions:
        return sessions.export(fill(sessions))


def verified(text):
    """What the program says of a session's document."""
    done = subprocess.run(["node", str(VERIFIER)], input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_another_language_verifies_the_checksum_of_a_session(document):
    assert verified(json.dumps(document)) == "verified"


def test_c59_form_does_not_matter_and_a_digit_does(document):
    reordered = json.loads(json.dumps(document, sort_keys=True))
    reformatted = json.dumps(dict(reversed(reordered.items())), indent=4, ensure_ascii=True)
    # JavaScript writes 6.0 as 6 and 1e-05 as 0.00001.
    by_javascript = reformatted.replace('"six": 6.0', '"six": 6').replace("1e-05", "0.00001")
    assert by_javascript != reformatted
    for text in (reformatted, by_javascript):
        assert verified(text) == "verified"
    for old, new in (("9007199254740993", "9007199254740992"), ('"6.00001"', '"6.00002"'), ("1000", "1001")):
        assert old in reformatted
        assert verified(reformatted.replace(old, new, 1)) == "changed"

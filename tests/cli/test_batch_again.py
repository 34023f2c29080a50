"""``run --batch`` on results of before: what is gone on with, what is copied, and what is run again."""

import json
import os
import signal
from hashlib import sha256

import pytest
from click.testing import CliRunner

from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.main import cli
from cleveragents.errors import BatchDamagedError, BatchResultsError, StorageError

SHOUT = """
agents:
  shout: {type: tool, code: 'result = message.upper() if message != "bad" else 1 / 0'}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where all files of a test are, with a configuration in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shout.yaml").write_text(SHOUT, encoding="utf-8")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def batch(folder):
    """Run ``lines`` as a batch, results in a file, and give the exit code or the error, and what stderr had."""

    def run(lines, *options, output="new.jsonl"):
        (folder / "prompts").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        arguments = ["run", "shout.yaml", "--batch", "prompts", "--output", output, *options]
        done = CliRunner().invoke(cli, arguments, standalone_mode=False)
        return done.exception or done.return_value, done.stderr

    return run


def stored(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def outputs(path):
    return [(result["line"], result["output"]) for result in stored(path)]


def changed(folder):
    text = SHOUT.replace("upper()", "lower()")
    (folder / "shout.yaml").write_text(text, encoding="utf-8")


def test_plain_lines_are_prompts_and_what_an_object_has_beside_its_prompt_comes_back(batch, folder):
    lines = ["  What is new? ", '{"prompt": "two", "id": 7, "tags": ["a"]}']
    assert batch(lines)[0] == ExitCode.DONE
    first, second = stored(folder / "new.jsonl")
    assert (first["output"], "input" in first) == ("WHAT IS NEW?", False)
    assert (second["output"], second["input"]) == ("TWO", {"id": 7, "tags": ["a"]})
    assert [result["sha256"] for result in (first, second)] == [sha256(line.encode()).hexdigest() for line in lines]


def test_the_manifest_has_the_hash_of_the_configuration(batch, folder):
    batch(["a"], "--temperature", "0.5")
    manifest = json.loads((folder / "new.jsonl.manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"] == "shout.yaml"
    assert manifest["config_sha256"] == sha256((folder / "shout.yaml").read_bytes()).hexdigest()
    assert manifest["temperature"] == 0.5


def test_resume_refuses_a_line_that_has_changed_by_its_number(batch, folder):
    batch(["a", "b"])
    before = (folder / "new.jsonl").read_bytes()
    error, _ = batch(["a", "B!", "c"], "--resume")
    assert isinstance(error, BatchResultsError)
    assert "line 2 " in str(error)
    assert "--rerun-changed" in str(error)
    assert (folder / "new.jsonl").read_bytes() == before
    assert batch(["a", "b", "c"], "--resume") == (ExitCode.DONE, "3 prompts: 1 answered, 2 were there\n")


def test_resume_refuses_another_configuration(batch, folder):
    batch(["a"])
    changed(folder)
    error, _ = batch(["a", "b"], "--resume")
    assert isinstance(error, BatchResultsError)
    assert "shout.yaml" in str(error)
    assert outputs(folder / "new.jsonl") == [(1, "A")]


def test_results_of_a_version_without_hashes_are_gone_on_with_and_said_to_be_unchecked(batch, folder):
    (folder / "new.jsonl").write_text('{"line":1,"output":"kept","outputs":["kept"],"error":null}\n', encoding="utf-8")
    code, said = batch(["a", "b"], "--resume")
    assert code == ExitCode.DONE
    assert "1 results in new.jsonl have no hash" in said
    assert "no manifest" in said
    assert outputs(folder / "new.jsonl") == [(1, "kept"), (2, "B")]


@pytest.mark.parametrize("option", ["--retry-failed", "--rerun-changed"])
def test_what_was_right_and_unchanged_is_copied_and_all_else_is_run(batch, folder, option):
    batch(["bad", "b", "c", "d"], output="old.jsonl")
    lines = [json.dumps(result) for result in stored(folder / "old.jsonl")]
    marked = [line.replace('"B"', '"b copied"').replace('"D"', '"d copied"') for line in lines]
    (folder / "old.jsonl").write_text("".join(f"{line}\n" for line in marked), encoding="utf-8")
    before = (folder / "old.jsonl").read_bytes()

    code, said = batch(["a new line", "bad", "b", "C!", "d"], option, "old.jsonl")

    assert (code, said.splitlines()[0]) == (ExitCode.FAILED, "5 prompts: 2 answered, 2 copied, 1 failed")
    assert outputs(folder / "new.jsonl") == [
        (1, "A NEW LINE"),
        (2, None),
        (3, "b copied"),
        (4, "C!"),
        (5, "d copied"),
    ]
    assert (folder / "old.jsonl").read_bytes() == before


def test_after_a_change_of_the_configuration_everything_is_run_again_or_only_what_failed(batch, folder):
    batch(["bad", "Be"], output="old.jsonl")
    changed(folder)
    _, said = batch(["bad", "Be"], "--rerun-changed", "old.jsonl", output="all.jsonl")
    assert "shout.yaml has changed since old.jsonl" in said
    assert outputs(folder / "all.jsonl") == [(1, None), (2, "be")]
    _, said = batch(["bad", "Be"], "--retry-failed", "old.jsonl", output="some.jsonl")
    assert "shout.yaml has changed since old.jsonl" in said
    assert outputs(folder / "some.jsonl") == [(1, None), (2, "BE")]
    _, said = batch(["bad", "Be"], "--rerun-changed", "some.jsonl", output="last.jsonl")
    assert outputs(folder / "last.jsonl") == [(1, None), (2, "be")], "a mixture is of no one configuration"


def test_a_copy_that_was_cut_short_is_gone_on_with(batch, folder):
    batch(["a", "bad", "c"], output="old.jsonl")
    batch(["a", "bad", "c"], "--retry-failed", "old.jsonl")
    whole = (folder / "new.jsonl").read_bytes()
    for end in range(0, len(whole), 37):
        (folder / "new.jsonl").write_bytes(whole[:end])
        batch(["a", "bad", "c"], "--retry-failed", "old.jsonl", "--resume")
        assert (folder / "new.jsonl").read_bytes() == whole


def test_a_batch_in_which_everything_failed_says_why_and_leaves_nothing_in_the_way(batch, folder):
    code, said = batch(["bad", "bad"])
    assert code == ExitCode.FAILED
    assert "2 of 2 prompts failed; the first: line 1: agent shout: ZeroDivisionError" in said
    assert [path.name for path in folder.glob("new.jsonl*")] == []
    assert batch(["good"])[0] == ExitCode.DONE


def test_a_batch_that_cannot_begin_leaves_no_file(batch, folder):
    (folder / "old.jsonl").write_text("my shopping list\n", encoding="utf-8")
    error, _ = batch(["a"], "--retry-failed", "old.jsonl")
    assert isinstance(error, BatchDamagedError)
    assert not (folder / "new.jsonl").exists()


@pytest.mark.parametrize(
    "options",
    [["--batch", "pipe"], ["--batch", "/dev/zero"], ["--retry-failed", "pipe"], ["--output", "pipe"]],
    ids=["prompts", "a device", "old results", "results"],
)
def test_what_is_no_regular_file_is_refused_and_leaves_no_file(batch, folder, options):
    os.mkfifo(folder / "pipe")
    error, _ = batch(["a"], *options)
    assert isinstance(error, StorageError)
    assert "not a regular file" in str(error)
    assert [path.name for path in folder.glob("new.jsonl*")] == []


def test_a_manifest_that_is_none_is_named(batch, folder):
    batch(["a"])
    (folder / "new.jsonl.manifest.json").write_text("[]", encoding="utf-8")
    error, _ = batch(["a", "b"], "--resume")
    assert isinstance(error, BatchDamagedError)
    assert "new.jsonl.manifest.json" in str(error)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--retry-failed", "old.jsonl", "--rerun-changed", "old.jsonl"], "does not go with"),
        (["--retry-failed", "new.jsonl"], "another --output"),
    ],
)
def test_old_results_are_one_file_and_another_than_the_new_ones(batch, folder, options, said):
    for name in ("old.jsonl", "new.jsonl"):
        (folder / name).touch()
    assert said in str(batch(["a"], *options)[0])

"""Which session was last run with a configuration file: by its path, and from another host by its name and digest."""

from dataclasses import replace

import pytest

from cleveragents import SessionNotFoundError
from cleveragents.sessions.config_file import ConfigFile


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "here" / "paper.yaml"
    path.parent.mkdir()
    path.write_text("agents: {}", encoding="utf-8")
    return ConfigFile.at(path)


def elsewhere(file, tmp_path, name="paper.yaml"):
    return replace(file, path=tmp_path / "not here" / name)


def test_the_newest_session_of_this_very_file_is_found_past_those_of_others(sessions, file, tmp_path):
    mine = sessions.create(metadata=file.as_metadata({})).session_id
    copy = tmp_path / "there" / "paper.yaml"
    copy.parent.mkdir()
    copy.write_bytes(file.path.read_bytes())
    for other in [ConfigFile.at(copy)] * 60:
        sessions.create(metadata=other.as_metadata({}))
    assert sessions.newest(file).session_id == mine


def test_a_file_that_was_changed_or_is_named_by_a_link_is_the_same_file(file, tmp_path):
    metadata = file.as_metadata({})
    file.path.write_text("agents: {more: {}}", encoding="utf-8")
    (tmp_path / "link").symlink_to(file.path.parent)
    assert ConfigFile.at(file.path).is_remembered(metadata)
    assert ConfigFile.at(tmp_path / "link" / "paper.yaml").is_remembered(metadata)


def test_from_another_host_it_is_known_by_name_and_digest_together(file, tmp_path):
    assert file.is_remembered(elsewhere(file, tmp_path).as_metadata({}))
    assert not file.is_remembered(elsewhere(file, tmp_path, "other.yaml").as_metadata({}))
    assert not file.is_remembered(elsewhere(replace(file, digest="0" * 64), tmp_path).as_metadata({}))
    assert not replace(file, digest=None).is_remembered(elsewhere(replace(file, digest=None), tmp_path).as_metadata({}))


@pytest.mark.parametrize("path", ["paper.yaml", 1, None, "/\0/paper.yaml", "/" + "x" * 5000])
def test_what_is_no_path_of_a_run_is_no_file(file, path):
    assert not file.is_remembered({"cleveragents": {"config": path}})


def test_none_is_said_with_the_file(sessions, file):
    sessions.create()
    with pytest.raises(SessionNotFoundError, match=r"here/paper\.yaml"):
        sessions.newest(file)

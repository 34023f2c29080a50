import pytest

from support.frozen import freeze_first


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    """The URL of a database of each kind in which there is nothing at all."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/sessions.db"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def frozen_url(empty_url):
    """A database that the first release made, with 51 sessions."""
    freeze_first(empty_url)
    return empty_url

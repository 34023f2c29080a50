"""The way to an llm's server: redirects, proxies, certificates, and who is to blame when it leads nowhere."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.llms import KEY, ask, failure
from support.scripted_llm import ScriptedLLM, fails, says

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def elsewhere():
    server = ScriptedLLM()
    yield server
    server.stop()


@pytest.fixture
def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def proxy():
    """The address of a proxy that answers everything with the status in its list."""
    status = [403]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(status[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_CONNECT(self):
            self.do_POST()

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server.server_address[1], status
    server.shutdown()
    server.server_close()
    thread.join()


def sends_on(status, address):
    return fails(status, "moved", {"Location": address})


@pytest.mark.parametrize("status", [307, 308])
def test_c119_a_redirect_on_the_same_host_is_followed_with_question_and_key(scripted_llm, elsewhere, agent, status):
    scripted_llm.script(sends_on(status, f"{elsewhere.url}/chat/completions"))
    elsewhere.script(says("Paris"))
    assert ask(agent()).content == "Paris"
    assert elsewhere.requests == scripted_llm.requests
    assert elsewhere.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "address", "named"),
    [
        (307, "https://llm.example/v1/chat/completions", "https://llm.example/v1"),
        (308, "http://127.0.0.2:1/v1/chat/completions?key=x", "http://127.0.0.2:1/v1"),
        (301, "/v2/chat/completions", "/v2"),
    ],
)
def test_c119_a_key_goes_to_no_other_host_and_a_moved_api_is_named(scripted_llm, agent, status, address, named):
    scripted_llm.script(sends_on(status, address))
    text = failure(agent())
    assert "sends on to" in text
    assert f"{named}; if that is right, write it as 'base_url'" in text
    assert len(scripted_llm.requests) == 1


def test_c119_going_round_and_round_ends(scripted_llm, agent):
    scripted_llm.always(sends_on(307, "/v1/chat/completions"))
    assert "again and again" in failure(agent())
    assert len(scripted_llm.requests) == 5


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_c118_loopback_is_reached_directly(scripted_llm, agent, monkeypatch, proxy, variable):
    monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy[0]}")
    scripted_llm.script(says("Paris"))
    assert ask(agent()).content == "Paris"


def test_c118_an_excluded_host_needs_nothing_of_a_proxy(agent, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "llm.invalid")
    assert "cannot find the server" in failure(agent(base_url="http://llm.invalid/v1"))


def test_c118_a_proxy_that_is_not_there_is_named_without_its_password(agent, monkeypatch, closed_port):
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter22@127.0.0.1:{closed_port}")
    text = failure(agent(base_url="https://llm.example/v1"))
    assert f"the proxy http://127.0.0.1:{closed_port}, which HTTPS_PROXY names, cannot be reached" in text
    assert "hunter22" not in text


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_c118_a_proxy_that_wants_a_password_says_so(agent, monkeypatch, proxy, scheme):
    port, status = proxy
    status[0] = 407
    monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://127.0.0.1:{port}")
    text = failure(agent(base_url=f"{scheme}://llm.example/v1"))
    assert f"which {scheme.upper()}_PROXY names, wants a user and a password" in text


def test_a_socks_proxy_without_its_package_says_what_to_install(agent, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    assert "pip install 'httpx2[socks]'" in failure(agent(base_url="https://llm.example/v1"))


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
@pytest.mark.parametrize("base_url", ["https://127.0.0.1:1/v1", None])
def test_c121_certificates_that_are_not_there_are_named_with_their_variable(
    agent, monkeypatch, tmp_path, variable, base_url
):
    monkeypatch.setenv(variable, str(tmp_path / "ca.pem"))
    text = failure(agent(base_url=base_url))
    assert f"{variable} names {tmp_path / 'ca.pem'}, which is not there" in text

"""Ways out of a sandbox that people try, each of which must end in a failed tool and nothing else."""

import socket
from contextlib import suppress

import pytest

from cleveragents.agents.tool.advice import INSTEAD
from cleveragents.errors import ToolError
from support.tools import call, failure

ESCAPES = {
    "import a module of the system": "import subprocess\nresult = subprocess.run(['id'])",
    "import a module of the network": "import socket\nresult = socket.socket()",
    "import a library of the host": "import cleveragents\nresult = cleveragents.__file__",
    "import by a function": "result = __import__('os').system('id')",
    "import by importlib": "import importlib\nresult = importlib.import_module('os')",
    "import ctypes": "import ctypes\nresult = ctypes.CDLL(None)",
    "run a command": "import os\nresult = os.system('id')",
    "become another program": "import os\nos.execv('/bin/sh', ['sh'])",
    "fork": "import os\nresult = os.fork()",
    "kill the parent": "import os\nos.kill(os.getppid(), 9)",
    "walk up from a tuple": "result = ().__class__.__bases__[0].__subclasses__()",
    "walk up from a class": "class C:\n    pass\n\nresult = C.__mro__[1].__subclasses__()",
    "walk from a function": "def f():\n    pass\n\nresult = f.__globals__",
    "walk from a builtin": "result = len.__self__",
    "walk by getattr": "result = getattr((), '__cl' + 'ass__').__base__",
    "walk by format": "result = '{0.__class__.__mro__}'.format(1)",
    "walk by format_map": "result = '{x.__class__}'.format_map({'x': 1})",
    "walk by an f-string": "result = f'{(1).__class__.__base__}'",
    "walk a traceback": "try:\n    1 / 0\nexcept Exception as e:\n    result = e.__traceback__.tb_frame.f_back",
    "walk a generator": "g = (x for x in [1])\nresult = g.gi_frame.f_back.f_globals",
    "walk a coroutine": "async def f():\n    pass\n\nresult = f().cr_frame",
    "read the globals": "result = globals()",
    "read the builtins": "result = __builtins__",
    "read the loaded modules": "import sys\nresult = sys.modules['os']",
    "read a frame": "import sys\nresult = sys._getframe(1)",
    "read a file": "result = open('/etc/passwd').read()",
    "read a file by pathlib": "from pathlib import Path\nresult = Path('/etc/passwd').read_text()",
    "read a file of the process": "result = open('/proc/self/environ', 'rb').read()",
    "read by descriptor": "result = open(0).read()",
    "list a folder": "import os\nresult = os.listdir('/')",
    "list a folder by pathlib": "from pathlib import Path\nresult = [str(p) for p in Path('/').iterdir()]",
    "look for a file": "from pathlib import Path\nresult = Path('/etc/passwd').exists()",
    "climb out of a folder": "result = open('../../../../etc/passwd').read()",
    "write a file": "open('/tmp/escaped', 'w').write('x')",
    "remove a file": "import os\nos.remove('/etc/hostname')",
    "make a folder": "import os\nos.mkdir('/tmp/escaped')",
    "read the environment": "import os\nresult = dict(os.environ)",
    "read a variable": "import os\nresult = os.getenv('HOME')",
    "compile bytecode": "result = compile('1', 'x', 'exec')",
    "unpickle": "import pickle\nresult = pickle.loads(b'')",
    "eval an import": "result = eval('__import__(\"os\")')",
    "exec an import": "exec('import subprocess')\nresult = 1",
    "eval with builtins of its own": "result = eval('open(\"/etc/passwd\")', {'__builtins__': {}})",
    "set an attribute of a module": "import json\njson.dumps = None",
    "trace": "import sys\nsys.settrace(lambda *a: None)",
    "read memory": "import gc\nresult = gc.get_objects()",
}


@pytest.mark.parametrize("code", ESCAPES.values(), ids=ESCAPES.keys())
def test_there_is_no_way_to(code, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    reason = failure(code)
    assert "sk-secret" not in reason
    assert "root:" not in reason


def test_there_is_no_way_to_reach_a_server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        for code in [
            f"import urllib.request\nresult = urllib.request.urlopen('http://127.0.0.1:{port}').read()",
            f"import http.client\nresult = http.client.HTTPConnection('127.0.0.1', {port}).request('GET', '/')",
            f"import asyncio\nresult = await asyncio.open_connection('127.0.0.1', {port})",
            f"import requests\nresult = requests.get('http://127.0.0.1:{port}').text",
        ]:
            failure(code)
        with pytest.raises(BlockingIOError):
            server.accept()


GREEDY = {
    "strings": "x = 'a'\nwhile True: x += x",
    "a list": "x = []\nwhile True: x.append([0] * 1000)",
    "a mapping": "x = {}\nwhile True: x[len(x)] = str(len(x)) * 100",
    "a set": "x = set()\nwhile True: x.add(len(x))",
    "an integer": "x = 7\nwhile True: x = x ** 3",
    "a power": "x = 10 ** 10 ** 9",
    "a shift": "x = 1 << 10 ** 12",
    "padding": "x = f'{1:>{10 ** 10}}'",
    "replacing": "x = ('a' * 10 ** 6).replace('a', 'b' * 10 ** 6)",
    "splitting": "x = ('a ' * 10 ** 7).split()",
    "sorting": "x = sorted(range(10 ** 10))",
    "a product": "import itertools\nx = list(itertools.product(range(1000), repeat=4))",
    "a pattern's substitution": "import re\nx = re.sub('', 'x' * 10 ** 6, 'y' * 1000)",
    "what is printed": "class C:\n    def __repr__(self):\n        return 'x' * 10 ** 10\n\nprint(C())",
    "what is encoded": "x = ('é' * 10 ** 7).encode() * 1000",
    "an endless iterator": "x = list(iter(int, 1))",
    "a sum without end": "x = sum(1 for _ in iter(int, 1))",
    "deep brackets": "eval('(' * 100_000)",
    "deep patterns": "import re\nre.compile('(?:' * 10_000 + 'a' + ')' * 10_000)",
    "deep json": "import json\njson.loads('[' * 100_000)",
    "deep calls": "f = lambda n: f(n + 1)\nf(0)",
    "a catching loop": "def f():\n    try:\n        f()\n    finally:\n        f()\n\nf()",
    "a factorial": "import math\nmath.factorial(10 ** 7)",
    "waiting again and again": "import time\nwhile True:\n  try: time.sleep(0.2)\n  except BaseException: pass",
    "tasks without end": "import asyncio\nasync def f():\n    await asyncio.gather(f(), f())\n\nawait f()",
}


@pytest.mark.parametrize("code", GREEDY.values(), ids=GREEDY.keys())
def test_greed_ends_at_a_limit(code):
    assert failure(code, time_limit=1, memory_limit=64_000_000)
    assert call("result = 'next'").content == "next"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a+)+$", "a" * 40 + "b"), (r"(a|aa)+\\1$", "a" * 40 + "b"), ("(x+x+)+y", "x" * 40), ("(.*)*#", "a" * 100)],
)
def test_a_pattern_that_backtracks_for_ever_ends(pattern, text):
    code = f"import re\nre.search('{pattern}', '{text}')\nresult = 'no match'"
    with suppress(ToolError):  # either end will do
        assert call(code, time_limit=2).content == "no match"


@pytest.mark.parametrize(
    ("code", "instead"),
    [
        ("import io", "csv.reader takes text.splitlines(), and csv.writer an object with a write method"),
        ("from io import StringIO", "csv.reader takes text.splitlines(), and csv.writer an object with a write method"),
        ("yield 1", "build a list"),
        ("class A(dict): pass", "write a plain class"),
        ("open('x')", "hand the text over as the prompt, which may be piped in"),
        ("del x", "docs/tools.md says what it has instead; code that you trust can run with --unsafe"),
        ("import requests", "docs/tools.md says what it has instead; code that you trust can run with --unsafe"),
        ("memoryview(b'x')", "docs/tools.md says what it has instead; code that you trust can run with --unsafe"),
    ],
)
def test_what_the_sandbox_lacks_is_named_with_the_way_inside_it_first(code, instead):
    assert failure(f"x = 1\n{code}").endswith(f"(line 2); {instead}")


@pytest.mark.parametrize("module", INSTEAD)
def test_a_module_has_advice_only_where_the_sandbox_has_none(module):
    assert failure(f"import {module}") == (
        f"ModuleNotFoundError: No module named '{module}' (line 1); {INSTEAD[module]}"
    )


WRITING = """
import csv

class Text:
    def __init__(self):
        self.text = ""

    def write(self, line):
        self.text += line

rows = list(csv.reader(message.splitlines()))
text = Text()
csv.writer(text).writerows(rows)
result = [rows, text.text]
"""


def test_csv_is_read_and_written_without_io():
    assert call(WRITING, 'a,"b, c"\n1,2').content == [[["a", "b, c"], ["1", "2"]], 'a,"b, c"\r\n1,2\r\n']


def test_the_ways_inside_work():
    code = """
import random
result = [len(f"{random.getrandbits(128):032x}"), sorted([3, 1, 2])[:2], sum([1, 2]) / len([1, 2]), "5".isdigit()]
"""
    assert call(code).content == [32, [1, 2], 1.5, True]


def test_deleting_a_key_is_answered_with_the_way_to_do_it():
    assert failure('del context["x"]').endswith('; write context.pop("x")')
    assert failure("if True:\n    del context['a']['b']").endswith("(line 2); write context['a'].pop('b')")


def test_a_mistyped_name_gets_no_advice():
    assert failure("result = mesage") == "NameError: name 'mesage' is not defined (line 1)"

"""Tool code and expressions in the pydantic-monty sandbox: a Python of its own, in processes of its own.

A worker process serves one call at a time and forgets everything after it. The library's blocking pool is used
from threads: its asyncio pool aborts the interpreter now and then when that ends (seen with version 1.4.0).
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.agents.tool.advice import advice
from cleveragents.agents.tool.call import Call, wait_for
from cleveragents.agents.tool.guardian import killed_with_us
from cleveragents.agents.tool.limits import PROCESSES, SIZE_LIMIT, Limits
from cleveragents.agents.tool.output import Printed, one_line
from cleveragents.errors import CodeError, InvalidValueError
from cleveragents.values.json import json_object, json_value, load_json
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError, MontySession, OsFunction

_SHORT, _ANY = re.split(
    r"^# --- .*\n", Path(__file__).with_name("answer_check.py").read_text(encoding="utf-8"), flags=re.MULTILINE
)[1:]
"""What makes text of a short value inside, and of any values."""

_LONGEST_ANSWER = 2 * SIZE_LIMIT + 1_000


async def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    """The JSON value of a Python ``expression`` that sees ``variables``, within the usual limits of code.

    Raises CodeError when it fails, when its value is not JSON, and when it is more than an expression.
    """
    if not expression.strip():
        raise CodeError("SyntaxError: there is no expression")
    # Handing over a large context costs more than most expressions.
    inputs = {name: value for name, value in variables.items() if name in expression}
    try:
        steps = [
            # The brackets make everything but an expression a syntax error.
            _Step(f"__value = (\n{clean_text(expression)}\n)", json_object(inputs, "variables")),
            _answer("short_answer", _SHORT, "__value"),
            _answer("answer", _ANY, "[('value', __value)]"),
        ]
        limits = Limits()
        answer = await wait_for(lambda call: _run(call, limits, Printed(), steps), limits.time)
        return _values(answer, "value")[0]
    except InvalidValueError as error:
        raise CodeError(str(error)) from None


async def run_sandboxed(code: str, variables: Mapping[str, Any], limits: Limits, printed: Printed) -> tuple[Any, Any]:
    """What ``code`` left in ``result`` and ``context``, as JSON values; it sees ``variables``, which are JSON.

    ``printed`` receives what it prints, whether it fails or not. Raises CodeError when it fails or goes past
    ``limits``, InvalidValueError when it leaves something that is not JSON.
    """
    steps = [
        _Step("None", {**variables, "result": None}),
        _Step(code),
        _answer("answer", _ANY, "[('result', result), ('context', context)]"),
    ]
    answer = await wait_for(lambda call: _run(call, limits, printed, steps), limits.time)
    result, context = _values(answer, "result", "context")
    if result is None and "return" in code:
        _refuse_return(code)
    return result, context


def _values(answer: str, *names: str) -> list[Any]:
    match load_json(answer):
        case ["refused", str(path), str(reason)]:
            raise InvalidValueError(reason, path)
        case ["done", *values] if len(values) == len(names):
            return [json_value(value, name) for value, name in zip(values, names, strict=True)]
    raise CodeError("the sandbox gave no answer")


def _refuse_return(code: str) -> None:
    """Outside of a function, ``return`` ends code in the sandbox without a word, and its value would be lost."""
    import ast

    try:
        compile(code, "tool", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        if error.msg == "'return' outside function":
            raise CodeError(f"SyntaxError: {error.msg} (line {error.lineno}); set result instead") from None


# --- the sandbox's processes ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """Code that runs inside, and the variables that it is handed."""

    code: str
    inputs: dict[str, Any] = field(default_factory=dict)
    answers: bool = False
    """Whether it ends with text that may be an answer. The value of any other code never leaves the sandbox."""


def _answer(function: str, source: str, values: str) -> _Step:
    """What ``function`` of ``source`` makes of ``values``.

    Its names, and those of Python that it uses, are in a namespace of their own, which code that ran before cannot
    have changed. Whatever it is worth, the syntax makes text of it, and not more than so much.
    """
    run = f"__eval('{function}(values)', __exec(__source, __names) or __names)"
    return _Step(
        f'__names = {{"values": {values}}}\nf"{{{run}!s:.{_LONGEST_ANSWER}}}"', {"__source": source}, answers=True
    )


_STDERR = 2
_DESCRIPTORS = 12  # open files that a pool and its first worker take
_starting = threading.Lock()
_pools: dict[int, Monty] = {}  # by the process that made it
_builtins: dict[str, Any] = {}  # stand for functions inside, whatever their names stand for there


def _checkout(limits: Limits) -> MontySession:
    """A session in a worker process, of which there are none before the first call."""
    from pydantic_monty import Monty

    process = os.getpid()
    if _pools and process not in _pools:
        # It would wait for threads that a fork does not copy, and hold up its parent's calls.
        raise CodeError("sandboxed code cannot run in a fork of a process that ran some; spawn the process instead")
    with _starting:
        if process not in _pools:
            _need_descriptors()
            pool = Monty(min_processes=0, max_processes=PROCESSES)
            pool.__enter__()  # never left: an idle worker ends by itself when this process does, a busy one by _session
            _pools[process] = pool
    return _pools[process].checkout(
        limits={"max_feed_duration_secs": limits.time, "max_memory": limits.memory},
        os_policy={"sleep": "call_host"},
    )


def _need_descriptors() -> None:
    """Raise OSError where the library would fall into a panic, which it tells on standard error at length."""
    held: list[int] = []
    try:
        for _ in range(_DESCRIPTORS):
            held.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 - what is open is closed when the next fails
    finally:
        for descriptor in held:
            os.close(descriptor)


def _run(call: Call, limits: Limits, printed: Printed, steps: Sequence[_Step]) -> str:
    """The first answer of ``steps`` that is not empty; they run in turn in an interpreter made for this ``call``."""
    from pydantic_monty import MontyCrashedError, MontyError

    with ExitStack() as stack:
        try:
            try:
                feed = stack.enter_context(_session(call, limits, printed))
                feed(steps[0])
            except MontyCrashedError:
                # A worker that died idle, by a Ctrl-C that was meant for us perhaps, is found out only now.
                stack.close()
                if call.stopped.is_set():
                    raise
                feed = stack.enter_context(_session(call, limits, printed))
                feed(steps[0])
            for step in steps[1:]:
                if answer := feed(step):
                    return answer
        except MontyError as error:
            if call.late:
                raise CodeError(limits.time_text) from None
            raise CodeError(_reason(error, limits) + _place(error, steps)) from None
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of the library's, which would pass by all who wait
            raise CodeError(f"the sandbox failed: {one_line(str(error))}") from None
    raise CodeError("the sandbox gave no answer")


@contextmanager
def _session(call: Call, limits: Limits, printed: Printed) -> Iterator[Callable[[_Step], str]]:
    """A function that runs a step in a worker process of this ``call``, and hands back its answer, or else ""."""
    from pydantic_monty import NOT_HANDLED, MontyComplete

    def answer_system_call(*, name: OsFunction, args: tuple[Any, ...], **_: Any) -> Any:
        if name not in {"time.sleep", "asyncio.sleep"}:
            return NOT_HANDLED
        # The library's own sleep does not count as time used, and cannot be ended.
        left = deadline - time.monotonic()
        call.stopped.wait(max(0.0, min(args[0], left)))
        if args[0] > left:
            raise TimeoutError(limits.time_text)
        return None

    def feed(step: _Step) -> str:
        # Not feed_run: that makes Python values of whatever the code is worth, and of all that it returns.
        inputs = {**step.inputs, **_builtins} if step.answers else step.inputs
        state = session.feed_start(step.code, inputs=inputs, print_callback=show, os=answer_system_call)
        while not isinstance(state, MontyComplete):
            state = state.resume_auto()
        return state.output if step.answers else ""

    def show(_stream: str, text: str) -> None:
        printed.write(text)

    with ExitStack() as stack:
        try:
            checkout, first = _checkout(limits), None if _builtins else _checkout(limits)
            with _standard_error_kept():
                if first is not None:
                    with first as untouched:
                        functions = untouched.feed_run("eval, exec")
                    _builtins.update(zip(("__eval", "__exec"), functions, strict=True))
                session = stack.enter_context(checkout)
        except (OSError, RuntimeError) as error:
            raise CodeError(
                f"the sandbox cannot start: {one_line(getattr(error, 'strerror', None) or str(error))}"
            ) from None
        deadline = time.monotonic() + limits.time
        worker = session.worker_pid
        if worker is not None:  # else it has died, and the first feed says so
            stack.enter_context(call.killed_by(lambda: _kill(worker)))
            stack.enter_context(killed_with_us(worker))
        call.begin()
        yield feed


@contextmanager
def _standard_error_kept() -> Iterator[None]:
    """Keep standard error from the workers that start in the block: one that runs out of memory writes there."""
    with _starting:
        try:
            inheritable = os.get_inheritable(_STDERR)
        except OSError:  # there is no standard error
            yield
            return
        os.set_inheritable(_STDERR, False)
        try:
            yield
        finally:
            os.set_inheritable(_STDERR, inheritable)


def _kill(worker: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)


# --- what went wrong, in one line -----------------------------------------------------------------------

_UNSUPPORTED = re.compile(r"NotImplementedError: The monty syntax parser does not yet support (.*)", re.DOTALL)


def _reason(error: MontyError, limits: Limits) -> str:
    from pydantic_monty import MontyCrashedError, MontySyntaxError

    text = str(error)
    if isinstance(error, MontyCrashedError):
        return limits.time_text if error.timed_out else "the sandbox's process died; the next call starts a new one"
    if text.startswith(("TimeoutError: feed time limit", f"TimeoutError: {limits.time_text}")):
        return limits.time_text
    if text.startswith(("MemoryError: memory limit", "MemoryError: the worker exceeded")):
        return limits.memory_text
    if text.startswith("RuntimeError: Internal error in monty: exceptions can only"):
        text = "an exception was raised with something other than one text, which the sandbox cannot do"
    elif unsupported := _UNSUPPORTED.match(text):
        text = "the sandbox has no " + unsupported[1].removeprefix("the ")
    elif isinstance(error, MontySyntaxError):
        text = f"SyntaxError: {text}"
    return one_line(text)


def _place(error: MontyError, steps: Sequence[_Step]) -> str:
    """Where in a tool's code it failed, if that is known, and how to do it instead, if there is a way."""
    frames = [frame for frame in getattr(error, "traceback", list)() if frame.filename == "<python-input-1>"]
    if not frames:
        return ""
    number = frames[-1].line
    lines = steps[1].code.splitlines()
    hint = advice(str(error), lines[number - 1] if number <= len(lines) else "")
    return f" (line {number})" + (f"; {hint}" if hint else "")

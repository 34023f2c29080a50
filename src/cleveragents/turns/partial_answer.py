"""What has come of a run so far: the answer as it arrives, and what each llm has used."""

from __future__ import annotations

from collections.abc import Collection

from cleveragents.agents.events import AgentEvent, Listener, LLMUsed, TextDelta
from cleveragents.conversation.usage import Usage


class PartialAnswer:
    """Listens to a run, and passes on what it hears to ``listener``.

    ``answering_agent`` is the agent whose text is the answer word for word, if there is one.
    """

    def __init__(self, listener: Listener | None, answering_agent: str | None) -> None:
        self.answering_agent = answering_agent
        self._listener = listener
        self._pieces: list[str] = []
        self._goes_on = False
        self._used: dict[str, Usage] = {}

    def listen(self, event: AgentEvent) -> None:
        """Take note of ``event``."""
        if isinstance(event, TextDelta) and event.agent == self.answering_agent:
            self._pieces.append(event.text)
        if isinstance(event, LLMUsed):
            before = self._used.get(event.usage.llm)
            self._used[event.usage.llm] = event.usage if before is None else before + event.usage
        if self._listener is not None:
            self._listener(event)

    def kept(self, agent: str) -> None:
        """What ``agent`` has said until now is kept as a step of its own, and is no part of the answer to come."""
        if agent == self.answering_agent:
            self._pieces.clear()
            self._goes_on = True

    @property
    def text(self) -> str:
        """What has arrived of the answer and is not kept yet."""
        text = "".join(self._pieces)
        # A step that follows another one begins with the gap between the two.
        return text.removeprefix("\n\n") if self._goes_on else text

    @property
    def used(self) -> Collection[Usage]:
        """What each llm has used, whatever became of its answers."""
        return self._used.values()

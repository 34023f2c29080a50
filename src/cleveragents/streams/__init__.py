"""Reactive streams that join agents into a network.

``router`` is what a program uses: it starts a ``run`` of a ``network``, which says what leads where. A route of it is
made of ``operators``, with ``joins`` for those that ask several agents; each works at a ``stage``, which asks agents by
``asking``. What goes from stage to stage is a ``parcel``. ``live`` is the network in motion, ``state`` what the stages
share.
"""

"""Sharing: folders of policies (trained agents, teams, tuned policies) with a card, sent to and taken from a hub of
models.

`contents` what lies in a folder; `files` whether it is whole, and safe to take; `card` its README.md, from what the
folder says of itself; `hub` sending and taking, through huggingface_hub.
"""

from escala.described import Contents, contents
from escala.sharing.card import card
from escala.sharing.files import listed
from escala.sharing.hub import pull, push

__all__ = ["Contents", "card", "contents", "listed", "pull", "push"]

"""Sharing: folders of policies (trained agents, teams, tuned policies) with a card, sent to and taken from a hub of
models.

`contents` what lies in a folder, and whether it is whole; `card` its README.md, from what the folder says of itself;
`hub` sending and taking, through huggingface_hub.
"""

from escala.sharing.card import card
from escala.sharing.contents import Contents, contents, listed
from escala.sharing.hub import pull, push

__all__ = ["Contents", "card", "contents", "listed", "pull", "push"]

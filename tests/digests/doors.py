"""Names that are not public yet: the only lines of these tests that a move of modules may change."""

from escala.envs.slots.options import options_of as slot_options
from escala.envs.slots.playing import play as play_slots
from escala.envs.slots.playing import tune_hold_back
from escala.envs.slots.policy import SlotPolicy
from escala.envs.slots.team.options import options_of as team_options
from escala.envs.slots.team.playing import play as play_team
from escala.envs.slots.team.policy import TeamPolicy
from escala.policies.compose import SHUTDOWN_FORMS
from escala.policies.schedulers import SCHEDULERS

__all__ = [
    "SCHEDULERS",
    "SHUTDOWN_FORMS",
    "SlotPolicy",
    "TeamPolicy",
    "play_slots",
    "play_team",
    "slot_options",
    "team_options",
    "tune_hold_back",
]

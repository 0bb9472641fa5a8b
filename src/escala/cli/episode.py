"""One episode of any environment, played by a rule, by chance or by a trained agent, as pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escala.errors import EscalaError, quoted
from escala.reading import own, read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from escala.report.animation import Colour

OFF_RESERVATION, SCHEDULING, SLOTS, MULTI = (
    "escala/OffReservation-v0",
    "escala/Scheduling-v0",
    "escala/Slots-v0",
    "multi.slots",
)
NAMES = (SLOTS, OFF_RESERVATION, SCHEDULING, MULTI)
"""Gymnasium's names, and the game of several agents by its name in `escala.envs`."""

NEEDS_LOG = (OFF_RESERVATION, SCHEDULING)
NUMBERED = {OFF_RESERVATION: "day", SCHEDULING: "day", SLOTS: "list", MULTI: "list"}
"""What the episodes of an environment are, as its `reset` calls them."""

OPTIONS = {
    SLOTS: ("slots.options", "SlotOptions"),
    OFF_RESERVATION: ("rjms.off_reservation", "OffReservationOptions"),
    SCHEDULING: ("rjms.scheduling", "SchedulingOptions"),
    MULTI: ("slots.team.options", "MultiOptions"),
}
"""Where the options of an environment are described, below `escala.envs`."""

TEAMS = ("team", "exported team")
AGENT = ("sampled", "likeliest")
Act = Callable[[Any], int]
"""From the turn of a batch of one to an action."""


@dataclass
class Episode:
    """An environment, its batch of one, and who plays. After `frames`: steps taken, sum of rewards, whether it came to
    its end."""

    name: str
    batch: Any
    policy: str
    act: Act
    turn: Any
    steps: int = 0
    total: float = 0.0
    ended: bool = False
    legend: Mapping[str, Colour] | None = None
    colours: Mapping[Colour, Colour] = field(default_factory=dict)

    def begin(self, seed: int, number: int | None) -> None:
        """Bring the batch to the start of an episode: the one of this number, else one drawn by seed."""
        import numpy as np

        rows = np.zeros(1, np.int64)
        self.batch.seed(rows, np.array([seed], np.uint64))
        self.batch.restart(rows, self.turn, {} if number is None else {NUMBERED[self.name]: number})

    def frames(self, limit: int, every: int) -> Iterator[NDArray[np.uint8]]:
        """The picture at the start, after every `every`-th step, and at the end, of at most `limit` steps."""
        import numpy as np

        yield self._frame()
        while self.steps < limit and not self.ended:
            self.batch.step(np.array([self.act(self.turn)], np.int64), self.turn)
            self.steps += 1
            self.total += float(self.turn.reward.sum())
            self.ended = bool(self.turn.terminated[0] or self.turn.truncated[0])
            if self.steps % every == 0 or self.ended or self.steps == limit:
                yield self._frame()

    def _frame(self) -> NDArray[np.uint8]:
        from escala.report.animation import captioned, recoloured

        text = f"{self.name}  {self.policy}   {self.clock()}   step {self.steps}   return {self.total:.4g}"
        return captioned(recoloured(self.batch.frame(0), self.colours), text, self.legend)

    def clock(self) -> str:
        """The time in the episode."""
        info = self.batch.info()
        if "row" in info:
            return f"unit {int(info['row'][0])}"
        minutes = int(info["time_s"][0]) // 60
        return f"{minutes // 1440} d {minutes // 60 % 24:02}:{minutes % 60:02}"


def environment(
    name: str, workload: Any, platform: Any, settings: Mapping[str, Any], seed: int, policy: str | None
) -> Episode:
    """An episode of an environment by name, played by a rule or by chance."""
    batch = _batch(name, workload, platform, settings)
    turn = _turn(batch)
    known = rules_of(name)
    chosen = policy or _default(name, batch)
    if chosen not in known and not (name == OFF_RESERVATION and chosen.startswith("always:")):
        raise EscalaError(f"unknown policy {quoted(chosen)} for {name}: use one of {', '.join(known)}")
    return _painted(Episode(name, batch, chosen, _rule(name, batch, chosen, seed), turn))


def trained(
    folder: Path, workload: Any, platform: Any, settings: Mapping[str, Any], seed: int, policy: str | None
) -> Episode:
    """An episode played by the agent, or the team, in a folder. policy: of AGENT; without one as the other verbs play
    it: an agent as its preset does better, a team by its greedy actions."""
    import numpy as np

    if policy is not None and policy not in AGENT:
        raise EscalaError(f"unknown policy {quoted(policy)} for a trained agent: use {' or '.join(AGENT)}")
    if kind_of(folder)[1] == MULTI:
        team = import_module("escala.agents").load_team(folder)
        chosen = policy or AGENT[1]
        members = team.members(sampled=chosen == AGENT[0], seed=seed)
        batch = _batch(MULTI, workload, platform, {**team.options, **settings})
        return Episode(
            MULTI,
            batch,
            f"team, {chosen}",
            lambda turn: int(members[int(batch.agent[0])](turn.observation, turn.mask)[0]),
            _turn(batch),
        )
    agent = import_module("escala.agents").load_agent(folder)
    batch = _batch(agent.env_id, workload, platform, {**agent.env_options, **settings})
    shown, learnt = batch.observation_space.shape, tuple(agent.manifest["observation_shape"])
    if shown != learnt or int(batch.action_space.n) != int(agent.manifest["actions"]):
        raise EscalaError(
            f"{folder}: the agent sees {learnt} numbers, the environment shows {shown}: use the platform of its "
            "training"
        )
    chosen = policy or AGENT[0 if agent.sampled else 1]
    random = np.random.default_rng(seed) if chosen == AGENT[0] else None
    act: Act = lambda turn: int(agent.act(turn.observation, turn.mask, random)[0])  # noqa: E731
    return _painted(Episode(agent.env_id, batch, f"agent, {chosen}", act, _turn(batch)))


def kind_of(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest of a trained agent or team, and its environment."""
    try:
        manifest = read_json(folder / "manifest.json")
    except EscalaError:
        manifest = None
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind not in ("agent", "exported agent", *TEAMS):
        raise EscalaError(
            f"{folder}: no trained agent here; give a folder that escala train wrote, or one of {', '.join(NAMES)}"
        )
    with own(folder, kind, "save it again"):
        return manifest, MULTI if kind in TEAMS else str(manifest["env_id"])


def option_lines(name: str) -> list[tuple[str, str, str]]:
    """The options of an environment: `name=default`, what it is for, what it may be."""
    module, options = OPTIONS[name]
    return list(getattr(import_module(f"escala.envs.{module}"), options).described())


def rules_of(name: str) -> list[str]:
    """Who can play an environment without training."""
    if name == SLOTS:
        return ["random", *(rule for rule in import_module("escala.envs.slots.heuristics").RULES if rule != "random")]
    if name == MULTI:
        return list(import_module("escala.envs.slots.heuristics").TEAM_RULES)
    return ["random", "always:ACTION"] if name == OFF_RESERVATION else ["random", "first-fit"]


def _default(name: str, batch: Any) -> str:
    """The plainest rule of an environment: off-reservation as `timeout:0` does, the others by the shortest or the first
    job."""
    if name == OFF_RESERVATION:
        return f"always:{int(batch.action_space.n) - 1 if batch.options.action == 'wake' else 0}"
    return "first-fit" if name == SCHEDULING else "sjf"


def _batch(name: str, workload: Any, platform: Any, settings: Mapping[str, Any]) -> Any:
    from escala.envs import ENVIRONMENTS, multi

    try:
        if name == MULTI:
            return multi.batch(1, workload, **settings)
        entry = ENVIRONMENTS[name]
        return getattr(import_module(entry.module), entry.single)(workload, platform, **settings).batch
    except EscalaError:
        raise
    except (TypeError, ValueError) as error:
        told = ", ".join(f"{key}={value}" for key, value in settings.items()) or "none"
        raise EscalaError(
            f"{name} does not take these settings ({told}), a value is of the wrong kind: {error}"
        ) from None


def _turn(batch: Any) -> Any:
    from escala.envs.core.batch import new_turn

    return batch.new_turn() if hasattr(batch, "new_turn") else new_turn(batch)


def _rule(name: str, batch: Any, policy: str, seed: int) -> Act:
    import numpy as np

    out, random = np.zeros(1, np.int64), np.random.default_rng(seed)
    if policy == "random" and name != MULTI:
        return lambda turn: int(random.choice(np.flatnonzero(turn.mask[0])))
    if name == SCHEDULING:
        return lambda turn: int(turn.mask[0, 1:].argmax()) + 1 if turn.mask[0, 1:].any() else 0
    if name == OFF_RESERVATION:
        action = _action(policy, batch)
        return lambda turn: action
    if name != MULTI:
        from escala.envs.slots.options import set_hold

        set_hold(batch.games, (3, 6, 0))  # of the rule hold-back, as `slots.playing.play` has them
    return lambda turn: (batch.decide(policy, out), int(out[0]))[1]


def _action(policy: str, batch: Any) -> int:
    """K of always:K."""
    number, actions = policy.removeprefix("always:"), int(batch.action_space.n)
    if not number.isdigit() or int(number) >= actions:
        raise EscalaError(f"policy {quoted(policy)}: write always:ACTION with a whole number in 0..{actions - 1}")
    return int(number)


def _painted(episode: Episode) -> Episode:
    """Strips of node states get the colours of the reports, which colour-blind readers can tell apart, and a legend."""
    if episode.name not in NEEDS_LOG:
        return episode
    from escala.envs.rjms.picture import COLOURS
    from escala.report.style import STATE_COLOURS

    order = ("computing", "idle", "off", "switching_off", "switching_on")  # of `envs.render.COLOURS`
    rgb = {state: _triple(bytes.fromhex(STATE_COLOURS[state].lstrip("#"))) for state in order}
    episode.colours = {_triple(COLOURS[k]): rgb[state] for k, state in enumerate(order)}
    episode.legend = {state.replace("_", " "): colour for state, colour in rgb.items()}
    return episode


def _triple(values: Any) -> Colour:
    red, green, blue = (int(value) for value in values)
    return red, green, blue

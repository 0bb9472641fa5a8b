"""A reward of one's own, as a wrapper around an environment. Run: python examples/own_reward.py"""

from typing import Any

import gymnasium

import escala.envs  # makes the names escala/... known to Gymnasium


class WasteAndWaiting(gymnasium.Wrapper):
    """Pays -1 for each MJ wasted in the step, and -1 for each walltime that queued jobs waited in it."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The environment's own reward is left aside; `info` tells what happened in the step."""
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, -float(info["waste_j"]) / 1e6 - float(info["waited"]), terminated, truncated, info


log = escala.workload.generate.grid5000(cluster="orion", days=10, seed=1)
plain = gymnasium.make("escala/OffReservation-v0", workload=log, platform="orion")
for name, env in (("as it is", plain), ("own reward", WasteAndWaiting(plain))):
    _, info = env.reset(seed=0, options={"day": 3})
    total, waste_j, waited, over = 0.0, 0.0, 0.0, False
    while not over:
        allowed = int(info["action_mask"].argmax())  # the first action that makes sense
        _, reward, terminated, truncated, info = env.step(allowed)
        total, waste_j, waited = total + float(reward), waste_j + info["waste_j"], waited + info["waited"]
        over = terminated or truncated
    print(f"{name:10}  sum of rewards {total:10.3f}   waste {waste_j / 1e6:.3f} MJ   waited {waited:.3f} walltimes")

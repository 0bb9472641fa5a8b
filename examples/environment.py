"""Environments by hand: one by one with a mask, and many at once. Run: python examples/environment.py"""

import gymnasium
import numpy as np

import escala.envs  # makes the names escala/... known to Gymnasium

log = escala.workload.generate.grid5000(cluster="orion", days=10, seed=1)
env = gymnasium.make("escala/Scheduling-v0", workload=log, platform="orion", window="drain")
observation, info = env.reset(seed=0, options={"day": 3})
print("observation", observation.shape, "of", env.observation_space)
print("actions    ", env.action_space, "of which allowed now:", np.flatnonzero(info["action_mask"]).tolist())

steps, total, over = 0, 0.0, False
while not over:
    allowed = np.flatnonzero(info["action_mask"])
    # 0 waits; the others start a waiting job, the first of them here
    action = int(allowed[1]) if len(allowed) > 1 else 0
    observation, reward, terminated, truncated, info = env.step(action)
    steps, total, over = steps + 1, total + float(reward), terminated or truncated
print(f"day 3       {steps} steps, sum of rewards {total:.3f}")

many = gymnasium.make_vec(
    "escala/Scheduling-v0", num_envs=64, vectorization_mode="vector_entry_point", workload=log, platform="orion"
)
observations, infos = many.reset(seed=0)
for _ in range(100):
    observations, rewards, terminated, truncated, infos = many.step(infos["action_mask"].argmax(axis=1))
print("64 at once ", observations.shape, "masks", infos["action_mask"].shape)

"""Train a policy, hand its folder over, run it elsewhere. Run: python examples/hand_over.py (half a minute)"""

import tempfile
from pathlib import Path

import escala

log = escala.workload.generate.grid5000(cluster="orion", days=14, seed=1)
days = log.split_days()

with tempfile.TemporaryDirectory() as folder:
    # a second's worth: see docs/how-to/train.md
    agent = escala.train("escala/OffReservation-v0", days[:10], "orion", steps=4096, seed=0)
    agent.save(Path(folder) / "agent")

    received = escala.load_agent(Path(folder) / "agent")  # on the other machine
    day = days[12]
    theirs = escala.simulate(day, "orion", scheduler="saf", shutdown=received.policy(seed=7))
    ours = escala.simulate(day, "orion", scheduler="saf", shutdown=agent.policy(seed=7))

print("environment:      ", received.env_id)
print("the same schedule:", theirs.jobs.equals(ours.jobs))
print("the same energy:  ", theirs.summary()["energy_j"] == ours.summary()["energy_j"])
print("every job ended:  ", set(theirs.jobs["state"]) <= {"COMPLETED", "KILLED"})

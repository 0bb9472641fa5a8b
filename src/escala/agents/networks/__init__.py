"""Networks, and how a preset's network and learner are built."""

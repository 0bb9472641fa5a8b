"""Inside Batsim: a decision process of its protocol (version 4: JSON over ZeroMQ), which lets a desk decide."""

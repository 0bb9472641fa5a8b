"""Attacks: what was tried against Escala, each as a command that says what held."""

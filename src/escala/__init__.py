"""Escala learns scheduling and power policies for batch clusters."""

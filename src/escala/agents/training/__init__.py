"""Training by reward, the days that choose what is kept, and the curve beside it."""

"""What all environments share: many simulations at once, their faces for Gymnasium, checks of arguments, random
numbers."""

"""What a run costs."""

COSTS = ["iteration", "gradients", "hessians", "jacobians", "samples", "exchanges", "bytes", "virtual_seconds", "seconds"]
"""The columns of a measurement that are costs."""

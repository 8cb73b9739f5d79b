"""Group-based policy gradients: credit, losses, learner."""

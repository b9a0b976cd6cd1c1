"""What a user writes, a system by its Lagrangian, and what follows from that without a step."""

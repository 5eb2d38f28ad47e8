"""What networks are made of: parameters, scratch, threads, layers."""

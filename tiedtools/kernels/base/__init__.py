"""What all other kernels use: the compiler's decorator, products, tiles, and scalar functions."""

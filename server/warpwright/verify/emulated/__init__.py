"""What runs in the emulator's process: kernels compared there, with each other or with a reference in torch."""

"""The taught model: the base's weights with what teaching changed of them, which comes with warpwright."""

"""Evolution of transfer policies: strategies that ask and are told, fitness by replay."""

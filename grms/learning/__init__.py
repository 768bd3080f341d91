"""Evolution: strategies that ask and are told, whatever the genes mean."""

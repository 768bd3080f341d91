"""The effect of exchange on a site, from its own journal."""

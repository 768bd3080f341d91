"""Parsl's blocks at a Hanse site: `HighThroughputExecutor(provider=HanseProvider(sites=["kth"]))`."""

from parsl_provider_hanse.provider import HanseProvider

__all__ = ["HanseProvider"]

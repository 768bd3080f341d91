"""The workflow broker: workflows onto reservable resources, replanned every few minutes.

Empty for now. The planner and its daemon come here; of `grms` they will use the client alone.
"""

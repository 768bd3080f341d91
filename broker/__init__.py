"""The workflow broker: workflows onto reservable resources, replanned every few minutes."""

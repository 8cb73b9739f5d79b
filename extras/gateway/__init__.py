"""Programs that talk to a chat endpoint play the roles of an episode, unchanged."""

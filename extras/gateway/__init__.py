"""Programs play the episodes: they call a chat endpoint, and the roles answer."""

"""Programs that call a chat endpoint play the roles."""

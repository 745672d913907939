"""Extensions of agent-workbench, one of each kind."""

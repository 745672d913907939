"""The user's files, and those of this program, as typed values with their places. Nothing here runs their code."""

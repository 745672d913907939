"""What a case, a run or a comparison shows, as styled lines: pure functions without Textual."""

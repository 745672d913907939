"""Tells what is going on in a city. Wants a Gemini key: put `GOOGLE_API_KEY=…` into a `.env` beside this file."""

from google.adk.agents import LlmAgent


def events_in(city: str) -> dict:
    """What is on tonight.

    Args:
        city: its name in English.
    """
    return {"city": city, "events": ["open-air cinema", "night market"]}


root_agent = LlmAgent(
    name="city_brief",
    model="gemini-3.5-flash",
    description="Knows what is on tonight.",
    instruction="Say in one sentence what is on tonight in the city the user names. Use the tool.",
    tools=[events_in],
)

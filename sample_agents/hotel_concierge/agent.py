"""The concierge of a small hotel in Lisbon. A real `LlmAgent`: swap `ScriptedModel(…)` for "gemini-3.5-flash" and it
talks to Gemini."""

from pathlib import Path

from google.adk.agents import LlmAgent

from .scripted_model import ScriptedModel

ROOMS = {"101": ("single", 80.0), "204": ("double", 120.0), "305": ("suite", 240.0)}
TABLES = {"19:00": 4, "20:30": 0}


def find_rooms(kind: str, nights: int) -> dict:
    """Lists free rooms of a kind with the price of the whole stay.

    Args:
        kind: single, double or suite.
        nights: how many nights the guest stays.
    """
    return {"rooms": [{"room": room, "total": price * nights} for room, (of, price) in ROOMS.items() if of == kind]}


def book_room(room: str, nights: int) -> dict:
    """Books a room.

    Args:
        room: the room number.
        nights: how many nights the guest stays.
    """
    return {"booking": f"{room}-{nights}", "total": ROOMS[room][1] * nights}


def reserve_table(time: str, people: int) -> dict:
    """Reserves a table in the restaurant.

    Args:
        time: the hour, such as 19:00.
        people: how many come.
    """
    if TABLES[time] < people:
        return {"reserved": False, "free": TABLES[time]}
    return {"reserved": True, "time": time}


root_agent = LlmAgent(
    name="hotel_concierge",
    model=ScriptedModel(script=Path(__file__).with_name("script.json")),
    description="Books rooms and tables.",
    instruction="You are the concierge of the Hotel Tejo. The guest is called {guest?}. Look before you book.",
    tools=[find_rooms, book_room, reserve_table],
)

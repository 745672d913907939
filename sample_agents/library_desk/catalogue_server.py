"""The library's catalogue as an MCP server over stdio."""

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # mcp 1 has another name for it.
    from mcp.server.fastmcp import FastMCP as MCPServer

BOOKS = {
    "The Book of Disquiet": {"shelf": "P-12", "copies": 2},
    "Blindness": {"shelf": "S-03", "copies": 1},
    "The Maias": {"shelf": "Q-08", "copies": 0},
}

catalogue = MCPServer("catalogue")


@catalogue.tool()
def find_book(title: str) -> dict:
    """Finds a book by its title."""
    if title not in BOOKS:
        raise ValueError(f"no book is called {title}")
    return BOOKS[title]


@catalogue.tool()
def reserve_book(shelf: str, card: str) -> dict:
    """Reserves a book for the owner of a library card."""
    return {"reserved": True, "shelf": shelf, "card": card}


if __name__ == "__main__":
    catalogue.run("stdio")

"""The desk of a library. Its catalogue is an MCP server, started over stdio for each case.

With google-adk[mcp], its case runs live. The recording in `loans.evalset.frozen` needs neither the server nor that
package: `agent-workbench run sample_agents/library_desk --frozen`.
"""

import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.tools.base_toolset import BaseToolset

from .scripted_model import ScriptedModel

HERE = Path(__file__).parent

try:
    from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
    from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
    from mcp import StdioServerParameters
except ImportError:
    from google.adk.tools import FunctionTool

    class NotInstalled(BaseToolset):
        """Stands for the catalogue where the package that connects to it is missing."""

        async def get_tools(self, readonly_context=None):
            return [FunctionTool(find_book), FunctionTool(reserve_book)]

        async def close(self) -> None:
            """Nothing is open."""

    def find_book(title: str) -> dict:
        """Finds a book by its title."""
        raise ModuleNotFoundError(
            "the catalogue needs google-adk[mcp] in the agent's environment, or run with --frozen"
        )

    def reserve_book(shelf: str, card: str) -> dict:
        """Reserves a book for the owner of a library card."""
        return find_book("")

    catalogue: BaseToolset = NotInstalled()
else:
    server = StdioServerParameters(command=sys.executable, args=[str(HERE / "catalogue_server.py")])
    catalogue = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=20))

root_agent = LlmAgent(
    name="library_desk",
    model=ScriptedModel(script=HERE / "script.json"),
    description="Finds and reserves books.",
    instruction="Look a book up before you reserve it. Say so if the library does not have it.",
    tools=[catalogue],
)

"""`polyhop serve`: the page, the HTTP API, OpenAI's chat API and MCP, in one process on one port."""

"""A client of the protocol's own SDK asks `holdup mcp` three times: from a time to cause and evidence.

mcp_session.py HOLDUP DIR RECORDING FROM TO: prints what is wrong; exit 1 if anything is.
"""

import asyncio
import json
import sys

try:
    from mcp import ClientSession, StdioServerParameters, stdio_client
except ModuleNotFoundError:
    print("skipped: target/py has no mcp; run: cargo xtask setup")
    sys.exit(0)


async def session(holdup, folder, recording, begin, end):
    async with stdio_client(StdioServerParameters(command=holdup, args=["mcp", folder])) as (read, write):
        async with ClientSession(read, write) as client:
            await client.initialize()
            tools = {tool.name for tool in (await client.list_tools()).tools}

            async def ask(tool, **arguments):
                answer = await client.call_tool(tool, arguments)
                return json.loads(answer.content[0].text)

            names = [one["name"]["untrusted"] for one in await ask("recordings")]
            diagnosis = await ask("diagnose", **{"recording": recording, "from": begin, "to": end})
            evidence = await ask("evidence", recording=recording, cause=diagnosis["culprit"])
            wrong = []
            if not {"recordings", "episodes", "diagnose", "evidence", "next_command", "explain"} <= tools:
                wrong.append(f"tools: {tools}")
            if recording not in names:
                wrong.append(f"recordings: {names}")
            if evidence["outcome"] != "found" or not evidence["of"]["evidence"]:
                wrong.append(f"evidence: {evidence}")
            return wrong


problems = asyncio.run(session(*sys.argv[1:]))
print("\n".join(problems))
sys.exit(1 if problems else 0)

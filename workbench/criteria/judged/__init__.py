"""Criteria that use a judge or a service. Each module has `async def score(request, bench) -> Scored`."""

"""Criteria that use a judge or a service. The module of a criterion has `async def score(request, bench) -> Scored`."""

"""Which planner a node has: rules, or a model with rules behind it. docs/planner.md.

planner = "llm", OPENAI_BASE_URL, OPENAI_API_KEY ──> ModelPlanner(Endpoint)        anything missing ──> Rules
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from ioa_p2p.llm.endpoint import Endpoint, place_of
from ioa_p2p.llm.port import Model, ModelError
from ioa_p2p.mind.delegation import Delegating
from ioa_p2p.mind.llm import ModelPlanner
from ioa_p2p.mind.planner import Planner
from ioa_p2p.mind.rules import Rules
from ioa_p2p.node.config import Config

log = logging.getLogger(__name__)


def model_of(config: Config, environment: Mapping[str, str]) -> Model | None:
    """The model that plans, if the owner wants one and says where; no request is made yet."""
    if config.planner != "llm":
        return None
    place = place_of(environment, config.model)
    if place is None:
        log.warning("planner is llm, but OPENAI_BASE_URL and OPENAI_API_KEY are not both set: rules plan")
        return None
    return Endpoint(place)


@asynccontextmanager
async def opened(model: Model | None) -> AsyncGenerator[None, None]:
    """Loaded in the background meanwhile, closed at the end."""
    if model is None:
        yield
        return
    warming = asyncio.create_task(_warm(model))
    try:
        yield
    finally:
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        await model.aclose()


async def _warm(model: Model) -> None:
    try:
        await model.warm()
    except ModelError as fault:
        log.warning("rules plan: %s (%s)", fault, fault.hint)


def planner_of(model: Model | None) -> Planner:
    """With a model it plans, and rules where it fails."""
    if model is None:
        return Delegating(Rules())
    log.info("plans are made by %s", model.name)
    return ModelPlanner(model, Delegating(Rules()))

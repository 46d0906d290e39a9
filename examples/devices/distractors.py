"""Near misses: agents whose skills sound like what was asked and are something else. All of them work."""

import re
import statistics

from ioa_p2p.adapters.agent import Failed, skill

GERMAN = {"all": "alle", "devices": "Geräte", "fine": "gut", "are": "sind", "my": "meine", "report": "Bericht"}
BARS = "▁▂▃▄▅▆▇█"


@skill(
    "weather.report",
    inputs=["weather.observations"],
    outputs=["weather.text"],
    description="Write a short weather report for a garden from its observations: temperature, rain, frost.",
    tags=["weather", "report", "garden"],
)
def weather(task):
    observations = numbers(task.inputs.get("weather.observations", []))
    if not observations:
        return Failed("no-observations", "no temperatures were given", retry=False)
    frost = "Frost: cover the beds." if min(observations) < 0 else "No frost."
    return f"Between {min(observations):g} and {max(observations):g} degrees. {frost}"


@skill(
    "stock.chart",
    inputs=["stock.prices"],
    outputs=["text.chart"],
    description="Draw a chart of stock prices as one line of text, with their trend.",
    tags=["chart", "stocks", "finance"],
)
def stock(task):
    prices = numbers(task.inputs.get("stock.prices", []))
    if not prices:
        return Failed("no-prices", "no prices were given", retry=False)
    low, span = min(prices), max(prices) - min(prices) or 1.0
    return "".join(BARS[round((price - low) / span * (len(BARS) - 1))] for price in prices)


@skill(
    "sleep.analyse",
    inputs=["sleep.nights"],
    outputs=["sleep.findings"],
    description="Find unusual nights in measurements of sleep and compare them with your average.",
    tags=["sleep", "health", "unusual"],
)
def sleep(task):
    nights = numbers(task.inputs.get("sleep.nights", []))
    if not nights:
        return Failed("no-nights", "no hours of sleep were given", retry=False)
    usual = statistics.median(nights)
    return {"usual_hours": usual, "unusual": [hours for hours in nights if abs(hours - usual) > 2]}


@skill(
    "text.translate",
    inputs=["text.english"],
    outputs=["text.german"],
    description="Translate a short English text, such as a report, word by word into German.",
    tags=["translation", "german"],
)
def translate(task):
    text = " ".join(str(each) for each in task.inputs.get("text.english", []))
    return re.sub(r"\w+", lambda word: GERMAN.get(word[0].lower(), word[0]), text)


def numbers(values: list) -> list[float]:
    """All numbers in a list of numbers or lists."""
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [float(each) for each in flat if isinstance(each, int | float)]

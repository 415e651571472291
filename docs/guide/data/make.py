#!/usr/bin/env python3
"""Makes the small files that the guide reads: invented bike rentals, molecules, click streams and flights. python3 make.py writes them beside itself; the numbers are the same each time.

Each is a chain with hidden groups that are known here, so that the guide can say whether they were found."""
import sys
from pathlib import Path
from random import Random

BIKES = {
    "old town": ["Cathedral", "Market Square", "Town Hall", "Museum", "Old Bridge", "Theatre"],
    "campus": ["Library", "Sports Hall", "Lecture Halls", "Dormitory North", "Dormitory South", "Botanic Garden"],
    "station quarter": ["Main Station East", "Main Station West", "Bus Terminal", "Office Park", "Courthouse"],
    "harbour": ["Harbour Gate", "Fish Market", "Ferry", "Lighthouse", "Boat Club", "Dunes"],
}
FLIGHTS = {
    "north": ["OSL", "BGO", "TRD", "ARN", "GOT", "CPH", "HEL", "TMP"],
    "centre": ["FRA", "MUC", "BER", "HAM", "VIE", "ZRH", "PRG", "WAW"],
    "west": ["LHR", "MAN", "EDI", "DUB", "CDG", "LYS", "AMS", "BRU"],
    "south": ["MAD", "BCN", "LIS", "OPO", "FCO", "MXP", "ATH", "PMI"],
}
PAGES = {
    "look around": ["/", "/news", "/about", "/jobs", "/press"],
    "shop": ["/shop", "/shop/shoes", "/shop/coats", "/shop/hats", "/cart", "/checkout"],
    "help": ["/help", "/help/returns", "/help/sizes", "/contact", "/login"],
}


def drawn(random: Random, groups: dict[str, list[str]], stay: float):
    """From a place to the next: with probability `stay` within its group; busy places come first in each group."""
    names = list(groups)
    weights = {g: [1 / (k + 1) ** 0.6 for k in range(len(places))] for g, places in groups.items()}
    group = {place: g for g, places in groups.items() for place in places}

    def step(place: str) -> str:
        g = group[place] if random.random() < stay else random.choice(names)
        return random.choices(groups[g], weights[g])[0]

    return step


def counts(seed: int, groups: dict[str, list[str]], stay: float, moves: int, header: str) -> str:
    """Triplets: how often each pair was seen."""
    random = Random(seed)
    step, seen = drawn(random, groups, stay), {}
    places = [p for each in groups.values() for p in each]
    for _ in range(moves):
        start = random.choice(places)
        pair = (start, step(start))
        seen[pair] = seen.get(pair, 0) + 1
    return header + "\n" + "".join(f"{a},{b},{n}\n" for (a, b), n in sorted(seen.items()))


def clicks(seed: int, visits: int) -> str:
    """One visit a line."""
    random = Random(seed)
    step, lines = drawn(random, PAGES, 0.85), []
    for _ in range(visits):
        page, visit = random.choice(["/", "/shop", "/help"]), []
        for _ in range(random.randint(4, 14)):
            visit.append(page)
            page = step(page)
        lines.append(" ".join(visit))
    return "\n".join(lines) + "\n"


HOURS = {
    # Where rides of an hour lead, whatever quarter they begin in; the rest stay in their quarter.
    8: {"campus": 0.3, "station quarter": 0.4},
    12: {"old town": 0.2},
    18: {"old town": 0.3, "harbour": 0.4},
    22: {"old town": 0.7},
}


def rides(seed: int, number: int) -> str:
    """One ride a line, with the time at which it began: the quarters are the same all day, and where they lead changes with the hour. Nothing changes for the campus at noon."""
    random = Random(seed)
    quarter = {place: q for q, places in BIKES.items() for place in places}
    names = list(quarter)
    lines = []
    for _ in range(number):
        hour, start = random.choices(list(HOURS), [4, 2, 4, 2])[0], random.choice(names)
        drawn_to = HOURS[hour]
        goal = random.choices([*drawn_to, quarter[start]], [*drawn_to.values(), 1 - sum(drawn_to.values())])[0]
        lines.append(f"{start},{random.choice(BIKES[goal])},2015-06-{random.randint(1, 30):02d}T{hour:02d}:{random.randint(0, 59):02d}")
    return "start,end,began\n" + "\n".join(sorted(lines, key=lambda l: l.rsplit(",", 1)[1])) + "\n"


def molecule(seed: int, runs: int, frames: int) -> str:
    """One simulation a line: 24 microstates in three basins, between which a move is rare."""
    random = Random(seed)
    basins, lines = [range(0, 8), range(8, 16), range(16, 24)], []
    for run in range(runs):
        basin, walk = run % 3, []
        state = random.choice(basins[basin])
        for _ in range(frames):
            walk.append(str(state))
            u = random.random()
            if u < 0.006:
                # Basins lie in a row: 0 - 1 - 2.
                basin = 1 if basin != 1 else random.choice([0, 2])
                state = random.choice(basins[basin])
            elif u < 0.7:
                state = random.choice(basins[basin])
        lines.append(" ".join(walk))
    return "\n".join(lines) + "\n"


FILES = {
    "bikes.csv": lambda: counts(1, BIKES, 0.75, 12_000, "start_station,end_station,rentals"),
    "bike-stations.csv": lambda: "station,lon,lat,quarter\n"
    + "".join(
        f"{s},{10.0 + 0.02 * (g % 2) + 0.003 * (k % 3):.3f},{54.3 + 0.02 * (g // 2) + 0.003 * (k // 3):.3f},{name}\n"
        for g, (name, stations) in enumerate(BIKES.items())
        for k, s in enumerate(stations)
    ),
    "flights.csv": lambda: counts(2, FLIGHTS, 0.6, 20_000, "origin,destination,flights"),
    "clicks.txt": lambda: clicks(3, 1500),
    "molecule.txt": lambda: molecule(4, 6, 4000),
    "rides.csv": lambda: rides(5, 2500),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, make in FILES.items():
        (folder / name).write_text(make())

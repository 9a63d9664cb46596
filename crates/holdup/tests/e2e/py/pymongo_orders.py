"""A shop's work with pymongo until SIGTERM: find, insert, update, aggregate, and a cursor that is read to its end.

pymongo_orders.py run ITEMS        works; prints a line of JSON: `commands` that succeeded by name, `errors`, and what was `wrong`
pymongo_orders.py count COLLECTION prints how many documents it has

MONGODB_URL has the address. The server's documents are read back and compared; what holdup does is not looked at here.
"""

import collections
import json
import os
import signal
import sys
import time

import pymongo
import pymongo.errors
import pymongo.monitoring

# A test that was killed does not stop it.
LIMIT_SECONDS = 300
# So that the machine is left to others.
PAUSE_SECONDS = 0.1
# Of a cursor; all items take several.
BATCH = 40


class Commands(pymongo.monitoring.CommandListener):
    """Counts what the driver sent."""

    def __init__(self):
        self.succeeded_by_name = collections.Counter()
        self.failures = []

    def started(self, event):
        pass

    def succeeded(self, event):
        self.succeeded_by_name[event.command_name] += 1

    def failed(self, event):
        self.failures.append(f"{event.command_name}: {event.failure}")


def one_round(shop, first, items):
    """Works on five orders from `first` on; says what it read back wrong."""
    orders = shop.pymongo_orders
    wrong = []

    def expect(what, found, expected):
        if found != expected:
            wrong.append(f"{what} of {first}: {found!r}, not {expected!r}")

    orders.insert_many([{"_id": first + place, "state": f"open {first}", "pieces": place} for place in range(1, 6)])
    expect("update", orders.update_one({"_id": first + 1}, {"$inc": {"pieces": 10}}).modified_count, 1)
    expect("find", orders.find_one({"_id": first + 1}), {"_id": first + 1, "state": f"open {first}", "pieces": 11})
    sums = [{"$match": {"state": f"open {first}"}}, {"$group": {"_id": "$state", "pieces": {"$sum": "$pieces"}}}]
    expect("aggregate", list(orders.aggregate(sums)), [{"_id": f"open {first}", "pieces": 25}])
    ids = sorted(item["_id"] for item in shop.item.find({}, {"_id": 1}, batch_size=BATCH))
    expect("cursor", ids, list(range(items)))
    return wrong


def run(url, items):
    is_over = []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(True))
    commands = Commands()
    client = pymongo.MongoClient(
        url, appname="pymongo orders", authMechanism="SCRAM-SHA-256", event_listeners=[commands]
    )
    wrong, errors, first, end = [], [], 0, time.monotonic() + LIMIT_SECONDS
    while not is_over and time.monotonic() < end:
        try:
            wrong += one_round(client.get_default_database(), first, items)
        except pymongo.errors.PyMongoError as error:
            errors.append(f"{type(error).__name__}: {error}")
        first += 5
        time.sleep(PAUSE_SECONDS)
    errors += commands.failures
    print(json.dumps({"commands": commands.succeeded_by_name, "errors": errors[:9], "wrong": wrong[:9]}))


def main():
    (verb, argument), url = sys.argv[1:], os.environ["MONGODB_URL"]
    if verb == "run":
        run(url, int(argument))
    else:
        print(pymongo.MongoClient(url).get_default_database()[argument].count_documents({}))


main()

// A shop's work with MongoDB's own Node driver until SIGTERM, by two workers at once: find, insert, update, aggregate, and a
// cursor that is read to its end.
//
//   node orders.mjs FOLDER/package.json ITEMS
//
// FOLDER has the driver; MONGODB_URL has the address. Prints a line of JSON: `commands` that succeeded by name, `errors`, and
// what was read back `wrong`.

import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

const [folder, items] = process.argv.slice(2);
const { MongoClient } = createRequire(folder)("mongodb");

/** A test that was killed does not stop it. */
const LIMIT_MS = 300_000;
/** So that the machine is left to others. */
const PAUSE_MS = 200;
/** Of a cursor; all items take several. */
const BATCH = 40;
const WORKERS = 2;

const commands = {};
const errors = [];
const wrong = [];
let isOver = false;
process.on("SIGTERM", () => (isOver = true));

function expect(what, found, expected) {
  if (!isDeepStrictEqual(found, expected)) {
    wrong.push(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  }
}

/** Works on five orders from `first` on. */
async function round(shop, first) {
  const orders = shop.collection("node_orders");
  const state = `open ${first}`;
  await orders.insertMany([1, 2, 3, 4, 5].map((place) => ({ _id: first + place, state, pieces: place })));
  const updated = await orders.updateOne({ _id: first + 1 }, { $inc: { pieces: 10 } });
  expect("update", updated.modifiedCount, 1);
  expect("find", await orders.findOne({ _id: first + 1 }), { _id: first + 1, state, pieces: 11 });
  const sums = [{ $match: { state } }, { $group: { _id: "$state", pieces: { $sum: "$pieces" } } }];
  expect("aggregate", await orders.aggregate(sums).toArray(), [{ _id: state, pieces: 25 }]);
  const ids = [];
  for await (const item of shop.collection("item").find({}, { projection: { _id: 1 }, batchSize: BATCH })) {
    ids.push(item._id);
  }
  ids.sort((a, b) => a - b);
  expect("cursor", ids, Array.from({ length: Number(items) }, (_, place) => place));
}

async function work(shop, worker) {
  const end = Date.now() + LIMIT_MS;
  for (let first = worker * 1_000_000; !isOver && Date.now() < end; first += 5) {
    await round(shop, first).catch((error) => errors.push(`${error.name}: ${error.message}`));
    await pause(PAUSE_MS);
  }
}

const options = { appName: "node orders", authMechanism: "SCRAM-SHA-256", monitorCommands: true };
const client = new MongoClient(process.env.MONGODB_URL, options);
client.on("commandSucceeded", ({ commandName }) => (commands[commandName] = (commands[commandName] ?? 0) + 1));
client.on("commandFailed", ({ commandName, failure }) => errors.push(`${commandName}: ${failure.message}`));
await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(client.db(), worker)));
await client.close();
console.log(JSON.stringify({ commands, errors: errors.slice(0, 9), wrong: wrong.slice(0, 9) }));

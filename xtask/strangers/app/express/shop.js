// An ordinary shop: Express and pg on PostgreSQL, in one process, without metrics and traces. It answers what the bench's
// other apps answer. Knobs make it slow in one way or another. It knows nothing of holdup.
"use strict";

const fs = require("node:fs");
const { setTimeout: sleep } = require("node:timers/promises");
const express = require("express");
const pg = require("pg");

const USUAL = {
  pool: 16, leak_every: 0, hold_ms: 0, cpu_ms: 0, sleep_ms: 0, n_plus_one: 0, lock_ms: 0, transaction_ms: 0,
  reconnect: 0, cached_ratio: 0, downstream: 1, answer_bytes: 0, released: 0,
};
const routes = JSON.parse(process.env.SHOP_ROUTES);
const database = `postgres://${process.env.SHOP_DATABASE}`;
let knobs = { ...USUAL };
let pool = newPool(USUAL.pool);
let taken = 0;
let leaked = [];
let locked = Promise.resolve();

function newPool(max) {
  const made = new pg.Pool({ connectionString: database, connectionTimeoutMillis: 10_000, max });
  // A connection that ends while it is idle is replaced by the next request that needs one.
  made.on("error", (error) => console.error(error.message));
  return made;
}

// A pool keeps the connections that it has opened, so a smaller one is a new one.
function resize(max) {
  if (max < pool.options.max) {
    const before = pool;
    pool = newPool(max);
    before.end().catch((error) => console.error(error.message));
  }
  pool.options.max = max;
}

function readKnobs() {
  try {
    knobs = { ...USUAL, ...JSON.parse(fs.readFileSync(process.env.SHOP_KNOBS, "utf8")) };
  } catch {
    // It is replaced at this moment: the next look finds it.
  }
  resize(Math.max(1, knobs.pool));
  if (!knobs.leak_every) {
    leaked.forEach((client) => client.release());
    leaked = [];
  }
}

// What a release may have added to every request.
async function work() {
  if (knobs.cpu_ms) {
    const until = performance.now() + knobs.cpu_ms;
    while (performance.now() < until);
  }
  if (knobs.sleep_ms) {
    await sleep(knobs.sleep_ms);
  }
  if (knobs.lock_ms) {
    locked = locked.then(() => sleep(knobs.lock_ms));
    await locked;
  }
}

async function connect() {
  if (!knobs.reconnect) {
    return pool.connect();
  }
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  return client;
}

function giveBack(client, isGood) {
  if (!client.release) {
    return client.end();
  }
  taken += 1;
  if (knobs.leak_every && taken % knobs.leak_every === 0) {
    leaked.push(client);
  } else {
    client.release(!isGood);
  }
}

// The statements of one request, each with its number.
function steps(name, number) {
  if (name === "category" && knobs.n_plus_one) {
    return Array.from({ length: knobs.n_plus_one }, (_, row) => [routes.item[0], number - 1 + 600 * row]);
  }
  return routes[name === "history" && knobs.released ? "released" : name].map((sql) => [sql, number]);
}

async function query(name, number) {
  if (name === "item" && Math.random() < knobs.cached_ratio) {
    return 1;
  }
  const all = steps(name, number);
  const inTransaction = name === "order" || knobs.transaction_ms > 0;
  const client = await connect();
  let rows = 0;
  let isGood = false;
  try {
    if (inTransaction) {
      await client.query("BEGIN");
    }
    for (const [sql, value] of all) {
      rows += (await client.query(sql.replaceAll("{id}", "$1"), [value])).rowcount ?? 0;
    }
    if (inTransaction) {
      await sleep(knobs.transaction_ms);
      await client.query("COMMIT");
    }
    if (knobs.hold_ms) {
      await sleep(knobs.hold_ms);
    }
    isGood = true;
    return rows;
  } finally {
    await giveBack(client, isGood);
  }
}

const app = express();

app.get("/:name", async (request, response) => {
  const name = request.params.name;
  if (!(name in routes)) {
    response.status(404).json({ error: "not found" });
    return;
  }
  const number = Number(request.query.id ?? 1);
  await work();
  if ((name === "order" || name === "history") && knobs.downstream) {
    await (await fetch(process.env.SHOP_DOWNSTREAM)).text();
  }
  const rows = await query(name, number);
  response.json({ id: number, rows, filler: " ".repeat(knobs.answer_bytes) });
});

readKnobs();
setInterval(readKnobs, 100);
const [host, port] = process.env.SHOP_LISTEN.split(":");
app.listen(Number(port), host, () => console.log("ready", process.env.SHOP_LISTEN));

//! The published schema of scenarios says what the program says. (That of verdicts is held against every verdict
//! the other tests get.)

use std::path::PathBuf;

use holdup_collect::watch::SCHEMES;

use crate::program::{finish, holdup, root};
use crate::python;

const GOOD: [&str; 40] = [
    "target: http://h\nload: {phases: [{rate: 5, for: 1s, mix: {a: 3}}, {ramp: {from: 1, to: 5}, for: 1s, mix: {b: 0}}, {rate: 5, for: 1s, mix: {a: 0, b: 2.5/s, c: 1}}, {for: 1s, mix: {c: 50/s}}]}\noperations: [{name: a, get: /}, {name: b, get: /}, {name: c, get: /, weight: 0}]\n",
    "target: http://h\nload: {users: [{users: 5, for: 1s, mix: {a: 3}}, {users: 5, for: 1s}]}\nsessions: [{name: a, steps: [get: /]}, {name: b, steps: [get: '/${uuid()}']}]\n",
    "target: http://h\nload: {rate: 5, duration: 9s, arrivals: {groups_of: 20}}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 9s, arrivals: {groups_of: 20, spacing: poisson}, seed: 3}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nhttp: {version: 2, keep_alive: false}\noperations: [get: /]\n",
    "target: mysql://u@h\nload: {rate: 5, duration: 1s}\nhttp: {keep_alive: false}\noperations: [query: SELECT 1]\n",
    "target: http://127.0.0.1:80\nload: {rate: 5, duration: 1m30s}\noperations: [get: /]\n",
    "target: http://[::1]:81\nload: {steps: {from: 50, to: 300, step: 50, every: 10s}, connections: 20}\noperations: {post: '/a?b=c', body: x, headers: {A: 1}}\n",
    "name: r\ntarget: http://h\nload: {ramp: {from: 1, to: 10.5}, duration: 250ms, timeout: 2s}\noperations: [{name: s, get: /, weight: 3}]\nthresholds: ['p99 < 500ms', 's p95 < 1s', errors < 1%]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: [{name: apply, in: {topic: t, group: g}, out: {table: public.article}}, {name: index, in: {waiting: jobs, labels: {queue: q}}, out: {counter: jobs_done, labels: {queue: q}}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: {name: send, in: {slot: cdc}, out: {index: '*'}}\n",
    "target: http://h:8080\nload: {rate: 0.5, duration: 2h}\noperations: [get: /]\nthresholds: p50 < 1ms\nwatch: host\n",
    "target: http://h\nload: {spike: {base: 0, peak: 500, at: 10s, for: 5s}, duration: 20s, arrivals: poisson}\noperations: [get: /]\n",
    "target: http://h\nload: {sine: {mean: 100, amplitude: 100, period: 1m}, duration: 90s, arrivals: poisson, seed: 18446744073709551615}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5, for: 1s}, {pause: 2s}, {name: up, ramp: {from: 0, to: 9}, for: 1s}], warm_up: none}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: {rate: 5, for: 10s}, arrivals: even, warm_up: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 64, think: 200ms, duration: 6s, warm_up: auto}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 1, duration: 6s}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log, speed: 0.5, methods: [GET, post]}}\n",
    "target: http://h\nload: {replay: {file: access.log, format: combined, methods: GET}, duration: 1s}\n",
    "target: http://h\nload: {replay: {file: access.log}, connections: 5}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1m}\noperations: [{name: a/b, get: /}]\nthresholds: [p98 < 1s, a/ p99.9 < 1m30s for 1m, 'a/b rate > 4.5 for 10s', rate > 100/s]\n",
    "target: http://h\nload: {rate: 5, duration: 1m}\noperations: [get: /]\nthresholds: [p99 < 1s, {objective: errors < 5% for 10s, abort: true, after: 20s}, {objective: p50 < 9ms}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s, of: sessions}\nsteps: {get: /}\n",
    "target: http://h\nload: {users: 5, iterations: 7, ramp_up: 2s}\nsteps: [{options: '/${uuid()}'}, {think: 1s..2s}, {think: ~1s}, {pace: 2s}, {think: 1.5s}]\n",
    "target: http://h\nload: {users: [{users: 10, for: 20s}, {name: more, ramp: {from: 10, to: 50}, for: 1m}, {users: 0, for: 1s}]}\nsteps: [get: /]\n",
    "target: http://h\nload: {search: knee}\ntrace: false\nsteps: [get: /]\n",
    "target: http://h\nload: {search: {from: 5, most: 1000, within: 2m, objective: p99 < 500ms, errors: 2%, resolution: 5%}, connections: 9}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nvars: {a: 'x${b}', b: 1}\nheaders: {Accept: text/plain}\nsessions: [{name: one, weight: 3, steps: [get: '/${a}']}, {steps: [{post: /, json: {a: [1, '${a}', null]}}]}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{post: /a, form: {a: 1, b: '${uuid()}'}, capture: {t: json /t, n: {json: '/a/*', pick: count, default: 0}, e: {regex: 'a(b)', default: null}}, check: [status == 200, 'size < 5'], on_failure: go_on}, {get: '${t}'}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps:\n- {repeat: 3, as: i, steps: [get: '/${i}']}\n- {repeat: '${i}', steps: [get: /]}\n- {while: '${i} < 3', steps: [{set: {i: '${add(i, 1)}'}}, {get: /}]}\n- {during: 1s, steps: {get: /}}\n- {retry: 3, steps: [get: /]}\n- {if: i exists, steps: [end: session], else: [end: run]}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nfeeders: {f: {list: [{a: 1}, {a: 2}], order: unique, at_end: stop}, g: {list: [x, y], order: random}}\ndefine: {in: [{get: /, capture: {l: {json: '/*', pick: all}}}]}\nsteps: [{call: in}, {feed: f}, {for_each: l, as: x, steps: [get: '/${x}${f.a}${g}']}, {group: a, steps: [get: /]}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{set: {k: a}}, {switch: k, cases: {a: [get: /a], json: [{get: /, capture: {z: status}}], b: []}, else: [get: '/${z}']}, {choose: [{weight: 3, steps: [get: /]}, {weight: 2}]}, {in_turn: [{steps: [get: /]}, {steps: []}]}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsetup: [{post: /a, capture: {t: json /t}}]\noperations: [{get: '/${t}', weight: 2, check: json /id exists}, {name: b, put: /, body: x}]\nteardown: [{delete: '/${t}'}]\n",
    "target: mysql://u@h:3306/shop?tls=on\nload: {rate: 5, duration: 1s}\noperations: [{query: SELECT 1, weight: 3}, {name: buy, transaction: [{query: 'UPDATE a SET b = ? WHERE c = ?', params: [1, '${uuid()}']}, {query: SELECT 2}]}]\nhttp: {tls: {ca: a.pem}}\n",
    "target: postgres://u@h/shop\nload: {users: 2, duration: 1s}\nsteps: [{query: 'SELECT a FROM b WHERE c = ?', params: 5, capture: {a: column a, n: rows}, check: rows > 0}, {think: 1s}, {query: 'SELECT ${a}', prepared: true}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {get: /health, every: 1s, timeout: 250ms, failures: 2, delay: 0s}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: [{get: 'https://other:81/live?deep=1'}, {tcp: 80}, {tcp: 'h:81'}]\n",
    "target: mongodb://h/shop\nload: {rate: 5, duration: 1s}\noperations: [{command: {find: a, filter: {_id: {$oid: 0102030405060708090a0b0c}}}, weight: 3, check: rows > 0}]\n",
    "target: mongodb://u@h:27018/shop?authSource=admin&tls=true\nload: {users: 2, duration: 1s}\nsteps: [{name: buy, transaction: [{command: {insert: a, documents: [{b: '${uuid()}'}]}}, {command: {ping: 1, $db: admin}}], capture: {n: column n}}]\n",
];

const BAD: [&str; 109] = [
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: []\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: [{name: a, in: {topic: t}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: [{name: a, in: {topic: t, group: g, slot: s}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: [{name: a, in: {waiting: jobs}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\npipeline: [{name: a, in: {slot: s}, out: {table: article}}]\n",
    "target: http://h\nload: {phases: [{rate: 5, for: 1s, mix: {a: many}}]}\noperations: [{name: a, get: /}, {name: b, get: /}]\n",
    "target: http://h\nload: {phases: [{for: 1s, mix: {a: 3}}]}\noperations: [{name: a, get: /}, {name: b, get: /}]\n",
    "target: http://h\nload: {phases: [{ramp: {from: 1, to: 5}, for: 1s, mix: {a: 3/s}}]}\noperations: [{name: a, get: /}, {name: b, get: /}]\n",
    "target: http://h\nload: {phases: [{rate: 5, for: 1s}, {pause: 1s, mix: {a: 3}}]}\noperations: [{name: a, get: /}, {name: b, get: /}]\n",
    "target: http://h\nload: {users: [{users: 5, for: 1s, mix: {a: 3/s}}]}\noperations: [{name: a, get: /}, {name: b, get: /}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s, mix: {a: 3}}\noperations: [{name: a, get: /}, {name: b, get: /}]\n",
    "target: http://h\nload: {rate: 5, duration: 9s, arrivals: {groups_of: 0}}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 9s, arrivals: {spacing: poisson}}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 9s, arrivals: {groups_of: 20}, seed: 3}\noperations: [get: /]\n",
    "target: http://h\nload: {search: knee, arrivals: {groups_of: 20}}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log}, arrivals: {groups_of: 20}}\n",
    "target: http://h\nload: {rate: 5, duration: 1s, open_all: true}\nhttp: {keep_alive: false}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nhttp: {keep_alive: never}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nhttp: {version: 2, streams: 5, keep_alive: false}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {every: 1s}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {get: /, tcp: 80}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {get: health}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {get: /, evry: 1s}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {get: /, every: 1}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {get: /, failures: 0}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nprobe: {tcp: 0}\n",
    "load: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: 127.0.0.1:80\nload: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: ftp://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: http://h/path\nload: {rate: 5, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 20}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 0, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, ramp: {from: 1, to: 2}, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {steps: {from: 1, to: 2, step: 1, every: 1s}, duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, durration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: []\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [{get: /, post: /}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: path]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [p100 < 1s]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [p99 < 1s for 30]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [rate < 5]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [{abort: true}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nthresholds: [{objective: p99 < 1s, after: 5s}]\n",
    "target: http://h\nload: {duration: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, steps: {from: 1, to: 2, step: 1, every: 1s}}\noperations: [get: /]\n",
    "target: http://h\nload: {spike: {base: 1, peak: 5, at: 1s, for: 1s}}\noperations: [get: /]\n",
    "target: http://h\nload: {spike: {base: 1, peak: 5, at: 1s}, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {sine: {mean: 1, amplitude: 1}, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: []}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5, for: 1s}], duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5}]}\noperations: [get: /]\n",
    "target: http://h\nload: {phases: [{rate: 5, pause: 1s}]}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, users: 5, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 5, connections: 5, duration: 5s}\noperations: [get: /]\n",
    "target: http://h\nload: {users: 5, duration: 5s, arrivals: poisson}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 5s, think: 1s}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 5s, seed: 1}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 5s, arrivals: even, seed: 1}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log}, arrivals: poisson}\n",
    "target: http://h\nload: {replay: {file: access.log, methods: GET}}\noperations: [get: /]\n",
    "target: http://h\nload: {replay: {file: access.log, format: xml}}\n",
    "target: http://h\nload: {rate: 5, duration: 5s, warm_up: 5}\noperations: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\noperations: [get: /]\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: []\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{think: 1}, {get: /}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{repeat: 3}, {get: /}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{repeat: often, steps: [get: /]}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, weight: 3}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, think: 3s}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, body: a, json: 1}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, on_failure: retry}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, capture: {a: xpath //a}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, capture: {a: {json: /a, regex: b}}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, capture: {a: {json: /a, pick: most}}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, capture: {1a: status}}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /}, {end: here}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /}, {retry: 0, steps: [get: /]}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{in_turn: [{weight: 2, steps: [get: /]}]}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /}, {wait: 3s}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsessions: [{name: a}]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nfeeders: {f: {order: random}}\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nfeeders: {f: {list: [1], order: unique, at_end: again}}\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nvars: {exists: 1}\nsteps: [get: /]\n",
    "target: http://h\nload: {users: 5, iterations: 0}\nsteps: [get: /]\n",
    "target: http://h\nload: {users: 5}\nsteps: [get: /]\n",
    "target: http://h\nload: {users: [{users: 5, for: 1s}], duration: 1s}\nsteps: [get: /]\n",
    "target: http://h\nload: {users: [{users: 5, ramp: {from: 1, to: 2}, for: 1s}]}\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\nsteps: [{get: /, check: body contains two words}]\nheaders: {Connection: close}\n",
    "target: http://h\nload: {users: 5, duration: 1s, of: sessions}\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s, iterations: 5}\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s, of: visits}\nsteps: [get: /]\n",
    "target: http://h\nload: {rate: 5, duration: 1s}\ntrace: some\nsteps: [get: /]\n",
    "target: http://h\nload: {search: peak}\nsteps: [get: /]\n",
    "target: http://h\nload: {search: knee, duration: 1m}\nsteps: [get: /]\n",
    "target: http://h\nload: {search: {objective: mean < 5ms}}\nsteps: [get: /]\n",
    "target: mysql://h/shop\nload: {rate: 5, duration: 1s}\noperations: [query: SELECT 1]\n",
    "target: mysql://u@h\nload: {rate: 5, duration: 1s}\nheaders: {A: b}\noperations: [query: SELECT 1]\n",
    "target: mysql://u@h\nload: {rate: 5, duration: 1s}\nhttp: {streams: 5}\noperations: [query: SELECT 1]\n",
    "target: mysql://u@h\nload: {rate: 5, duration: 1s}\noperations: [{query: 'SELECT ?', params: [1], prepared: false}]\n",
    "target: mysql://u@h\nload: {rate: 5, duration: 1s}\noperations: [{transaction: [{query: SELECT 1}], params: [1]}]\n",
    "target: mysql://u@h\nload: {rate: 5, duration: 1s}\noperations: [{transaction: []}]\n",
    "target: mongodb://h\nload: {rate: 5, duration: 1s}\noperations: [command: find]\n",
    "target: mongodb://a,b/shop\nload: {rate: 5, duration: 1s}\noperations: [command: {ping: 1}]\n",
    "target: mongodb://h/shop\nload: {rate: 5, duration: 1s}\nheaders: {A: b}\noperations: [command: {ping: 1}]\n",
    "target: mongodb://h/shop\nload: {rate: 5, duration: 1s}\noperations: [{command: {ping: 1}, params: [1]}]\n",
    "target: mongodb://h/shop\nload: {rate: 5, duration: 1s}\noperations: [{command: {}}]\n",
    "target: mongodb://h/shop\nload: {rate: 5, duration: 1s}\noperations: [{transaction: [{command: {ping: 1, lsid: 1}}]}]\n",
];

/// What the scenarios replay, beside them.
const LOG: &str = "10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.1\" 200 2326\n";

/// Rows that they use, beside them.
const ACCOUNTS: &str = "user,email,password\nanna,anna@example.org,a-1\n";

/// Whole scenarios that the documentation shows.
fn documented() -> Vec<String> {
    let folder = std::fs::read_dir(root().join("docs/scenario")).unwrap().map(|entry| entry.unwrap().path());
    let pages = folder.chain(["README.md", "docs/scenario.md"].map(|page| root().join(page)));
    let pages = pages.map(std::fs::read_to_string);
    let blocks = pages.flatten().flat_map(|page| {
        let after: Vec<String> = page.split("```yaml\n").skip(1).map(str::to_owned).collect();
        after.into_iter().filter_map(|text| Some(text.split_once("```")?.0.to_owned()))
    });
    blocks
        .filter(|text| ["target:", "load:"].iter().all(|key| text.lines().any(|line| line.starts_with(key))))
        .collect()
}

#[test]
fn schema_and_program_agree_on_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("access.log"), LOG).unwrap();
    std::fs::write(dir.path().join("accounts.csv"), ACCOUNTS).unwrap();
    let write = |kind: &str, texts: &[&str]| -> Vec<PathBuf> {
        let paths = (0..texts.len()).map(|i| dir.path().join(format!("{kind}-{i}.yaml")));
        paths.zip(texts).inspect(|(path, text)| std::fs::write(path, text).unwrap()).map(|(path, _)| path).collect()
    };
    let documented = documented();
    assert!(!documented.is_empty(), "the documentation shows a scenario");
    let documented: Vec<&str> = documented.iter().map(String::as_str).collect();
    let (good, bad) = (write("good", &[&GOOD[..], &documented].concat()), write("bad", &BAD));
    for (files, code) in [(&good, Some(0)), (&bad, Some(2))] {
        for file in files {
            let done = finish(holdup(["run", "--check"]).arg(file), 10);
            assert_eq!(done.code(), code, "{}: {}{}", std::fs::read_to_string(file).unwrap(), done.stdout, done.stderr);
        }
    }
    // Every source there is; not all of them are on this machine.
    let sources: Vec<String> = SCHEMES.iter().map(|scheme| format!("'{}'", scheme.example)).collect();
    let watched = format!(
        "target: http://h\nload: {{rate: 5, duration: 1s}}\noperations: [get: /]\nwatch: [{}]\n",
        sources.join(", ")
    );
    let watched = write("watched", &[&watched]);
    let labs = std::fs::read_dir(root().join("labs")).unwrap();
    let scenarios: Vec<PathBuf> =
        labs.map(|lab| lab.unwrap().path().join("scenario.yaml")).filter(|path| path.exists()).collect();
    assert!(!scenarios.is_empty());
    let arguments = |kind: &str, files: &[PathBuf]| -> Vec<PathBuf> {
        std::iter::once(PathBuf::from(kind)).chain(files.iter().cloned()).collect()
    };
    python::check("scenarios.py", &arguments("good", &[good, watched, scenarios].concat()));
    python::check("scenarios.py", &arguments("bad", &bad));
}

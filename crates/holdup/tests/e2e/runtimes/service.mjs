// A service on Node.js with prom-client's metrics of the event loop and the collector, made from the same sources.
// /pause?seconds=N: for N seconds a callback computes for 50 ms, ten times a second. It counts that time by itself.
import http from 'node:http';
import { monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';

const loop = monitorEventLoopDelay({ resolution: 10 });
loop.enable();
const collected = { sum: 0, count: 0 };
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
        collected.sum += entry.duration / 1e3;
        collected.count += 1;
    }
}).observe({ entryTypes: ['gc'] });
let blocked = 0;

function block() {
    const begun = performance.now();
    while (performance.now() < begun + 50);
    blocked += (performance.now() - begun) / 1e3;
}

function metrics() {
    const lag = { mean: loop.mean, stddev: loop.stddev, max: loop.max, p99: loop.percentile(99) };
    loop.reset();
    const lines = Object.entries(lag).map(([what, ns]) => `nodejs_eventloop_lag_${what}_seconds ${ns / 1e9}`);
    lines.push(`nodejs_gc_duration_seconds_sum{kind="minor"} ${collected.sum}`);
    lines.push(`nodejs_gc_duration_seconds_count{kind="minor"} ${collected.count}`);
    lines.push(`own_stopped_seconds_total ${blocked}`);
    return lines.join('\n') + '\n';
}

http.createServer((request, response) => {
    const url = new URL(request.url, 'http://service');
    if (url.pathname === '/pause') {
        const timer = setInterval(block, 100);
        setTimeout(() => clearInterval(timer), Number(url.searchParams.get('seconds')) * 1e3);
    }
    response.end(url.pathname === '/metrics' ? metrics() : 'done\n');
}).listen(Number(process.argv[2]), '127.0.0.1');

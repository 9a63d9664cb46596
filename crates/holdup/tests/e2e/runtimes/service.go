// A service in Go with the metrics of its scheduler and collector, as Prometheus' client for Go names them: buckets at
// powers of ten, and the sum of their lower bounds.
// /pause?seconds=N: for N seconds four goroutines compute, for which GOMAXPROCS leaves one thread. Each of them, and
// four that sleep a millisecond at a time, counts for how long it was kept from running.
package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const latencies = "/sched/latencies:seconds"

var stoppedNs atomic.Int64

func compute(until time.Time) {
	before := time.Now()
	for before.Before(until) {
		now := time.Now()
		// A turn of others, not a slow look at the clock.
		if gap := now.Sub(before); gap > time.Millisecond {
			stoppedNs.Add(int64(gap))
		}
		before = now
	}
}

func sleep(until time.Time) {
	for time.Now().Before(until) {
		begun := time.Now()
		time.Sleep(time.Millisecond)
		if late := time.Since(begun) - time.Millisecond; late > time.Millisecond {
			stoppedNs.Add(int64(late))
		}
	}
}

func text() string {
	var out strings.Builder
	samples := []metrics.Sample{{Name: latencies}}
	metrics.Read(samples)
	histogram := samples[0].Value.Float64Histogram()
	total, sum, bounds := uint64(0), 0.0, []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, math.Inf(1)}
	at, low := 0, 0.0
	for _, bound := range bounds {
		inside := uint64(0)
		for at < len(histogram.Counts) && histogram.Buckets[at+1] <= bound {
			inside += histogram.Counts[at]
			at++
		}
		total += inside
		sum += low * float64(inside)
		low = bound
		le := "+Inf"
		if !math.IsInf(bound, 1) {
			le = strconv.FormatFloat(bound, 'g', -1, 64)
		}
		fmt.Fprintf(&out, "go_sched_latencies_seconds_bucket{le=%q} %d\n", le, total)
	}
	fmt.Fprintf(&out, "go_sched_latencies_seconds_sum %g\ngo_sched_latencies_seconds_count %d\n", sum, total)
	var collected debug.GCStats
	debug.ReadGCStats(&collected)
	fmt.Fprintf(&out, "go_gc_duration_seconds_sum %g\n", collected.PauseTotal.Seconds())
	fmt.Fprintf(&out, "go_gc_duration_seconds_count %d\n", collected.NumGC)
	fmt.Fprintf(&out, "go_sched_gomaxprocs_threads %d\n", runtime.GOMAXPROCS(0))
	fmt.Fprintf(&out, "own_stopped_seconds_total %g\n", float64(stoppedNs.Load())/1e9)
	return out.String()
}

func main() {
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text()) })
	http.HandleFunc("/pause", func(w http.ResponseWriter, r *http.Request) {
		seconds, _ := strconv.ParseFloat(r.URL.Query().Get("seconds"), 64)
		until := time.Now().Add(time.Duration(seconds * 1e9))
		for i := 0; i < 4; i++ {
			go compute(until)
			go sleep(until)
		}
		fmt.Fprintln(w, "done")
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "done") })
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}

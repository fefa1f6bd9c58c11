package main

import (
	"regexp"
	"testing"
)

var tools = map[string]*regexp.Regexp{
	"producer-perf-test": apacheProduced, "consumer-perf-test": apacheConsumed, "rdkafka -P": rdProduced, "rdkafka -G": rdConsumed,
}

func TestWhatToolsSayIsUnderstood(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		records int64
		rate    float64
	}{
		"producer-perf-test": {`Warmup first 3000 records. Steady state results will print after the complete test summary.
[2026-11-30 17:04:53,297] WARN [Producer clientId=perf-producer-client] The metadata response reported a recoverable issue
1 records sent, 0.1 records/sec (0.00 MB/sec), 11421.0 ms avg latency, 11421.0 ms max latency.
In steady state.
16983 records sent, 3383.1 records/sec (3.30 MB/sec), 136.2 ms avg latency, 384.0 ms max latency.
30000 records sent, 1464.915279 records/sec (1.43 MB/sec), 149.34 ms avg latency, 11421.00 ms max latency, 128 ms 50th, 326 ms 95th, 565 ms 99th, 911 ms 99.9th.
27000 steady state records sent, 3511.509949 records/sec (3.43 MB/sec), 137.69 ms avg latency, 612.00 ms max latency, 124 ms 50th, 300 ms 95th, 383 ms 99th, 612 ms 99.9th.
`, 27000, 3511.509949},
		"consumer-perf-test": {"2026-11-30 17:05:20:378, 2026-11-30 17:05:29:994, 29.2969, 3.0467, 30000, 3119.8003, 7141, 2475, 11.8371, 12121.2121\n", 30000, 12121.2121},
		"rdkafka -P": {`%4|1796058331.199|CONFWARN|rdkafka#producer-1| [thrd:app]: Configuration property session.timeout.ms is a consumer property
% Sending 30000 messages of size 1024 bytes
% 30000 messages produced (30720000 bytes), 30000 delivered (offset 89999, 0 failed) in 225ms: 133032 msgs/s and 136.23 MB/s, 0 produce failures, 0 in queue, no compression
`, 30000, 133032},
		"rdkafka -G": {`% Group rebalanced (EAGER): 1 new partition(s) assigned
% 0 messages (0 bytes) consumed in 0ms: 0 msgs/s (0.00 MB/s)
% 30000 messages (30720000 bytes) consumed in 165ms: 181336 msgs/s (185.69 MB/s)
% Average application fetch latency: 110us
`, 30000, 181336},
	} {
		records, rate, err := told(tools[name], c.text)
		if err != nil || records != c.records || rate != c.rate {
			t.Errorf("%s: %d records, %v a second, %v", name, records, rate, err)
		}
		if _, _, err := told(tools[name], "java.lang.OutOfMemoryError\n"); err == nil {
			t.Errorf("%s: nothing was said and understood", name)
		}
	}
	failed := "% 9 messages produced (9 bytes), 8 delivered (offset 89999, 1 failed) in 225ms: 133032 msgs/s\n"
	if _, _, err := told(tools["rdkafka -P"], failed); err == nil {
		t.Error("a run with a failed record was measured")
	}
}

func TestScenariosOfAMissingProgramAreSkipped(t *testing.T) {
	s := settings{rdkafka: "/none/such"}
	if err := s.lacks(scenario{needs: rdkafka | disk}); err == nil {
		t.Error("the program is not there")
	}
	if err := s.lacks(scenario{needs: disk}); err != nil {
		t.Error(err)
	}
}

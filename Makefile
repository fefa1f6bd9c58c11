# Shortcuts. Everything here is a plain go command that can be typed as well.

.PHONY: build test mutants fuzz crash cases acceptance chaos compat-kafka failover bench bench-all bench-start plots

# One static binary in bin/.
build:
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/tidemark ./cmd/tidemark

test:
	go test ./...

# Removes the rules one by one; a script, a random walk and a seed of the simulator must notice each. Writes docs/proof.md.
mutants:
	go test ./internal/sim/mutants -mutants -v -timeout 0

# Every fuzz target for FUZZTIME, one after the other, each with PARALLEL workers and a line when it is done; FUZZ names some of
# them as folder:target. An input that fails is written to testdata/fuzz beside the target and is a plain test from then on. When
# the time is up within an input, go test may call that a failure of the context; here it is none.
FUZZTIME ?= 10m
PARALLEL ?= 1
FUZZ ?= api:FuzzRequest wire:FuzzResponse transport:FuzzFrames record:FuzzBatch replicas:FuzzLogDirectory \
	controlplane:FuzzMetadata core/group:FuzzGroup core/controller:FuzzController
fuzz:
	@mkdir -p bin; failed=0; for t in $(FUZZ); do \
		out=bin/fuzz-$${t#*:}.txt; \
		if go test ./internal/$${t%:*} -run '^$$' -fuzz "^$${t#*:}\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s -parallel $(PARALLEL) >$$out 2>&1 || \
			{ grep -q '^    context deadline exceeded' $$out && ! grep -v '^    context deadline' $$out | grep -q '^   \|^panic:\|^fatal error:'; }; \
		then echo "$${t#*:}: clean, $$(grep -o 'execs: [0-9]*.*' $$out | tail -1)"; \
		else failed=1; echo "$${t#*:}: FAILED"; grep -v '^fuzz: ' $$out; fi; \
	done; exit $$failed

# Cuts the power at every operation on every durable format; the short form runs with the other tests.
crash:
	go test ./internal/storage/crash -full -v -timeout 120m

# Every promise on a fake clock, with the long walks.
cases:
	go test ./compat/cases -full -timeout 60m

# Real processes, foreign clients, killed leaders; minutes, not seconds. With KAFKA=COMMAND, which runs Apache's tools as
# COMMAND tool NAME, its console producer and consumer take part.
acceptance: build
	go run ./compat/acceptance -binary bin/tidemark

# Real processes in network namespaces of their own, hurt by faults that SEED decides for DURATION; a judged history. Needs root,
# iproute2 and nftables; toxiproxy is installed into bin/tools. CHAOS takes further flags of compat/chaos.
chaos: build
	GOBIN=$(CURDIR)/bin/tools go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0
	CGO_ENABLED=0 go build -o bin/chaos ./compat/chaos
	bin/chaos -binary bin/tidemark -seed $(or $(SEED),0) -duration $(or $(DURATION),15m) $(CHAOS)

# Apache Kafka's own tools against three processes; KAFKA names the command that starts clusters and runs the tools.
compat-kafka: build
	go run ./compat/kafka -binary bin/tidemark

# How long a killed leader is missed with Kafka's own timeouts, the active controller among the killed.
failover: build
	go run ./compat/acceptance -binary bin/tidemark -records 60000 -seconds 60 -kills 12 -blackouts 3 -kafka-timeouts -kafka ""

# Peak produce and consume beside Apache Kafka; KAFKA names the command that starts clusters of it.
bench: build
	go run ./bench/scenarios -binary bin/tidemark -pairs 3 -run '^(produce-1k-rf[13]-acks-all|produce-100-rf3-acks-all|consume-hot)$$' $(BENCH)

# Every scenario beside Apache Kafka in alternating pairs, hours; BENCH takes flags of bench/scenarios.
bench-all: build
	go run ./bench/scenarios -binary bin/tidemark $(BENCH)

# What bench-all measured last, drawn into docs/performance.
plots:
	go run ./bench/plots

# How soon a cluster is of use, and what it costs idle.
bench-start: build
	go run ./bench/start -binary bin/tidemark

# Shortcuts. Everything here is a plain go command that can be typed as well.

.PHONY: build test acceptance

# One static binary in bin/.
build:
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/tidemark ./cmd/tidemark

test:
	go test ./...

# Real processes, foreign clients, killed leaders; minutes, not seconds.
acceptance: build
	go run ./compat/acceptance -binary bin/tidemark

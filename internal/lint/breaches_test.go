package lint

import "strings"

// breaches are files with the number of findings that a rule must have in them.
var breaches = []struct {
	rule     string
	path     string
	text     string
	findings int
}{
	{"imports run downwards", "internal/core/group/a.go", `package group
import "github.com/tidemark-log/tidemark/internal/storage"`, 1},
	{"imports run downwards", "internal/core/model/a.go", `package model
import "github.com/tidemark-log/tidemark/internal/core/image"`, 1},
	{"imports run downwards", "internal/record/a.go", `package record
import "github.com/tidemark-log/tidemark/internal/wire"`, 1},
	{"imports run downwards", "internal/node/a.go", `package node
import "github.com/tidemark-log/tidemark"`, 1},
	{"imports run downwards", "internal/brandnew/a.go", `package brandnew`, 1},
	{"imports run downwards", "brandnew/a.go", `package brandnew`, 1},
	{"imports run downwards", "internal/core/group/a.go", `package group
import ("sync"; "github.com/tidemark-log/tidemark/internal/core/model"; "github.com/tidemark-log/tidemark/internal/core/purgatory")`, 0},
	{"imports run downwards", "internal/core/group/a_test.go", `package group
import "github.com/tidemark-log/tidemark/internal/storage"`, 0},
	{"imports run downwards", "cmd/tidemark/main.go", `package main
import "github.com/tidemark-log/tidemark/internal/cli"`, 0},

	{"cores are pure", "internal/core/group/a.go", `package group
import ("net/netip"; "os"; "sync/atomic"; "context"; "log/slog"; "math/rand/v2"; "crypto/rand")`, 7},
	{"cores are pure", "internal/core/group/a.go", `package group
import "time"
func f(c chan int) { go f(nil); select {}; _ = time.Now(); _ = time.Since }`, 5},
	{"cores are pure", "internal/record/a.go", `package record
import ("sync"; "io"; "time")
var d time.Duration`, 0},
	{"cores are pure", "internal/wire/a.go", `package wire
import "sync"`, 1},
	{"cores are pure", "internal/core/group/a_test.go", `package group
import "os"
func f() { go f() }`, 0},
	{"cores are pure", "internal/node/a.go", `package node
import "sync"
func f() { go f() }`, 0},

	{"shells wait in one room", "internal/node/a.go", `package node
func f() { go f(); select {}; _ = make(chan int); _ = time.Now(); ctx, _ := context.WithCancel(c) }`, 5},
	{"shells wait in one room", "internal/cli/a.go", `package cli
func f() { go f() }`, 0},

	{"exported names are documented", "internal/node/a.go", `package node
type A int
func B() {}
func (A) C() {}
func (*G[T]) D() {}
const E = 1
// Something else.
type F struct{}
// The methods.
type (H int)`, 7},
	{"exported names are documented", "internal/node/a.go", `package node
// A is one.
type A int
// The B of it does.
func B() {}
func (a) C() {}
func d() {}
// Some values.
const (E = 1; F = 2)
var G int // is one
type (
	// H is one.
	H int
	i int
)`, 0},

	{"words are spelled one way", "internal/node/a.go", `package node
// The HWM of the high water mark, which kafka has.
// A message is appended. TODO
/* The ISR set
   and its master. */`, 7},
	{"words are spelled one way", "internal/node/a.go", `package node
// kafka is a name. HW, the high watermark. An error message; flush.messages; the leader-epoch checkpoint.`, 0},
	{"words are spelled one way", "internal/core/quorum/a.go", `package quorum
// A message of raft.`, 0},

	{"names are spelled one way", "internal/node/a.go", `package node
type brokerId int
func (b brokerId) toIsr(topicIds []int) { x, newLeo := 1, 2; var uuidOf, fooUuid int }`, 5},
	{"names are spelled one way", "internal/node/a.go", `package node
type brokerID int
func (b brokerID) identity(ideal int) { x.TopicId = 1; Idle := 2 }`, 0},

	{"no test sleeps", "internal/node/a_test.go", `package node
import "time"
func f() { time.Sleep(1) }`, 1},
	{"no test sleeps", "internal/node/a_test.go", `package node
import ("time"; "testing/synctest")
func f() { time.Sleep(1); synctest.Wait() }`, 0},
	{"no test sleeps", "internal/node/a.go", `package node
import "time"
func f() { time.Sleep(1) }`, 0},

	{"no test is skipped", "internal/node/a_test.go", `package node
func f() { t.Skip(); if testing.Short() { t.Skip() }; if !*long { t.Skip() }; if os.Getenv("A") == "" { t.Skipf("x") } }`, 2},

	{"contexts are passed, not kept", "internal/node/a.go", `package node
type a struct { ctx context.Context }
func f(n int, ctx context.Context) {}
func g(ctx context.Context, n int) {}`, 2},

	{"errors are parts of a line", "internal/node/a.go", `package node
var a = []error{errors.New("Bad thing"), fmt.Errorf("bad %w.", e)}`, 2},
	{"errors are parts of a line", "internal/node/a.go", `package node
var a = []error{errors.New("ISR is empty"), fmt.Errorf("%w: more", e), errors.New("Kafka's log"), errors.New(text)}`, 0},

	{"only the command speaks", "internal/node/a.go", `package node
func f() { fmt.Println(1); os.Exit(1); println(2) }`, 3},
	{"only the command speaks", "internal/cli/a.go", `package cli
func f() { fmt.Println(1); os.Exit(1) }`, 0},

	{"nothing is too long", "a.go", "package a\n" + strings.Repeat("\n", 800), 1},
	{"nothing is too long", "a.go", "package a\n" + strings.Repeat("\n", 799), 0},
	{"nothing is too long", "a.go", "package a\nfunc f() {\n" + strings.Repeat("\tx()\n", 69) + "}", 1},
	{"nothing is too long", "a.go", "package a\nfunc (a[T]) f() {\n" + strings.Repeat("\tx()\n", 68) + "}", 0},

	{"packages are nouns with a good name", "internal/util/a.go", "package util", 1},
	{"packages are nouns with a good name", "internal/node/a.go", "package node", 0},

	{"package comments open with their say", "internal/node/a.go", "// This is a node.\npackage node", 1},
	{"package comments open with their say", "internal/node/a.go", "// Package node runs loops and\n// serves metrics.\npackage node", 1},
	{"package comments open with their say", "cmd/a/a.go", "// Package main is a command.\npackage main", 1},
	{"package comments open with their say", "internal/node/a.go", "// Package node is the process: loops and lives.\npackage node", 0},
	{"package comments open with their say", "cmd/a/a.go", "// Command a does a and b.\npackage main", 0},
}

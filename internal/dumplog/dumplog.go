// Package dumplog prints the files of a log directory in words, as Apache's
// kafka-dump-log does.
package dumplog

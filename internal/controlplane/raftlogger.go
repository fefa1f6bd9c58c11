package controlplane

import (
	"context"
	"fmt"
	"log/slog"

	"go.etcd.io/raft/v3"
)

// raftLogger passes on what raft has to say. Its chatter is for debugging; a
// broken invariant panics, as raft expects, and ends the loop.
type raftLogger struct{ log *slog.Logger }

var _ raft.Logger = raftLogger{}

func (r raftLogger) at(level slog.Level, v ...any) {
	if r.log.Enabled(context.Background(), level) {
		r.log.Log(context.Background(), level, fmt.Sprint(v...))
	}
}

func (r raftLogger) atf(level slog.Level, format string, v ...any) {
	if r.log.Enabled(context.Background(), level) {
		r.log.Log(context.Background(), level, fmt.Sprintf(format, v...))
	}
}

func (r raftLogger) Debug(v ...any)                   { r.at(slog.LevelDebug, v...) }
func (r raftLogger) Debugf(format string, v ...any)   { r.atf(slog.LevelDebug, format, v...) }
func (r raftLogger) Info(v ...any)                    { r.at(slog.LevelDebug, v...) }
func (r raftLogger) Infof(format string, v ...any)    { r.atf(slog.LevelDebug, format, v...) }
func (r raftLogger) Warning(v ...any)                 { r.at(slog.LevelWarn, v...) }
func (r raftLogger) Warningf(format string, v ...any) { r.atf(slog.LevelWarn, format, v...) }
func (r raftLogger) Error(v ...any)                   { r.at(slog.LevelError, v...) }
func (r raftLogger) Errorf(format string, v ...any)   { r.atf(slog.LevelError, format, v...) }
func (r raftLogger) Fatal(v ...any)                   { panic(fmt.Sprint(v...)) }
func (r raftLogger) Fatalf(format string, v ...any)   { panic(fmt.Sprintf(format, v...)) }
func (r raftLogger) Panic(v ...any)                   { panic(fmt.Sprint(v...)) }
func (r raftLogger) Panicf(format string, v ...any)   { panic(fmt.Sprintf(format, v...)) }

package proc

import (
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"
)

func TestNumbersOfAStatusAreReadByName(t *testing.T) {
	got := parse("Name:\tjava\nState:\tS (sleeping)\nVmHWM:\t    2288 kB\nVmRSS:\t    1200 kB\n\nGroups:\t\nvoluntary_ctxt_switches:\t17\n")
	if len(got) != 3 || got["VmHWM"] != 2288 || got["VmRSS"] != 1200 || got["voluntary_ctxt_switches"] != 17 {
		t.Errorf("%v", got)
	}
}

func TestASampleSinceAnotherKeepsTheMemory(t *testing.T) {
	before := Sample{CPU: time.Second, RSS: 10, PeakRSS: 20, Read: 1, Written: 2, DiskRead: 3, DiskWritten: 4}
	after := Sample{CPU: 3 * time.Second, RSS: 11, PeakRSS: 22, Read: 11, Written: 22, DiskRead: 33, DiskWritten: 44}
	want := Sample{CPU: 2 * time.Second, RSS: 11, PeakRSS: 22, Read: 10, Written: 20, DiskRead: 30, DiskWritten: 40}
	if got := after.Since(before); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// A thread that ends takes its account with it; that is no switch undone.
func TestSwitchesAreThoseOfThreadsThatLive(t *testing.T) {
	before := Sample{threads: map[string]switches{"lives": {10, 1}, "ended": {1000, 100}, "number used again": {50, 5}}}
	after := Sample{threads: map[string]switches{"lives": {17, 3}, "new": {20, 2}, "number used again": {4, 6}}}
	if got := after.Since(before).Switches(); got != 7+2+20+2+4+6 {
		t.Errorf("%d switches", got)
	}
	if got := after.Switches(); got != 20+22+10 {
		t.Errorf("a sample that others are taken from changed to %d switches", got)
	}
}

func TestTwoProcessesCostTwiceAsMuch(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	one, err := Take(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if one.RSS == 0 || one.PeakRSS < one.RSS || one.Read == 0 || one.Switches() == 0 {
		t.Errorf("%+v", one)
	}
	two, err := Take(os.Getpid(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if two.PeakRSS < 2*one.PeakRSS || two.Read < 2*one.Read {
		t.Errorf("%+v and %+v", one, two)
	}
	if _, err := Take(1 << 30); err == nil {
		t.Error("a process that is not there has a cost")
	}
}

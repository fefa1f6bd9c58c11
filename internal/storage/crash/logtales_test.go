package crash

var logScenarios = []scenario{
	logScenario("append, roll, flush", func(v *logStory) {
		v.writes(4)
		v.flush()
		v.writes(30)
		v.background()
		v.writes(10)
		v.elect()
		v.writes(25)
		v.flush()
		v.writes(3)
	}),
	logScenario("flush every append", func(v *logStory) {
		for i := range 22 {
			v.write(1 + i%3)
			v.flush()
			v.background()
		}
	}),
	logScenario("truncate within a segment", func(v *logStory) {
		v.writes(8)
		v.flush()
		v.writes(3)
		v.truncate(v.l.LEO() - 9)
		v.elect()
		v.writes(5)
		v.flush()
		v.truncate(v.l.LEO() - 1)
		v.elect()
		v.writes(2)
	}),
	logScenario("truncate across segments", func(v *logStory) {
		v.writes(40)
		v.background()
		v.truncate(33)
		v.elect()
		v.writes(30)
		v.flush()
		v.background()
		v.writes(2)
		v.truncate(v.l.Segments()[1].Base)
		v.elect()
		v.writes(9)
		v.flush()
	}),
	logScenario("start anew", func(v *logStory) {
		v.writes(30)
		v.background()
		v.restart(v.l.LEO() + 500)
		v.elect()
		v.writes(20)
		v.flush()
		v.writes(1)
		v.restart(300)
		v.elect()
		v.writes(20)
		v.background()
		v.flush()
		v.truncate(200) // below the first segment
		v.elect()
		v.writes(3)
		v.flush()
	}),
	logScenario("retention and deleted records", func(v *logStory) {
		v.writes(60)
		v.raise(v.l.LEO() / 2)
		v.retain()
		v.writes(10)
		v.flush()
		v.background()
		v.raise(v.l.LEO() - 3)
		v.retain()
		v.writes(2)
		v.now += 120_000 // the delay is over
		v.background()
		v.raise(v.l.LEO())
		v.retain()
		v.writes(4)
		v.flush()
	}),
	logScenario("an index is lost below the recovery point", func(v *logStory) {
		v.writes(60)
		v.flush()
		v.background()
		must(v.t, v.d.Close())
		must(v.t, v.fs.Remove(root+"/events-0/00000000000000000033.timeindex"))
		must(v.t, v.fs.SyncDir(root+"/events-0"))
		v.open()
		v.writes(2)
		v.flush()
	}),
	logScenario("delete a log, make another of its name", func(v *logStory) {
		v.writes(60)
		v.flush()
		v.background()
		v.raise(v.l.LEO() / 2)
		v.remove(v.d.Delete)
		v.recreate()
		v.writes(20)
		v.flush()
		v.background()
		v.remove(v.d.Stray)
		v.now += 120_000 // the delay of the first one is over
		must(v.t, v.d.RunBackground())
		v.recreate()
		v.writes(4)
		v.flush()
	}),
	logScenario("clean stop", func(v *logStory) {
		v.writes(20)
		v.close(3)
		v.reopen()
		v.elect()
		v.writes(3)
		v.flush()
		v.close(4)
		v.reopen()
		v.close(5)
	}),
}

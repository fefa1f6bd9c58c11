package load

import (
	"syscall"
	"time"
)

// Result is what one load measured. Rates count from the end of the warm-up to
// the last acknowledgement, or to the last record read.
type Result struct {
	Records         int64    `json:"records"` // acknowledged
	Bytes           int64    `json:"bytes"`   // of their values
	Seconds         float64  `json:"seconds"`
	MBPerSecond     float64  `json:"mb_per_second"` // of 10^6 bytes
	RecordsPer      float64  `json:"records_per_second"`
	All             int64    `json:"all_records"`  // acknowledged, with those of the warm-up
	Read            int64    `json:"read_records"` // of all readers together
	ReadBytes       int64    `json:"read_bytes"`
	ReadSeconds     float64  `json:"read_seconds"`
	ReadMBPerSecond float64  `json:"read_mb_per_second"`
	Produce         *Latency `json:"produce,omitempty"`    // from the intended time to the acknowledgement
	EndToEnd        *Latency `json:"end_to_end,omitempty"` // from the intended time to the reader
	Lateness        *Latency `json:"lateness,omitempty"`   // of the generator itself, in an open loop
	ClientCPU       float64  `json:"client_cpu_seconds"`   // of the generator's process
}

func (r *run) result(producers []*producer, consumers []*consumer) Result {
	var res Result
	var produced, late, read []histogram
	var lastAck, lastRead time.Duration
	for _, p := range producers {
		res.Records += p.measured
		res.All += p.acked
		lastAck = max(lastAck, p.last)
		produced, late = append(produced, p.latencies), append(late, p.lateness)
	}
	for _, c := range consumers {
		res.Read += c.measured
		res.ReadBytes += c.bytes
		lastRead = max(lastRead, c.last)
		read = append(read, c.latencies)
	}
	res.Bytes = res.Records * int64(r.o.RecordBytes)
	if res.Seconds = (lastAck - r.o.Warmup).Seconds(); res.Records > 0 {
		res.MBPerSecond = float64(res.Bytes) / 1e6 / res.Seconds
		res.RecordsPer = float64(res.Records) / res.Seconds
	}
	if res.ReadSeconds = (lastRead - r.o.Warmup).Seconds(); res.Read > 0 {
		res.ReadMBPerSecond = float64(res.ReadBytes) / 1e6 / res.ReadSeconds
	}
	res.Seconds, res.ReadSeconds = max(res.Seconds, 0), max(res.ReadSeconds, 0)
	res.Produce, res.EndToEnd, res.Lateness = merged(produced...).latency(), merged(read...).latency(), merged(late...).latency()
	return res
}

// clientCPU is what this process used so far.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package record

// Codec is how the records of a batch are compressed: the three low attribute
// bits (R8.2).
type Codec int8

// The codecs of Kafka. CodecProducer is no codec: it stands for the topic
// config compression.type=producer, which keeps what the producer chose.
const (
	CodecProducer Codec = -1
	CodecNone     Codec = 0
	CodecGzip     Codec = 1
	CodecSnappy   Codec = 2
	CodecLZ4      Codec = 3
	CodecZstd     Codec = 4
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String is the name used in configs and by kafka-dump-log.
func (c Codec) String() string {
	if c == CodecProducer {
		return "producer"
	}
	if c.Known() {
		return codecNames[c]
	}
	return "unknown"
}

// Known reports whether the codec is one of the five that exist.
func (c Codec) Known() bool { return c >= CodecNone && c <= CodecZstd }

// ParseCodec reads a value of compression.type.
func ParseCodec(s string) (Codec, bool) {
	switch s {
	case "producer":
		return CodecProducer, true
	case "uncompressed":
		return CodecNone, true
	}
	for i, n := range codecNames {
		if n == s {
			return Codec(i), true
		}
	}
	return CodecProducer, false
}

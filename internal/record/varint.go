package record

// Kafka's numbers within a record are zigzag varints: those of 32 bits take at most 5
// bytes, those of 64 bits at most 10, and bits beyond the width are dropped. Longer
// ones are refused, for Kafka's clients refuse them.
const (
	maxVarint  = 5
	maxVarlong = 10
)

// varint reads the 32-bit number at the front of b and returns how many bytes it takes:
// 0 when b is too short, -1 when the number is too long.
func varint(b []byte) (int64, int) {
	u, n := uvarint(b, maxVarint)
	return zigzag32(u), n
}

// varlong is varint for 64 bits.
func varlong(b []byte) (int64, int) {
	u, n := uvarint(b, maxVarlong)
	return zigzag(u), n
}

func uvarint(b []byte, most int) (u uint64, n int) {
	for i := range min(len(b), most) {
		u |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return u, i + 1
		}
	}
	if len(b) < most {
		return 0, 0
	}
	return 0, -1
}

func zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func zigzag32(u uint64) int64 { return int64(int32(uint32(u)>>1) ^ -int32(u&1)) }

package redislock

import (
	"strconv"
	"sync"
)

const slots = 16384

// slot is the Cluster slot of a key without braces: CRC16/XMODEM modulo 16384, as in the
// Redis Cluster specification.
func slot(key string) int { return int(crc16(0, key) % slots) }

// crc16 continues the checksum crc with text.
func crc16[T string | []byte](crc uint16, text T) uint16 {
	for i := range len(text) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^text[i]]
	}
	return crc
}

// crcs are the checksums of single bytes.
var crcs = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// slotTags knows for each slot the first number that hashes to it when it follows the prefix. So
// every client finds the same tag.
type slotTags struct {
	prefix string
	once   sync.Once
	tags   []string
}

func (s *slotTags) of(slot int) string {
	s.once.Do(s.find)
	return s.tags[slot]
}

func (s *slotTags) find() {
	s.tags = make([]string, slots)
	before := crc16(0, s.prefix)
	var digits []byte
	for n, missing := 0, slots; missing > 0; n++ { // about 170,000 numbers: a few milliseconds
		digits = strconv.AppendInt(digits[:0], int64(n), 10)
		if at := crc16(before, digits) % slots; s.tags[at] == "" {
			s.tags[at] = s.prefix + string(digits)
			missing--
		}
	}
}

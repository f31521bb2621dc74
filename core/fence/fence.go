package fence

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Max is the largest fence: 2^53. Up to this number a float64, the number type of Lua and JavaScript,
// is exact.
const Max uint64 = 1 << 53

// maxKey is the longest key, in bytes: as long as the longest name of a lock.
const maxKey = 200

// Check returns [ErrInvalid] for a number that is not a fence: 0, which backends without fences give,
// and numbers over [Max].
func Check(fence uint64) error {
	switch {
	case fence == 0:
		return invalidf("fence 0: there is no lease, or its backend mints no fences")
	case fence > Max:
		return invalidf("fence %d: larger than 2^53", fence)
	}
	return nil
}

// Number is a fence as an argument of an SQL statement. An invalid fence fails the statement with
// [ErrInvalid] before it is sent. So 0 cannot slip in as the smallest fence.
//
//	res, err := db.ExecContext(ctx,
//		`UPDATE orders SET paid = $1, fence = $2 WHERE id = $3 AND fence <= $2`,
//		paid, fence.Number(f), id)
//	return fence.Wrote(res, err)
type Number uint64

var _ driver.Valuer = Number(0)

// Value implements driver.Valuer.
func (n Number) Value() (driver.Value, error) {
	if err := Check(uint64(n)); err != nil {
		return nil, err
	}
	return int64(n), nil //nolint:gosec // G115: checked
}

// checkKey says whether key is one under which every dialect keeps a fence as it is: 1 to
// 200 bytes of UTF-8 without control characters.
func checkKey(key string) error {
	switch {
	case key == "":
		return invalidf("key: empty")
	case len(key) > maxKey:
		return invalidf("key %.40q…: %d bytes, over the limit of %d", key, len(key), maxKey)
	case !utf8.ValidString(key):
		return invalidf("key %q: not valid UTF-8", key)
	case strings.ContainsFunc(key, unicode.IsControl):
		return invalidf("key %q: control characters are not allowed", key)
	}
	return nil
}

func check(key string, fence uint64) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return Check(fence)
}

func invalidf(format string, args ...any) error {
	return &invalidError{fmt.Sprintf(format, args...)}
}
